package postgres_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
)

// A body that was read ahead of an expansion is asked about nothing once its event is
// redacted; the other bodies decide.
func TestRedactedAfterItWasReadForAFilter(t *testing.T) {
	p := newPlace(t)
	s := p.store(t)
	register(t, s, 1, 1, sender.Settings{})
	p.exec(t, `UPDATE {}.surehook_subscriptions SET filter = '{"data":{"prefix":"x"}}'`)
	var drafts []sender.Draft
	for range 3 { // of which one step reads one
		drafts = append(drafts, largeDraft(subscriberID(0), 200<<10))
	}
	require.NoError(t, publishInTx(t.Context(), s, drafts...))
	got := map[string]int{}
	step := func() {
		t.Helper()
		_, c, err := s.Step(t.Context(), dispatch.ExpandParams{Events: 10, Deliveries: 10}, batchOf(nil, 10))
		require.NoError(t, err)
		for _, cl := range c.Claimed {
			got[cl.Event.ID]++
		}
	}
	step()
	require.Equal(t, map[string]int{drafts[0].ID: 1}, got)

	expander, err := p.pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = expander.Exec(t.Context(), `SELECT 1 FROM `+pgx.Identifier{p.schema, "surehook_feed_head"}.Sanitize()+` FOR UPDATE`)
	require.NoError(t, err)
	step() // reads ahead, and finds that another one expands
	require.Len(t, got, 1)
	require.NoError(t, expander.Rollback(t.Context()))
	_, err = s.Redact(t.Context(), history.RedactParams{Object: drafts[1].Object, Limit: 10})
	require.NoError(t, err)
	step()
	step()
	require.Equal(t, map[string]int{drafts[0].ID: 1, drafts[2].ID: 1}, got)
}
