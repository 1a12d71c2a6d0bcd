package sender_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
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

// Looking up Patterns finds what Matches says.
func TestPatternsAgreeWithMatches(t *testing.T) {
	asked := []string{"a", "a.*", "a.b", "a.b.*", "a.b.c", "a.b.c.*", "ab.*", "b", "b.*", "*"}
	for _, typ := range []string{"a", "a.b", "a.b.c", "a.b.c.d", "ab", "ab.c", "b", "c"} {
		patterns := sender.Patterns(typ)
		for _, one := range asked {
			want := sender.Matches(sender.Subscription{Subscriber: "s", EventTypes: []string{one}}, typ, "s", "", "")
			require.Equal(t, want, slices.Contains(patterns, one), "%s asks for %s", typ, one)
		}
	}
	require.Equal(t, []string{"a.b.c", "a.b.*", "a.*", "*"}, sender.Patterns("a.b.c"))
}
