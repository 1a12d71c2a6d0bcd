package kill_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup"
	dedupPostgres "github.com/surehook/surehook/dedup/postgres"
	dedupSQLite "github.com/surehook/surehook/dedup/sqlite"
	"github.com/surehook/surehook/internal/killtest"
	"github.com/surehook/surehook/internal/race"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/catchup"
	cursorsPostgres "github.com/surehook/surehook/receiver/catchup/postgres"
	cursorsSQLite "github.com/surehook/surehook/receiver/catchup/sqlite"
	"github.com/surehook/surehook/signing"
)

// repair is what a process needs in order to ask for events again, and to read them.
type repair struct {
	Path     string // of the database: on SQLite,
	Postgres schema // or here
	Feed     string
	Events   []taken
	// HoldAt is the effect at which the process waits to be killed, from 1 on. Zero: none.
	HoldAt int
}

// taken is an event that the consumer had taken while it had a bug.
type taken struct {
	ID, Object string
	Version    int64
	Fact       bool
	At         time.Time
}

func (e taken) body() json.RawMessage {
	kind := "thing.changed"
	if e.Fact {
		kind = "thing.paid"
	}
	return json.RawMessage(fmt.Sprintf(`{"id":%q,"type":%q,"object":{"type":"thing","id":%q},"version":%d}`, e.ID, kind, e.Object, e.Version))
}

// current tells whether the event is applied again if it is asked for: every fact is, and
// the newest state of an object.
func (e taken) current(all []taken) bool {
	return e.Fact || !slices.ContainsFunc(all, func(other taken) bool {
		return !other.Fact && other.Object == e.Object && other.Version > e.Version
	})
}

func (e taken) coveredBy(r dedup.Reapply) bool {
	return (r.ID == "" || r.ID == e.ID) && (r.Object.ID == "" || r.Object.ID == e.Object) &&
		!e.At.Before(r.From) && (r.Until.IsZero() || e.At.Before(r.Until)) && !e.At.After(r.At)
}

// books is the database of a consumer: a mirror of the objects and of what was paid.
type books[Tx any] struct {
	inTx    receiver.InTx[Tx]
	dedup   dedup.Store[Tx]
	cursors catchup.CursorStore[Tx]
	exec    func(ctx context.Context, tx Tx, query string, args ...any) error
}

func booksOnSQLite(db *sql.DB) books[*sql.Tx] {
	return books[*sql.Tx]{receiver.SQL(db, nil), dedupSQLite.New(), cursorsSQLite.New(), func(ctx context.Context, tx *sql.Tx, query string, args ...any) error {
		_, err := tx.ExecContext(ctx, strings.ReplaceAll(query, "$", "?"), args...)
		return err
	}}
}

func booksOnPostgres(t testing.TB, at schema) books[pgx.Tx] {
	pool := openPool(t, at)
	markers, err := dedupPostgres.New(nil)
	require.NoError(t, err)
	cursors, err := cursorsPostgres.New(nil)
	require.NoError(t, err)
	inTx := func(ctx context.Context, fn func(pgx.Tx) error) error { return pgx.BeginFunc(ctx, pool, fn) }
	return books[pgx.Tx]{inTx, markers, cursors, func(ctx context.Context, tx pgx.Tx, query string, args ...any) error {
		_, err := tx.Exec(ctx, query, args...)
		return err
	}}
}

// work writes a state into the mirror, and an effect with the number of the request under
// which the event is applied.
func (b books[Tx]) work(t testing.TB, state string, holdAt int) receiver.Work[Tx] {
	effects := 0
	write := func(ctx context.Context, tx Tx, ev receiver.Typed[any]) error {
		key := ev.Object.ID
		if ev.Type == "thing.paid" {
			key = ev.ID
		}
		if err := b.exec(ctx, tx, "INSERT INTO mirror VALUES ($1, $2, $3) ON CONFLICT (key) DO UPDATE SET event = $2, state = $3", key, ev.ID, state); err != nil {
			return err
		}
		fmt.Println("applying", ev.Version)
		if effects++; effects == holdAt {
			fmt.Println("held", effects)
			<-ctx.Done()
			return ctx.Err()
		}
		// The pause waits for nothing. Sometimes a kill must come between the two.
		<-time.After(rand.N(2 * time.Millisecond))
		return b.exec(ctx, tx, "INSERT INTO effects SELECT id, reapplied FROM surehook_dedup_markers WHERE id = $1", ev.ID)
	}
	work, err := receiver.Router(receiver.OnState("thing.changed", write), receiver.OnFact("thing.paid", write))
	require.NoError(t, err)
	return work
}

// patient is how long a receiver may take for an event. Two processes share a file, and SQLite
// keeps no queue: on a slow disk one of them can wait for long, while the other one commits.
const patient = 2 * time.Minute

func (b books[Tx]) catchup(t testing.TB, feed string, holdAt int) (*receiver.Receiver[Tx], *catchup.Catchup[Tx]) {
	client, err := catchup.NewClient(feed, &catchup.ClientConfig{AllowUnencrypted: true})
	require.NoError(t, err)
	rcv := newReceiverWith(t, b.inTx, b.dedup, signing.GenerateSecret(), receiver.Config{Timeout: patient})
	c, err := catchup.New(client, rcv, b.inTx, b.cursors, b.work(t, "right", holdAt), &catchup.Config{Limit: 17, Logger: quiet})
	require.NoError(t, err)
	return rcv, c
}

var (
	repairingOnSQLite = killtest.NewChild("repair on SQLite", func(ctx context.Context, arg repair) error {
		return booksOnSQLite(openSQLite(child{}, arg.Path)).repair(ctx, arg)
	})
	repairingOnPostgres = killtest.NewChild("repair on PostgreSQL", func(ctx context.Context, arg repair) error {
		return booksOnPostgres(child{}, arg.Postgres).repair(ctx, arg)
	})
)

// repair asks for an event, an object or a span and reads the feed again, time after time,
// and prints when.
func (b books[Tx]) repair(ctx context.Context, arg repair) error {
	rcv, c := b.catchup(child{}, arg.Feed, arg.HoldAt)
	for {
		i := rand.IntN(len(arg.Events))
		var req receiver.ReapplyRequest
		switch e := arg.Events[i]; {
		case arg.HoldAt > 0:
			req.From = arg.Events[0].At // enough events to stop between them
		case rand.IntN(3) == 0:
			req.Event = e.ID
		case rand.IntN(2) == 0:
			req.Object = dedup.Object{Type: "thing", ID: e.Object}
		default:
			req.From, req.Until = e.At, arg.Events[min(i+25, len(arg.Events)-1)].At.Add(time.Millisecond)
		}
		number, err := rcv.Reapply(ctx, req)
		if err != nil {
			return err
		}
		fmt.Println("asked", number)
		if _, err := c.Reconcile(ctx, ""); err != nil {
			return err
		}
		fmt.Println("done", number)
	}
}

// A consumer with a bug has taken events. Processes that have none ask for them again and
// read the feed, until they are killed. Whenever that is, no request that was made is
// forgotten, each event is applied once more at most for a request, and a row is right
// exactly if its event was applied again. In the end all requests have had their effect.
func TestReapply(t *testing.T) {
	t.Parallel()
	const mirror = "CREATE TABLE mirror (key TEXT PRIMARY KEY, event TEXT NOT NULL, state TEXT NOT NULL)"
	const effects = "CREATE TABLE effects (id TEXT NOT NULL, request BIGINT NOT NULL)"
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "app.db")
		db := openSQLite(t, path)
		require.NoError(t, dedupSQLite.Migrate(t.Context(), db))
		require.NoError(t, cursorsSQLite.Migrate(t.Context(), db))
		_, err := db.Exec(mirror + ";" + effects)
		require.NoError(t, err)
		testReapply(t, db, booksOnSQLite(db), func(arg repair) *exec.Cmd {
			arg.Path = path
			return repairingOnSQLite.Command(arg)
		})
		intact(t, db)
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		at, db := testSchema(t)
		require.NoError(t, dedupPostgres.Migrate(t.Context(), db, nil))
		require.NoError(t, cursorsPostgres.Migrate(t.Context(), db, nil))
		_, err := db.Exec(mirror + ";" + effects)
		require.NoError(t, err)
		testReapply(t, db, booksOnPostgres(t, at), func(arg repair) *exec.Cmd {
			arg.Postgres = at
			return repairingOnPostgres.Command(arg)
		})
	})
}

func testReapply[Tx any](t *testing.T, db *sql.DB, b books[Tx], child func(repair) *exec.Cmd) {
	events := b.takeWrongly(t)
	var bodies []json.RawMessage
	for _, e := range events {
		bodies = append(bodies, e.body())
	}
	feed := serveFeed(t, bodies)
	asked, done := map[int64]bool{}, map[int64]bool{}
	asking, held := make(chan struct{}, 1), make(chan struct{}, 1)
	rounds := 16
	if race.Enabled { // it is processes that race, and not their code
		rounds = 8
	}
	unserved, served := 0, 0 // kills that found a request so
	// Kills by the clock alone can miss both on a busy machine.
	round, holdAt := 0, []int{0, 1, 0, 5}
	killtest.Run(t, killtest.Case{
		Child: func(int) *exec.Cmd {
			return child(repair{Feed: feed, Events: events, HoldAt: holdAt[round%len(holdAt)]})
		},
		Rounds: rounds, Processes: 2,
		Point: func(r *killtest.Running) { // soon after a request, or while events are applied
			switch {
			case holdAt[round%len(holdAt)] > 0:
				r.Await(held)
			case rand.IntN(2) == 0:
				r.Await(asking)
			default:
				killtest.Lines(5, 60)(r)
			}
			round++
		},
		Within: 5 * time.Millisecond,
		Heard: func(line string) {
			var what string
			var number int64
			_, err := fmt.Sscan(line, &what, &number)
			require.NoError(t, err)
			switch what {
			case "asked":
				asked[number] = true
				select {
				case asking <- struct{}{}:
				default:
				}
			case "done":
				done[number] = true
			case "held":
				select {
				case held <- struct{}{}:
				default:
				}
			}
		},
		Check: func() {
			for _, c := range []chan struct{}{asking, held} {
				for len(c) > 0 {
					<-c
				}
			}
			requests := b.requests(t)
			b.check(t, db, events)
			last := lastRequests(t, db)
			for number := range asked {
				require.Contains(t, requests, number, "a request that was made is forgotten")
			}
			for number, r := range requests {
				had, not := effectsOf(r, events, last)
				if done[number] {
					require.Empty(t, not, "request %d was read to the end", number)
				}
				if not != nil && had == nil {
					unserved++
				} else if not != nil {
					served++
				}
			}
		},
	})
	require.Positive(t, unserved, "none ever died between a request and its first effect")
	require.Positive(t, served, "none ever died between the effects of one request")

	rcv, c := b.catchup(t, feed, 0)
	_, err := c.Reconcile(t.Context(), "")
	require.NoError(t, err)
	b.check(t, db, events)
	last := lastRequests(t, db)
	for number, r := range b.requests(t) {
		_, not := effectsOf(r, events, last)
		require.Empty(t, not, "request %d has had no effect on these", number)
	}
	number, err := rcv.Reapply(t.Context(), receiver.ReapplyRequest{From: events[0].At})
	require.NoError(t, err)
	report, err := c.Reconcile(t.Context(), "")
	require.NoError(t, err)
	_, not := effectsOf(dedup.Reapply{From: events[0].At, Number: number, At: time.Now()}, events, lastRequests(t, db))
	require.Empty(t, not)
	require.Equal(t, report.Reapplied, count(t, db, "SELECT count(*) FROM mirror"))
	require.Equal(t, []string{"right"}, column(t, db, "SELECT DISTINCT state FROM mirror"), "the mirror is what the source says")
	b.check(t, db, events)
	report, err = c.Reconcile(t.Context(), "")
	require.NoError(t, err)
	require.Zero(t, report.Reapplied)
	t.Logf("%d requests, %d of them known to have been read to the end; kills met %d before their first effect, and %d between two",
		len(b.requests(t)), len(done), unserved, served)
}

// takeWrongly takes events, a second after one another, with a function that has a bug.
func (b books[Tx]) takeWrongly(t *testing.T) (events []taken) {
	at := time.Now().Add(-time.Hour).Truncate(time.Second)
	rcv := newReceiverWith(t, b.inTx, b.dedup, signing.GenerateSecret(), receiver.Config{Timeout: patient, Now: func() time.Time { return at }})
	wrong := b.work(t, "wrong", 0)
	for version := range int64(4) {
		for object := range 10 {
			e := taken{fmt.Sprintf("evt_%03d", len(events)), fmt.Sprint("thing_", object), version + 1, version == 2, at}
			res, err := rcv.Apply(t.Context(), receiver.Trusted[Tx]{Body: e.body()}, wrong)
			require.NoError(t, err)
			require.Equal(t, receiver.Applied, res)
			events, at = append(events, e), at.Add(time.Second)
		}
	}
	return events
}

// requests returns all that were made.
func (b books[Tx]) requests(t *testing.T) map[int64]dedup.Reapply {
	all := map[int64]dedup.Reapply{}
	require.NoError(t, b.inTx(t.Context(), func(tx Tx) error {
		clear(all)
		list, err := b.dedup.(dedup.Reapplies[Tx]).ListReapplies(t.Context(), tx, "default", 0, 10_000)
		for _, r := range list {
			all[r.Number] = r
		}
		return err
	}))
	return all
}

// check checks what holds at any moment.
func (b books[Tx]) check(t *testing.T, db *sql.DB, events []taken) {
	t.Helper()
	require.Empty(t, column(t, db, "SELECT id FROM effects GROUP BY id, request HAVING count(*) > 1"), "applied twice for one request")
	want := map[string]string{} // the newest event about each key
	for _, e := range events {
		if e.Fact {
			want[e.ID] = e.ID
		} else if e.current(events) {
			want[e.Object] = e.ID
		} else {
			require.Equal(t, 1, count(t, db, "SELECT count(*) FROM effects WHERE id = '"+e.ID+"'"), "an older state was applied again")
		}
	}
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(want)) {
		keys = append(keys, key+" "+want[key])
	}
	require.Equal(t, keys, column(t, db, "SELECT key || ' ' || event FROM mirror ORDER BY key"))
	require.Empty(t, column(t, db, `SELECT event FROM mirror WHERE (state = 'right') <>
		((SELECT max(request) FROM effects WHERE effects.id = mirror.event) > 0)`), "the effect and its note are committed together")
}

// lastRequests returns the number of the last request under which each event was applied.
func lastRequests(t *testing.T, db *sql.DB) map[string]int64 {
	last := map[string]int64{}
	for _, line := range column(t, db, "SELECT id || ' ' || max(request) FROM effects GROUP BY id") {
		var id string
		var number int64
		_, err := fmt.Sscan(line, &id, &number)
		require.NoError(t, err)
		last[id] = number
	}
	return last
}

// effectsOf returns the events on which a request has had its effect, or a later one has,
// and those which it still covers.
func effectsOf(r dedup.Reapply, events []taken, last map[string]int64) (had, not []string) {
	for _, e := range events {
		switch {
		case !e.coveredBy(r) || !e.current(events):
		case last[e.ID] >= r.Number:
			had = append(had, e.ID)
		default:
			not = append(not, e.ID)
		}
	}
	return had, not
}
