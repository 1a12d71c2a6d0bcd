package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/postgres"
)

// soon bounds the calls that must not wait for a transaction that stays open for the
// whole test.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// A dispatcher that stands still in the middle of a transaction has heads locked. The
// others claim from the free heads, also if a caller has changed a subscription whose
// head is locked.
func TestClaimNeverWaitsForALockedHead(t *testing.T) {
	p := newPlace(t)
	s := p.store(t)
	register(t, s, 3, 1, sender.Settings{})
	publish(t, s, 3, 3)
	require.Equal(t, 3, expandAll(t, s))
	tx := p.begin(t, pgx.ReadCommitted)
	_, err := tx.Exec(t.Context(), in(p.schema, `SELECT 1 FROM {}.surehook_heads h JOIN {}.surehook_subscriptions s ON s.no = h.subscription WHERE s.id = $1 FOR UPDATE OF h`), subscriptionID(1, 0))
	require.NoError(t, err)
	require.NoError(t, s.InTx(t.Context(), func(tx pgx.Tx) error {
		if err := s.HoldSubscriptionTx(t.Context(), tx, subscriptionID(1, 0), sender.SubscriptionPaused, ""); err != nil {
			return err
		}
		return s.ResumeSubscriptionTx(t.Context(), tx, subscriptionID(1, 0), sender.Resume{})
	}))

	_, c, err := s.Step(soon(t), dispatch.ExpandParams{}, batchOf(nil, 10))
	require.NoError(t, err)
	require.Equal(t, map[string]int{subscriptionID(0, 0): 1, subscriptionID(2, 0): 1}, claimedOf(c.Claimed))
	_, _, err = s.Step(soon(t), dispatch.ExpandParams{}, batchOf(c.Claimed, 10))
	require.NoError(t, err)

	require.NoError(t, tx.Rollback(t.Context()))
	c = exchange(t, s, batchOf(nil, 10))
	require.Equal(t, map[string]int{subscriptionID(1, 0): 1}, claimedOf(c.Claimed))
	exchange(t, s, batchOf(c.Claimed, 10))
	p.settled(t)
}

// Callers' open transactions and an old snapshot stop no expanding, recording or
// claiming, neither for other subscriptions nor for the one that is being changed,
// which goes on as it was.
func TestOpenTransactionsStallNobody(t *testing.T) {
	const owners = 8
	ctx := t.Context()
	id := func(owner int) string { return subscriptionID(owner, 0) }
	for name, open := range map[string]func(s *pgxStore, tx pgx.Tx) error{
		"publish": func(s *pgxStore, tx pgx.Tx) error {
			for owner := range owners {
				if _, err := s.PublishTx(ctx, tx, []sender.Draft{draft(subscriberID(owner))}); err != nil {
					return err
				}
			}
			return nil
		},
		"pause": func(s *pgxStore, tx pgx.Tx) error {
			return s.HoldSubscriptionTx(ctx, tx, id(0), sender.SubscriptionPaused, "")
		},
		"resume": func(s *pgxStore, tx pgx.Tx) error {
			return s.ResumeSubscriptionTx(ctx, tx, id(1), sender.Resume{})
		},
		"update": func(s *pgxStore, tx pgx.Tx) error {
			sub, err := s.SubscriptionTx(ctx, tx, sender.SubscriptionKey{ID: id(0)})
			if err != nil {
				return err
			}
			sub.URL, sub.EventTypes = "https://example.com/new", []string{"other"}
			return s.UpdateSubscriptionTx(ctx, tx, sub)
		},
		"close":             func(s *pgxStore, tx pgx.Tx) error { return s.CloseSubscriptionTx(ctx, tx, id(0)) },
		"delete":            func(s *pgxStore, tx pgx.Tx) error { return s.DeleteSubscriptionTx(ctx, tx, id(0)) },
		"delete subscriber": func(s *pgxStore, tx pgx.Tx) error { return s.DeleteSubscriberTx(ctx, tx, subscriberID(0)) },
		"subscribe": func(s *pgxStore, tx pgx.Tx) error {
			return s.CreateSubscriptionTx(ctx, tx, sender.Subscription{ID: "wsub_new", Subscriber: subscriberID(0), URL: "https://example.com/", EventTypes: []string{"*"}})
		},
		"snapshot": func(*pgxStore, pgx.Tx) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			s := p.frozen(t)
			register(t, s, owners, 1, sender.Settings{})
			require.NoError(t, s.InTx(ctx, func(tx pgx.Tx) error { return s.HoldSubscriptionTx(ctx, tx, id(1), sender.SubscriptionPaused, "") }))
			publish(t, s, owners, owners) // some of it is there before
			expandAll(t, s)
			tx := p.begin(t, pgx.RepeatableRead)
			_, err := tx.Exec(ctx, in(p.schema, `SELECT count(*) FROM {}.surehook_heads`))
			require.NoError(t, err)
			require.NoError(t, open(s, tx))

			var claimed []dispatch.Claimed
			of := map[string]int{}
			for range 5 {
				publish(t, s, owners, owners)
				x, _, err := s.Step(soon(t), dispatch.ExpandParams{Events: 1000, Deliveries: 1000}, dispatch.Batch{})
				require.NoError(t, err)
				require.Equal(t, dispatch.Expanded{Events: owners, Deliveries: owners}, x)
				_, c, err := s.Step(soon(t), dispatch.ExpandParams{}, batchOf(claimed, 1000))
				require.NoError(t, err)
				require.Len(t, c.Recorded, len(claimed))
				for _, r := range c.Recorded {
					require.False(t, r.Lost)
				}
				claimed = c.Claimed
				for id, n := range claimedOf(claimed) {
					of[id] += n
				}
				_, err = s.Sweep(soon(t), dispatch.SweepParams{Limit: 1000})
				require.NoError(t, err)
				p.advance(t, time.Second)
			}
			for owner := range owners {
				if owner != 1 { // it is paused
					require.Equal(t, 6, of[id(owner)], "claimed of subscription %d", owner)
				}
			}
			require.Zero(t, of[id(1)])
			exchange(t, s, batchOf(claimed, 0))
			p.consistent(t)
			require.NoError(t, tx.Commit(ctx))
			drainAll(t, s)
			p.consistent(t)
		})
	}
}

// A recording does not disable a subscription that a caller is changing: it does not
// wait.
func TestDisablingNeverWaitsForACaller(t *testing.T) {
	ctx, p := t.Context(), newPlace(t)
	s := p.store(t)
	register(t, s, 2, 1, sender.Settings{})
	publish(t, s, 2, 2)
	expandAll(t, s)
	c := exchange(t, s, batchOf(nil, 10))
	require.Len(t, c.Claimed, 2)
	tx := p.begin(t, pgx.ReadCommitted)
	require.NoError(t, s.HoldSubscriptionTx(ctx, tx, subscriptionID(0, 0), sender.SubscriptionPaused, ""))
	b := batchOf(c.Claimed, 0)
	b.Decide = func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
		return dispatch.Decision{Status: sender.StatusDelivered, Health: h, Disable: "it fails"}
	}
	_, c, err := s.Step(soon(t), dispatch.ExpandParams{}, b)
	require.NoError(t, err)
	require.Len(t, c.Recorded, 2)
	for i, r := range c.Recorded {
		open := b.Results[i].Key.Subscription == int64(p.count(t, `SELECT no FROM {}.surehook_subscriptions WHERE id = $1`, subscriptionID(0, 0)))
		require.Equal(t, open, r.Decision.Disable == "", "the one that is being changed is left alone, the other is disabled")
	}
	require.NoError(t, tx.Commit(ctx))
	require.Equal(t, 1, p.count(t, `SELECT count(*) FROM {}.surehook_subscriptions WHERE status = 'paused'`))
	require.Equal(t, 1, p.count(t, `SELECT count(*) FROM {}.surehook_subscriptions WHERE status = 'disabled'`))
	p.consistent(t)
}

// The first of two events about one object is expanded first. Its transaction was open for so
// long that scans of the outbox begin behind it, and the second one is committed right after it.
func TestLateCommitsKeepTheOrderOfAnObject(t *testing.T) {
	for name, others := range map[string]int{"few": 1, "many": 40} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			now := time.Now()
			s, err := postgres.New(openPool(t), &postgres.Config{Schema: p.schema, Now: func() time.Time { return now }})
			require.NoError(t, err)
			register(t, s, 1, 1, sender.Settings{Order: sender.OrderObject})
			one := func() sender.Draft {
				d := draft(subscriberID(0))
				d.Object.ID = "one"
				return d
			}
			first, second := one(), one()
			tx := p.begin(t, pgx.ReadCommitted)
			_, err = s.PublishTx(t.Context(), tx, []sender.Draft{first})
			require.NoError(t, err)
			for range 4 {
				publish(t, s, others, 1)
				require.Equal(t, others, expandAll(t, s))
				require.Len(t, exchange(t, s, batchOf(exchange(t, s, batchOf(nil, 1000)).Claimed, 0)).Recorded, others)
				now = now.Add(time.Minute)
			}
			require.Zero(t, expandAll(t, s), "the scan from the beginning")

			require.NoError(t, tx.Commit(t.Context()))
			require.NoError(t, publishInTx(t.Context(), s, second))
			expandAll(t, s)
			for _, next := range []string{first.ID, second.ID} {
				c := exchange(t, s, batchOf(nil, 1000)).Claimed
				require.Len(t, c, 1)
				require.Equal(t, next, c[0].Event.ID)
				exchange(t, s, batchOf(c, 0))
			}
			p.delivered(t)
		})
	}
}
