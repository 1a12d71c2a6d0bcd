package postgres_test

import (
	"context"
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

// counted counts the statements that connections send, their trips to the server, and the
// rows that these return or change.
type counted struct{ statements, trips, rows atomic.Int64 }

func (c *counted) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.statements.Add(1)
	c.trips.Add(1)
	return ctx
}

func (c *counted) TraceQueryEnd(_ context.Context, _ *pgx.Conn, d pgx.TraceQueryEndData) {
	c.rows.Add(d.CommandTag.RowsAffected())
}

func (c *counted) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	c.trips.Add(1)
	return ctx
}

func (c *counted) TraceBatchQuery(_ context.Context, _ *pgx.Conn, d pgx.TraceBatchQueryData) {
	c.statements.Add(1)
	c.rows.Add(d.CommandTag.RowsAffected())
}

func (c *counted) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// countedStore opens a store on a pool that counts what is sent.
func (p *place) countedStore(t *testing.T) (*pgxStore, *counted) {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(pgtest.DSN(t))
	require.NoError(t, err)
	sent := &counted{}
	cfg.ConnConfig.Tracer = sent
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	s, err := postgres.New(pool, &postgres.Config{Schema: p.schema})
	require.NoError(t, err)
	t.Cleanup(s.Open())
	return s, sent
}

// A statement costs much more than its work on a few rows. At ordinary load a step
// expands some events, records some results and claims the new deliveries. It sends
// only the statements that it needs.
func TestStatementsOfAStep(t *testing.T) {
	p := newPlace(t)
	s, sent := p.countedStore(t)
	producer := p.store(t)
	register(t, producer, 1, 1, sender.Settings{})
	var claimed []dispatch.Claimed
	subscriber := subscriberID(0)
	step := func(events int) (statements, trips int64) {
		for range events {
			require.NoError(t, publishInTx(t.Context(), producer, draft(subscriber)))
		}
		statements, trips = sent.statements.Load(), sent.trips.Load()
		_, c, err := s.Step(t.Context(), dispatch.ExpandParams{Events: 1024, Deliveries: 2048}, batchOf(claimed, 100))
		require.NoError(t, err)
		require.Len(t, c.Recorded, len(claimed))
		require.Len(t, c.Claimed, events)
		claimed = c.Claimed
		return sent.statements.Load() - statements, sent.trips.Load() - trips
	}
	for range 3 { // until statements are prepared, and the subscription has moved to its lane
		step(3)
		_, err := s.Sweep(t.Context(), dispatch.SweepParams{Limit: 100}) // the marks of its filter go
		require.NoError(t, err)
	}
	for name, c := range map[string]struct {
		subscriber        string
		events            int
		statements, trips int64
	}{
		"events and results":              {subscriberID(0), 3, 8, 2},
		"events for everyone and results": {"", 3, 8, 2},
		"results":                         {subscriberID(0), 0, 8, 2},
	} {
		t.Run(name, func(t *testing.T) {
			subscriber = c.subscriber
			if len(claimed) == 0 {
				step(3)
			}
			statements, trips := step(c.events)
			require.LessOrEqual(t, statements, c.statements, "statements")
			require.LessOrEqual(t, trips, c.trips, "trips")
			t.Log(statements, trips)
		})
	}
	t.Run("nothing", func(t *testing.T) {
		for len(claimed) > 0 {
			step(0)
		}
		statements, _ := step(0)
		require.EqualValues(t, 1, statements)
	})
}
