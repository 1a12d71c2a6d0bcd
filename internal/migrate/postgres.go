package migrate

import (
	"context"
	"database/sql"
	"fmt"
	"hash/fnv"
	"io/fs"

	"github.com/surehook/surehook/internal/ident"
)

const createPostgresLedger = `CREATE TABLE IF NOT EXISTS surehook_migrations (
	set_name   text NOT NULL,
	version    integer NOT NULL,
	applied_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	PRIMARY KEY (set_name, version)
)`

// Postgres applies the files of fsys that the schema does not have yet, in order
// and all in one transaction, and records them under the name set in the schema's
// table surehook_migrations. The files are numbered as for [SQLite], and their
// names are unqualified: they and the ledger go into the schema, which is made if
// it is not there. The empty schema is the first of the connection's search_path
// that exists.
//
// When all are there, nothing is written and no lock is taken. Several processes
// may start at once: one applies the files while the others wait, for as long as
// ctx and the server's lock_timeout let them. After an error nothing has changed.
// A schema that has a file which fsys does not know belongs to a newer release,
// and is an error before anything is changed.
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
	have, err := m.applied(ctx, conn)
	if err != nil || have == len(files) {
		return err
	}
	// Not stricter, whatever the server's default is: what others have committed
	// while this one waited for the lock must be seen.
	tx, err := conn.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return fmt.Errorf("beginning: %w", err)
	}
	defer tx.Rollback()
	if err := m.apply(ctx, tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("committing: %w", err)
	}
	return nil
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

// applied returns the highest version in the schema, 0 if it has none. One that
// is not known here is an error.
func (m postgres) applied(ctx context.Context, q queryer) (version int, err error) {
	ledger := ident.QuoteSchema(m.schema) + ".surehook_migrations"
	var there bool
	if err := q.QueryRowContext(ctx, "SELECT to_regclass($1) IS NOT NULL", ledger).Scan(&there); err != nil || !there {
		return 0, wrap("looking for surehook_migrations", err)
	}
	if err := q.QueryRowContext(ctx,
		"SELECT coalesce(max(version), 0) FROM "+ledger+" WHERE set_name = $1", m.set).Scan(&version); err != nil {
		return 0, wrap("reading surehook_migrations", err)
	}
	if version > len(m.files) {
		return 0, fmt.Errorf("the database is at version %d and this release knows %d: run the newer release", version, len(m.files))
	}
	return version, nil
}

func (m postgres) apply(ctx context.Context, tx *sql.Tx) error {
	if err := m.prepare(ctx, tx); err != nil {
		return err
	}
	have, err := m.applied(ctx, tx)
	if err != nil {
		return err
	}
	for i, f := range m.files[have:] {
		// Without arguments, drivers send it as it is, and it may be several statements.
		if _, err := tx.ExecContext(ctx, f.sql); err != nil {
			return wrap(f.name, err)
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO surehook_migrations (set_name, version) VALUES ($1, $2)",
			m.set, have+i+1); err != nil {
			return wrap("recording "+f.name, err)
		}
	}
	return nil
}

// prepare takes the schema's lock, and makes the schema and the ledger. The lock
// is every set's: CREATE … IF NOT EXISTS fails when two run at once.
func (m postgres) prepare(ctx context.Context, tx *sql.Tx) error {
	key := fnv.New64a()
	_, _ = key.Write([]byte("surehook_migrations " + m.schema)) // it never fails
	if _, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock($1)", int64(key.Sum64())); err != nil {
		return wrap("waiting for others to migrate", err)
	}
	quoted := ident.QuoteSchema(m.schema)
	var there bool
	if err := tx.QueryRowContext(ctx, "SELECT to_regnamespace($1) IS NOT NULL", quoted).Scan(&there); err != nil {
		return wrap("looking for schema "+quoted, err)
	}
	if !there { // IF NOT EXISTS would ask for the right to create one all the same
		if _, err := tx.ExecContext(ctx, "CREATE SCHEMA "+quoted); err != nil {
			return wrap("creating schema "+quoted, err)
		}
	}
	if _, err := tx.ExecContext(ctx, "SET LOCAL search_path TO "+quoted); err != nil {
		return wrap("setting the search_path", err)
	}
	_, err := tx.ExecContext(ctx, createPostgresLedger)
	return wrap("creating surehook_migrations", err)
}

func wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}
