package rules_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/rules"
)

// A notice of what has become too old behind a dead letter is about the first of them, and
// says how many others there are.
func TestExpireNotice(t *testing.T) {
	dead := rules.Held{Published: now}
	for name, c := range map[string]struct {
		held []rules.Held
		ends []sender.Status
		at   int
		says string // in the notice; "": there is none
	}{
		"none":            {},
		"one":             {[]rules.Held{dead}, []sender.Status{sender.StatusDeadLettered}, 0, "was published at 2026-11-20T12:00:00Z. It can be sent again by force"},
		"two":             {[]rules.Held{dead, dead}, []sender.Status{sender.StatusDeadLettered, sender.StatusDeadLettered}, 0, "; so is one later version. It can"},
		"three":           {[]rules.Held{dead, dead, dead}, []sender.Status{sender.StatusDeadLettered, sender.StatusDeadLettered, sender.StatusDeadLettered}, 0, "; so are 2 later versions. It can"},
		"others do not":   {[]rules.Held{dead, dead}, []sender.Status{sender.StatusSuperseded, sender.StatusDeadLettered}, 1, "00Z. It can"},
		"notices do not":  {[]rules.Held{{Notice: true}, dead, {Notice: true}}, []sender.Status{sender.StatusDeadLettered, sender.StatusDeadLettered, sender.StatusDeadLettered}, 1, "00Z. It can"},
		"a notice's only": {[]rules.Held{{Notice: true}}, []sender.Status{sender.StatusDeadLettered}, 0, ""},
	} {
		n, at, ok := rules.ExpireNotice("sub_1", c.held, c.ends)
		require.Equal(t, c.says != "", ok, name)
		require.Equal(t, c.at, at, name)
		if ok {
			require.Equal(t, []any{sender.NoticeDeadLettered, "sub_1"}, []any{n.Kind, n.Subscriber}, name)
			require.Contains(t, n.Detail, c.says, name)
		}
	}
}
