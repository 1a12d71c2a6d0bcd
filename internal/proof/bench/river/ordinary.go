package main

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/surehook/surehook/internal/proof/bench/child"
	"github.com/surehook/surehook/internal/proof/bench/post"
	"github.com/surehook/surehook/internal/proof/bench/steady"
)

// ordinary works the jobs of an ordinary load, which this process inserts itself. The
// client has River's defaults, and the number of workers of River's documentation.
func ordinary(ctx context.Context, parent *child.Parent, pool *pgxpool.Pool, p params) error {
	p.Workers = 100
	poster, err := newPoster(p)
	if err != nil {
		return parent.Fail(err)
	}
	client, err := migrated(ctx, pool, poster, river.Config{
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: p.Workers}},
	})
	if err != nil {
		return parent.Fail(err)
	}
	producer, err := pgxpool.New(ctx, p.Producer)
	if err != nil {
		return parent.Fail(err)
	}
	defer producer.Close()
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return parent.Fail(err)
	}
	defer func() { _ = client.Stop(context.WithoutCancel(ctx)) }()
	if err := parent.Answer(version()); err != nil {
		return err
	}
	return steady.Load{PerSecond: p.PerSecond, Commit: func(ctx context.Context, i int) (string, error) {
		id, body := post.EventOf(i, steady.Size)
		return id, pgx.BeginFunc(ctx, producer, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, steady.ChangeRow, i%steady.Rows); err != nil {
				return err
			}
			_, err := client.InsertTx(ctx, tx, delivery{ID: id, Body: body}, nil)
			return err
		})
	}}.Serve(ctx, parent)
}
