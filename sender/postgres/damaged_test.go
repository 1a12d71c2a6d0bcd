package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/postgres"
	"github.com/surehook/surehook/sender/replay"
)

// Damaged rows of a subscription harm no other one. The results of its claimed
// deliveries are recorded or released, and its new events are kept, or delivered if
// that is possible.
func TestDamagedRowsHarmTheirOwn(t *testing.T) {
	mine := subscriptionID(0, 0)
	number := `(SELECT no FROM {}.surehook_subscriptions WHERE id = '` + mine + `')`
	for name, c := range map[string]struct {
		damage    string
		delivered bool // all the same
		kept      int  // of what arrives, if not
	}{
		"no head":             {damage: `DELETE FROM {}.surehook_heads WHERE subscription = ` + number, kept: 6},
		"no subscription":     {damage: `DELETE FROM {}.surehook_subscriptions WHERE no = ` + number},
		"no subscriber":       {damage: `DELETE FROM {}.surehook_subscribers WHERE id = 'sub_0'`, kept: 6},
		"a lane too high":     {damage: `UPDATE {}.surehook_heads SET lane = 3 WHERE subscription = ` + number, delivered: true},
		"a lane below zero":   {damage: `UPDATE {}.surehook_heads SET lane = -1 WHERE subscription = ` + number, delivered: true},
		"types that are none": {damage: `UPDATE {}.surehook_subscriptions SET event_types = '[' WHERE no = ` + number, delivered: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			var log bytes.Buffer
			s, err := postgres.New(openPool(t), &postgres.Config{Schema: p.schema, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			require.NoError(t, err)
			register(t, s, 2, 1, sender.Settings{})
			publish(t, s, 8, 2)
			expandAll(t, s)
			claimed := exchange(t, s, batchOf(nil, 1000)).Claimed
			require.Len(t, claimed, 8)

			p.exec(t, c.damage)
			drafts := make([]sender.Draft, 6) // to everyone
			for i := range drafts {
				drafts[i] = draft("")
			}
			require.NoError(t, publishInTx(t.Context(), s, drafts...))
			var results []dispatch.Claimed
			var released []dispatch.Release
			for _, cl := range claimed {
				if len(released) == 0 && cl.Target.Subscription == mine {
					released = append(released, dispatch.Release{Key: cl.Key, Token: cl.Token})
				} else {
					results = append(results, cl)
				}
			}
			got := map[string]int{}
			var now []dispatch.Claimed // the damage is found first by new events alone, and then by results
			for more := true; more; {
				x, out, err := s.Step(t.Context(), dispatch.ExpandParams{Events: 4, Deliveries: 100}, batchOf(now, 100))
				require.NoError(t, err)
				for i, o := range out.Recorded {
					require.False(t, o.Lost, "result %d", i)
				}
				now, results = append(results, out.Claimed...), nil
				for id, n := range claimedOf(out.Claimed) {
					got[id] += n
				}
				more = x.More || len(now) > 0
			}
			require.NoError(t, s.Release(t.Context(), released))
			require.Equal(t, 6, got[subscriptionID(1, 0)], "the other one's")
			if c.delivered {
				got[mine] += claimedOf(exchange(t, s, batchOf(nil, 100)).Claimed)[mine]
				require.Equal(t, 7, got[mine])
			} else {
				require.Zero(t, got[mine])
				require.Equal(t, c.kept, p.count(t, `SELECT count(*) FROM {}.surehook_pending`), "what has arrived")
				require.Equal(t, 1, p.count(t, `SELECT count(*) FROM {}.surehook_waiting`), "what was released is kept")
			}
			require.NoError(t, s.InTx(t.Context(), func(tx pgx.Tx) error {
				_, err := s.SubscriptionsTx(t.Context(), tx, "", "", 10)
				return err
			}))
			require.Equal(t, 1, strings.Count(log.String(), "rows are damaged"), log.String())
		})
	}
}

// A step goes on although somebody has removed the event of a delivery whose lease has
// ended.
func TestLostAttemptOfNoEvent(t *testing.T) {
	p := newPlace(t)
	s := p.frozen(t)
	register(t, s, 2, 1, sender.Settings{})
	publish(t, s, 2, 2)
	expandAll(t, s)
	require.Len(t, exchange(t, s, batchOf(nil, 10)).Claimed, 2)
	p.exec(t, `DELETE FROM {}.surehook_events WHERE no = (SELECT min(no) FROM {}.surehook_events)`)
	p.advance(t, 2*time.Minute)
	b := batchOf(nil, 10)
	b.Decide = func(l dispatch.Live, h sender.Health, _ dispatch.Result, _ time.Time) dispatch.Decision {
		return dispatch.Decision{Status: sender.StatusDeadLettered, Health: h, Notices: []sender.Notice{{Kind: sender.NoticeDeadLettered}}}
	}
	_, out, err := s.Step(context.Background(), dispatch.ExpandParams{}, b)
	require.NoError(t, err)
	require.Len(t, out.Interrupted, 2)
	require.Len(t, out.Notices, 2)
}

// giveUp makes dead letters of what is due.
func giveUp(t *testing.T, s *postgres.Store[pgx.Tx]) {
	t.Helper()
	dead := batchOf(exchange(t, s, batchOf(nil, 10)).Claimed, 0)
	dead.Decide = func(_ dispatch.Live, h sender.Health, _ dispatch.Result, _ time.Time) dispatch.Decision {
		return dispatch.Decision{Status: sender.StatusDeadLettered, Health: h}
	}
	exchange(t, s, dead)
}

// However often somebody has changed a subscription whose head is missing, the change of another
// one is seen.
func TestWakesOfNoHead(t *testing.T) {
	p := newPlace(t)
	s, err := postgres.New(openPool(t), &postgres.Config{Schema: p.schema, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	register(t, s, 2, 1, sender.Settings{})
	publish(t, s, 2, 2)
	expandAll(t, s)
	change := func(change func(tx pgx.Tx, id string) error, id string) {
		t.Helper()
		require.NoError(t, s.InTx(t.Context(), func(tx pgx.Tx) error { return change(tx, id) }))
	}
	pause := func(tx pgx.Tx, id string) error {
		return s.HoldSubscriptionTx(t.Context(), tx, id, sender.SubscriptionPaused, "")
	}
	resume := func(tx pgx.Tx, id string) error { return s.ResumeSubscriptionTx(t.Context(), tx, id, sender.Resume{}) }
	change(pause, subscriptionID(1, 0))
	require.Equal(t, map[string]int{subscriptionID(0, 0): 1}, claimedOf(exchange(t, s, batchOf(nil, 10)).Claimed), "the other one is seen to be paused")
	p.exec(t, `DELETE FROM {}.surehook_heads WHERE subscription = (SELECT no FROM {}.surehook_subscriptions WHERE id = '`+subscriptionID(0, 0)+`')`)
	p.exec(t, `INSERT INTO {}.surehook_wakes SELECT no FROM {}.surehook_subscriptions, generate_series(1, 200) WHERE id = '`+subscriptionID(0, 0)+`'`) // two hundred pauses and resumes leave as many
	change(resume, subscriptionID(1, 0))
	require.Equal(t, map[string]int{subscriptionID(1, 0): 1}, claimedOf(exchange(t, s, batchOf(nil, 10)).Claimed))
}

// Sweeps and replays go on for other subscriptions if the head of one is missing.
func TestUpkeepGoesOnWithoutAHead(t *testing.T) {
	p := newPlace(t)
	s, err := postgres.New(openPool(t), &postgres.Config{Schema: p.schema, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	register(t, s, 3, 1, sender.Settings{})
	publish(t, s, 9, 3)
	expandAll(t, s)
	giveUp(t, s)
	publish(t, s, 9, 3)
	expandAll(t, s)
	require.NoError(t, s.InTx(t.Context(), func(tx pgx.Tx) error {
		for _, id := range []string{subscriptionID(0, 0), subscriptionID(1, 0)} {
			if err := errors.Join(
				s.HoldSubscriptionTx(t.Context(), tx, id, sender.SubscriptionPaused, ""),
				s.ResumeSubscriptionTx(t.Context(), tx, id, sender.Resume{None: true})); err != nil {
				return err
			}
		}
		return s.DeleteSubscriptionTx(t.Context(), tx, subscriptionID(2, 0))
	}))
	_, err = s.CreateReplay(t.Context(), replay.Replay{ID: "rpl_1", Filter: replay.Filter{Status: sender.StatusDeadLettered}, Status: replay.Running}, replay.Bounds{})
	require.NoError(t, err)

	p.exec(t, `DELETE FROM {}.surehook_heads WHERE subscription = (SELECT no FROM {}.surehook_subscriptions WHERE id = '`+subscriptionID(0, 0)+`')`)
	for _, swept := range []int{6, 0} {
		n, err := s.Sweep(t.Context(), dispatch.SweepParams{Limit: 100})
		require.NoError(t, err)
		require.Equal(t, swept, n.Ended)
	}
	require.Equal(t, 1, p.count(t, `SELECT count(*) FROM {}.surehook_subscriptions WHERE status = 'swept'`))
	require.Equal(t, 3, p.count(t, `SELECT count(*) FROM {}.surehook_pending`), "what has no head is kept")
	step, err := s.StepReplays(t.Context(), 100, nil)
	require.NoError(t, err)
	require.Equal(t, []int{3, 6}, []int{step.Admitted, step.Skipped})
}

// A replay sends what there is of other subscriptions if the row of one is missing, and skips
// what is of that one.
func TestReplayGoesOnWithoutASubscription(t *testing.T) {
	p := newPlace(t)
	s, err := postgres.New(openPool(t), &postgres.Config{Schema: p.schema, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	register(t, s, 2, 1, sender.Settings{})
	publish(t, s, 6, 2)
	expandAll(t, s)
	giveUp(t, s)
	p.exec(t, `DELETE FROM {}.surehook_subscriptions WHERE id = '`+subscriptionID(0, 0)+`'`)
	r, err := s.CreateReplay(t.Context(), replay.Replay{Filter: replay.Filter{Status: sender.StatusDeadLettered}}, replay.Bounds{})
	require.NoError(t, err)
	_, err = s.StepReplays(t.Context(), 100, nil)
	require.NoError(t, err)
	r, err = s.Replay(t.Context(), r.ID)
	require.NoError(t, err)
	require.Equal(t, []any{replay.Finished, int64(3), int64(3)}, []any{r.Status, r.Admitted, r.Skipped})
	require.Equal(t, 3, p.count(t, `SELECT count(*) FROM {}.surehook_ended`), "what has no subscription stays a dead letter")
}

// Figures that cannot be merged keep nothing from being swept.
func TestSweepGoesOnWithDamagedFigures(t *testing.T) {
	p := newPlace(t)
	s, err := postgres.New(openPool(t), &postgres.Config{Schema: p.schema, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	register(t, s, 1, 1, sender.Settings{})
	publish(t, s, 3, 1)
	expandAll(t, s)
	require.NoError(t, s.InTx(t.Context(), func(tx pgx.Tx) error {
		return s.DeleteSubscriptionTx(t.Context(), tx, subscriptionID(0, 0))
	}))
	p.exec(t, `INSERT INTO {}.surehook_rollups (minute, shard, rollup) VALUES (date_trunc('minute', now() - interval '3 hours'), 1, '{')`)
	n, err := s.Sweep(t.Context(), dispatch.SweepParams{Limit: 10})
	require.ErrorContains(t, err, "merging rollups")
	require.Equal(t, 3, n.Ended)
	require.Equal(t, 1, p.count(t, `SELECT count(*) FROM {}.surehook_subscriptions WHERE status = 'swept'`))
}
