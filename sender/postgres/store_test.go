package postgres_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/newid"
	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/internal/race"
	"github.com/surehook/surehook/sender/postgres"
	"github.com/surehook/surehook/sender/storetest"
)

func openPool(t testing.TB, settings ...string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(context.Background(), pgtest.With(pgtest.DSN(t), append([]string{"pool_max_conns", "16"}, settings...)...))
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// schemas are migrated schemas. One test after another uses them: to make one takes
// longer than most tests.
type schemas struct {
	pool *pgxpool.Pool
	mu   sync.Mutex
	free []string
}

// clockTable is where a schema's tests have their clock.
const clockTable = "test_clock"

func clockOf(schema string) string { return `(SELECT at FROM "` + schema + `".` + clockTable + `)` }

var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// take returns an empty schema for a test.
func (s *schemas) take(t *testing.T) string {
	t.Helper()
	s.mu.Lock()
	name := ""
	if n := len(s.free); n > 0 {
		name, s.free = s.free[n-1], s.free[:n-1]
	}
	s.mu.Unlock()
	ctx := context.Background()
	if name == "" {
		name = newid.New("test_", time.Now())
		store, err := postgres.New(s.pool, &postgres.Config{Schema: name})
		require.NoError(t, err)
		require.NoError(t, store.Migrate(ctx))
		newer(t, s.pool, name, 1)
		db := stdlib.OpenDBFromPool(s.pool)
		pgtest.Age(t, db, name)
		require.NoError(t, db.Close())
		_, err = s.pool.Exec(ctx, `CREATE TABLE "`+name+`".`+clockTable+` (at timestamptz)`)
		require.NoError(t, err)
	}
	position := pgtest.Old
	if strings.Contains(t.Name(), "/feed/") { // its rules are about the first positions
		position = 0
	}
	require.NoError(t, s.empty(ctx, name, position))
	t.Cleanup(func() {
		if t.Failed() { // it may hold locks, or have left something
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.free = append(s.free, name)
	})
	return name
}

// newer adds a column to each table, as a later release's migration may while releases
// that know n migrations go on working.
func newer(t *testing.T, pool *pgxpool.Pool, schema string, needs int) {
	t.Helper()
	_, err := pool.Exec(context.Background(), fmt.Sprintf(`DO $$ DECLARE name text; BEGIN
		FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = '%[1]s' AND tablename <> 'surehook_migrations' LOOP
			EXECUTE format('ALTER TABLE %%I.%%I ADD COLUMN of_a_later_release int NOT NULL DEFAULT 1', '%[1]s', name);
		END LOOP;
		INSERT INTO "%[1]s".surehook_migrations (set_name, version, needs) SELECT set_name, max(version) + 1, %[2]d FROM "%[1]s".surehook_migrations GROUP BY 1;
	END $$`, schema, needs))
	require.NoError(t, err)
}

// empty empties a schema's tables. Its sequences keep their values. The feed goes on behind a
// position.
func (s *schemas) empty(ctx context.Context, name string, position int64) error {
	rows, err := s.pool.Query(ctx, `SELECT relname, pg_total_relation_size(oid) FROM pg_class
		WHERE relnamespace = $1::regnamespace AND relkind = 'r' AND relname <> 'surehook_migrations'`, `"`+name+`"`)
	if err != nil {
		return err
	}
	var text strings.Builder
	var table string
	var size int
	_, err = pgx.ForEachRow(rows, []any{&table, &size}, func() error {
		switch table {
		case "surehook_feed_head":
			fmt.Fprintf(&text, `UPDATE "%s".%s SET position = %d, newest = '-infinity', begun = '{}';`, name, table, position)
		case "surehook_feed_pruned":
			fmt.Fprintf(&text, `UPDATE "%s".%s SET position = 0;`, name, table)
		case "surehook_floor":
			fmt.Fprintf(&text, `UPDATE "%s".%s SET version = 0, lineage = '';`, name, table)
		default:
			how := "DELETE FROM" // is cheaper, and leaves the dead rows to the next test
			if size > 4<<20 {
				how = "TRUNCATE"
			}
			fmt.Fprintf(&text, `%s "%s".%s;`, how, name, table)
		}
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(&text, `INSERT INTO "%s".%s VALUES ('%s')`, name, clockTable, start.Format(time.RFC3339Nano))
	_, err = s.pool.Exec(ctx, text.String(), pgx.QueryExecModeSimpleProtocol)
	return err
}

func (s *schemas) drop() {
	for _, name := range s.free {
		_, _ = s.pool.Exec(context.Background(), `DROP SCHEMA "`+name+`" CASCADE`)
	}
}

// shared has the schemas on the server of [pgtest.DSN]. A test may change their rows, and
// nothing else.
var shared schemas

func sharedSchemas(t *testing.T) *schemas {
	t.Helper()
	dsn := pgtest.DSN(t)
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.pool == nil {
		pool, err := pgxpool.New(context.Background(), pgtest.With(dsn, "pool_max_conns", "64"))
		require.NoError(t, err)
		shared.pool = pool
	}
	return &shared
}

// schemasOn drops its schemas when the test ends.
func schemasOn(t *testing.T, pool *pgxpool.Pool) *schemas {
	s := &schemas{pool: pool}
	t.Cleanup(s.drop)
	return s
}

func (s *schemas) advance(t *testing.T, name string) func(time.Duration) {
	return func(d time.Duration) {
		_, err := s.pool.Exec(context.Background(), fmt.Sprintf(`UPDATE "%s".%s SET at = at + interval '%d microseconds'`, name, clockTable, d.Microseconds()))
		require.NoError(t, err)
	}
}

// A way is how callers' transactions begin, and how their statements are sent. The store's
// own transactions depend on the mode alone.
type way struct{ driver, isolation, mode string }

func (w way) String() string {
	return strings.ReplaceAll(strings.Trim(w.driver+"_"+w.isolation+"_"+w.mode, "_"), " ", "_")
}

// The part of the suite that is run for a way.
const (
	nothing    = iota
	concurrent // of what several goroutines do at once
	callers    // of what is done in callers' transactions
	whole
)

// much tells how much is run: the whole suite once, and the part about callers in ways that
// have each driver, isolation level and unlike mode together once, [TestPgBouncerWithTheSuite]'s exec
// among them; unless SUREHOOK_EVERY=1.
// With the race detector two others get what it is there for, and without it all is run.
func (w way) much() int {
	if every() {
		return whole
	}
	wholes, parts := []way{{"pgx", "read committed", ""}},
		[]way{{"sql", "repeatable read", ""}, {"pgx", "serializable", "simple_protocol"}}
	switch {
	case race.Enabled:
		if slices.Contains([]way{{"pgx", "repeatable read", ""}, {"sql", "read committed", ""}}, w) {
			return concurrent
		}
	case slices.Contains(wholes, w):
		return whole
	case slices.Contains(parts, w):
		return callers
	}
	return nothing
}

// ways are all pairs of driver and isolation level, and, for one pair, all modes besides
// pgx's default.
func ways() (all []way) {
	for _, isolation := range []string{"read committed", "repeatable read", "serializable"} {
		for _, driver := range []string{"pgx", "sql"} {
			all = append(all, way{driver, isolation, ""})
		}
	}
	for _, mode := range modes[1:] {
		all = append(all, way{"sql", "serializable", mode}, way{"pgx", "serializable", mode})
	}
	return all
}

// every tells whether all is to be run, however long it takes.
func every() bool { return os.Getenv("SUREHOOK_EVERY") == "1" }

// withoutRace skips a test with the race detector, unless all is to be run.
func withoutRace(t *testing.T, why string) {
	t.Helper()
	if race.Enabled && !every() {
		t.Skip(why + ": .ci/run runs this without it")
	}
}

// suite runs the suite, or its part about callers' transactions.
func suite[Tx any](t *testing.T, much int, open func(t *testing.T) storetest.Harness[Tx]) {
	switch much {
	case whole:
		storetest.Run(t, open)
	case callers:
		storetest.RunCallers(t, open)
	case concurrent:
		storetest.RunConcurrent(t, open)
	}
}

// onPgx is a store of pgx, in an empty schema, and what its suite needs.
func onPgx(t *testing.T, all *schemas, pool *pgxpool.Pool, pooler bool) (*pgxStore, storetest.Harness[pgx.Tx]) {
	t.Helper()
	name := all.take(t)
	store, err := postgres.New(pool, &postgres.Config{Schema: name, Pooler: pooler})
	require.NoError(t, err)
	store.SetClock(clockOf(name))
	p := &place{schema: name, pool: all.pool, all: all}
	return store, storetest.Harness[pgx.Tx]{
		Store: store, Advance: all.advance(t, name), ConcurrentWriters: true, BoundedWork: true, Settled: p.delivered, Consistent: p.linedUp, SettingsOf: p.settingsOf,
		Other: func(t *testing.T) storetest.Store[pgx.Tx] {
			own, err := pgxpool.NewWithConfig(context.Background(), pool.Config())
			require.NoError(t, err)
			t.Cleanup(own.Close)
			other, err := postgres.New(own, &postgres.Config{Schema: name, Pooler: pooler})
			require.NoError(t, err)
			other.SetClock(clockOf(name))
			return other
		},
		Begin: func(t *testing.T) (pgx.Tx, func() error, func() error) {
			tx, err := pool.Begin(t.Context())
			require.NoError(t, err)
			return tx, func() error { return tx.Commit(context.Background()) }, func() error { return tx.Rollback(context.Background()) }
		},
	}
}

// The calls of callers and dispatchers have the same results, and send the same statements,
// whatever callers' transactions are and whether pgx knows or guesses the types of arguments.
func TestStore(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		much := w.much()
		if much == nothing {
			continue
		}
		t.Run(w.String(), func(t *testing.T) {
			t.Parallel()
			settings := []string{"default_transaction_isolation", w.isolation}
			if w.mode != "" {
				settings = append(settings, "default_query_exec_mode", w.mode)
			}
			all, pool := sharedSchemas(t), openPool(t, settings...)
			if w.driver == "sql" {
				db := stdlib.OpenDBFromPool(pool)
				suite(t, much, func(t *testing.T) storetest.Harness[*sql.Tx] { return onSQL(t, all, pool, db) })
				return
			}
			open, err := postgres.New(pool, nil)
			require.NoError(t, err)
			t.Cleanup(open.Open())
			suite(t, much, func(t *testing.T) storetest.Harness[pgx.Tx] {
				store, h := onPgx(t, all, pool, false)
				if w.isolation != "serializable" { // as in a process with a dispatcher
					store.Share(open)
				}
				return h
			})
		})
	}
}

// onSQL is a store of database/sql, in an empty schema, and what its suite needs.
func onSQL(t *testing.T, all *schemas, pool *pgxpool.Pool, db *sql.DB) storetest.Harness[*sql.Tx] {
	t.Helper()
	name := all.take(t)
	store, err := postgres.NewSQL(pool, &postgres.Config{Schema: name})
	require.NoError(t, err)
	store.SetClock(clockOf(name))
	return storetest.Harness[*sql.Tx]{
		Store: store, Advance: all.advance(t, name), ConcurrentWriters: true,
		Settled: (&place{schema: name, pool: all.pool, all: all}).delivered,
		Begin: func(t *testing.T) (*sql.Tx, func() error, func() error) {
			tx, err := db.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			return tx, tx.Commit, tx.Rollback
		},
	}
}
