package console_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The links of a customer's list of subscriptions lead to lists of the same customer, except the
// one that says otherwise. Counts of all customers do not stand there.
func TestSubscriptionsOfOneCustomer(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	shown := func(text string) (chips string) {
		_, after, found := strings.Cut(text, `aria-label="Show"`)
		require.True(t, found)
		chips, _, _ = strings.Cut(after, "</nav>")
		return chips
	}
	all := b.get("/subscriptions").text
	require.Contains(t, shown(all), `href="?status=paused"`)
	require.Contains(t, shown(all), "All <b>")
	require.NotContains(t, all, "show all")

	text := b.get("/subscriptions?subscriber=sub_ada&q=example&implicit=1&status=disabled&cursor=").text
	for _, link := range []string{
		"implicit=1&amp;q=example&amp;subscriber=sub_ada", "failing=1&amp;implicit=1&amp;q=example&amp;subscriber=sub_ada",
		"implicit=1&amp;q=example&amp;status=active&amp;subscriber=sub_ada", "implicit=1&amp;q=example&amp;status=disabled&amp;subscriber=sub_ada",
	} {
		require.Contains(t, shown(text), `href="?`+link+`"`)
	}
	require.NotContains(t, shown(text), "<b>")
	require.Contains(t, text, `<a href="?implicit=1&amp;q=example&amp;status=disabled">show all</a>`)
}
