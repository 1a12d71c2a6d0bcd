package migrate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"strings"
	"time"

	"github.com/surehook/surehook/internal/dberr"
	"github.com/surehook/surehook/internal/ident"
)

// patience bounds a migration's wait for a table's lock. All later transactions wait
// behind it, so it gives up, lets them pass and tries again. An autovacuum that holds
// the lock is cancelled after deadlock_timeout, a second, which must be shorter.
var patience = struct {
	lock     time.Duration
	tries    int
	min, max time.Duration // between two tries
}{2 * time.Second, 20, 100 * time.Millisecond, 5 * time.Second}

// Postgres applies the files of fsys that the schema does not have yet, in order,
// each in a transaction of its own. They record themselves under the name set in the
// schema's table surehook_migrations: see [Ledger]. The files are numbered as for
// [SQLite], and their names are unqualified: they and the ledger go into the schema,
// which is made if it is not there. The empty schema is the first of the connection's
// search_path that exists.
//
// If the schema has all files, Postgres writes nothing and takes no lock. Several
// processes may start at once: one applies the files while the others wait, for as long as
// ctx lets them. If a file does not get its locks within two seconds, or meets a deadlock,
// it is given up, so that others wait behind it for no longer. It is tried again a little
// later, 20 times. After an error, the files before the failed one stay applied and the
// failed one has no effect.
//
// If the schema has files that fsys does not have, it stays as it is. It is an error if
// one of them says that releases without it cannot work with the schema.
func Postgres(ctx context.Context, db *sql.DB, schema, set string, fsys fs.FS) error {
	if err := postgresTo(ctx, db, schema, set, fsys); err != nil {
		return fmt.Errorf("migrate: %s: %w", set, err)
	}
	return nil
}

func postgresTo(ctx context.Context, db *sql.DB, schema, set string, fsys fs.FS) error {
	files, err := read(fsys)
	if err != nil {
		return err
	}
	if err := ident.Schema(schema); err != nil {
		return err
	}
	// One connection: another one could have another search_path.
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	defer conn.Close()
	if schema == "" {
		if schema, err = currentSchema(ctx, conn); err != nil {
			return err
		}
	}
	m := postgres{schema: schema, set: set, files: files}
	l, err := m.ledger(ctx, conn)
	if err != nil {
		return err
	}
	if err := l.suits(len(files)); err != nil {
		return err
	}
	for l.Version < len(files) {
		if l, err = m.patiently(ctx, conn, files[l.Version]); err != nil {
			return err
		}
	}
	return l.suits(len(files)) // a newer release may have gone on meanwhile
}

func currentSchema(ctx context.Context, conn *sql.Conn) (string, error) {
	var schema sql.NullString
	var path string
	if err := conn.QueryRowContext(ctx,
		"SELECT current_schema()::text, current_setting('search_path')").Scan(&schema, &path); err != nil {
		return "", fmt.Errorf("asking for the schema: %w", err)
	}
	if !schema.Valid {
		return "", fmt.Errorf("no schema of search_path (%s) exists: create one or name the schema", path)
	}
	return schema.String, nil
}

type postgres struct {
	schema string
	set    string
	files  []file
}

type queryer interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func (m postgres) ledger(ctx context.Context, q queryer) (Ledger, error) {
	table := ident.QuoteSchema(m.schema) + ".surehook_migrations"
	return ReadPostgres(table, m.set, func(query string, args ...any) Row {
		return q.QueryRowContext(ctx, strings.ReplaceAll(query, " surehook_migrations ", " "+table+" "), args...)
	})
}

// patiently takes a step, and repeats it if other transactions were in its way. The
// error names the next file, unless another process has applied it.
func (m postgres) patiently(ctx context.Context, conn *sql.Conn, next file) (l Ledger, err error) {
	pause := patience.min
	for range patience.tries {
		if l, err = m.step(ctx, conn); err == nil || dberr.Classify(err) != dberr.Retry {
			return l, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return l, errors.Join(ctx.Err(), err)
		}
		pause = min(2*pause, patience.max)
	}
	return l, fmt.Errorf("%s did not get its locks in %d tries of %s, because transactions stay open that have used its tables (pg_stat_activity shows them): end them, and migrate again: %w",
		next.name, patience.tries, patience.lock, err)
}

// step applies the next file, unless another process has done so meanwhile, and returns
// the new ledger.
func (m postgres) step(ctx context.Context, conn *sql.Conn) (l Ledger, err error) {
	// The level must not be stricter, whatever the server's default is: the
	// transaction must see the commits that happened while it waited for the lock.
	tx, err := conn.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return l, fmt.Errorf("beginning: %w", err)
	}
	defer func() { _ = tx.Rollback() }()
	if err := m.prepare(ctx, tx); err != nil {
		return l, err
	}
	if l, err = m.ledger(ctx, tx); err != nil || l.Version >= len(m.files) {
		return l, err
	}
	next, version := m.files[l.Version], l.Version+1
	// Without arguments drivers send the text as it is, so it may be several
	// statements.
	if _, err := tx.ExecContext(ctx, next.sql); err != nil {
		return l, applying(next.name, err)
	}
	if l, err = m.ledger(ctx, tx); err == nil {
		err = l.recorded(next, version)
	}
	if err != nil {
		return l, err
	}
	return l, wrap("committing "+next.name, tx.Commit())
}

// withoutLimits lifts the limits of a role. PostgreSQL has the last one since release 17.
const withoutLimits = `SELECT set_config(name, '0', true) FROM pg_settings WHERE name IN ('lock_timeout', 'statement_timeout', 'transaction_timeout')`

// prepare takes the schema's lock, makes the schema, and changes the session's settings
// for the file. All sets share the lock: CREATE … IF NOT EXISTS fails when two run at
// once. The role's own limits are for its daily work: an index can take longer to
// build.
func (m postgres) prepare(ctx context.Context, tx *sql.Tx) error {
	key := fnv.New64a()
	_, _ = key.Write([]byte("surehook_migrations " + m.schema)) // it never fails
	if _, err := tx.ExecContext(ctx, withoutLimits); err != nil {
		return wrap("setting timeouts", err)
	}
	if _, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock($1)", int64(key.Sum64())); err != nil {
		return wrap("waiting for others to migrate", err)
	}
	quoted := ident.QuoteSchema(m.schema)
	var there bool
	if err := tx.QueryRowContext(ctx, "SELECT to_regnamespace($1) IS NOT NULL", quoted).Scan(&there); err != nil {
		return wrap("looking for schema "+quoted, err)
	}
	if !there { // IF NOT EXISTS would need the right to create a schema all the same
		if _, err := tx.ExecContext(ctx, "CREATE SCHEMA "+quoted); err != nil {
			return wrap("creating schema "+quoted, err)
		}
	}
	_, err := tx.ExecContext(ctx, fmt.Sprintf("SET LOCAL search_path TO %s; SET LOCAL lock_timeout = %d", quoted, patience.lock.Milliseconds()))
	return wrap("setting the search_path", err)
}

func wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}
