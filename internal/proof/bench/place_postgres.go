package main

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/surehook/surehook/sender/postgres"
)

var onPostgres = kind[pgx.Tx]{
	name: "postgres", text: "PostgreSQL", fresh: freshPostgres,
	cpu: func(ctx context.Context, b *bench) (float64, error) {
		s, err := b.postgres(ctx)
		if err != nil {
			return 0, err
		}
		return s.cpu()
	},
	processes: func(ctx context.Context, b *bench, l location) (*processes, error) {
		cfg, err := pgx.ParseConfig(l.DSN)
		if err != nil {
			return nil, err
		}
		s, err := b.postgres(ctx)
		if err != nil {
			return nil, err
		}
		return s.processes(ctx, cfg.Database)
	},
}

func freshPostgres(ctx context.Context, b *bench) (*place[pgx.Tx], error) {
	p, err := emptyPostgres(ctx, b)
	if err != nil {
		return nil, err
	}
	if err := p.store.(*postgres.Store[pgx.Tx]).Migrate(ctx); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

// emptyPostgres makes a database without tables.
func emptyPostgres(ctx context.Context, b *bench) (*place[pgx.Tx], error) {
	s, err := b.postgres(ctx)
	if err != nil {
		return nil, err
	}
	dsn, drop, err := s.fresh(ctx, b.name("surehook"))
	if err != nil {
		return nil, err
	}
	p, err := postgresAt(ctx, dsn, manyConnections)
	if err != nil {
		return nil, errors.Join(err, drop())
	}
	closePool := p.close
	p.close = func() error { return errors.Join(closePool(), drop()) }
	return p, nil
}

// manyConnections is for processes that publish or apply many events at a time. Zero
// leaves the pool's size at its default.
const manyConnections = 64

// postgresAt opens a database.
func postgresAt(ctx context.Context, dsn string, connections int32) (*place[pgx.Tx], error) {
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	if connections > 0 {
		cfg.MaxConns = connections
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	store, err := postgres.New(pool, nil)
	if err != nil {
		pool.Close()
		return nil, err
	}
	keys, err := sealing()
	return &place[pgx.Tx]{
		location: location{Kind: "postgres", DSN: dsn}, store: store, keys: keys, bytes: "BYTEA", pool: pool,
		inTx: func(ctx context.Context, fn func(tx pgx.Tx) error) error { return pgx.BeginFunc(ctx, pool, fn) },
		exec: func(ctx context.Context, tx pgx.Tx, query string, args ...any) error {
			_, err := tx.Exec(ctx, query, args...)
			return err
		},
		snapshot: func(ctx context.Context) (func(), error) { return holdSnapshot(ctx, pool) },
		settle: func(ctx context.Context) error {
			for _, statement := range []string{"VACUUM (ANALYZE)", "CHECKPOINT"} {
				if _, err := pool.Exec(ctx, statement); err != nil {
					return err
				}
			}
			return nil
		},
		close: func() error {
			pool.Close()
			return nil
		},
	}, err
}

// holdSnapshot keeps a session idle in a transaction, whose snapshot vacuum must
// respect.
func holdSnapshot(ctx context.Context, pool *pgxpool.Pool) (release func(), err error) {
	tx, err := pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return nil, err
	}
	release = func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }
	if _, err := tx.Exec(ctx, "SELECT count(*) FROM pg_class"); err != nil {
		release()
		return nil, err
	}
	return release, nil
}
