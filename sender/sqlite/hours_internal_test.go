package sqlite

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/surehook/surehook/internal/cputime"
	"github.com/surehook/surehook/sender/history"
)

// BenchmarkSubscriptionRollups is the cost of the figures by subscription: counting 30,000
// results of 1000 subscriptions, and writing their rows, as many as a sweep writes.
func BenchmarkSubscriptionRollups(b *testing.B) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(b.TempDir(), "sender.db")+"?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_txlock=immediate")
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	s, err := New(db, nil)
	if err != nil {
		b.Fatal(err)
	}
	if err := s.Migrate(context.Background()); err != nil {
		b.Fatal(err)
	}
	var counting, writing time.Duration
	for b.Loop() {
		began := cputime.Used()
		for batch := range 150 {
			s.hours.Add(time.Now(), func(of func(int64) *history.SubscriptionRollup) {
				for i := range 200 {
					r := of(int64(batch*200+i) % 1000)
					r.Delivered, r.Succeeded = r.Delivered+1, r.Succeeded+1
				}
			})
		}
		counted := cputime.Used()
		if err := s.storeHours(context.Background(), true); err != nil {
			b.Fatal(err)
		}
		counting, writing = counting+counted-began, writing+cputime.Used()-counted
	}
	b.ReportMetric(float64(counting.Nanoseconds())/float64(b.N)/30_000, "count-ns/result")
	b.ReportMetric(float64(writing.Nanoseconds())/1e3/float64(b.N)/1000, "write-CPU-µs/row")
}
