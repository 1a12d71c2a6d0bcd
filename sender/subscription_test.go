package sender_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/ident"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/replay"
	"github.com/surehook/surehook/sender/rules"
)

func TestMatches(t *testing.T) {
	sub := func(owner string, types ...string) sender.Subscription {
		return sender.Subscription{ID: "wsub_1", Subscriber: owner, EventTypes: types}
	}
	for _, c := range []struct {
		name            string
		sub             sender.Subscription
		typ, to, toOnly string
		want            bool
		about           string
	}{
		{"exact", sub("a", "x.y"), "x.y", "a", "", true, ""},
		{"another type", sub("a", "x.y"), "x.z", "a", "", false, ""},
		{"exact is not a prefix", sub("a", "x"), "x.y", "a", "", false, ""},
		{"prefix", sub("a", "x.*"), "x.y", "a", "", true, ""},
		{"prefix, deeper", sub("a", "x.*"), "x.y.z", "a", "", true, ""},
		{"prefix is not the word itself", sub("a", "x.*"), "x", "a", "", false, ""},
		{"prefix ends at a full stop", sub("a", "x.*"), "xy.z", "a", "", false, ""},
		{"star", sub("a", "*"), "anything", "a", "", true, ""},
		{"one of several", sub("a", "b", "x.*"), "x.y", "a", "", true, ""},
		{"another subscriber's", sub("a", "*"), "x.y", "b", "", false, ""},
		{"the operator gets everyone's", sub(sender.Operator, "x.*"), "x.y", "b", "", true, ""},
		{"for everyone", sub("a", "x.*"), "x.y", "", "", true, ""},
		{"addressed to it alone, whatever it asks for", sub("a", "q"), "x.y", "a", "wsub_1", true, ""},
		{"addressed to another alone", sub("a", "*"), "x.y", "a", "wsub_2", false, ""},
		{"the operator's gets nothing that is addressed to another", sub(sender.Operator, "*"), "x.y", "a", "wsub_2", false, ""},
		{"tells of it, and is asked for by name", sub("a", "*", "x.y"), "x.y", "a", "", true, "wsub_1"},
		{"tells of it, and is asked for by a prefix", sub("a", "x.*"), "x.y", "a", "", false, "wsub_1"},
		{"tells of it, and is asked for by a star", sub("a", "*"), "x.y", "a", "", false, "wsub_1"},
		{"tells of another", sub("a", "*"), "x.y", "a", "", true, "wsub_2"},
		{"tells of it, and is addressed to it alone", sub("a", "*"), "x.y", "a", "wsub_1", true, "wsub_1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, sender.Matches(c.sub, c.typ, c.to, c.toOnly, c.about))
		})
	}
}

// The rule that says which subscriber gets which event is the same from both ends: a filter
// matches a type if and only if the patterns of the type include the filter.
func FuzzMatches(f *testing.F) {
	f.Add("a.b.c", "a.*", "sub_a", "sub_b", "", "wsub_1")
	f.Add("a.b", "a.b.*", "sub_a", "", "wsub_1", "wsub_1")
	f.Add("ab.c", "a*", "operator", "sub_a", "", "wsub_1")
	f.Add("a", "*", "sub_a", "sub_a", "wsub_2", "wsub_1")
	f.Add("a.b", "a.", "", "", "", "")
	f.Add("0", "*", "", "", "", "")
	f.Add("never.this", "a", "sub_a", "", "", "wsub_1")
	f.Fuzz(func(t *testing.T, eventType, asked, owner, toSubscriber, toSubscription, id string) {
		if ident.Type(eventType) != nil || asked != "*" && ident.Type(strings.TrimSuffix(asked, ".*")) != nil {
			return
		}
		wanted := false
		words, pattern := strings.Split(eventType, "."), strings.Split(asked, ".")
		switch {
		case asked == "*":
			wanted = true
		case pattern[len(pattern)-1] == "*":
			n := len(pattern) - 1
			wanted = len(words) > n && slices.Equal(words[:n], pattern[:n])
		default:
			wanted = slices.Equal(words, pattern)
		}
		if found := slices.Contains(rules.Patterns(eventType), asked); found != wanted {
			t.Fatalf("%q is looked up by %q for %q", asked, rules.Patterns(eventType), eventType)
		}
		s := sender.Subscription{ID: id, Subscriber: owner, EventTypes: []string{"never this", asked}}
		want := wanted && (toSubscriber == "" || toSubscriber == owner || owner == sender.Operator)
		if toSubscription != "" {
			want = id == toSubscription
		}
		if sender.Matches(s, eventType, toSubscriber, toSubscription, "") != want {
			t.Fatalf("%q of %q for %q to %q %q: %v", asked, owner, eventType, toSubscriber, toSubscription, !want)
		}
		if about := sender.Matches(s, eventType, toSubscriber, toSubscription, id); about != (want && (id == "" || toSubscription != "" || asked == eventType)) {
			t.Fatalf("%q of %q for %q, which tells of it: %v", asked, owner, eventType, about)
		}
		for _, got := range []bool{(&replay.Filter{EventType: asked}).Selects(replay.Candidate{EventType: eventType}), (&history.DeliveryQuery{EventType: asked}).MatchesEvent(sender.EventInfo{Type: eventType})} {
			if got != wanted {
				t.Fatalf("a replay or a query with %q for %q: %v", asked, eventType, got)
			}
		}
	})
}
