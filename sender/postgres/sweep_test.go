package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

const statusOf = `SELECT CASE status WHEN 'closing' THEN 1 WHEN 'deleted' THEN 2 WHEN 'swept' THEN 3 ELSE 0 END FROM surehook_subscriptions WHERE id = 'wsub_0'`

// An expander that is at work when a subscription is deleted may still make deliveries
// for it. They are swept too, and only then has the subscription ended.
func TestSweepBesideExpansion(t *testing.T) {
	f := newForgetting(t)
	owners, subs := f.subscribe(1)
	require.NoError(t, f.publish(eventTo(owners[0])))
	release := f.hold("surehook_pending")
	expanded := f.begun(func(ctx context.Context) error {
		_, _, err := f.Step(ctx, dispatch.ExpandParams{Events: 10, Deliveries: 10}, dispatch.Batch{})
		return err
	})
	f.waits(1)
	f.inTx(func(ctx context.Context, tx pgx.Tx) error { return f.DeleteSubscriptionTx(ctx, tx, subs[0]) })
	require.Zero(t, f.sweep())
	require.Equal(t, 2, f.count(statusOf), "it is not at its end")
	release()
	expanded()
	require.Equal(t, 1, f.sweep())
	require.Equal(t, 3, f.count(statusOf))
	require.Equal(t, 1, f.count(`SELECT count(*) FROM surehook_ended WHERE status = 'cancelled'`))
	f.headsRight()
}

// While a sweep ends the deliveries of a deleted subscription, others expand.
func TestExpansionBesideSweep(t *testing.T) {
	f := newForgetting(t)
	owners, subs := f.subscribe(2)
	require.NoError(t, f.publish(eventTo(owners[0]), eventTo(owners[0])))
	f.expand()
	f.inTx(func(ctx context.Context, tx pgx.Tx) error { return f.DeleteSubscriptionTx(ctx, tx, subs[0]) })
	release := f.hold("surehook_ended")
	swept := f.begun(func(ctx context.Context) error {
		_, err := f.Sweep(ctx, dispatch.SweepParams{Limit: 1})
		return err
	})
	f.waits(1)
	require.NoError(t, f.publish(eventTo(owners[1])))
	x, _, err := f.Step(t.Context(), dispatch.ExpandParams{Events: 10, Deliveries: 10}, dispatch.Batch{})
	require.NoError(t, err)
	require.Equal(t, 1, x.Events)
	release()
	swept()
	f.sweep()
	require.Equal(t, 3, f.count(statusOf))
	f.headsRight()
}

// A sweep does not wait for rows that callers or other dispatchers have locked. A later
// sweep takes them.
func TestSweepWaitsForNobody(t *testing.T) {
	for name, lock := range map[string]string{
		"subscription": `SELECT 1 FROM surehook_subscriptions FOR NO KEY UPDATE`,
		"head":         `SELECT 1 FROM surehook_heads FOR UPDATE`,
		"subscriber":   `SELECT 1 FROM surehook_subscribers FOR KEY SHARE`,
	} {
		t.Run(name, func(t *testing.T) {
			f := newForgetting(t)
			owners, _ := f.subscribe(1)
			f.exec(`INSERT INTO surehook_secrets VALUES (1, 0, 'sec_1', '', '', NULL, NULL); UPDATE surehook_secrets SET subscriber = (SELECT no FROM surehook_subscribers)`)
			f.inTx(func(ctx context.Context, tx pgx.Tx) error { return f.DeleteSubscriberTx(ctx, tx, owners[0]) })
			tx, err := f.all.pool.Begin(t.Context())
			require.NoError(t, err)
			t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
			_, err = tx.Exec(t.Context(), `SET LOCAL search_path = "`+f.schema+`"`)
			require.NoError(t, err)
			_, err = tx.Exec(t.Context(), lock)
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err = f.Sweep(ctx, dispatch.SweepParams{Limit: 10})
			require.NoError(t, err)
			require.Equal(t, 1, f.count(`SELECT count(*) FROM surehook_secrets`))
			require.NoError(t, tx.Rollback(t.Context()))
			f.sweep()
			require.Equal(t, 3, f.count(statusOf))
			require.Zero(t, f.count(`SELECT count(*) FROM surehook_secrets`))
			require.Zero(t, f.count(`SELECT count(*) FROM surehook_patterns`))
		})
	}
}

// Marks, and the bounds of resumes, stay as long as an earlier event is in the outbox,
// and then go.
func TestSweepClearsMarks(t *testing.T) {
	f := newForgetting(t)
	owners, subs := f.subscribe(2)
	require.NoError(t, f.publish(eventTo(owners[0]), eventTo(owners[0])))
	f.expand()
	lost := f.claim()
	require.Len(t, lost, 2)
	require.NoError(t, f.publish(eventTo(owners[0]), eventTo(owners[0])))
	f.expand()
	require.NoError(t, f.publish(eventTo(owners[0]), eventTo(owners[1])))
	f.inTx(func(ctx context.Context, tx pgx.Tx) error {
		if err := f.HoldSubscriptionTx(ctx, tx, subs[0], sender.SubscriptionPaused, ""); err != nil {
			return err
		}
		return f.ResumeSubscriptionTx(ctx, tx, subs[0], sender.Resume{None: true})
	})
	f.inTx(func(ctx context.Context, tx pgx.Tx) error {
		return f.UpdateSubscriptionTx(ctx, tx, sender.Subscription{ID: subs[1], Subscriber: owners[1], URL: "https://example.com/", EventTypes: []string{"*", "more.*"}})
	})
	const marks, left, leftTo = `SELECT count(*) FROM surehook_patterns WHERE since_seq IS NOT NULL`, `SELECT count(*) FROM surehook_left`, `SELECT max(left_to) FROM surehook_subscriptions`
	n, err := f.Sweep(t.Context(), dispatch.SweepParams{Limit: 1})
	require.NoError(t, err)
	require.Equal(t, 1, n.Ended)
	require.Equal(t, []int{1, 1}, []int{f.count(marks), f.count(left)}, "while there is something in the outbox")
	require.Positive(t, f.count(leftTo))
	f.expand()
	require.Equal(t, 1, f.sweep())
	require.Zero(t, f.count(marks))
	require.Equal(t, 1, f.count(left), "while something of before is in flight")
	f.advance(time.Hour)
	require.Equal(t, 2, f.sweep())
	require.Zero(t, f.count(left))
	require.Equal(t, -1, f.count(leftTo))
	require.Equal(t, 5, f.count(`SELECT count(*) FROM surehook_ended WHERE status = 'cancelled'`))
	require.Equal(t, 2, f.count(`SELECT count(*) FROM surehook_attempts WHERE class = 'interrupted'`))
	require.NoError(t, f.publish(eventTo(owners[0])))
	f.expand()
	require.Len(t, f.claim(), 2, "one of each")
	require.Zero(t, f.sweep())
	f.headsRight()
}

// An event that a resume has skipped is cancelled when it is expanded, even if the rest
// of that resume was swept before.
func TestSweepBeforeExpansion(t *testing.T) {
	f := newForgetting(t)
	owners, subs := f.subscribe(1)
	require.NoError(t, f.publish(eventTo(owners[0])))
	f.expand()
	require.NoError(t, f.publish(eventTo(owners[0])))
	f.inTx(func(ctx context.Context, tx pgx.Tx) error {
		if err := f.HoldSubscriptionTx(ctx, tx, subs[0], sender.SubscriptionPaused, ""); err != nil {
			return err
		}
		return f.ResumeSubscriptionTx(ctx, tx, subs[0], sender.Resume{None: true})
	})
	require.Equal(t, 1, f.sweep())
	f.expand()
	require.Empty(t, f.claim())
	require.Equal(t, 2, f.count(`SELECT count(*) FROM surehook_ended WHERE status = 'cancelled'`))
}
