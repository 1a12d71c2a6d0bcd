package linearizable_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/surehook/surehook/dedup"
	deduppostgres "github.com/surehook/surehook/dedup/postgres"
	dedupsqlite "github.com/surehook/surehook/dedup/sqlite"
	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/sender/postgres"
	"github.com/surehook/surehook/sender/sqlite"
	"github.com/surehook/surehook/sender/storetest"
)

const (
	processes = 3
	workers   = 4 // of each
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// order has a process's instructions, in an environment variable.
type order struct {
	Task    string // a key of tasks
	Defect  bool   // planted in the task, and must be found
	File    string // SQLite's
	DSN     string // PostgreSQL's
	Process int
	Begins  int64 // in nanoseconds, on the clock of history
}

const orderVariable = "SUREHOOK_TEST_LINEAR_ORDER"

// tasks are the processes' tasks. Each writes its history.
var tasks = map[string]func(ctx context.Context, o order, p *place) (any, error){"leases": runDispatcher, "markers": receive}

func TestMain(m *testing.M) {
	text := os.Getenv(orderVariable)
	if text == "" {
		os.Exit(m.Run())
	}
	if err := child([]byte(text)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func child(text []byte) error {
	var o order
	if err := json.Unmarshal(text, &o); err != nil {
		return err
	}
	ctx := context.Background()
	p, err := o.open(ctx)
	if err != nil {
		return err
	}
	time.Sleep(time.Duration(o.Begins - clock())) // so that all begin together
	history, err := tasks[o.Task](ctx, o, p)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(history)
}

var began = time.Now()

// clock is the same for all processes of a machine: the time when this process began, plus
// the time on its monotonic clock since then.
func clock() int64 { return began.UnixNano() + int64(time.Since(began)) }

// place is a database that a process has opened.
type place struct {
	db      *sql.DB
	store   storetest.Store[*sql.Tx]
	dedup   dedup.Store[*sql.Tx]
	close   func()
	migrate func(ctx context.Context) error
}

func (o order) open(ctx context.Context) (*place, error) {
	if o.DSN == "" {
		db, err := sql.Open("sqlite", "file:"+o.File+"?_txlock=immediate&_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(20000)")
		if err != nil {
			return nil, err
		}
		s, err := sqlite.New(db, nil)
		if err != nil {
			return nil, err
		}
		return &place{db, s, dedupsqlite.New(), func() { _ = db.Close() }, func(ctx context.Context) error {
			if err := s.Migrate(ctx); err != nil {
				return err
			}
			return dedupsqlite.Migrate(ctx, db)
		}}, nil
	}
	pool, err := pgxpool.New(ctx, o.DSN)
	if err != nil {
		return nil, err
	}
	s, err := postgres.NewSQL(pool, nil)
	if err != nil {
		return nil, err
	}
	d, err := deduppostgres.NewSQL(nil)
	if err != nil {
		return nil, err
	}
	db := stdlib.OpenDBFromPool(pool)
	return &place{db, s, d, func() { _ = db.Close(); pool.Close() }, func(ctx context.Context) error {
		if err := s.Migrate(ctx); err != nil {
			return err
		}
		return deduppostgres.Migrate(ctx, db, nil)
	}}, nil
}

// onEach runs a test with a migrated database of each kind.
func onEach(t *testing.T, test func(t *testing.T, o order, p *place)) {
	for _, store := range []string{"sqlite", "postgres"} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			o, p := fresh(t, store)
			test(t, o, p)
		})
	}
}

// foundOut runs a task with its defect until a history is illegal, a few times at most:
// the machine decides which calls overlap, and one history can look right by chance.
func foundOut(t *testing.T, illegal func(t *testing.T, o order, p *place) bool) {
	for _, store := range []string{"sqlite", "postgres"} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			for range 10 {
				o, p := fresh(t, store)
				o.Defect = true
				if illegal(t, o, p) {
					return
				}
			}
			require.Fail(t, "the defect shows in none of the histories")
		})
	}
}

// fresh makes a database with its tables.
func fresh(t *testing.T, store string) (order, *place) {
	t.Helper()
	o := order{File: filepath.Join(t.TempDir(), "a.db")}
	if store == "postgres" {
		db, err := sql.Open("pgx", pgtest.DSN(t))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, db.Close()) })
		o = order{DSN: pgtest.With(pgtest.DSN(t), "search_path", pgtest.Schema(t, db), "pool_max_conns", "8")}
	}
	p, err := o.open(t.Context())
	require.NoError(t, err)
	t.Cleanup(p.close)
	require.NoError(t, p.migrate(t.Context()))
	return o, p
}

// histories makes processes do a task, and returns the histories that they wrote.
func histories[Op any](t *testing.T, o order) (all []Op) {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	var wg sync.WaitGroup
	var mu sync.Mutex
	o.Begins = clock() + int64(500*time.Millisecond)
	for i := range processes {
		o.Process = i
		text, err := json.Marshal(o)
		require.NoError(t, err)
		wg.Go(func() {
			var said, wrong bytes.Buffer
			cmd := exec.CommandContext(t.Context(), program)
			cmd.Env = append(os.Environ(), orderVariable+"="+string(text))
			cmd.Stdout, cmd.Stderr = &said, &wrong
			err := cmd.Run()
			var ops []Op
			if err == nil {
				err = json.Unmarshal(said.Bytes(), &ops)
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Errorf("process %d: %v: %s", i, err, wrong.String())
			}
			all = append(all, ops...)
		})
	}
	wg.Wait()
	require.False(t, t.Failed())
	return all
}

// linearizable looks for an order. Its time is bounded: it finds an order at once, but
// needs long to find out that there is none.
func linearizable(model porcupine.Model, ops []porcupine.Operation) porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(model, ops, time.Minute)
}
