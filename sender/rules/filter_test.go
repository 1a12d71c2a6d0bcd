package rules_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/filter"
	"github.com/surehook/surehook/sender/rules"
)

// A decision about a filter counts while the subscription still asks the same.
func TestAsksTheSame(t *testing.T) {
	paid := func() rules.Asked {
		return rules.Asked{Filter: filter.Read(`{"data.status":"paid"}`), Pinned: "2026-11-01"}
	}
	require.True(t, paid().Equal(paid()))
	for _, other := range []rules.Asked{{Filter: paid().Filter}, {Filter: paid().Filter, Pinned: "2026-11-02"}, {Pinned: "2026-11-01"}, {Filter: filter.Read(`{"data.status":"open"}`), Pinned: "2026-11-01"}} {
		require.False(t, paid().Equal(other), "%+v", other)
	}
}

// A filter is asked about the body that its subscription gets, whichever was made before.
func TestFilterOfThePinnedVersion(t *testing.T) {
	c := rules.Content{
		Type: "order.paid",
		Body: []byte(`{"id":"evt_1","payload_version":"2026-03-01","data":{"is":"2026-03-01"}}`),
		Convert: func(_, _, date string, _ json.RawMessage) (string, json.RawMessage, error) {
			version := "2026-02-01"
			switch {
			case date < "2026-01-01":
				return "", nil, errors.New("nobody knows it any more")
			case date < version:
				version = "2026-01-01"
			}
			return version, json.RawMessage(`{"is":"` + version + `"}`), nil
		},
	}
	for _, pinned := range []string{"2026-01-15", "2026-02-15", "2026-04-01", "2026-02-01", "2026-01-01", "2026-02-28", "2026-03-01", "2026-01-31"} {
		for _, version := range []string{"2026-01-01", "2026-02-01", "2026-03-01"} {
			is := rules.Asked{Filter: filter.Read(`{"data.is":"` + version + `"}`), Pinned: pinned}
			require.Equal(t, version[:7] == pinned[:7] || version == "2026-03-01" && pinned > version, c.Wants(is, false), "%s at %s", version, pinned)
			require.True(t, c.Wants(is, true), "it is addressed to it alone")
		}
	}
	lost := rules.Asked{Filter: filter.Read(`{"data.is":"x"}`), Pinned: "2025-01-01"}
	require.True(t, c.Wants(lost, false), "its delivery waits for its body")
	lost.Filter = filter.Read("{")
	require.False(t, c.Wants(lost, false), "a filter that cannot be read matches nothing")
}

func TestUnreadableSettingsAskNoFilter(t *testing.T) {
	settings, paid, unreadable := sender.ReadSettings([]byte("{")), filter.Read(`{"data.status":"paid"}`), filter.Read("{")
	require.Nil(t, rules.AskedBy(paid, &settings).Filter)
	require.Same(t, unreadable, rules.AskedBy(unreadable, &settings).Filter, "it matches nothing")
	require.Equal(t, rules.Asked{Filter: paid, Pinned: "2026-11-01"}, rules.AskedBy(paid, &sender.Settings{PayloadVersion: "2026-11-01"}))
}
