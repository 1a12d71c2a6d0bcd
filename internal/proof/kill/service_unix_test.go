//go:build unix

package kill_test

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/killtest"
	"github.com/surehook/surehook/internal/race"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
)

// Three processes publish and deliver from one database. When one of them is killed,
// another is stopped for longer than its leases last. Now and then it is stopped within a
// transaction, for so long that the server ends the transaction. In the end no committed
// event is lost, no event that was rolled back was sent, each event had one effect, late
// results have changed nothing, and no live rows remain.
func TestServiceOnPostgres(t *testing.T) {
	t.Parallel()
	rounds := 10
	if race.Enabled { // the processes are slower to start, and it is they who race, not their code
		rounds = 2
	}
	rounds = killsOr(t, rounds)
	services := max(1, min(rounds/5, 2)) // beside each other, because most of the time they wait
	for n := range services {
		t.Run(fmt.Sprint("service ", n+1), func(t *testing.T) {
			t.Parallel()
			serviceOnPostgres(t, (rounds+n)/services)
		})
	}
}

func serviceOnPostgres(t *testing.T, rounds int) {
	const processes = 3
	at, db := testSchema(t)
	pool := openPool(t, at)
	rcv := newEndpoint(t, filepath.Join(t.TempDir(), "receiver.db"))
	producer := producerOnPostgres(t, pool, at, true, dispatch.Hooks{}, serviceHorizon)
	_, secret, err := producer.registry.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: "sub_a"})
	require.NoError(t, err)
	rcv.verifyWith(t, secret)
	var held sender.Subscription
	for eventType, path := range map[string]string{"thing.made": slow, heldType: slowToo, "thing.refused": refusing} {
		s, err := producer.registry.Subscribe(t.Context(), sender.NewSubscription{Subscriber: "sub_a", URL: rcv.server.URL + path, EventTypes: []string{eventType}})
		require.NoError(t, err)
		if eventType == heldType {
			held = s
		}
	}

	late := &lateResults{}
	ended := map[string]sender.Delivery{} // by id: the delivery when it was first seen to have ended
	round, inTransaction, said := 0, 0, 0
	inFlight := false // the stopped process has attempts in flight
	var stopped *killtest.Process
	var leased time.Time // when the leases of the stopped process have ended
	killtest.Run(t, killtest.Case{
		Child:  func(n int) *exec.Cmd { return producingOnPostgres.Command(at.named(n)) },
		Rounds: rounds, Processes: processes, Replace: true,
		Heard: late.heard,
		Point: func(r *killtest.Running) {
			r.Lines(processes)
			// One process has all that is in flight for a subscription: it may be the one that is
			// killed.
			others, when := r.Others(), "it, or the one that is killed, has attempts in flight"
			busy := func(p *killtest.Process) bool {
				return rcv.waits(nameOf(p.N), 0)+rcv.waits(nameOf(r.Victims()[0].N), 0) > 0
			}
			if round%5 == 4 {
				when = "it is in a transaction"
				busy = func(p *killtest.Process) bool { return lockingHeads(t, pool, p) > 0 }
				inTransaction++
			}
			require.Eventually(t, func() bool {
				stopped = others[rand.IntN(len(others))]
				return stopWhile(t, stopped, busy)
			}, 5*time.Minute, time.Millisecond, "a process is stopped while %s", when)
			inFlight, said = rcv.waits(nameOf(stopped.N), 0) > 0, late.lines()
			require.NoError(t, pool.QueryRow(t.Context(), "SELECT clock_timestamp()").Scan(&leased))
			leased = leased.Add(serviceLease)
			if round%2 == 0 {
				require.NoError(t, producer.registry.Pause(t.Context(), held.ID))
			} else {
				require.NoError(t, producer.registry.Resume(t.Context(), held.ID, sender.Resume{}))
			}
			round++
		},
		Within: 250 * time.Millisecond,
		Check: func() {
			require.Eventually(t, func() bool { return lockingHeads(t, pool, stopped) == 0 }, 5*time.Minute, 10*time.Millisecond,
				"the server ends what the stopped process was at")
			require.Eventually(t, func() bool {
				var left int
				require.NoError(t, pool.QueryRow(t.Context(), `SELECT count(*) FROM surehook_leases l JOIN surehook_heads h USING (subscription)
					WHERE l.until <= $1 AND h.open`, leased).Scan(&left))
				return left == 0
			}, 5*time.Minute, 10*time.Millisecond, "others take what the stopped process had claimed, except where all waits for a resume")
			require.NoError(t, stopped.Signal(syscall.SIGCONT))
			require.Eventually(t, func() bool { return !inFlight || late.lines() > said }, 5*time.Minute, time.Millisecond,
				"a process that was stopped records too late what it had in flight")
			for _, status := range []sender.Status{sender.StatusDelivered, sender.StatusDeadLettered} {
				page, _, err := producer.history.Deliveries(t.Context(), history.DeliveryQuery{Status: status, Limit: 50})
				require.NoError(t, err)
				for _, d := range page {
					if _, seen := ended[d.ID]; !seen {
						ended[d.ID] = d
					}
				}
			}
		},
	})
	require.NoError(t, producer.registry.Resume(t.Context(), held.ID, sender.Resume{}))
	producer.finish(t)

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
	deliveries := producer.deliveries(t)
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
	nothingLeft(t, db)
	t.Logf("%d events, %d attempts interrupted, %d dead letters, %d late results, stopped %d times in a transaction",
		len(deliveries), interrupted, deadLettered, late.lines(), inTransaction)
}

// nothingLeft checks that no live row remains, and that heads count none.
func nothingLeft(t *testing.T, db *sql.DB) {
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
		require.Zero(t, count(t, db, query), what)
	}
}

// stopWhile stops a process, and lets it go on again unless it is busy.
func stopWhile(t *testing.T, p *killtest.Process, busy func(p *killtest.Process) bool) bool {
	t.Helper()
	require.NoError(t, p.Signal(syscall.SIGSTOP))
	if busy(p) {
		return true
	}
	require.NoError(t, p.Signal(syscall.SIGCONT))
	return false
}

// lockingHeads counts a process's transactions that have locked heads and wait for the
// process.
func lockingHeads(t *testing.T, pool *pgxpool.Pool, p *killtest.Process) (n int) {
	t.Helper()
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity a
		WHERE a.application_name = $1 AND a.state = 'idle in transaction' AND EXISTS (SELECT 1 FROM pg_locks l
			WHERE l.pid = a.pid AND l.relation = 'surehook_heads'::regclass AND l.mode IN ('RowShareLock', 'RowExclusiveLock'))`, nameOf(p.N)).Scan(&n))
	return n
}

// lateResults are the results that processes have reported as lost, by event.
type lateResults struct {
	mu   sync.Mutex
	by   map[string][]int
	said int
}

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
	l.said++
}

func (l *lateResults) of(event string) []int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.by[event]
}

func (l *lateResults) lines() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.said
}
