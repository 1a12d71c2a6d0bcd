package sqlite_test

import (
	"bytes"
	"database/sql"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/replay"
	"github.com/surehook/surehook/sender/sqlite"
)

// Damaged rows of a subscription harm no other one. The results of its claimed
// deliveries are recorded or released, and its new events are kept, or delivered if
// that is possible.
func TestDamagedRowsHarmTheirOwn(t *testing.T) {
	const mine, number = "wsub_0", `(SELECT no FROM surehook_subscriptions WHERE id = 'wsub_0')`
	for name, c := range map[string]struct {
		damage    string
		delivered bool // all the same
		kept      int  // of what arrives, if not
	}{
		"no head":             {damage: `DELETE FROM surehook_heads WHERE subscription = ` + number, kept: 6},
		"no subscription":     {damage: `DELETE FROM surehook_subscriptions WHERE no = ` + number, kept: 6},
		"no subscriber":       {damage: `DELETE FROM surehook_subscribers WHERE id = 'sub_0'`, kept: 6},
		"a lane too high":     {damage: `UPDATE surehook_heads SET lane = 3 WHERE subscription = ` + number, delivered: true},
		"a lane below zero":   {damage: `UPDATE surehook_heads SET lane = -1 WHERE subscription = ` + number, delivered: true},
		"types that are none": {damage: `UPDATE surehook_subscriptions SET event_types = '[' WHERE no = ` + number, delivered: true},
	} {
		t.Run(name, func(t *testing.T) {
			db := open(t, path(t), fit)
			newStore(t, db, time.Now)
			var log bytes.Buffer
			s, err := sqlite.New(db, &sqlite.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			require.NoError(t, err)
			subscribers := register(t, s, 2)
			publish(t, s, 8, 0, subscribers)
			expandAll(t, s)
			_, first, err := s.Step(t.Context(), dispatch.ExpandParams{}, batchOf(nil, 1000))
			require.NoError(t, err)
			require.Len(t, first.Claimed, 8)

			_, err = db.ExecContext(t.Context(), c.damage+`; UPDATE surehook_registry SET version = version + 1`)
			require.NoError(t, err)
			publish(t, s, 6, 0, []string{""}) // to everyone
			var results []dispatch.Claimed
			var released []dispatch.Release
			for _, cl := range first.Claimed {
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
				for _, cl := range out.Claimed {
					got[cl.Target.Subscription]++
				}
				more = x.More || len(now) > 0
			}
			require.NoError(t, s.Release(t.Context(), released))
			require.Equal(t, 6, got["wsub_1"], "the other one's")
			if c.delivered {
				_, out, err := s.Step(t.Context(), dispatch.ExpandParams{}, batchOf(nil, 100))
				require.NoError(t, err)
				require.Equal(t, 7, got[mine]+len(out.Claimed))
			} else {
				require.Zero(t, got[mine])
				require.Equal(t, c.kept, count(t, db, `SELECT count(*) FROM surehook_pending`), "what has arrived")
				require.Equal(t, 1, count(t, db, `SELECT count(*) FROM surehook_waiting`), "what was released is kept")
			}
			require.NoError(t, s.InTx(t.Context(), func(tx *sql.Tx) error {
				_, err := s.SubscriptionsTx(t.Context(), tx, "", "", 10)
				return err
			}))
			require.Equal(t, 1, strings.Count(log.String(), "rows are damaged"), log.String())
		})
	}
}

// giveUp makes dead letters of up to most deliveries that are due.
func giveUp(t *testing.T, s *sqlite.Store, most int) {
	t.Helper()
	_, claimed, err := s.Step(t.Context(), dispatch.ExpandParams{}, batchOf(nil, most))
	require.NoError(t, err)
	dead := batchOf(claimed.Claimed, 0)
	dead.Decide = func(_ dispatch.Live, h sender.Health, _ dispatch.Result, _ time.Time) dispatch.Decision {
		return dispatch.Decision{Status: sender.StatusDeadLettered, Health: h}
	}
	_, _, err = s.Step(t.Context(), dispatch.ExpandParams{}, dead)
	require.NoError(t, err)
}

// Sweeps and replays go on for other subscriptions if the head of one is missing.
func TestUpkeepGoesOnWithoutAHead(t *testing.T) {
	db := open(t, path(t), fit)
	s := newStore(t, db, time.Now)
	subscribers := register(t, s, 3)
	publish(t, s, 9, 0, subscribers)
	expandAll(t, s)
	giveUp(t, s, 10)
	publish(t, s, 9, 0, subscribers)
	expandAll(t, s)
	require.NoError(t, s.InTx(t.Context(), func(tx *sql.Tx) error {
		return errors.Join(
			s.HoldSubscriptionTx(t.Context(), tx, "wsub_0", sender.SubscriptionPaused, ""),
			s.ResumeSubscriptionTx(t.Context(), tx, "wsub_0", sender.Resume{None: true}),
			s.HoldSubscriptionTx(t.Context(), tx, "wsub_1", sender.SubscriptionPaused, ""),
			s.ResumeSubscriptionTx(t.Context(), tx, "wsub_1", sender.Resume{None: true}),
			s.DeleteSubscriptionTx(t.Context(), tx, "wsub_2"))
	}))
	_, err := s.CreateReplay(t.Context(), replay.Replay{ID: "rpl_1", Filter: replay.Filter{Status: sender.StatusDeadLettered}, Status: replay.Running}, replay.Bounds{})
	require.NoError(t, err)

	_, err = db.ExecContext(t.Context(), `DELETE FROM surehook_heads WHERE subscription = (SELECT no FROM surehook_subscriptions WHERE id = 'wsub_0')`)
	require.NoError(t, err)
	for _, swept := range []int{6, 0} {
		n, err := s.Sweep(t.Context(), dispatch.SweepParams{Limit: 100})
		require.NoError(t, err)
		require.Equal(t, swept, n.Ended)
	}
	require.Equal(t, 1, count(t, db, `SELECT count(*) FROM surehook_subscriptions WHERE status = 'swept'`))
	require.Equal(t, 3, count(t, db, `SELECT count(*) FROM surehook_pending`), "what has no head is kept")
	step, err := s.StepReplays(t.Context(), 100, nil)
	require.NoError(t, err)
	require.Equal(t, []int{3, 6}, []int{step.Admitted, step.Skipped})
}

// A sweep frees the lines of other subscriptions from dead letters that hold nothing back any
// more.
func TestSweepFreesLinesWithoutAHead(t *testing.T) {
	db := open(t, path(t), fit)
	s := newStore(t, db, time.Now)
	subscribers := register(t, s, 2)
	set := func(settings sender.Settings) {
		require.NoError(t, s.InTx(t.Context(), func(tx *sql.Tx) error {
			for _, id := range []string{"wsub_0", "wsub_1"} {
				sub, err := s.SubscriptionTx(t.Context(), tx, sender.SubscriptionKey{ID: id})
				if err != nil {
					return err
				}
				sub.Settings = settings
				if err := s.UpdateSubscriptionTx(t.Context(), tx, sub); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	set(sender.Settings{Order: sender.OrderObject, HoldDead: true})
	publish(t, s, 2, 0, subscribers)
	expandAll(t, s)
	giveUp(t, s, 2)
	set(sender.Settings{Order: sender.OrderObject})
	_, err := db.ExecContext(t.Context(), `DELETE FROM surehook_heads WHERE subscription = (SELECT no FROM surehook_subscriptions WHERE id = 'wsub_0')`)
	require.NoError(t, err)
	_, err = s.Sweep(t.Context(), dispatch.SweepParams{Limit: 100})
	require.NoError(t, err)
	require.Equal(t, 1, count(t, db, `SELECT count(*) FROM surehook_lines`), "dead letters in lines, one of them without a head")
	require.Equal(t, 0, count(t, db, `SELECT lined FROM surehook_heads`))
}

// A replay sends what there is of other subscriptions if the row of one is missing, and skips
// what is of that one.
func TestReplayGoesOnWithoutASubscription(t *testing.T) {
	db := open(t, path(t), fit)
	s, err := sqlite.New(db, &sqlite.Config{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	require.NoError(t, s.Migrate(t.Context()))
	const each = 550 // both together are more than a step looks at
	publish(t, s, 2*each, 0, register(t, s, 2))
	expandAll(t, s)
	giveUp(t, s, 2*each)
	_, err = db.ExecContext(t.Context(), `DELETE FROM surehook_subscriptions WHERE id = 'wsub_0'; UPDATE surehook_registry SET version = version + 1`)
	require.NoError(t, err)
	r, err := s.CreateReplay(t.Context(), replay.Replay{Filter: replay.Filter{Status: sender.StatusDeadLettered}}, replay.Bounds{})
	require.NoError(t, err)
	for more := true; more; {
		step, err := s.StepReplays(t.Context(), 2*each, nil)
		require.NoError(t, err)
		more = step.More
	}
	r, err = s.Replay(t.Context(), r.ID)
	require.NoError(t, err)
	require.Equal(t, []any{replay.Finished, int64(each), int64(each)}, []any{r.Status, r.Admitted, r.Skipped})
	require.Equal(t, each, count(t, db, `SELECT count(*) FROM surehook_ended`), "what has no subscription stays a dead letter")
}

// Figures that cannot be merged keep nothing from being swept.
func TestSweepGoesOnWithDamagedFigures(t *testing.T) {
	db := open(t, path(t), fit)
	s := newStore(t, db, time.Now)
	subscribers := register(t, s, 1)
	publish(t, s, 3, 0, subscribers)
	expandAll(t, s)
	require.NoError(t, s.InTx(t.Context(), func(tx *sql.Tx) error { return s.DeleteSubscriptionTx(t.Context(), tx, "wsub_0") }))
	_, err := db.ExecContext(t.Context(), `INSERT INTO surehook_rollups (minute, shard, rollup) VALUES (?, 1, '{')`, time.Now().Add(-3*time.Hour).Truncate(time.Minute).UnixMicro())
	require.NoError(t, err)
	n, err := s.Sweep(t.Context(), dispatch.SweepParams{Limit: 10})
	require.ErrorContains(t, err, "merging rollups")
	require.Equal(t, 3, n.Ended)
	require.Equal(t, 1, count(t, db, `SELECT count(*) FROM surehook_subscriptions WHERE status = 'swept'`))
}

// A step goes on although somebody has removed an event. Its delivery ends like others
// whose events cannot be read, whether it was claimed before or not.
func TestDeliveriesOfNoEvent(t *testing.T) {
	db := open(t, path(t), fit)
	var passed atomic.Int64
	s := newStore(t, db, func() time.Time { return time.Now().Add(time.Duration(passed.Load())) })
	subscribers := register(t, s, 2)
	publish(t, s, 2, 0, subscribers)
	expandAll(t, s)
	remove := func() {
		t.Helper()
		_, err := db.ExecContext(t.Context(), `DELETE FROM surehook_events WHERE seq = (SELECT max(seq) FROM surehook_events)`)
		require.NoError(t, err)
	}
	step := func(interrupted, claimed, bodies int) []dispatch.Claimed {
		t.Helper()
		b := batchOf(nil, 10)
		_, out, err := s.Step(t.Context(), dispatch.ExpandParams{}, b)
		require.NoError(t, err)
		require.Len(t, out.Interrupted, interrupted)
		require.Len(t, out.Claimed, claimed)
		for _, c := range out.Claimed {
			if len(c.Body) > 0 {
				bodies--
			}
		}
		require.Zero(t, bodies, "claims with bodies")
		require.True(t, out.NextDue.IsZero() || out.NextDue.After(out.Now), "it is not found due again and again")
		return out.Claimed
	}
	step(0, 2, 2)
	remove()
	passed.Add(int64(2 * time.Minute))
	for _, c := range step(2, 2, 1) {
		if c.Body == nil { // as a dispatcher does
			require.NoError(t, s.Release(t.Context(), []dispatch.Release{{Key: c.Key, Token: c.Token, Due: c.At.Add(time.Minute)}}))
		}
	}
	step(0, 0, 0)
	passed.Add(int64(time.Minute + time.Second))
	step(1, 2, 1) // the other one is lost again

	publish(t, s, 2, 0, subscribers) // of one nothing was ever claimed
	expandAll(t, s)
	remove()
	step(0, 2, 1)
	require.NoError(t, s.InTx(t.Context(), func(tx *sql.Tx) error { return s.DeleteSubscriptionTx(t.Context(), tx, "wsub_1") }))
	passed.Add(int64(2 * time.Minute))
	n, err := s.Sweep(t.Context(), dispatch.SweepParams{Limit: 10})
	require.NoError(t, err)
	require.Positive(t, n.Ended)
	require.Equal(t, 1, count(t, db, `SELECT count(*) FROM surehook_subscriptions WHERE status = 'swept'`))
}

// Sealing anew stores a subscription's settings and leaves what it asks for alone, also if
// its event types cannot be read.
func TestRewrapKeepsWhatIsAskedFor(t *testing.T) {
	db := open(t, path(t), fit)
	s := newStore(t, db, time.Now)
	old, current := sender.SealingKey{ID: "1", Key: make([]byte, 32)}, sender.SealingKey{ID: "2", Key: bytes.Repeat([]byte{2}, 32)}
	registry := func(current sender.SealingKey, older ...sender.SealingKey) *sender.Registry[*sql.Tx] {
		keys, err := sender.NewKeys(current, older...)
		require.NoError(t, err)
		r, err := sender.NewRegistry(s, keys, nil)
		require.NoError(t, err)
		return r
	}
	before := registry(old)
	owner, _, err := before.CreateSubscriber(t.Context(), sender.NewSubscriber{})
	require.NoError(t, err)
	var ids []string
	for range 2 {
		sub, err := before.Subscribe(t.Context(), sender.NewSubscription{
			Subscriber: owner.ID, URL: "https://example.com/", EventTypes: []string{"a.b"}, Settings: sender.Settings{Headers: map[string]string{"X-A": "b"}},
		})
		require.NoError(t, err)
		ids = append(ids, sub.ID)
	}
	_, err = db.ExecContext(t.Context(), `UPDATE surehook_subscriptions SET event_types = '[' WHERE id = ?; UPDATE surehook_registry SET version = version + 1`, ids[0])
	require.NoError(t, err)

	after := registry(current, old)
	n, err := after.Rewrap(t.Context())
	require.ErrorContains(t, err, ids[0]+`": its stored event types cannot be read: give it new ones`)
	require.Equal(t, 2, n, "the secret, and the header of the other one")
	require.Equal(t, 2, count(t, db, `SELECT count(*) FROM surehook_patterns WHERE pattern = 'a.b'`))
	_, err = after.Update(t.Context(), ids[0], sender.SubscriptionChange{EventTypes: []string{"a.b"}})
	require.NoError(t, err)
	n, err = after.Rewrap(t.Context())
	require.NoError(t, err)
	require.Zero(t, n, "Update has sealed its header anew")
}
