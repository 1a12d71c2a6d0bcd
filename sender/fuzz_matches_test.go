package sender_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/surehook/surehook/internal/ident"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/replay"
)

// One rule says who gets what, looked at from both ends: a filter matches a type if
// and only if the type is what the filter is looked up by.
func FuzzMatches(f *testing.F) {
	f.Add("a.b.c", "a.*", "sub_a", "sub_b", "", "wsub_1")
	f.Add("a.b", "a.b.*", "sub_a", "", "wsub_1", "wsub_1")
	f.Add("ab.c", "a*", "operator", "sub_a", "", "wsub_1")
	f.Add("a", "*", "sub_a", "sub_a", "wsub_2", "wsub_1")
	f.Add("a.b", "a.", "", "", "", "")
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
		if found := slices.Contains(sender.Patterns(eventType), asked); found != wanted {
			t.Fatalf("%q is looked up by %q for %q", asked, sender.Patterns(eventType), eventType)
		}
		s := sender.Subscription{ID: id, Subscriber: owner, EventTypes: []string{"never.this", asked}}
		want := wanted && (toSubscriber == "" || toSubscriber == owner || owner == sender.Operator)
		if toSubscription != "" {
			want = id == toSubscription
		}
		if sender.Matches(s, eventType, toSubscriber, toSubscription, "") != want {
			t.Fatalf("%q of %q for %q to %q %q: %v", asked, owner, eventType, toSubscriber, toSubscription, !want)
		}
		if about := sender.Matches(s, eventType, toSubscriber, toSubscription, id); about != (want && (toSubscription != "" || asked == eventType || eventType == "never.this")) {
			t.Fatalf("%q of %q for %q, which tells of it: %v", asked, owner, eventType, about)
		}
		for _, got := range []bool{(&replay.Filter{EventType: asked}).Selects(replay.Candidate{EventType: eventType}), (&history.DeliveryQuery{EventType: asked}).MatchesEvent(sender.EventInfo{Type: eventType})} {
			if got != wanted {
				t.Fatalf("a replay or a query with %q for %q: %v", asked, eventType, got)
			}
		}
	})
}
