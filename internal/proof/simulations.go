package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	_ "modernc.org/sqlite" // the driver

	"github.com/surehook/surehook/internal/cputime"
	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/internal/proof/simulation"
)

// databaseEvents is how many events a seed publishes on a database: fewer than in
// memory, so that it ends within seconds.
const databaseEvents = 100

// simulated is a store for the simulation of seeds.
type simulated struct {
	name   string
	weight float64 // of its share in the time
	run    func(ctx context.Context, seed uint64) (simulation.Report, error)
	cpu    func() time.Duration // the time used so far, by all goroutines
	repeat string               // TestSeed's flags, besides the seed
}

// simulations runs seed after seed in virtual time, one on each core, on one store
// after the other, for as long as there is time.
func simulations(o options) func(ctx context.Context, b *bench, during time.Duration, r *result) error {
	return func(ctx context.Context, b *bench, during time.Duration, r *result) error {
		// The simulation makes much short-lived garbage and has little live
		// memory.
		defer debug.SetGCPercent(debug.SetGCPercent(800))
		folder, err := os.MkdirTemp(pgtest.InMemory(), "surehook-simulation-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(folder)
		stores := []simulated{inMemory(), onSQLite(folder)}
		server, err := pgtest.Start(pgtest.Options{Durable: true, Folder: pgtest.InMemory()})
		if err != nil {
			r.fail(fmt.Sprintf("NOT TESTED on PostgreSQL: %v", err), "")
		} else {
			defer func() {
				if err := server.Stop(); err != nil {
					b.progress(err.Error())
				}
			}()
			stores = append(stores, onPostgres(server))
		}
		total := 0.0
		for _, s := range stores {
			total += s.weight
		}
		rng := rand.New(rand.NewPCG(o.seed, 3))
		var errs []error
		for _, s := range stores {
			errs = append(errs, s.simulate(ctx, b, time.Duration(float64(during)*s.weight/total), r, rng))
		}
		return errors.Join(errs...)
	}
}

// simulate runs seeds on one store.
func (s *simulated) simulate(ctx context.Context, b *bench, during time.Duration, r *result, rng *rand.Rand) error {
	ctx, cancel := context.WithTimeout(ctx, during)
	defer cancel()
	var (
		mu            sync.Mutex
		sum           simulation.Report
		seeds, failed int
		began, used   = time.Now(), s.cpu()
		told          = began
	)
	next := func() uint64 {
		mu.Lock()
		defer mu.Unlock()
		return rng.Uint64() >> 1 // go test takes it as a signed number
	}
	var group errgroup.Group
	for range runtime.NumCPU() {
		group.Go(func() error {
			for ctx.Err() == nil {
				seed := next()
				report, err := s.run(ctx, seed)
				mu.Lock()
				sum.Add(report)
				if ctx.Err() != nil { // it was broken off, and had no violation before
					mu.Unlock()
					break
				}
				seeds++
				if time.Since(told) > 10*time.Second {
					told = time.Now()
					b.progress(fmt.Sprintf("simulation: %s: %d seeds, %d attempts", s.name, seeds, sum.Attempts))
				}
				if err != nil {
					failed++
					r.fail(fmt.Sprintf("%s, seed %d: %v", s.name, seed, err), s.again(seed))
				}
				enough := failed >= 10
				mu.Unlock()
				if enough {
					return fmt.Errorf("%s: ten seeds have failed: that is enough", s.name)
				}
			}
			return nil
		})
	}
	err := group.Wait()
	took, cpu := time.Since(began), s.cpu()-used
	r.figure(s.name+": seeds to their end", seeds)
	r.figure(s.name+": attempts", sum.Attempts)
	r.figure(s.name+": attempts a second", int(float64(sum.Attempts)/took.Seconds()))
	r.figure(s.name+": attempts a second of CPU time", int(float64(sum.Attempts)/cpu.Seconds()))
	r.figure(s.name+": events", sum.Events)
	r.figure(s.name+": deliveries", sum.Deliveries)
	r.figure(s.name+": steps, the invariants being checked after each", sum.Steps)
	r.figure(s.name+": virtual time", sum.Virtual.Round(time.Hour).String())
	r.Details = append(r.Details, map[string]any{"store": s.name, "counts": sum.Counts})
	if err == nil && sum.Attempts == 0 {
		r.fail(fmt.Sprintf("%s: there was no time for anything in %v", s.name, during.Round(time.Second)), "")
	}
	return err
}

// again returns the command that repeats a seed, bit for bit.
func (s *simulated) again(seed uint64) string {
	return fmt.Sprintf("go test ./internal/proof/simulation -run TestSeed -seed %d%s -v", seed, s.repeat)
}

func inMemory() simulated {
	return simulated{name: "memory", weight: 2, cpu: cputime.Used, run: func(ctx context.Context, seed uint64) (simulation.Report, error) {
		return simulation.Run(ctx, simulation.Memory(), simulation.Config{Seed: seed})
	}}
}

func onSQLite(folder string) simulated {
	run := func(ctx context.Context, seed uint64) (r simulation.Report, err error) {
		path := filepath.Join(folder, fmt.Sprint(seed))
		if err := os.Mkdir(path, 0o700); err != nil {
			return r, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(path)) }()
		db, err := sql.Open("sqlite", simulation.SQLiteFile(filepath.Join(path, "simulation.db")))
		if err != nil {
			return r, err
		}
		defer func() { err = errors.Join(err, db.Close()) }()
		return simulation.Run(ctx, simulation.SQLite(db), simulation.Config{Seed: seed, Events: databaseEvents})
	}
	return simulated{name: "SQLite", weight: 2, cpu: cputime.Used, run: run, repeat: fmt.Sprintf(" -store sqlite -events %d", databaseEvents)}
}

func onPostgres(server *pgtest.Server) simulated {
	run := func(ctx context.Context, seed uint64) (r simulation.Report, err error) {
		db, err := simulation.Postgres(ctx, server.DSN())
		if err != nil {
			return r, err
		}
		defer func() { err = errors.Join(err, db.Close()) }()
		return simulation.Run(ctx, db, simulation.Config{Seed: seed, Events: databaseEvents})
	}
	cpu := func() time.Duration { return cputime.Used() + server.CPU() }
	return simulated{name: "PostgreSQL", weight: 3, cpu: cpu, run: run, repeat: fmt.Sprintf(" -store postgres -events %d", databaseEvents)}
}
