package postgres_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
)

var levels = []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead, pgx.Serializable}

// publishing publishes a draft in a transaction that is open, in the background. The
// test goes on once the server says that it waits for another transaction.
func (p *place) publishing(t *testing.T, s *pgxStore, tx pgx.Tx, d sender.Draft) <-chan published {
	t.Helper()
	var pid int
	require.NoError(t, tx.QueryRow(t.Context(), `SELECT pg_backend_pid()`).Scan(&pid))
	done := make(chan published, 1)
	go func() {
		refs, err := s.PublishTx(t.Context(), tx, []sender.Draft{d})
		done <- published{refs, err}
	}()
	for n := 0; n == 0; {
		require.Empty(t, done, "it must wait for the transaction before it")
		n = p.count(t, `SELECT count(*) FROM pg_locks WHERE pid = $1 AND NOT granted`, pid)
	}
	return done
}

type published struct {
	refs []sender.Ref
	err  error
}

// If two transactions publish about one object at a time, the second waits for the
// first. If the first rolls back, the second gets its version. If the first commits,
// the second gets the next version under READ COMMITTED, and must be run again under
// stricter levels.
func TestVersionsRiseInTheOrderOfCommits(t *testing.T) {
	p := newPlace(t)
	s := p.store(t)
	for _, level := range levels {
		for _, commits := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, the first commits: %t", level, commits), func(t *testing.T) {
				ctx := t.Context()
				object := sender.Object{Type: "thing", ID: t.Name()}
				about := func() sender.Draft {
					d := draft("")
					d.Object = object
					return d
				}
				require.NoError(t, publishInTx(ctx, s, about()))
				first, second := p.begin(t, level), p.begin(t, level)
				refs, err := s.PublishTx(ctx, first, []sender.Draft{about()})
				require.NoError(t, err)
				require.EqualValues(t, 2, refs[0].Version)
				done := p.publishing(t, s, second, about())
				last := int64(2)
				if commits {
					require.NoError(t, first.Commit(ctx))
				} else {
					require.NoError(t, first.Rollback(ctx))
				}
				got := <-done
				switch {
				case !commits:
					require.NoError(t, got.err)
					require.EqualValues(t, 2, got.refs[0].Version)
					require.NoError(t, second.Commit(ctx))
				case level == pgx.ReadCommitted:
					require.NoError(t, got.err)
					require.EqualValues(t, 3, got.refs[0].Version)
					require.NoError(t, second.Commit(ctx))
					last = 3
				default:
					require.ErrorIs(t, got.err, sender.ErrRetryTx)
					require.NoError(t, second.Rollback(ctx))
				}
				require.EqualValues(t, last, p.count(t, `SELECT max(version) FROM {}.surehook_events WHERE object_id = $1`, object.ID))
				require.EqualValues(t, last, p.count(t, `SELECT count(*) FROM {}.surehook_events WHERE object_id = $1`, object.ID), "no gap")
			})
		}
	}
}

// If two transactions publish under one idempotency key at a time, the second waits for
// the first, and gets its Ref. Under stricter levels it must be run again.
func TestAKeyThatIsUsedTwiceAtATimePublishesOnce(t *testing.T) {
	p := newPlace(t)
	s := p.store(t)
	for _, level := range levels {
		for _, commits := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, the first commits: %t", level, commits), func(t *testing.T) {
				ctx := t.Context()
				keyed := func() sender.Draft {
					d := draft("")
					d.KeyScope, d.Key = "scope", t.Name()
					return d
				}
				first, second := p.begin(t, level), p.begin(t, level)
				// It takes its snapshot before: at READ COMMITTED that
				// does not matter.
				_, err := second.Exec(ctx, in(p.schema, `SELECT count(*) FROM {}.surehook_keys`))
				require.NoError(t, err)
				refs, err := s.PublishTx(ctx, first, []sender.Draft{keyed()})
				require.NoError(t, err)
				again := keyed()
				done := p.publishing(t, s, second, again)
				if commits {
					require.NoError(t, first.Commit(ctx))
				} else {
					require.NoError(t, first.Rollback(ctx))
				}
				got := <-done
				switch {
				case !commits:
					require.NoError(t, got.err)
					require.Equal(t, []sender.Ref{{ID: again.ID, Version: 1}}, got.refs)
				case level == pgx.ReadCommitted:
					require.NoError(t, got.err)
					require.Equal(t, []sender.Ref{{ID: refs[0].ID, Version: 1, Duplicate: true}}, got.refs)
				default:
					require.ErrorIs(t, got.err, sender.ErrRetryTx)
					require.NoError(t, second.Rollback(ctx))
					require.NoError(t, s.InTx(ctx, func(tx pgx.Tx) error {
						refs, err := s.PublishTx(ctx, tx, []sender.Draft{again})
						got.refs = refs
						return err
					}))
					require.Equal(t, []sender.Ref{{ID: refs[0].ID, Version: 1, Duplicate: true}}, got.refs)
					return
				}
				require.NoError(t, second.Commit(ctx))
				require.Equal(t, 1, p.count(t, `SELECT count(*) FROM {}.surehook_keys WHERE key = $1`, t.Name()))
			})
		}
	}
}

// to publishes an event to a subscriber and returns its id.
func to(t *testing.T, s *pgxStore, tx pgx.Tx, owner int) string {
	t.Helper()
	d := draft(subscriberID(owner))
	_, err := s.PublishTx(t.Context(), tx, []sender.Draft{d})
	require.NoError(t, err)
	return d.ID
}

// committed does something in a transaction of its own.
func (p *place) committed(t *testing.T, level pgx.TxIsoLevel, fn func(tx pgx.Tx)) {
	t.Helper()
	tx := p.begin(t, level)
	fn(tx)
	require.NoError(t, tx.Commit(t.Context()))
}

// got returns the events of a subscription's deliveries with a status ("": any).
func got(t *testing.T, s *pgxStore, subscription string, status sender.Status) []string {
	t.Helper()
	ids := []string{}
	for cursor := ""; ; {
		page, next, err := s.Deliveries(context.Background(), history.DeliveryQuery{Subscription: subscription, Status: status, Cursor: cursor})
		require.NoError(t, err)
		for _, d := range page {
			ids = append(ids, d.Event.ID)
		}
		if next == "" {
			return ids
		}
		cursor = next
	}
}

func subscribe(t *testing.T, s *pgxStore, tx pgx.Tx, id string) {
	t.Helper()
	require.NoError(t, s.CreateSubscriptionTx(t.Context(), tx, sender.Subscription{ID: id, Subscriber: subscriberID(0), URL: "https://example.com/", EventTypes: []string{"*"}}))
}

// A subscription gets the events that are committed after it, and no older ones. When
// they were published or expanded does not matter.
func TestANewSubscriptionGetsWhatIsCommittedAfterIt(t *testing.T) {
	for _, level := range levels {
		t.Run(string(level), func(t *testing.T) {
			p := newPlace(t)
			s := p.store(t)
			register(t, s, 1, 0, sender.Settings{})
			var before, open, after string
			p.committed(t, level, func(tx pgx.Tx) { before = to(t, s, tx, 0) })
			producer := p.begin(t, level)
			open = to(t, s, producer, 0)
			p.committed(t, level, func(tx pgx.Tx) { subscribe(t, s, tx, "wsub_new") })
			p.committed(t, level, func(tx pgx.Tx) { after = to(t, s, tx, 0) })
			require.NotEmpty(t, before)
			require.Equal(t, 1, expandAll(t, s))
			require.NoError(t, producer.Commit(t.Context()))
			require.Equal(t, 1, expandAll(t, s))
			require.ElementsMatch(t, []string{open, after}, got(t, s, "wsub_new", ""))

			// And the other way round: the subscription is committed after
			// an event that was published after it.
			registry := p.begin(t, level)
			subscribe(t, s, registry, "wsub_late")
			var between, last string
			p.committed(t, level, func(tx pgx.Tx) { between = to(t, s, tx, 0) })
			require.NoError(t, registry.Commit(t.Context()))
			p.committed(t, level, func(tx pgx.Tx) { last = to(t, s, tx, 0) })
			expandAll(t, s)
			require.Contains(t, got(t, s, "wsub_late", ""), last)
			require.NotContains(t, got(t, s, "wsub_late", ""), before)
			require.Contains(t, got(t, s, "wsub_new", ""), between)
			p.consistent(t)
		})
	}
}

// A closing subscription gets the events that were committed before the call, and those that
// the closing transaction published before it. It gets none of a transaction that was open
// then, and none that others commit until the closing transaction does: these are accepted,
// since nobody waits for it.
func TestAClosingSubscriptionGetsWhatWasCommittedBefore(t *testing.T) {
	id := subscriptionID(0, 0)
	for _, level := range levels {
		for name, end := range map[string]struct {
			call      func(s *pgxStore, tx pgx.Tx) error
			addressee error // what a publish to the subscriber is refused with afterwards
		}{
			"the subscription": {func(s *pgxStore, tx pgx.Tx) error { return s.CloseSubscriptionTx(t.Context(), tx, id) }, nil},
			"the subscriber":   {func(s *pgxStore, tx pgx.Tx) error { return s.DeleteSubscriberTx(t.Context(), tx, subscriberID(0)) }, sender.ErrNotFound},
		} {
			t.Run(string(level)+", "+name, func(t *testing.T) {
				p := newPlace(t)
				s := p.store(t)
				register(t, s, 1, 1, sender.Settings{})
				later := func(tx pgx.Tx) error {
					_, err := s.PublishTx(t.Context(), tx, []sender.Draft{draft(subscriberID(0))})
					return err
				}
				var before, between string
				p.committed(t, level, func(tx pgx.Tx) { before = to(t, s, tx, 0) })
				producer := p.begin(t, level)
				open := to(t, s, producer, 0)
				addressed := draft(subscriberID(0))
				addressed.Subscription = id
				_, err := s.PublishTx(t.Context(), producer, []sender.Draft{addressed})
				require.NoError(t, err)
				closing := p.begin(t, level)
				farewell := to(t, s, closing, 0)
				require.NoError(t, end.call(s, closing))
				if end.addressee == nil {
					require.NoError(t, later(closing))
				}
				p.committed(t, level, func(tx pgx.Tx) { between = to(t, s, tx, 0) })
				require.NoError(t, closing.Commit(t.Context()))
				require.ErrorIs(t, s.InTx(t.Context(), later), end.addressee)
				require.NoError(t, producer.Commit(t.Context()))
				require.Equal(t, map[string]int{id: 2}, drainAll(t, s))
				require.ElementsMatch(t, []string{before, farewell}, got(t, s, id, ""), "not %v", []string{open, addressed.ID, between})
				p.settled(t)
				_, err = s.Event(t.Context(), between)
				require.NoError(t, err, "it was accepted")
				require.NoError(t, s.InTx(t.Context(), func(tx pgx.Tx) error {
					_, err := s.SubscriptionTx(t.Context(), tx, sender.SubscriptionKey{ID: id})
					require.ErrorIs(t, err, sender.ErrNotFound, "it is deleted once all has ended")
					return nil
				}))
			})
		}
	}
}

// A resume that takes nothing skips the events that were committed before it, expanded
// or not. The subscription gets those that are committed later, also of a transaction
// that was open then.
func TestAResumeWithoutTheHeldLeavesWhatWasCommittedBefore(t *testing.T) {
	for _, level := range levels {
		t.Run(string(level), func(t *testing.T) {
			p := newPlace(t)
			s := p.store(t)
			register(t, s, 1, 1, sender.Settings{})
			id := subscriptionID(0, 0)
			hold := func(tx pgx.Tx) {
				require.NoError(t, s.HoldSubscriptionTx(t.Context(), tx, id, sender.SubscriptionPaused, ""))
			}
			p.committed(t, level, hold)
			var expanded, unexpanded, own, later, after string
			p.committed(t, level, func(tx pgx.Tx) { expanded = to(t, s, tx, 0) })
			require.Equal(t, 1, expandAll(t, s))
			p.committed(t, level, func(tx pgx.Tx) { unexpanded = to(t, s, tx, 0) })
			producer := p.begin(t, level)
			open := to(t, s, producer, 0)
			p.committed(t, level, func(tx pgx.Tx) {
				own = to(t, s, tx, 0)
				require.NoError(t, s.ResumeSubscriptionTx(t.Context(), tx, id, sender.Resume{None: true}))
				later = to(t, s, tx, 0)
			})
			p.committed(t, level, func(tx pgx.Tx) { after = to(t, s, tx, 0) })
			require.Equal(t, map[string]int{id: 2}, drainAll(t, s))
			require.NoError(t, producer.Commit(t.Context()))
			require.Equal(t, map[string]int{id: 1}, drainAll(t, s))
			require.ElementsMatch(t, []string{expanded, unexpanded, own}, got(t, s, id, sender.StatusCancelled))
			require.ElementsMatch(t, []string{later, open, after}, got(t, s, id, sender.StatusDelivered))
			p.settled(t)
			require.Zero(t, p.count(t, `SELECT count(*) FROM {}.surehook_left`), "what is over was swept")
		})
	}
}

// Under stricter levels the time of a transaction is that of its snapshot: events that
// were committed after the snapshot count as later than the transaction's changes.
func TestUnderStricterLevelsTheSnapshotSaysWhatWasBefore(t *testing.T) {
	for _, level := range levels[1:] {
		t.Run(string(level), func(t *testing.T) {
			p := newPlace(t)
			s := p.store(t)
			register(t, s, 1, 1, sender.Settings{})
			tx := p.begin(t, level)
			_, err := s.SubscriptionTx(t.Context(), tx, sender.SubscriptionKey{ID: subscriptionID(0, 0)})
			require.NoError(t, err)
			var between string
			p.committed(t, level, func(tx pgx.Tx) { between = to(t, s, tx, 0) })
			require.NoError(t, s.CloseSubscriptionTx(t.Context(), tx, subscriptionID(0, 0)))
			subscribe(t, s, tx, "wsub_new")
			require.NoError(t, tx.Commit(t.Context()))
			require.Equal(t, map[string]int{"wsub_new": 1}, drainAll(t, s))
			require.Equal(t, []string{between}, got(t, s, "wsub_new", ""))
			p.settled(t)
		})
	}
}

// An expansion that stopped within an event goes on with it before events that were
// committed since and stand before it in the outbox. A subscription must get its
// deliveries in the order of their positions, or a claim passes over some.
func TestWhatAnExpansionLeftOffAtComesFirst(t *testing.T) {
	p := newPlace(t)
	s := p.store(t)
	register(t, s, 1, 3, sender.Settings{})
	ctx := t.Context()
	late := p.begin(t, pgx.ReadCommitted)
	_, err := s.PublishTx(ctx, late, []sender.Draft{draft(subscriberID(0))})
	require.NoError(t, err)
	publish(t, s, 1, 1)
	x, _, err := s.Step(ctx, dispatch.ExpandParams{Events: 10, Deliveries: 1}, dispatch.Batch{})
	require.NoError(t, err)
	require.Equal(t, dispatch.Expanded{Deliveries: 1, More: true}, x)
	require.NoError(t, late.Commit(ctx))

	var claimed []dispatch.Claimed
	for range 8 {
		// Not in one step: that leases what it expands, whatever was claimed
		// before.
		_, _, err := s.Step(ctx, dispatch.ExpandParams{Events: 1, Deliveries: 2}, dispatch.Batch{})
		require.NoError(t, err)
		claimed = exchange(t, s, batchOf(claimed, 10)).Claimed
	}
	p.settled(t)
	require.Equal(t, 6, p.count(t, `SELECT count(*) FROM {}.surehook_attempts`), "two events for three subscriptions")
}

// A step leases an event that it expands at once only if nothing is pending before it.
func TestWhatArrivesGoesBehindWhatIsPending(t *testing.T) {
	p := newPlace(t)
	s := p.store(t)
	register(t, s, 1, 1, sender.Settings{})
	first, second := draft(subscriberID(0)), draft(subscriberID(0))
	require.NoError(t, publishInTx(t.Context(), s, first))
	require.Equal(t, 1, expandAll(t, s))
	require.NoError(t, publishInTx(t.Context(), s, second))
	var claimed []dispatch.Claimed
	for _, want := range []string{first.ID, second.ID} {
		_, got, err := s.Step(t.Context(), dispatch.ExpandParams{Events: 10, Deliveries: 10}, batchOf(claimed, 1))
		require.NoError(t, err)
		require.Len(t, got.Claimed, 1)
		require.Equal(t, want, got.Claimed[0].Event.ID)
		claimed = got.Claimed
	}
}
