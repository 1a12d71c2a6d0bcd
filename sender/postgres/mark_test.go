package postgres_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
)

// marking is a place where subscriptions are changed, among events with names.
type marking struct {
	*place
	s     *pgxStore
	names map[string]string // of events, by id
}

func newMarking(t *testing.T) *marking {
	t.Helper()
	m := &marking{place: newPlace(t), names: map[string]string{}}
	m.s = m.frozen(t)
	require.NoError(t, m.s.InTx(t.Context(), func(tx pgx.Tx) error {
		return m.s.CreateSubscriberTx(t.Context(), tx, sender.Subscriber{ID: "sub_0"}, nil)
	}))
	for _, id := range []string{"closed", "resumed", "updated"} {
		sub := markedSubscription(id)
		if id == "updated" {
			sub.EventTypes = []string{"other"}
		}
		require.NoError(t, m.s.InTx(t.Context(), func(tx pgx.Tx) error { return m.s.CreateSubscriptionTx(t.Context(), tx, sub) }))
	}
	require.NoError(t, m.s.InTx(t.Context(), func(tx pgx.Tx) error {
		return m.s.HoldSubscriptionTx(t.Context(), tx, "resumed", sender.SubscriptionPaused, "")
	}))
	return m
}

func markedSubscription(id string) sender.Subscription {
	return sender.Subscription{ID: id, Subscriber: "sub_0", URL: "https://example.com/", EventTypes: []string{"*"}}
}

// publish publishes an event in a transaction.
func (m *marking) publish(t *testing.T, tx pgx.Tx, name string) {
	t.Helper()
	d := draft("")
	m.names[d.ID] = name
	_, err := m.s.PublishTx(t.Context(), tx, []sender.Draft{d})
	require.NoError(t, err)
}

// change makes all changes that set a mark.
func (m *marking) change(t *testing.T, tx pgx.Tx) {
	t.Helper()
	require.NoError(t, m.s.CreateSubscriptionTx(t.Context(), tx, markedSubscription("created")))
	require.NoError(t, m.s.UpdateSubscriptionTx(t.Context(), tx, markedSubscription("updated")))
	require.NoError(t, m.s.CloseSubscriptionTx(t.Context(), tx, "closed"))
	require.NoError(t, m.s.ResumeSubscriptionTx(t.Context(), tx, "resumed", sender.Resume{None: true}))
}

// gets ends the test unless subscriptions are sent exactly these events.
func (m *marking) gets(t *testing.T, want map[string][]string) {
	t.Helper()
	expandAll(t, m.s)
	got := map[string][]string{}
	for _, c := range exchange(t, m.s, batchOf(nil, 100)).Claimed {
		got[c.Target.Subscription] = append(got[c.Target.Subscription], m.names[c.Event.ID])
	}
	for _, names := range got {
		slices.Sort(names)
	}
	require.Empty(t, cmp.Diff(want, got))
}

// For a type that an update adds, a subscription gets the events that are committed
// later, whenever they were published.
func TestAnUpdateAsksForWhatIsCommittedAfterIt(t *testing.T) {
	m := newMarking(t)
	late := m.begin(t, pgx.ReadCommitted)
	m.publish(t, late, "late")
	early := m.begin(t, pgx.ReadCommitted)
	m.publish(t, early, "early")
	require.NoError(t, early.Commit(t.Context()))
	require.NoError(t, m.s.InTx(t.Context(), func(tx pgx.Tx) error {
		return m.s.UpdateSubscriptionTx(t.Context(), tx, markedSubscription("updated"))
	}))
	require.NoError(t, late.Commit(t.Context()))
	m.gets(t, map[string][]string{"updated": {"late"}, "closed": {"early", "late"}})
}

// Within one transaction the order of its calls decides which events are before a
// change, in savepoints too.
func TestMarksInOneTransaction(t *testing.T) {
	for _, level := range []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead, pgx.Serializable} {
		t.Run(string(level), func(t *testing.T) {
			m := newMarking(t)
			tx := m.begin(t, level)
			inSavepoint := func(fn func(tx pgx.Tx)) {
				require.NoError(t, pgx.BeginFunc(context.Background(), tx, func(tx pgx.Tx) error {
					fn(tx)
					return nil
				}))
			}
			m.publish(t, tx, "a")
			inSavepoint(func(tx pgx.Tx) { m.publish(t, tx, "b") })
			inSavepoint(func(tx pgx.Tx) { m.change(t, tx) })
			inSavepoint(func(tx pgx.Tx) { m.publish(t, tx, "c") })
			m.publish(t, tx, "d")
			require.NoError(t, tx.Commit(t.Context()))
			m.gets(t, map[string][]string{
				"created": {"c", "d"}, "updated": {"c", "d"}, "closed": {"a", "b"}, "resumed": {"c", "d"},
			})
		})
	}
}
