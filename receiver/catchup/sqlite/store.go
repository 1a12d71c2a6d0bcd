// Package sqlite keeps the cursors of package catchup in an SQLite database, through
// database/sql and any driver.
package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/surehook/surehook/internal/dberr"
	"github.com/surehook/surehook/internal/migrate"
	"github.com/surehook/surehook/internal/sqlitetx"
	"github.com/surehook/surehook/receiver/catchup"
)

// Store is a [catchup.CursorStore] for the transactions of a *sql.DB. It is safe for
// concurrent use. Make one for a *sql.DB: it knows which file was there first, and writes
// nothing while that is not in its place.
type Store struct{ files sqlitetx.Files }

var _ catchup.CursorStore[*sql.Tx] = (*Store)(nil)

// New returns a store. The table must be there: see [Migrate].
func New() *Store { return &Store{} }

// Cursor implements [catchup.CursorStore].
func (*Store) Cursor(ctx context.Context, tx *sql.Tx, name string) (string, error) {
	if err := check(tx, name); err != nil {
		return "", err
	}
	var cursor string
	err := tx.QueryRowContext(ctx, `SELECT cursor FROM surehook_catchup_cursors WHERE name = ?`, name).Scan(&cursor)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return "", fmt.Errorf("sqlite: reading a cursor: %w", dberr.Unmigrated("surehook_catchup_", err))
	}
	return cursor, nil
}

// SetCursor implements [catchup.CursorStore].
func (s *Store) SetCursor(ctx context.Context, tx *sql.Tx, name, cursor string) error {
	if err := errors.Join(check(tx, name), catchup.CheckCursor(cursor)); err != nil {
		return err
	}
	err := sqlitetx.Open(ctx, tx) // else the cursor would stand behind an effect that is gone
	if err == nil {
		_, err = tx.ExecContext(ctx, `INSERT INTO surehook_catchup_cursors (name, cursor, moved_at) VALUES (?, ?, ?)
			ON CONFLICT (name) DO UPDATE SET cursor = excluded.cursor, moved_at = excluded.moved_at`, name, cursor, time.Now().UnixMicro())
	}
	if err = s.files.Kept(ctx, tx, err); err != nil {
		return fmt.Errorf("sqlite: storing a cursor: %w", dberr.Unmigrated("surehook_catchup_", err))
	}
	return nil
}

func check(tx *sql.Tx, name string) error {
	if tx == nil {
		return fmt.Errorf("%w: the transaction is nil", catchup.ErrInvalid)
	}
	return catchup.CheckName(name)
}

//go:embed migrations/*.sql
var files embed.FS

// Migrate brings the table up to date. Call it before the first use, at every start:
// when nothing is to be done it writes nothing. Several processes may call it at
// once. It uses one connection of db and transactions of its own.
//
// Tables that a newer release has migrated are left as they are. It is an error if they
// say that this release cannot work with them.
func Migrate(ctx context.Context, db *sql.DB) error {
	return migrate.SQLite(ctx, db, "catchup", Migrations())
}

// Migrations returns the numbered files that Migrate applies, for those who have a
// tool of their own. They only ever go forward, and a released one never changes.
// They record themselves in surehook_migrations.
func Migrations() fs.FS {
	return migrate.Files(files)
}
