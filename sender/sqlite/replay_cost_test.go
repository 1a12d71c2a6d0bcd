package sqlite_test

import (
	"context"
	"database/sql"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/replay"
	"github.com/surehook/surehook/sender/sqlite"
)

// end makes some subscriptions of one subscriber, and ends some deliveries of each.
func end(t testing.TB, s *sqlite.Store, subscriptions, each int, class sender.Class) {
	t.Helper()
	ctx := context.Background()
	require.NoError(t, s.InTx(ctx, func(tx *sql.Tx) error {
		if err := s.CreateSubscriberTx(ctx, tx, sender.Subscriber{ID: "owner"}, nil); err != nil {
			return err
		}
		for i := range subscriptions {
			sub := sender.Subscription{ID: "wsub_" + strconv.Itoa(i), Subscriber: "owner", URL: "https://example.com/", EventTypes: []string{"*"}}
			if err := s.CreateSubscriptionTx(ctx, tx, sub); err != nil {
				return err
			}
		}
		return nil
	}))
	publish(t, s, each, 100, []string{"owner"})
	expandAll(t, s)
	for ended := 0; ended < subscriptions*each; {
		_, c, err := s.Step(ctx, dispatch.ExpandParams{}, batchOf(nil, 1000))
		require.NoError(t, err)
		require.NotEmpty(t, c.Claimed)
		b := batchOf(c.Claimed, 0)
		b.Decide = func(_ dispatch.Live, h sender.Health, r dispatch.Result, _ time.Time) dispatch.Decision {
			if r.Class == sender.ClassNone {
				return dispatch.Decision{Status: sender.StatusDelivered, Health: h}
			}
			return dispatch.Decision{Status: sender.StatusDeadLettered, Health: h}
		}
		for i := range b.Results {
			b.Results[i].Class = class
		}
		_, _, err = s.Step(ctx, dispatch.ExpandParams{}, b)
		require.NoError(t, err)
		ended += len(c.Claimed)
	}
}

// A replay reads the deliveries of all of a subscriber's subscriptions by one statement, and
// looks at few more than it may admit.
func TestCostOfAReplay(t *testing.T) {
	t.Parallel()
	const subscriptions, each = 150, 8
	for status, class := range map[sender.Status]sender.Class{sender.StatusDeadLettered: sender.ClassStatus, sender.StatusDelivered: sender.ClassNone} {
		t.Run(string(status), func(t *testing.T) {
			file, clock := path(t), newClock()
			db := open(t, file, fit)
			end(t, newStore(t, db, clock.now), subscriptions, each, class)
			counted := &countedRows{of: db.Driver(), dsn: "file:" + file + "?" + fit}
			counting := sql.OpenDB(counted)
			defer counting.Close()
			s := newStore(t, counting, clock.now)
			create := func(f replay.Filter, rate float64) replay.Replay {
				f.Status = status
				r, err := s.CreateReplay(t.Context(), replay.Replay{Filter: f, Rate: rate}, replay.Bounds{Look: replay.MaxCounted})
				require.NoError(t, err)
				return r
			}
			step := func(limit, admits int) (queries, rows int64) {
				queries, rows = counted.rows.queries.Load(), counted.rows.Load()
				step, err := s.StepReplays(t.Context(), limit, nil)
				require.NoError(t, err)
				require.Equal(t, admits, step.Admitted)
				return counted.rows.queries.Load() - queries, counted.rows.Load() - rows
			}
			owned := replay.Filter{Subscriber: "owner"}
			before := counted.rows.queries.Load()
			r := create(owned, 0)
			require.EqualValues(t, subscriptions*each, r.Matched)
			queries := counted.rows.queries.Load() - before
			t.Log("queries of CreateReplay:", queries)
			require.Less(t, queries, int64(40))
			queries, _ = step(2, 2)
			t.Log("queries of a step:", queries)
			require.Less(t, queries, int64(40))
			_, err := s.SetReplayStatus(t.Context(), r.ID, replay.Cancelled)
			require.NoError(t, err)
			for name, f := range map[string]replay.Filter{"of a subscriber": owned, "of all": {}} {
				r := create(f, 1)
				_, rows := step(100, 1)
				t.Logf("rows of a step that admits one, %s: %d", name, rows)
				require.Less(t, rows, int64(300), name)
				_, err := s.SetReplayStatus(t.Context(), r.ID, replay.Cancelled)
				require.NoError(t, err)
			}
		})
	}
}
