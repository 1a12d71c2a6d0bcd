package rules_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/rules"
)

// Looking up Patterns finds what sender.Matches says.
func TestPatternsAgreeWithMatches(t *testing.T) {
	asked := []string{"a", "a.*", "a.b", "a.b.*", "a.b.c", "a.b.c.*", "ab.*", "b", "b.*", "*"}
	for _, typ := range []string{"a", "a.b", "a.b.c", "a.b.c.d", "ab", "ab.c", "b", "c"} {
		patterns := rules.Patterns(typ)
		for _, one := range asked {
			want := sender.Matches(sender.Subscription{Subscriber: "s", EventTypes: []string{one}}, typ, "s", "", "")
			require.Equal(t, want, slices.Contains(patterns, one), "%s asks for %s", typ, one)
		}
	}
	require.Equal(t, []string{"a.b.c", "a.b.*", "a.*", "*"}, rules.Patterns("a.b.c"))
}
