package sender_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/internal/bedtest"
	"github.com/surehook/surehook/sender/memory"
)

// The body of an event says in which version its data is: the newest of its type, unless the
// producer says another one.
func TestPayloadVersion(t *testing.T) {
	b := bedtest.New(t)
	pub, err := sender.NewPublisher[*memory.Tx](b.Store, &sender.PublisherConfig{
		PayloadVersion: func(eventType string) string { return map[string]string{"invoice.paid": "2026-11-25"}[eventType] },
	})
	require.NoError(t, err)
	for _, c := range []struct {
		eventType, given, want string
		data                   any
	}{
		{"invoice.paid", "", `,"version":1,"payload_version":"2026-11-25","data":{"total":1}}`, json.RawMessage(`{"total":1}`)},
		{"invoice.paid", "2025-03-01", `,"version":2,"payload_version":"2025-03-01","data":{"total":1}}`, json.RawMessage(`{"total":1}`)},
		{"invoice.paid", "", `,"version":3,"payload_version":"2026-11-25"}`, nil},
		{"invoice.created", "", `,"version":4,"data":1}`, 1},
	} {
		e := event()
		e.Type, e.PayloadVersion, e.Data = c.eventType, c.given, c.data
		ref, err := pub.Publish(t.Context(), e)
		require.NoError(t, err)
		stored, err := b.History.Event(t.Context(), ref.ID)
		require.NoError(t, err)
		require.True(t, json.Valid(stored.Body))
		require.Contains(t, string(stored.Body), c.want)
	}
	for _, bad := range []string{"2", "2026-13-01", "2026-11-25\"", "2026-1-1"} {
		e := event()
		e.PayloadVersion = bad
		_, err := pub.Publish(t.Context(), e)
		require.ErrorIs(t, err, sender.ErrInvalidEvent)
		require.ErrorContains(t, err, "must be a date as 2026-11-25")
	}
}

// A publish that the check refuses changes nothing, and says why.
func TestPublishCheck(t *testing.T) {
	b := bedtest.New(t)
	var seen []sender.Payload
	wrong := errors.New("at /total: got string, want integer")
	pub, err := sender.NewPublisher[*memory.Tx](b.Store, &sender.PublisherConfig{
		PayloadVersion: func(string) string { return "2026-11-25" },
		Check: func(_ context.Context, p sender.Payload) error {
			seen = append(seen, p)
			if string(p.Data) == `{"total":"1"}` {
				return wrong
			}
			return nil
		},
	})
	require.NoError(t, err)
	good, bad := event(), event()
	good.Data, bad.Data = json.RawMessage(`{"total":1}`), json.RawMessage(`{"total":"1"}`)
	_, err = pub.PublishMany(t.Context(), []sender.Event{good, bad})
	require.ErrorIs(t, err, sender.ErrInvalidEvent)
	require.ErrorIs(t, err, wrong)
	require.ErrorContains(t, err, "event 1:")
	require.Equal(t, []sender.Payload{{Type: good.Type, Version: "2026-11-25", Data: json.RawMessage(`{"total":1}`)}, {Type: bad.Type, Version: "2026-11-25", Data: json.RawMessage(`{"total":"1"}`)}}, seen)
	all, _, err := b.History.Events(t.Context(), history.EventQuery{})
	require.NoError(t, err)
	require.Empty(t, all)
	ref, err := pub.Publish(t.Context(), good)
	require.NoError(t, err)
	require.EqualValues(t, 1, ref.Version, "no version was used up")
}

// A subscription is pinned to the newest version when it is made, and its version can only
// rise.
func TestPinnedVersion(t *testing.T) {
	b := bedtest.New(t)
	_, _, err := b.Registry.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: "sub_a"})
	require.NoError(t, err)
	registry := func(newest string) *sender.Registry[*memory.Tx] {
		r, err := sender.NewRegistry[*memory.Tx](b.Store, b.Keys, &sender.RegistryConfig{Network: bedtest.Private, PayloadVersion: newest})
		require.NoError(t, err)
		return r
	}
	subscribe := func(newest, asked string) (sender.Subscription, error) {
		return registry(newest).Subscribe(t.Context(), sender.NewSubscription{Subscriber: "sub_a", URL: "http://endpoint/", Settings: sender.Settings{PayloadVersion: asked}})
	}
	for _, c := range []struct{ newest, asked, want, refused string }{
		{"", "", "", ""},
		{"2025-03-01", "", "2025-03-01", ""},
		{"2025-03-01", "2025-03-01", "2025-03-01", ""},
		{"2025-03-01", "2020-01-01", "2020-01-01", ""},
		{"2025-03-01", "2025-03-02", "", `the newest is "2025-03-01"`},
		{"", "2025-03-01", "", "there are none here"},
		{"2025-03-01", "v1", "", "must be a date as 2026-11-25"},
	} {
		s, err := subscribe(c.newest, c.asked)
		if c.refused != "" {
			require.ErrorContains(t, err, c.refused)
			require.Equal(t, "payload_version", sender.FieldErrors(err)[0].Field)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.want, s.Settings.PayloadVersion)
	}
	s, err := subscribe("2025-03-01", "")
	require.NoError(t, err)
	reg := registry("2026-11-25")
	change := func(r *sender.Registry[*memory.Tx], version string) (sender.Subscription, error) {
		return r.Update(t.Context(), s.ID, sender.SubscriptionChange{Settings: &sender.Settings{PayloadVersion: version, MaxInFlight: 2}})
	}
	for _, c := range []struct{ asked, want, refused string }{
		{"", "2025-03-01", ""},
		{"2025-03-01", "2025-03-01", ""},
		{"2025-02-28", "", `can only rise from "2025-03-01"`},
		{"2026-11-26", "", `the newest is "2026-11-25"`},
		{"2026-11-25", "2026-11-25", ""},
		{"2025-03-01", "", `can only rise from "2026-11-25"`},
	} {
		got, err := change(reg, c.asked)
		if c.refused != "" {
			require.ErrorContains(t, err, c.refused)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.want, got.Settings.PayloadVersion)
	}
	got, err := change(registry(""), "2026-11-25") // of a process without a catalogue
	require.NoError(t, err)
	require.Equal(t, "2026-11-25", got.Settings.PayloadVersion)
	_, err = sender.NewRegistry[*memory.Tx](b.Store, b.Keys, &sender.RegistryConfig{PayloadVersion: "newest"})
	require.ErrorContains(t, err, "RegistryConfig.PayloadVersion")
}

// The payload of an event is found, and replaced by another, whatever else stands in it.
func TestSplitBody(t *testing.T) {
	for _, version := range []string{"", "2026-11-25"} {
		for _, data := range []json.RawMessage{nil, json.RawMessage(`{}`), json.RawMessage(`{"a":1,"payload_version":"2020-01-01","data":2}`), json.RawMessage(` {"a":"}"} `), json.RawMessage(`"\",\"payload_version\":\"2020-01-01\""`), json.RawMessage("1")} {
			e := event()
			e.Object.ID, e.PayloadVersion = `x","payload_version":"2020-01-01","data":{}}`, version
			if data != nil {
				e.Data = data
			}
			d, err := e.Draft(time.Now(), 1<<20)
			require.NoError(t, err)
			head, p, ok := sender.SplitBody(d.Body(7))
			require.Equal(t, version != "", ok)
			if !ok {
				continue
			}
			require.Equal(t, sender.Payload{Version: version, Data: data}, p)
			require.Equal(t, string(d.Body(7)[:len(head)]), string(head))
			if data == nil {
				continue
			}
			for older, tail := range map[string]string{"2020-01-01": `,"payload_version":"2020-01-01","data":{}}`, "": `,"data":{}}`} {
				convert := func(string, string, string, json.RawMessage) (string, json.RawMessage, error) {
					return older, json.RawMessage("{}"), nil
				}
				body, made, err := sender.Convert(convert).Body(e.Type, d.Body(7), "2020-01-01")
				require.NoError(t, err)
				require.Equal(t, older, made)
				require.Equal(t, string(head)+tail, string(body))
				require.True(t, json.Valid(body))
			}
		}
	}
}

// The data of a body that does not say a date cannot be converted.
func TestSplitBodyWithoutAVersion(t *testing.T) {
	for _, body := range []string{"", "{}", `{"id":"evt_1","payload_version":"yesterday","data":{}}`, `{"id":"evt_1","payload_version":"2026-11-2`, `{"id":"evt_1","payload_version":"2026-11-25`} {
		_, _, ok := sender.SplitBody([]byte(body))
		require.False(t, ok, body)
	}
}

// A body is never made of what no body may hold.
func TestConvertMustMakeJSON(t *testing.T) {
	e := event()
	e.PayloadVersion, e.Data = "2026-11-25", json.RawMessage(`{"secret":1}`)
	d, err := e.Draft(time.Now(), 1<<20)
	require.NoError(t, err)
	for name, c := range map[string]struct{ version, data, says string }{
		"no JSON":        {"2025-03-01", `{"secret":`, "makes no JSON"},
		"two values":     {"2025-03-01", `{},"object":{"id":"x"}`, "makes no JSON"},
		"nothing":        {"2025-03-01", "", "makes no JSON"},
		"not UTF-8":      {"2025-03-01", "\"\xff\"", "in UTF-8"},
		"too deep":       {"2025-03-01", nested(502), "more than 500 objects"},
		"no date":        {"first", `{}`, "must be a date"},
		"a version more": {`2025-03-01","data":{}`, `{}`, "must be a date"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := sender.Convert(func(string, string, string, json.RawMessage) (string, json.RawMessage, error) {
				return c.version, json.RawMessage(c.data), nil
			}).Body(e.Type, d.Body(7), "2025-03-01")
			require.ErrorContains(t, err, c.says)
			require.NotContains(t, err.Error(), "secret")
		})
	}
}
