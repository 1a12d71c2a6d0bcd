package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/internal/proof/crash"
)

var stores = []string{"sqlite", "postgres"}

// crashes kills processes at every point, round by round, on each store.
func crashes(o options) func(ctx context.Context, b *bench, during time.Duration, r *result) error {
	return func(ctx context.Context, b *bench, _ time.Duration, r *result) error {
		rng := rand.New(rand.NewPCG(o.seed, 1))
		for _, store := range stores {
			began := time.Now()
			var sum crash.Report
			survived, failed := 0, 0
			for survived < o.kills && failed <= mostFailed && ctx.Err() == nil {
				cfg := crash.Config{Seed: rng.Uint64(), Kills: min(len(crash.Points()), o.kills-survived)}
				report, err := crashOnce(ctx, b, store, cfg)
				if err != nil {
					r.fail(fmt.Sprintf("%s, seed %d: %v", store, cfg.Seed, err), "go test -run TestKilledAtEveryPoint/"+store+" ./internal/proof/crash")
					failed++
					continue
				}
				for _, n := range report.Kills {
					survived += n
				}
				add(&sum, report)
				b.progress(fmt.Sprintf("crashes: %s survived %d of %d kills", store, survived, o.kills))
			}
			r.figure(store+": kills survived", survived)
			r.figure(store+": kills a minute", int(float64(survived)/time.Since(began).Minutes()))
			r.enough(store+": kills", survived, o.kills)
			r.figure(store+": events committed", sum.Events)
			r.figure(store+": attempts on record", sum.Attempts)
			r.figure(store+": of them interrupted", sum.Interrupted)
			r.figure(store+": posts that came whole", sum.Posts)
			r.figure(store+": jobs", sum.Jobs)
		}
		r.figure("points at which processes are killed", len(crash.Points()))
		return nil
	}
}

// mostFailed is the number of failures after which a part gives up.
const mostFailed = 3

// enough notes a failure if something was done less often than required.
func (r *result) enough(what string, done, wanted int) {
	if done < wanted {
		r.fail(fmt.Sprintf("%s: %d of %d", what, done, wanted), "")
	}
}

func crashOnce(ctx context.Context, b *bench, store string, cfg crash.Config) (_ crash.Report, err error) {
	if store == "sqlite" {
		if cfg.Folder, err = os.MkdirTemp("", "proof-"); err != nil {
			return crash.Report{}, err
		}
		defer os.RemoveAll(cfg.Folder)
		return crash.Run(ctx, cfg)
	}
	server, err := b.postgres()
	if err != nil {
		return crash.Report{}, err
	}
	dsn, drop, err := schema(ctx, server)
	if err != nil {
		return crash.Report{}, err
	}
	defer func() { err = errors.Join(err, drop()) }()
	cfg.DSN = dsn
	return crash.Run(ctx, cfg)
}

// database kills a PostgreSQL server while processes work on it.
func database(o options) func(ctx context.Context, b *bench, during time.Duration, r *result) error {
	return func(ctx context.Context, b *bench, _ time.Duration, r *result) error {
		rng := rand.New(rand.NewPCG(o.seed, 2))
		var sum crash.Report
		survived, failed := 0, 0
		const atOnce = 10
		for survived < o.databaseKills && failed <= mostFailed && ctx.Err() == nil {
			cfg := crash.Config{Seed: rng.Uint64(), Kills: min(atOnce, o.databaseKills-survived)}
			report, err := databaseOnce(ctx, cfg)
			if err != nil {
				r.fail(fmt.Sprintf("seed %d: %v", cfg.Seed, err), "go test -run TestDatabaseKilled ./internal/proof/crash")
				failed++
				continue
			}
			survived += cfg.Kills
			add(&sum, report)
			b.progress(fmt.Sprintf("database: %d of %d kills survived", survived, o.databaseKills))
		}
		r.figure("postgres: kills of the database survived", survived)
		r.figure("postgres: kills of the database a minute", int(float64(survived)/time.Since(r.began).Minutes()))
		r.enough("postgres: kills of the database", survived, o.databaseKills)
		r.figure("postgres: events committed", sum.Events)
		r.figure("postgres: of them acknowledged", sum.Acknowledged)
		r.figure("postgres: posts that came whole", sum.Posts)
		return nil
	}
}

func databaseOnce(ctx context.Context, cfg crash.Config) (_ crash.Report, err error) {
	server, err := pgtest.Start(pgtest.Options{Durable: true})
	if err != nil {
		return crash.Report{}, fmt.Errorf("NOT TESTED on PostgreSQL: %w", err)
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	dsn, _, err := schema(ctx, server.DSN())
	if err != nil {
		return crash.Report{}, err
	}
	cfg.DSN = dsn
	return crash.Database(ctx, cfg, server)
}

// add sums up the figures that are shown.
func add(sum *crash.Report, r crash.Report) {
	sum.Events += r.Events
	sum.Acknowledged += r.Acknowledged
	sum.Attempts += r.Attempts
	sum.Interrupted += r.Interrupted
	sum.Posts += r.Posts
	sum.Jobs += r.Jobs
}
