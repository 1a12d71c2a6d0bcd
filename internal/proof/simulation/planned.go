package simulation

import (
	"context"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// planned marks the contexts of a run's own calls.
type planned struct{}

// refuser refuses connections to goroutines that a store has started by itself: their
// timing cannot be repeated. Such a goroutine sends hints, which may be lost.
type refuser struct{ on atomic.Bool }

var _ pgxpool.AcquireTracer = (*refuser)(nil)

// TraceAcquireStart returns a context that has ended, unless the call is planned.
func (r *refuser) TraceAcquireStart(ctx context.Context, _ *pgxpool.Pool, _ pgxpool.TraceAcquireStartData) context.Context {
	if _, beside := ctx.Deadline(); beside && r.on.Load() && ctx.Value(planned{}) == nil {
		ended, cancel := context.WithCancel(ctx)
		cancel()
		return ended
	}
	return ctx
}

func (*refuser) TraceAcquireEnd(context.Context, *pgxpool.Pool, pgxpool.TraceAcquireEndData) {}

func (*refuser) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

func (*refuser) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
