package postgres

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/surehook/surehook/internal/cputime"
	"github.com/surehook/surehook/internal/newid"
	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/sender/history"
)

// BenchmarkSubscriptionRollups is the cost of the figures by subscription: counting 30,000
// results of 1000 subscriptions, and writing their rows, as many as a sweep writes. The
// server's process is counted on Linux, if it runs on this machine.
func BenchmarkSubscriptionRollups(b *testing.B) {
	ctx := context.Background()
	cfg, err := pgxpool.ParseConfig(pgtest.DSN(b))
	if err != nil {
		b.Fatal(err)
	}
	cfg.MaxConns = 1
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		b.Fatal(err)
	}
	defer pool.Close()
	c, err := newCore("New", pool, &Config{Schema: newid.New("test_", time.Now())})
	if err != nil {
		b.Fatal(err)
	}
	if err := c.Migrate(ctx); err != nil {
		b.Fatal(err)
	}
	defer func() { _, _ = pool.Exec(ctx, `DROP SCHEMA "`+c.schema+`" CASCADE`) }()
	var backend int
	if err := pool.QueryRow(ctx, `SELECT pg_backend_pid()`).Scan(&backend); err != nil {
		b.Fatal(err)
	}
	var counting, writing, server time.Duration
	for b.Loop() {
		began := cputime.Used()
		for batch := range 150 {
			c.hours.Add(time.Now(), func(of func(int64) *history.SubscriptionRollup) {
				for i := range 200 {
					r := of(int64(batch*200+i) % 1000)
					r.Delivered, r.Succeeded = r.Delivered+1, r.Succeeded+1
				}
			})
		}
		counted, before := cputime.Used(), ranFor(backend)
		if err := c.storeHours(ctx, time.Now(), true); err != nil {
			b.Fatal(err)
		}
		counting, writing, server = counting+counted-began, writing+cputime.Used()-counted, server+ranFor(backend)-before
	}
	b.ReportMetric(float64(counting.Nanoseconds())/float64(b.N)/30_000, "count-ns/result")
	b.ReportMetric(float64(writing.Nanoseconds())/1e3/float64(b.N)/1000, "write-CPU-µs/row")
	b.ReportMetric(float64(server.Nanoseconds())/1e3/float64(b.N)/1000, "server-CPU-µs/row")
}

// ranFor is the CPU time of a process; 0 if nobody knows it.
func ranFor(process int) (ran time.Duration) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", process))
	if err == nil {
		_, _ = fmt.Sscan(string(text), &ran)
	}
	return ran
}
