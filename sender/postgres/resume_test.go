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

// A resume is a change of the caller's, and nobody waits for its commit. Of what was expanded
// meanwhile it skips the same as of what is expanded before or after: what was committed before
// it. What is committed later is sent, also of a transaction that was open then.
func TestAResumeSkipsWhatIsExpandedBeforeItsCommit(t *testing.T) {
	for _, level := range levels {
		for name, since := range map[string]bool{"none": false, "since": true} {
			t.Run(string(level)+", "+name, func(t *testing.T) {
				p := newPlace(t)
				s := p.frozen(t)
				register(t, s, 1, 1, sender.Settings{})
				id := subscriptionID(0, 0)
				p.committed(t, level, func(tx pgx.Tx) {
					require.NoError(t, s.HoldSubscriptionTx(t.Context(), tx, id, sender.SubscriptionPaused, ""))
				})
				var before, young, after string
				p.committed(t, level, func(tx pgx.Tx) { before = to(t, s, tx, 0) })
				p.advance(t, time.Second)
				resume := sender.Resume{None: true}
				if since {
					resume = sender.Resume{Since: start.Add(time.Second)}
				}
				p.committed(t, level, func(tx pgx.Tx) { young = to(t, s, tx, 0) })
				producer, resuming := p.begin(t, level), p.begin(t, level)
				open := to(t, s, producer, 0)
				own := to(t, s, resuming, 0)
				if level != pgx.ReadCommitted { // its snapshot is as old as its first statement
					require.Equal(t, 2, expandAll(t, s))
				}
				require.NoError(t, s.ResumeSubscriptionTx(t.Context(), resuming, id, resume))
				later := to(t, s, resuming, 0)
				require.NoError(t, producer.Commit(t.Context()))
				p.committed(t, level, func(tx pgx.Tx) { after = to(t, s, tx, 0) })
				expandAll(t, s)
				require.NoError(t, resuming.Commit(t.Context()))

				skipped, taken := []string{before}, []string{young, open, own, later, after}
				if !since {
					skipped, taken = []string{before, young}, []string{open, later, after}
				}
				require.ElementsMatch(t, skipped, got(t, s, id, sender.StatusCancelled), "at once")
				if !since {
					skipped = append(skipped, own)
				}
				require.Equal(t, map[string]int{id: len(taken)}, drainAll(t, s))
				require.ElementsMatch(t, skipped, got(t, s, id, sender.StatusCancelled))
				require.ElementsMatch(t, taken, got(t, s, id, sender.StatusDelivered))
				p.settled(t)
				require.Zero(t, p.count(t, `SELECT count(*) FROM {}.surehook_left`), "what is over was swept")
			})
		}
	}
}

// An expansion that is at work when a resume commits gives the subscription nothing that the
// resume skips, whether it has read the subscription by then or not.
func TestAResumeBesideAnExpansion(t *testing.T) {
	for name, block := range map[string]string{
		"who gets it is decided": `SELECT 1 FROM surehook_heads FOR UPDATE`,
		"the delivery is made":   `LOCK TABLE surehook_pending IN SHARE MODE`,
	} {
		for first, positions := range map[string]string{"": "", ", the first event of all": `UPDATE surehook_feed_head SET position = 0`} {
			t.Run(name+first, func(t *testing.T) {
				f := newForgetting(t)
				owners, subs := f.subscribe(1)
				if positions != "" {
					f.exec(positions)
				}
				f.inTx(func(ctx context.Context, tx pgx.Tx) error {
					return f.HoldSubscriptionTx(ctx, tx, subs[0], sender.SubscriptionPaused, "")
				})
				f.claim()
				require.NoError(t, f.publish(eventTo(owners[0])))
				tx := f.blocked(block)
				var early dispatch.Claims
				expanded := f.begun(func(ctx context.Context) (err error) {
					_, early, err = f.Step(ctx, dispatch.ExpandParams{Events: 10, Deliveries: 10}, recordAs(nil, sender.ClassNone))
					return err
				})
				f.waits(1)
				f.inTx(func(ctx context.Context, tx pgx.Tx) error {
					return f.ResumeSubscriptionTx(ctx, tx, subs[0], sender.Resume{None: true})
				})
				require.NoError(t, f.publish(eventTo(owners[0])))
				require.NoError(t, tx.Rollback(t.Context()))
				expanded()
				require.Empty(t, early.Claimed)
				f.expand()
				claimed := f.claim()
				require.Len(t, claimed, 1, "of the event of after the resume")
				require.Equal(t, 1, f.count(`SELECT count(*) FROM surehook_ended WHERE status = 'cancelled'`))
				_, _, err := f.Step(t.Context(), dispatch.ExpandParams{}, recordAs(claimed, sender.ClassNone))
				require.NoError(t, err)
				f.sweep()
				require.Zero(t, f.count(`SELECT count(*) FROM surehook_left`))
				f.headsRight()
			})
		}
	}
}

// After a resume has skipped a part of an object's line, the rest of the line goes on.
func TestAResumeSkipsOfALineWhatIsExpandedBeforeItsCommit(t *testing.T) {
	for order, later := range map[sender.Order]int{sender.OrderObject: 2, sender.OrderLatest: 0} {
		t.Run(string(order), func(t *testing.T) {
			p := newPlace(t)
			s := p.store(t)
			register(t, s, 1, 1, sender.Settings{Order: order})
			id := subscriptionID(0, 0)
			object := sender.Object{Type: "thing", ID: "1"}
			about := func(n int) []string {
				all := []string{}
				for range n {
					d := draft(subscriberID(0))
					d.Object = object
					require.NoError(t, publishInTx(t.Context(), s, d))
					all = append(all, d.ID)
				}
				return all
			}
			p.committed(t, pgx.ReadCommitted, func(tx pgx.Tx) {
				require.NoError(t, s.HoldSubscriptionTx(t.Context(), tx, id, sender.SubscriptionPaused, ""))
			})
			about(3)
			resuming := p.begin(t, pgx.ReadCommitted)
			require.NoError(t, s.ResumeSubscriptionTx(t.Context(), resuming, id, sender.Resume{None: true}))
			expandAll(t, s)
			taken := about(later)
			expandAll(t, s)
			require.NoError(t, resuming.Commit(t.Context()))
			taken = append(taken, about(later)...)
			drainAll(t, s)
			p.settled(t)
			require.ElementsMatch(t, taken, got(t, s, id, sender.StatusDelivered))
		})
	}
}

// However many a resume skips, of events that are expanded whole and of one that is begun, and
// whoever looks first.
func TestAResumeSkipsManyThatAreExpandedBeforeItsCommit(t *testing.T) {
	p := newPlace(t)
	s := p.store(t)
	register(t, s, 1, 2, sender.Settings{})
	both := func(do func(id string) error) {
		for i := range 2 {
			require.NoError(t, do(subscriptionID(0, i)))
		}
	}
	p.committed(t, pgx.ReadCommitted, func(tx pgx.Tx) {
		both(func(id string) error {
			return s.HoldSubscriptionTx(t.Context(), tx, id, sender.SubscriptionPaused, "")
		})
	})
	publish(t, s, 1200, 1)
	resuming := p.begin(t, pgx.ReadCommitted)
	both(func(id string) error {
		return s.ResumeSubscriptionTx(t.Context(), resuming, id, sender.Resume{None: true})
	})
	_, _, err := s.Step(t.Context(), dispatch.ExpandParams{Events: 10, Deliveries: 1}, dispatch.Batch{}) // the first event is begun
	require.NoError(t, err)
	for range 2 {
		_, _, err := s.Step(t.Context(), dispatch.ExpandParams{Events: 1100, Deliveries: 10_000}, dispatch.Batch{})
		require.NoError(t, err)
	}
	require.NoError(t, resuming.Commit(t.Context()))
	skipped, _, err := s.Deliveries(t.Context(), history.DeliveryQuery{Subscription: subscriptionID(0, 0), Status: sender.StatusCancelled, Limit: 1})
	require.NoError(t, err)
	require.Len(t, skipped, 1)
	require.ErrorIs(t, s.Redeliver(t.Context(), skipped[0].ID, time.Time{}), sender.ErrCancelled)
	require.Empty(t, drainAll(t, s))
	p.settled(t)
	require.Equal(t, 2*1200, p.count(t, `SELECT count(*) FROM {}.surehook_ended WHERE status = 'cancelled'`))
}

// One transaction that holds a subscription and resumes it skips what is in flight, too, if
// its attempt fails, whenever it was expanded and claimed.
func TestAResumeSkipsWhatIsInFlightSinceBeforeItsCommit(t *testing.T) {
	for name, fails := range map[string]func(s *pgxStore, claimed []dispatch.Claimed) error{
		"failed": func(s *pgxStore, claimed []dispatch.Claimed) error {
			_, _, err := s.Step(context.Background(), dispatch.ExpandParams{}, recordAs(claimed, sender.ClassTimeout))
			return err
		},
		"released": func(s *pgxStore, claimed []dispatch.Claimed) error {
			return s.Release(context.Background(), []dispatch.Release{{Key: claimed[0].Key, Token: claimed[0].Token}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			s := p.store(t)
			register(t, s, 1, 1, sender.Settings{})
			id := subscriptionID(0, 0)
			publish(t, s, 1, 1)
			resuming := p.begin(t, pgx.ReadCommitted)
			require.NoError(t, s.HoldSubscriptionTx(t.Context(), resuming, id, sender.SubscriptionPaused, ""))
			require.NoError(t, s.ResumeSubscriptionTx(t.Context(), resuming, id, sender.Resume{None: true}))
			expandAll(t, s)
			claimed := exchange(t, s, batchOf(nil, 10)).Claimed
			require.Len(t, claimed, 1)
			require.NoError(t, resuming.Commit(t.Context()))
			require.Len(t, got(t, s, id, sender.StatusCancelled), 1)
			require.NoError(t, fails(s, claimed))
			require.Empty(t, drainAll(t, s))
			require.Len(t, got(t, s, id, sender.StatusCancelled), 1)
			p.settled(t)
		})
	}
}

// blocked is a transaction that has locked something, in the store's schema.
func (f *forgetting) blocked(lock string) pgx.Tx {
	f.Helper()
	tx, err := f.all.pool.Begin(f.Context())
	require.NoError(f, err)
	f.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	_, err = tx.Exec(f.Context(), `SET LOCAL search_path = "`+f.schema+`"`)
	require.NoError(f, err)
	_, err = tx.Exec(f.Context(), lock)
	require.NoError(f, err)
	return tx
}
