package console_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// shown are the chips of a page.
func shown(t *testing.T, text string) (chips string) {
	t.Helper()
	_, after, found := strings.Cut(text, `<nav class="chips"`)
	require.True(t, found)
	chips, _, _ = strings.Cut(after, "</nav>")
	return chips
}

// The links of a customer's list of subscriptions lead to lists of the same customer, except the
// one that says otherwise. Counts of all customers do not stand there.
func TestSubscriptionsOfOneCustomer(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	all := b.get("/subscriptions").text
	require.Contains(t, shown(t, all), `href="?status=paused"`)
	require.Contains(t, shown(t, all), "All <b>")
	require.NotContains(t, all, "show all")

	text := b.get("/subscriptions?subscriber=sub_ada&q=example&implicit=1&status=disabled&cursor=").text
	for _, link := range []string{
		"implicit=1&amp;q=example&amp;subscriber=sub_ada", "failing=1&amp;implicit=1&amp;q=example&amp;subscriber=sub_ada",
		"implicit=1&amp;q=example&amp;status=active&amp;subscriber=sub_ada", "implicit=1&amp;q=example&amp;status=disabled&amp;subscriber=sub_ada",
	} {
		require.Contains(t, shown(t, text), `href="?`+link+`"`)
	}
	require.NotContains(t, shown(t, text), "<b>")
	require.Contains(t, text, `<a href="?implicit=1&amp;q=example&amp;status=disabled">show all</a>`)
}

// A narrower list of deliveries does not show how many there are in all.
func TestDeliveriesOfOneCustomer(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	require.Contains(t, shown(t, b.get("/deliveries?status=pending").text), "Dead letters <b>2</b>")
	text := shown(t, b.get("/deliveries?status=pending&subscriber=sub_bob").text)
	require.Contains(t, text, `href="?status=dead_lettered&amp;subscriber=sub_bob"`)
	require.NotContains(t, text, "<b>")
}

// The links of a list of jobs lead to lists of the same owner and kind.
func TestJobsOfOneCustomer(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	require.Contains(t, shown(t, b.get("/jobs").text), `href="?status=failed"`)
	page := b.get("/jobs?owner=sub_ada&kind=export&status=running&cursor=").text
	require.Contains(t, shown(t, page), `href="?kind=export&amp;owner=sub_ada"`)
	require.Contains(t, shown(t, page), `href="?kind=export&amp;owner=sub_ada&amp;status=failed"`)
	require.Contains(t, page, `href="?kind=export&amp;status=running" aria-label="Without the filter customer sub_ada"`)
	require.Contains(t, page, `href="?owner=sub_ada&amp;status=running" aria-label="Without the filter kind export"`)
	require.Contains(t, b.get("/customers/sub_ada").text, `/jobs?owner=sub_ada"`)
}
