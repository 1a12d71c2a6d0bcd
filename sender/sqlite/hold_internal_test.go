package sqlite

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// heldBacklog is a store in which one subscription has n deliveries. Half of them are
// pending, half of them wait for a retry.
type heldBacklog struct {
	testing.TB
	*Store
	deliveries int
	halfWay    time.Time // when half of the events had been published
}

const heldID = "wsub_held"

func newHeldBacklog(tb testing.TB, deliveries int) *heldBacklog {
	tb.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(tb.TempDir(), "a.db")+
		"?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(5000)")
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1) // total_changes() counts for one connection
	s, err := New(db, nil)
	require.NoError(tb, err)
	require.NoError(tb, s.Migrate(tb.Context()))
	b := &heldBacklog{TB: tb, Store: s, deliveries: deliveries}
	b.in(func(tx *sql.Tx) error {
		if err := s.CreateSubscriberTx(tb.Context(), tx, sender.Subscriber{ID: "sub_held"}, nil); err != nil {
			return err
		}
		return s.CreateSubscriptionTx(tb.Context(), tx, sender.Subscription{ID: heldID, Subscriber: "sub_held", URL: "https://example.com/", EventTypes: []string{"*"}})
	})
	b.fill()
	return b
}

func (b *heldBacklog) in(fn func(tx *sql.Tx) error) {
	b.Helper()
	require.NoError(b, b.InTx(b.Context(), fn))
}

// fill makes the deliveries, and no other live ones.
func (b *heldBacklog) fill() {
	b.Helper()
	start := time.Now().Add(-time.Hour)
	b.halfWay = start.Add(30 * time.Minute)
	n, step := b.deliveries, time.Hour.Microseconds()/int64(b.deliveries)
	b.in(func(tx *sql.Tx) error {
		for _, query := range []string{
			`DELETE FROM surehook_pending`, `DELETE FROM surehook_waiting`, `DELETE FROM surehook_leases`, `DELETE FROM surehook_left`,
			`DELETE FROM surehook_attempts`, `DELETE FROM surehook_ended`, `DELETE FROM surehook_events`,
			fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < %d)
				INSERT INTO surehook_events (id, type, object_type, object_id, version, subscriber, subscription, created_at, notice, body)
				SELECT 'evt_' || hex(randomblob(16)), 'a.b', 'thing', i, 1, 0, 0, %d + i * %d, 0, x'7b7d' FROM n`, n, start.UnixMicro(), step),
			`UPDATE surehook_expanded SET (event, seen) = (SELECT max(seq), max(seq) FROM surehook_events)`,
			`INSERT INTO surehook_pending SELECT 1, seq, created_at FROM surehook_events WHERE seq % 2 = 0`,
			`INSERT INTO surehook_waiting (subscription, event, due, number, tries, first_at, stood, single, epoch, rank) SELECT 1, seq, created_at + 3600000000, 1, 1, created_at, 0, 0, (SELECT epoch FROM surehook_heads), 0
				FROM surehook_events WHERE seq % 2 = 1`,
			`UPDATE surehook_heads SET pending = (SELECT count(*) FROM surehook_pending), waiting = (SELECT count(*) FROM surehook_waiting),
				leased = 0, resumed_to = NULL, left_to = 0`,
		} {
			if _, err := tx.ExecContext(b.Context(), query); err != nil {
				return fmt.Errorf("%w: %s", err, query)
			}
		}
		return nil
	})
}

// holdStep is one operation on a subscription with a backlog.
type holdStep struct {
	name string
	run  func(b *heldBacklog, tx *sql.Tx) error
	fill bool // the backlog is gone then
}

var holdSteps = []holdStep{
	{name: "pause", run: hold(sender.SubscriptionPaused)},
	{name: "resume with all", run: resume(func(*heldBacklog) sender.Resume { return sender.Resume{} }), fill: true},
	{name: "pause it again", run: hold(sender.SubscriptionPaused)},
	{name: "resume with none", run: resume(func(*heldBacklog) sender.Resume { return sender.Resume{None: true} }), fill: true},
	{name: "disable", run: hold(sender.SubscriptionDisabled)},
	{name: "resume with those since a time", run: resume(func(b *heldBacklog) sender.Resume { return sender.Resume{Since: b.halfWay} }), fill: true},
	{name: "close", run: func(b *heldBacklog, tx *sql.Tx) error { return b.CloseSubscriptionTx(b.Context(), tx, heldID) }},
	{name: "delete", run: func(b *heldBacklog, tx *sql.Tx) error { return b.DeleteSubscriptionTx(b.Context(), tx, heldID) }},
}

func hold(status sender.SubscriptionStatus) func(b *heldBacklog, tx *sql.Tx) error {
	return func(b *heldBacklog, tx *sql.Tx) error {
		return b.HoldSubscriptionTx(b.Context(), tx, heldID, status, "a reason")
	}
}

func resume(r func(b *heldBacklog) sender.Resume) func(b *heldBacklog, tx *sql.Tx) error {
	return func(b *heldBacklog, tx *sql.Tx) error {
		take := r(b)
		take.NotBefore = b.halfWay.Add(-24 * time.Hour)
		return b.ResumeSubscriptionTx(b.Context(), tx, heldID, take)
	}
}

// Every operation on a held subscription changes as many rows with a large backlog as
// with a small one.
func TestHoldingChangesOneRow(t *testing.T) {
	changes := map[int][]int64{}
	for _, n := range []int{10, 2000} {
		b := newHeldBacklog(t, n)
		for _, step := range holdSteps {
			var before, after int64
			b.in(func(tx *sql.Tx) error {
				count := `SELECT total_changes()`
				if err := tx.QueryRowContext(b.Context(), count).Scan(&before); err != nil {
					return err
				}
				if err := step.run(b, tx); err != nil {
					return err
				}
				return tx.QueryRowContext(b.Context(), count).Scan(&after)
			})
			require.Positive(t, after-before, step.name)
			changes[n] = append(changes[n], after-before)
			if step.fill {
				b.fill()
			}
		}
	}
	require.Equal(t, changes[10], changes[2000], "rows changed by %v", holdSteps)
}

// BenchmarkHold measures each operation, and a claim and an expansion after it, with
// backlogs of 1,000 and of a million.
func BenchmarkHold(b *testing.B) {
	for _, n := range []int{1_000, 1_000_000} {
		b.Run(fmt.Sprintf("backlog=%d", n), func(b *testing.B) {
			took := map[string][]time.Duration{}
			var claims []time.Duration
			var heap uint64
			for range b.N {
				backlog := newHeldBacklog(b, n)
				for _, step := range holdSteps {
					start := time.Now()
					backlog.in(func(tx *sql.Tx) error { return step.run(backlog, tx) })
					took[step.name] = append(took[step.name], time.Since(start))
					start = time.Now()
					claims = append(claims, backlog.cycle(start))
					var m runtime.MemStats
					runtime.GC()
					runtime.ReadMemStats(&m)
					heap = max(heap, m.HeapAlloc)
					if step.fill {
						backlog.fill()
					}
				}
			}
			for _, step := range holdSteps {
				b.ReportMetric(median(took[step.name]), "µs/"+strings.ReplaceAll(step.name, " ", "-"))
			}
			b.ReportMetric(median(claims), "µs/claim")
			b.ReportMetric(float64(heap)/(1<<20), "MiB")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func (b *heldBacklog) cycle(start time.Time) time.Duration {
	p := dispatch.ClaimParams{Lease: time.Minute}
	for lane := range p.Lanes {
		p.Lanes[lane] = dispatch.LaneParams{Slots: 200, PerSubscriber: 200, PerSubscription: 200}
	}
	_, _, err := b.Step(b.Context(), dispatch.ExpandParams{}, dispatch.Batch{Claim: p, Decide: func(_ dispatch.Live, h sender.Health, _ dispatch.Result, _ time.Time) dispatch.Decision {
		return dispatch.Decision{Status: sender.StatusDelivered, Health: h}
	}})
	require.NoError(b, err)
	return time.Since(start)
}

func median(all []time.Duration) float64 {
	slices.Sort(all)
	return float64(all[len(all)/2].Nanoseconds()) / 1e3
}
