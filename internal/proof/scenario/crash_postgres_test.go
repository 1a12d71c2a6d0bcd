//go:build unix

package scenario_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/backoff"
	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/postgres"
)

const (
	crashLease = 1200 * time.Millisecond
	// Longer than the store lets a transaction of its own be idle.
	longStop = 6500 * time.Millisecond
)

// Three processes publish and deliver from one database. Twenty times one of them is
// killed, and replaced, and another is stopped for longer than its leases last; now and
// then within a transaction, for so long that the server ends it. In the end no
// committed event is lost, none that was rolled back was sent, each event had one
// effect, late results have changed nothing, and no live rows remain.
func TestKillPostgres(t *testing.T) {
	t.Parallel() // most of the time it waits
	const rounds, processes = 20, 3
	dsn, schema := crashSchema(t)
	pool := crashPool(t, dsn, "test")
	rcv := newCrashReceiver(t, filepath.Join(t.TempDir(), "receiver.db"))
	producer := openPostgresProducer(t.Context(), t, pool, schema, sender.Hooks{})
	_, secret, err := producer.registry.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: "sub_a"})
	require.NoError(t, err)
	rcv.verifyWith(secret)
	var held sender.Subscription
	for eventType, path := range map[string]string{"thing.made": slow, heldType: slow, "thing.refused": refusing} {
		s, err := producer.registry.Subscribe(t.Context(), sender.NewSubscription{Subscriber: "sub_a", URL: rcv.server.URL + path, EventTypes: []string{eventType}})
		require.NoError(t, err)
		if eventType == heldType {
			held = s
		}
	}

	late := &lateResults{}
	all := make([]*exec.Cmd, processes)
	started := 0
	start := func(i int) {
		started++
		child, err := startChild(t, "TestKillPostgresChild", late.heard, childMode+"="+dsn, childMode+"_SCHEMA="+schema, fmt.Sprint(childMode, "_NAME=child-", i, "-", started))
		require.NoError(t, err)
		all[i] = child
	}
	for i := range all {
		start(i)
	}
	inTransaction := 0
	ended := map[string]sender.Delivery{} // by id: as it ended, when it was observed seen
	for round := range rounds {
		order := rand.Perm(processes)
		killed, stopped := order[0], order[1]
		long := round%5 == 4
		name := childName(all[stopped])
		if long {
			require.Eventually(t, func() bool { return stopInTransaction(t, pool, all[stopped], name) }, time.Minute, time.Millisecond,
				"a process is stopped while it is in a transaction")
			inTransaction++
		} else {
			require.NoError(t, all[stopped].Process.Signal(syscall.SIGSTOP))
		}
		if round%2 == 0 {
			require.NoError(t, producer.registry.Pause(t.Context(), held.ID))
		} else {
			require.NoError(t, producer.registry.Resume(t.Context(), held.ID, sender.Resume{}))
		}
		time.Sleep(time.Duration(20+rand.IntN(230)) * time.Millisecond) // when it dies is the test's random input
		require.NoError(t, all[killed].Process.Kill())
		_ = all[killed].Wait()
		start(killed)
		stop := crashLease + 200*time.Millisecond
		if long {
			stop = longStop
		}
		time.Sleep(stop)
		if long {
			require.Zero(t, lockingHeads(t, pool, name), "the server has ended what the stopped process was at")
		}
		require.NoError(t, all[stopped].Process.Signal(syscall.SIGCONT))
		page, _, err := producer.history.Deliveries(t.Context(), sender.DeliveryQuery{Status: sender.StatusDelivered, Limit: 50})
		require.NoError(t, err)
		dead, _, err := producer.history.Deliveries(t.Context(), sender.DeliveryQuery{Status: sender.StatusDeadLettered, Limit: 50})
		require.NoError(t, err)
		for _, d := range slices.Concat(page, dead) {
			if _, seen := ended[d.ID]; !seen {
				ended[d.ID] = d
			}
		}
	}
	for _, child := range all {
		require.NoError(t, child.Process.Kill())
		_ = child.Wait()
	}
	require.NoError(t, producer.registry.Resume(t.Context(), held.ID, sender.Resume{}))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	producer.finish(ctx, t)

	things := map[string]bool{} // whether it is refused
	rows, err := pool.Query(t.Context(), "SELECT id, refused FROM things")
	require.NoError(t, err)
	var thing string
	var refused bool
	var undone int
	_, err = pgx.ForEachRow(rows, []any{&thing, &refused}, func() error {
		things[thing] = refused
		if strings.HasPrefix(thing, "undone") {
			undone++
		}
		return nil
	})
	require.NoError(t, err)
	require.Zero(t, undone, "what was rolled back is not there")
	require.Greater(t, len(things), rounds*processes, "the processes had time to work")
	posted := rcv.posted()
	deliveries := producer.deliveries(t, "")
	require.Len(t, deliveries, len(things), "each that committed has its delivery")
	known := map[string]bool{}
	for _, d := range deliveries {
		known[d.Event.ID] = true
	}
	for id := range posted {
		require.True(t, known[id], "%s was posted, and is none that was committed", id)
	}
	interrupted, deadLettered := 0, 0
	applied := map[string]int{}
	for _, effect := range column(t, rcv.db, "SELECT thing FROM effects") {
		applied[effect]++
	}
	for _, d := range deliveries {
		interrupted += requireKept(t, d, posted[d.Event.ID])
		refused, committed := things[d.Event.Object.ID]
		require.True(t, committed, "nothing is delivered that was rolled back")
		switch {
		case refused:
			require.Equal(t, sender.StatusDeadLettered, d.Status)
			require.Zero(t, applied[d.Event.Object.ID])
			deadLettered++
		case d.Status == sender.StatusDelivered:
			require.Equal(t, 1, applied[d.Event.Object.ID], "effects of an event that was delivered")
		default: // it was unlucky until its horizon
			require.LessOrEqual(t, applied[d.Event.Object.ID], 1)
		}
		for _, number := range late.of(d.Event.ID) {
			require.Equal(t, sender.ClassInterrupted, d.Attempts[number-1].Class, "a result that came too late has changed nothing")
		}
		if was, seen := ended[d.ID]; seen {
			require.Equal(t, was.Status, d.Status, "what has ended stays so")
			require.Equal(t, was.AttemptCount, d.AttemptCount, "what has ended is not attempted again")
		}
	}
	require.Positive(t, interrupted, "processes died with attempts in flight")
	require.Positive(t, deadLettered)
	require.Positive(t, late.count(), "processes that were stopped recorded something too late")
	nothingLeft(t, pool)
	t.Logf("%d events, %d attempts interrupted, %d dead letters, %d late results, stopped %d times in a transaction",
		len(deliveries), interrupted, deadLettered, late.count(), inTransaction)
}

// nothingLeft checks that no live row remains, and that heads count none.
func nothingLeft(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	for what, query := range map[string]string{
		"outbox":  "SELECT count(*) FROM surehook_outbox",
		"pending": "SELECT count(*) FROM surehook_pending",
		"leases":  "SELECT count(*) FROM surehook_leases",
		"waiting": "SELECT count(*) FROM surehook_waiting",
		"left":    "SELECT count(*) FROM surehook_left",
		"heads": `SELECT count(*) FROM surehook_heads h WHERE pending <> 0 OR waiting <> 0 OR leased <> 0 OR
			dead <> (SELECT count(*) FROM surehook_ended e WHERE e.subscription = h.subscription AND e.status = 'dead_lettered')`,
		"gaps between positions": "SELECT (SELECT coalesce(max(position), 0) FROM surehook_feed) - (SELECT count(*) FROM surehook_feed)",
	} {
		var n int
		require.NoError(t, pool.QueryRow(t.Context(), query).Scan(&n))
		require.Zero(t, n, what)
	}
}

// stopInTransaction stops a process, and lets it go on again unless it is within a
// dispatcher's transaction.
func stopInTransaction(t *testing.T, pool *pgxpool.Pool, child *exec.Cmd, name string) bool {
	t.Helper()
	require.NoError(t, child.Process.Signal(syscall.SIGSTOP))
	if lockingHeads(t, pool, name) > 0 {
		return true
	}
	require.NoError(t, child.Process.Signal(syscall.SIGCONT))
	return false
}

// lockingHeads counts a process's transactions that have locked heads and wait for the
// process.
func lockingHeads(t *testing.T, pool *pgxpool.Pool, name string) (n int) {
	t.Helper()
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity a
		WHERE a.application_name = $1 AND a.state = 'idle in transaction' AND EXISTS (SELECT 1 FROM pg_locks l
			WHERE l.pid = a.pid AND l.relation = 'surehook_heads'::regclass AND l.mode IN ('RowShareLock', 'RowExclusiveLock'))`, name).Scan(&n))
	return n
}

// lateResults are the results that processes have reported as lost, by event.
type lateResults struct {
	mu sync.Mutex
	by map[string][]int
}

const lateSaid = "late: %s %d"

func (l *lateResults) heard(line string) {
	var event string
	var number int
	if n, _ := fmt.Sscanf(line, lateSaid, &event, &number); n != 2 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.by == nil {
		l.by = map[string][]int{}
	}
	l.by[event] = append(l.by[event], number)
}

func (l *lateResults) of(event string) []int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.by[event]
}

func (l *lateResults) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.by)
}

// crashSchema makes a schema with a table of the producer's own.
func crashSchema(t *testing.T) (dsn, schema string) {
	t.Helper()
	dsn = pgtest.DSN(t)
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	schema = fmt.Sprintf("crash_%d", rand.Uint32())
	_, err = conn.Exec(t.Context(), "CREATE SCHEMA "+schema)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), "CREATE TABLE "+schema+".things (id text PRIMARY KEY, refused boolean NOT NULL)")
	require.NoError(t, err)
	t.Cleanup(func() {
		_, _ = conn.Exec(context.Background(), "DROP SCHEMA "+schema+" CASCADE")
		_ = conn.Close(context.Background())
	})
	return pgtest.With(dsn, "search_path", schema, "pool_max_conns", "8"), schema
}

func crashPool(t *testing.T, dsn, name string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), pgtest.With(dsn, "application_name", name))
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

func childName(child *exec.Cmd) string {
	for _, v := range slices.Backward(child.Env) {
		if name, ok := strings.CutPrefix(v, childMode+"_NAME="); ok {
			return name
		}
	}
	return ""
}

func openPostgresProducer(ctx context.Context, t *testing.T, pool *pgxpool.Pool, schema string, hooks sender.Hooks) *crashProducer[pgx.Tx] {
	t.Helper()
	store, err := postgres.New(pool, &postgres.Config{Schema: schema})
	require.NoError(t, err)
	require.NoError(t, store.Migrate(ctx))
	schedule, err := backoff.Fixed(100 * time.Millisecond)
	require.NoError(t, err)
	return newCrashProducer(t, store, sender.DispatcherConfig{
		Timeout: crashLease / 3, Lease: crashLease, Hooks: hooks,
		Policy: sender.Policy{Backoff: backoff.Policy{Schedule: schedule, Horizon: 8 * time.Second}, DisableAfter: -1},
	}, func(ctx context.Context, tx pgx.Tx, thing string) error {
		_, err := tx.Exec(ctx, "INSERT INTO things VALUES ($1, $2)", thing, strings.Contains(thing, "refused"))
		return err
	})
}

// TestKillPostgresChild is the process that TestKillPostgres kills. It does nothing if
// it is run alone.
func TestKillPostgresChild(t *testing.T) {
	dsn := os.Getenv(childMode)
	if dsn == "" {
		return
	}
	pool := crashPool(t, dsn, os.Getenv(childMode+"_NAME"))
	p := openPostgresProducer(t.Context(), t, pool, os.Getenv(childMode+"_SCHEMA"), sender.Hooks{
		Recorded: func(_ context.Context, r *sender.Recorded) {
			if r.Lost {
				fmt.Printf(lateSaid+"\n", r.Event.ID, r.Result.Number)
			}
		},
	})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	fmt.Println("ready")
	go func() { _ = p.dispatcher.Run(ctx) }()
	for ctx.Err() == nil {
		eventType := "thing.made"
		switch rand.IntN(50) {
		case 0:
			eventType = "thing.refused"
		case 1, 2, 3, 4, 5:
			eventType = heldType
		}
		if err := p.publishOne(ctx, eventType); err != nil {
			fmt.Fprintln(os.Stderr, "publishing:", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
