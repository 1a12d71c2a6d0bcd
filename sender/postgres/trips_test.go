package postgres_test

import (
	"bytes"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/postgres"
)

// counting opens the store of a place on one connection, and counts what that sends.
func (p *place) counting(t *testing.T) (*pgxStore, *atomic.Int64) {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(pgtest.With(pgtest.DSN(t), "pool_max_conns", "1"))
	require.NoError(t, err)
	dial, sent := pgtest.Sends(cfg.ConnConfig.DialFunc, func(b []byte) bool { // except the notification that follows a commit
		return !bytes.Contains(b, []byte("pg_notify")) && (b[0] != 'B' || !bytes.Contains(b, []byte(p.schema)))
	})
	cfg.ConnConfig.DialFunc = dial
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	s, err := postgres.New(pool, &postgres.Config{Schema: p.schema})
	require.NoError(t, err)
	return s, sent
}

// The order of objects takes no trip of its own where more is pending than a step can claim.
func TestTripsOfAStep(t *testing.T) {
	trips := map[sender.Order]int64{}
	for _, order := range []sender.Order{sender.OrderRelaxed, sender.OrderObject} {
		p := newPlace(t)
		s, sent := p.counting(t)
		register(t, s, 1, 1, sender.Settings{Order: order})
		drafts := make([]sender.Draft, 60)
		for i := range drafts {
			drafts[i] = draft(subscriberID(0))
			drafts[i].Object.ID = strconv.Itoa(i % 20)
		}
		require.NoError(t, publishInTx(t.Context(), s, drafts...))
		expandAll(t, s)
		var claimed []dispatch.Claimed
		for range 4 { // statements are prepared
			claimed = exchange(t, s, batchOf(claimed, 3)).Claimed
			require.Len(t, claimed, 3)
		}
		before := sent.Load()
		require.Len(t, exchange(t, s, batchOf(claimed, 3)).Claimed, 3)
		trips[order] = sent.Load() - before
	}
	require.Positive(t, trips[sender.OrderRelaxed])
	require.Equal(t, trips[sender.OrderRelaxed], trips[sender.OrderObject])
}

// No order takes a trip of its own where each object has one delivery at a time, as at ordinary
// rates.
func TestTripsOfASingleDelivery(t *testing.T) {
	trips := map[sender.Order][2]int64{}
	for _, order := range []sender.Order{sender.OrderRelaxed, sender.OrderObject, sender.OrderLatest} {
		p := newPlace(t)
		s, sent := p.counting(t)
		register(t, s, 1, 1, sender.Settings{Order: order})
		for range 6 { // statements are prepared
			require.NoError(t, publishInTx(t.Context(), s, draft(subscriberID(0))))
			before := sent.Load()
			_, claims, err := s.Step(t.Context(), dispatch.ExpandParams{Events: 100, Deliveries: 1000}, batchOf(nil, 10))
			require.NoError(t, err)
			require.Len(t, claims.Claimed, 1)
			claimed := sent.Load()
			_, claims, err = s.Step(t.Context(), dispatch.ExpandParams{}, batchOf(claims.Claimed, 10))
			require.NoError(t, err)
			require.Empty(t, claims.Claimed)
			trips[order] = [2]int64{claimed - before, sent.Load() - claimed}
		}
		p.linedUp(t)
		require.Zero(t, p.count(t, `SELECT count(*) FROM {}.surehook_lines`))
		require.Zero(t, p.count(t, `SELECT sum(lined) FROM {}.surehook_heads`))
	}
	require.Positive(t, trips[sender.OrderRelaxed][1])
	require.Equal(t, trips[sender.OrderRelaxed], trips[sender.OrderObject])
	require.Equal(t, trips[sender.OrderRelaxed], trips[sender.OrderLatest])
}

// A transaction begins with its first statement, so that one with a change and an event
// is three trips to the server, and one with events alone is two.
func TestTripsOfATransaction(t *testing.T) {
	p := newPlace(t)
	p.exec(t, `CREATE TABLE {}.test_business (n int)`)
	defer p.exec(t, `DROP TABLE {}.test_business`)
	p.exec(t, `INSERT INTO {}.test_business VALUES (0)`)
	s, sent := p.counting(t)
	pub, err := sender.NewPublisher(s, nil)
	require.NoError(t, err)
	event := sender.Event{Type: "thing.changed", Object: sender.Object{Type: "thing", ID: "1"}}
	nobodys := func(subscriber string) sender.Event {
		e := event
		e.Subscriber, e.IfSubscriberExists = subscriber, true
		return e
	}
	for _, c := range []struct {
		what  string
		run   func() error
		trips int64
	}{
		{"a change and an event", func() error {
			return pub.InTx(t.Context(), func(tx pgx.Tx) error {
				if _, err := tx.Exec(t.Context(), in(p.schema, `UPDATE {}.test_business SET n = n + $1`), 1); err != nil {
					return err
				}
				_, err := pub.PublishTx(t.Context(), tx, event)
				return err
			})
		}, 3},
		{"an event", func() error { _, err := pub.Publish(t.Context(), event); return err }, 2},
		{"many events", func() error {
			_, err := pub.PublishMany(t.Context(), []sender.Event{event, event, event})
			return err
		}, 2},
		{"many events for nobody", func() error {
			refs, err := pub.PublishMany(t.Context(), []sender.Event{nobodys("a"), nobodys("b"), nobodys("c")})
			if err == nil {
				require.Equal(t, sender.Ref{Dropped: true}, refs[2])
			}
			return err
		}, 3},
		{"nothing", func() error { return pub.InTx(t.Context(), func(pgx.Tx) error { return nil }) }, 0},
	} {
		for range 2 { // statements are prepared
			require.NoError(t, c.run(), c.what)
		}
		before := sent.Load()
		require.NoError(t, c.run(), c.what)
		require.Equal(t, c.trips, sent.Load()-before, c.what)
	}
	require.Equal(t, 3, p.count(t, `SELECT n FROM {}.test_business`))
	require.Equal(t, 15, p.count(t, `SELECT count(*) FROM {}.surehook_events`))
}
