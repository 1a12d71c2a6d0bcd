package postgres_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// If a claim has few events, small bodies are read with them and large ones after the
// claim. If it has many, all bodies are read after it. The result is the same.
func TestBodiesOfFewAndOfMany(t *testing.T) {
	p := newPlace(t)
	s := p.store(t)
	register(t, s, 1, 2, sender.Settings{})
	for _, n := range []int{1, 5, 40, 40, 3, 3, 2} {
		want := map[string][]byte{}
		drafts := make([]sender.Draft, n)
		for i := range drafts {
			d := draft(subscriberID(0))
			d.BodyHead = append([]byte(`{"n":"`+d.ID+`","pad":"`), bytes.Repeat([]byte{'x'}, []int{10, 16 << 10, 40 << 10}[i%3])...)
			d.BodyHead = append(d.BodyHead, `","version":`...)
			drafts[i], want[d.ID] = d, append(bytes.Clone(d.BodyHead), "1"+string(d.BodyTail)...)
		}
		require.NoError(t, publishInTx(t.Context(), s, drafts...))
		var claimed []dispatch.Claimed
		for more := true; more; {
			x, c, err := s.Step(t.Context(), dispatch.ExpandParams{Events: 1024, Deliveries: 2048}, batchOf(nil, 100))
			require.NoError(t, err)
			more = x.More
			claimed = append(claimed, c.Claimed...)
		}
		require.Len(t, claimed, 2*n)
		for i := range claimed {
			require.Equal(t, string(want[claimed[i].Event.ID]), string(claimed[i].Body))
		}
		exchange(t, s, batchOf(claimed, 0))
	}
}

// A step that expects few events locks those who may get them before it knows all of them.
// If others get some, or another process has begun an event, it records its results, and
// leaves the events to the next step. Nothing is lost, and nobody is locked out of order.
func TestFewEventsThatOthersGet(t *testing.T) {
	const many = 70 // more than selectFew finds of one event
	large := dispatch.ExpandParams{Events: 1024, Deliveries: 2048, Whole: 2 * many, Part: many}
	for _, c := range []struct {
		name    string
		events  func(t *testing.T, other *pgxStore) (made int)
		one     bool // one step is enough
		already int  // deliveries that another process has made
	}{
		{name: "the same subscriber", one: true, events: func(t *testing.T, s *pgxStore) int {
			require.NoError(t, publishInTx(t.Context(), s, draft(subscriberID(0)), draft(subscriberID(0))))
			return 2
		}},
		{name: "another subscriber", one: true, events: func(t *testing.T, s *pgxStore) int {
			require.NoError(t, publishInTx(t.Context(), s, draft(subscriberID(2)), draft(subscriberID(0))))
			return 2
		}},
		{name: "a subscription", one: true, events: func(t *testing.T, s *pgxStore) int {
			d := draft(subscriberID(2))
			d.Subscription = subscriptionID(2, 0)
			require.NoError(t, publishInTx(t.Context(), s, d))
			return 1
		}},
		{name: "a subscription that was changed", one: true, events: func(t *testing.T, s *pgxStore) int {
			require.NoError(t, s.InTx(t.Context(), func(tx pgx.Tx) error {
				sub := sender.Subscription{ID: subscriptionID(0, 0), Subscriber: subscriberID(0), URL: "https://example.com/new", EventTypes: []string{"*"}}
				return s.UpdateSubscriptionTx(t.Context(), tx, sub)
			}))
			require.NoError(t, publishInTx(t.Context(), s, draft(subscriberID(0))))
			return 1
		}},
		{name: "everyone", events: func(t *testing.T, s *pgxStore) int {
			require.NoError(t, publishInTx(t.Context(), s, draft(""), draft(subscriberID(0))))
			return many + 3
		}},
		{name: "many of one subscriber", events: func(t *testing.T, s *pgxStore) int {
			require.NoError(t, publishInTx(t.Context(), s, draft(subscriberID(1))))
			return many
		}},
		{name: "begun by another process", already: many / 2, events: func(t *testing.T, s *pgxStore) int {
			require.NoError(t, publishInTx(t.Context(), s, draft(subscriberID(1))))
			x, _, err := s.Step(t.Context(), dispatch.ExpandParams{Events: 1024, Deliveries: 2048, Whole: 1, Part: many / 2}, dispatch.Batch{})
			require.NoError(t, err)
			require.Equal(t, dispatch.Expanded{Deliveries: many / 2, More: true}, x)
			return many / 2
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlace(t)
			s, other := p.store(t), p.store(t)
			register(t, other, 3, 1, sender.Settings{})
			require.NoError(t, other.InTx(t.Context(), func(tx pgx.Tx) error {
				for i := 1; i < many; i++ {
					sub := sender.Subscription{ID: subscriptionID(1, i), Subscriber: subscriberID(1), URL: "https://example.com/", EventTypes: []string{"*"}}
					if err := other.CreateSubscriptionTx(t.Context(), tx, sub); err != nil {
						return err
					}
				}
				return nil
			}))
			_, err := other.Sweep(t.Context(), dispatch.SweepParams{Limit: 1000}) // the marks of its filter go
			require.NoError(t, err)
			step := func(claimed []dispatch.Claimed, slots int) (dispatch.Expanded, dispatch.Claims) {
				x, claims, err := s.Step(t.Context(), large, batchOf(claimed, slots))
				require.NoError(t, err)
				require.Len(t, claims.Recorded, len(claimed))
				return x, claims
			}
			for range 2 {
				require.NoError(t, publishInTx(t.Context(), other, draft(subscriberID(0))))
				_, claims := step(nil, 100)
				require.Len(t, claims.Claimed, 1)
				step(claims.Claimed, 0)
			}
			require.NoError(t, publishInTx(t.Context(), other, draft(subscriberID(0))))
			_, claims := step(nil, 100)

			made := c.events(t, other)
			first, more := step(claims.Claimed, 0)
			require.Empty(t, more.Claimed)
			require.Zero(t, p.count(t, `SELECT count(*) FROM {}.surehook_wakes`))
			if !c.one {
				require.Equal(t, dispatch.Expanded{More: true}, first)
			}
			for x := first; x.More; {
				x, _ = step(nil, 0)
				first.Deliveries += x.Deliveries
			}
			require.Equal(t, made, first.Deliveries)
			p.consistent(t)
			of := drainAll(t, s)
			total := 0
			for _, n := range of {
				total += n
			}
			require.Equal(t, made+c.already, total)
			p.consistent(t)
		})
	}
}

// An event that many ask for costs one step, also if their filters refuse it. To expect few
// events, since few deliveries were made, would leave each one to a second step.
func TestManyThatRefuseAnEvent(t *testing.T) {
	const many = 70 // more than selectFew finds of one event
	p := newPlace(t)
	s := p.store(t)
	register(t, s, 1, many, sender.Settings{})
	p.exec(t, `UPDATE {}.surehook_subscriptions SET filter = '{"data":{"prefix":"x"}}'`)
	for range 3 {
		require.NoError(t, publishInTx(t.Context(), s, draft(subscriberID(0))))
		x, _, err := s.Step(t.Context(), dispatch.ExpandParams{Events: 1024, Deliveries: 2048}, dispatch.Batch{})
		require.NoError(t, err)
		require.Equal(t, dispatch.Expanded{Events: 1}, x)
	}

	require.NoError(t, publishInTx(t.Context(), s, draft(subscriberID(0))))
	steps := 0
	for x := (dispatch.Expanded{More: true}); x.More; steps++ {
		var err error
		x, _, err = s.Step(t.Context(), dispatch.ExpandParams{Events: 1024, Deliveries: 2048, Whole: 1, Part: 10}, dispatch.Batch{})
		require.NoError(t, err)
		require.Zero(t, x.Deliveries)
	}
	require.LessOrEqual(t, steps, many/10+1, "and so does each part of a large event")
}

// An event that is addressed to a subscription waits for no other one that asks for its type.
// After a wait the step would be made again.
func TestAddressedEventWaitsForNobodyElse(t *testing.T) {
	p := newPlace(t)
	s, sent := p.countedStore(t)
	producer := p.store(t) // it tells other processes of its events, on a trip of its own
	register(t, producer, 1, 2, sender.Settings{})
	step := func() (trips int64) {
		d := draft(subscriberID(0))
		d.Subscription = subscriptionID(0, 0)
		require.NoError(t, publishInTx(t.Context(), producer, d))
		before := sent.trips.Load()
		x, _, err := s.Step(t.Context(), dispatch.ExpandParams{Events: 1024, Deliveries: 2048}, dispatch.Batch{})
		require.NoError(t, err)
		require.Equal(t, dispatch.Expanded{Events: 1, Deliveries: 1}, x)
		return sent.trips.Load() - before
	}
	for range 3 {
		step()
	}
	trips := step()

	other, err := p.pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = other.Rollback(context.Background()) }()
	_, err = other.Exec(t.Context(), `SELECT 1 FROM `+pgx.Identifier{p.schema, "surehook_heads"}.Sanitize()+` WHERE subscription =
		(SELECT no FROM `+pgx.Identifier{p.schema, "surehook_subscriptions"}.Sanitize()+` WHERE id = $1) FOR UPDATE`, subscriptionID(0, 1))
	require.NoError(t, err)
	require.Equal(t, trips, step())
}
