package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
)

const (
	exposedLeft = `SELECT count(*) FROM surehook_attempts a JOIN surehook_feed f ON f.position = a.event JOIN surehook_events e ON e.no = f.event
		WHERE length(e.body) = 0 AND (a.snippet IS NOT NULL OR a.headers IS NOT NULL)`
	liveRedacted = `SELECT count(*) FROM (SELECT event FROM surehook_pending UNION ALL SELECT event FROM surehook_waiting UNION ALL SELECT event FROM surehook_leases WHERE NOT redacted) x
		JOIN surehook_feed f ON f.position = x.event JOIN surehook_events e ON e.no = f.event WHERE length(e.body) = 0`
)

// An event that is being expanded when it is redacted has deliveries afterwards: they
// are cancelled, too.
func TestRedactBesideExpansion(t *testing.T) {
	f := newForgetting(t)
	owners, _ := f.subscribe(3)
	require.NoError(t, f.publish(eventTo(""), eventTo(owners[0])))
	release := f.hold("surehook_pending")
	expanded := f.begun(func(ctx context.Context) error {
		_, _, err := f.Step(ctx, dispatch.ExpandParams{Events: 1, Deliveries: 2}, dispatch.Batch{})
		return err
	})
	f.waits(1)
	var out history.Redacted
	redacted := f.begun(func(ctx context.Context) (err error) {
		object := f.object(t)
		out, err = f.Redact(ctx, history.RedactParams{Object: object, Limit: 10})
		return err
	})
	f.waits(2)
	release()
	expanded()
	redacted()
	require.Equal(t, history.Redacted{Events: 1, Deliveries: 2}, out)
	f.expand()
	require.Equal(t, 2, f.count(`SELECT count(*) FROM surehook_ended WHERE status = 'cancelled'`))
	require.Len(t, f.claim(), 1, "the delivery of the other event")
	require.Zero(t, f.count(liveRedacted))
	f.headsRight()
}

// A claim that comes between the transactions of a redaction reads that the body is gone, and
// cancels the delivery. That makes room for others, and lets the next version come out of its
// line.
func TestRedactBesideAClaim(t *testing.T) {
	for name, set := range map[string]sender.Settings{"order": {Order: sender.OrderObject}, "max in flight": {MaxInFlight: 1}} {
		t.Run(name, func(t *testing.T) {
			f := newForgetting(t)
			owners, subs := f.subscribe(1)
			f.inTx(func(ctx context.Context, tx pgx.Tx) error {
				return f.UpdateSubscriptionTx(ctx, tx, sender.Subscription{ID: subs[0], Subscriber: owners[0], URL: "https://example.com/", EventTypes: []string{"*"}, Settings: set})
			})
			first, second := eventTo(owners[0]), eventTo(owners[0])
			second.Object = first.Object
			require.NoError(t, f.publish(first, second))
			f.expand()
			f.exec(`UPDATE surehook_events SET body = '' WHERE id = '` + first.ID + `'`)
			require.Empty(t, f.claim(), "of what is redacted")
			f.headsRight()
			claimed := f.claim()
			require.Len(t, claimed, 1, "of the next version")
			require.Equal(t, second.ID, claimed[0].Event.ID)
			f.headsRight()
		})
	}
}

// object returns the first event's object.
func (f *forgetting) object(t *testing.T) (o sender.Object) {
	t.Helper()
	require.NoError(t, f.pool.QueryRow(t.Context(), `SELECT object_type, object_id FROM surehook_events ORDER BY no LIMIT 1`).Scan(&o.Type, &o.ID))
	return o
}

// If an attempt is being recorded while its event is redacted, its snippet is removed,
// too. An attempt that is recorded later has none.
func TestRedactBesideRecording(t *testing.T) {
	f := newForgetting(t)
	owners, _ := f.subscribe(1)
	require.NoError(t, f.publish(eventTo(owners[0]), eventTo(owners[0]), eventTo(owners[0])))
	f.expand()
	claimed := f.claim()
	require.Len(t, claimed, 3)
	release := f.hold("surehook_attempts")
	recorded := f.begun(func(ctx context.Context) error {
		_, _, err := f.Step(ctx, dispatch.ExpandParams{}, recordAs(claimed[:1], sender.ClassNone))
		return err
	})
	f.waits(1)
	var out history.Redacted
	redacted := f.begun(func(ctx context.Context) (err error) {
		out, err = f.Redact(ctx, history.RedactParams{Subscriber: owners[0], Limit: 10})
		return err
	})
	f.waits(2)
	release()
	recorded()
	redacted()
	require.Equal(t, history.Redacted{Events: 3}, out)
	require.Equal(t, 1, f.count(`SELECT count(*) FROM surehook_attempts`))
	require.Zero(t, f.count(exposedLeft))
	_, _, err := f.Step(t.Context(), dispatch.ExpandParams{}, recordAs(claimed[1:2], sender.ClassTimeout))
	require.NoError(t, err)
	require.Equal(t, 2, f.count(`SELECT count(*) FROM surehook_attempts`))
	require.Zero(t, f.count(exposedLeft))
	require.NoError(t, f.Release(t.Context(), []dispatch.Release{{Key: claimed[2].Key, Token: claimed[2].Token, Due: f.now().Add(time.Hour)}}))
	require.Equal(t, 2, f.count(`SELECT count(*) FROM surehook_ended WHERE status = 'cancelled'`), "what failed, and what was given back")
	f.headsRight()
}
