package postgres_test

import (
	"encoding/json"
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
	step() // finds that another one expands, and keeps what it has read ahead
	require.Len(t, got, 1)
	require.NoError(t, expander.Rollback(t.Context()))
	_, err = s.Redact(t.Context(), history.RedactParams{Object: drafts[1].Object, Limit: 10})
	require.NoError(t, err)
	step()
	step()
	require.Equal(t, map[string]int{drafts[0].ID: 1, drafts[2].ID: 1}, got)
}

// In a backlog a step reads with its commit what filters ask for in the next one. So a filter
// costs no trip to the server.
func TestFiltersInABacklogCostNoTrip(t *testing.T) {
	trips := map[string]int64{}
	for _, filter := range []string{"", `{"data":{"prefix":"x"}}`} {
		p := newPlace(t)
		s, sent := p.countedStore(t)
		producer := p.store(t) // it tells other processes of its events, on a trip of its own
		register(t, producer, 1, 1, sender.Settings{})
		p.exec(t, `UPDATE {}.surehook_subscriptions SET filter = '`+filter+`'`)
		publishLarge(t, producer, 300, 10)
		for n := range 3 {
			before := sent.trips.Load()
			x, _, err := s.Step(t.Context(), dispatch.ExpandParams{Events: 100, Deliveries: 100}, dispatch.Batch{})
			require.NoError(t, err)
			require.Equal(t, dispatch.Expanded{Events: 100, Deliveries: 100, More: true}, x)
			if n > 0 { // the first one reads the filter
				trips[filter] += sent.trips.Load() - before
			}
		}
	}
	require.Equal(t, trips[""], trips[`{"data":{"prefix":"x"}}`])
}

// A step reads ahead for filters about as much as the next one can use, into no more memory
// than the bound allows. It lets go of that memory when all is expanded.
func TestBodiesReadAheadForFilters(t *testing.T) {
	for name, c := range map[string]struct{ events, size, steps int }{
		"left to the next step": {30, 200 << 10, 3},
		"behind what was found": {400, 30 << 10, 6},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			s := p.store(t)
			register(t, s, 1, 1, sender.Settings{})
			p.exec(t, `UPDATE {}.surehook_subscriptions SET filter = '{"data":{"prefix":"x"}}'`)
			publishLarge(t, s, c.events, c.size)
			done, steps := 0, 0
			for ; done < c.events; steps++ {
				x, _, err := s.Step(t.Context(), dispatch.ExpandParams{Events: 200, Deliveries: 1000}, dispatch.Batch{})
				require.NoError(t, err)
				done += x.Events
				require.LessOrEqual(t, s.ReadAhead(), 4<<20)
			}
			require.LessOrEqual(t, steps, c.steps, "steps")
			require.Zero(t, s.ReadAhead())
		})
	}
}

// A step makes other payload versions of about as many bytes as its bound allows, and leaves
// the events behind those to the next one.
func TestConversionsOfAStepAreBounded(t *testing.T) {
	p := newPlace(t)
	s := p.store(t)
	register(t, s, 1, 1, sender.Settings{})
	p.exec(t, `UPDATE {}.surehook_subscriptions SET filter = '{"data":"new"}'`)
	drafts := make([]sender.Draft, 150)
	for i := range drafts {
		drafts[i] = largeDraft(subscriberID(0), 15<<10)
		drafts[i].BodyTail = append([]byte(`,"payload_version":"2026-11-25"`), drafts[i].BodyTail...)
	}
	require.NoError(t, publishInTx(t.Context(), s, drafts...))
	bytes, most, done := 0, 0, 0
	convert := func(_, _, _ string, data json.RawMessage) (string, json.RawMessage, error) {
		bytes += len(data)
		return "2025-03-01", json.RawMessage(`"new"`), nil
	}
	for done < len(drafts) {
		bytes = 0
		x, _, err := s.Step(t.Context(), dispatch.ExpandParams{Events: 200, Deliveries: 1000, Convert: convert}, dispatch.Batch{})
		require.NoError(t, err)
		require.Equal(t, x.Events, x.Deliveries)
		done, most = done+x.Events, max(most, bytes)
	}
	require.Greater(t, most, 900<<10)
	require.Less(t, most, 1<<20+20<<10)
}

// publishLarge publishes events with data of a size for the first subscriber.
func publishLarge(t *testing.T, s *pgxStore, n, size int) {
	t.Helper()
	drafts := make([]sender.Draft, n)
	for i := range drafts {
		drafts[i] = largeDraft(subscriberID(0), size)
	}
	require.NoError(t, publishInTx(t.Context(), s, drafts...))
}
