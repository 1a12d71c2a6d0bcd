// Package migrate brings the library's tables in an application's database up
// to date. It goes forward only.
package migrate

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/surehook/surehook/internal/dberr"
)

// How long a migration waits for other writers, on top of the connection's own
// busy_timeout, before it gives up.
const (
	busyLimit   = 15 * time.Second
	busyWaitMin = 5 * time.Millisecond
	busyWaitMax = 250 * time.Millisecond
)

const createLedger = `CREATE TABLE IF NOT EXISTS surehook_migrations (
	set_name TEXT NOT NULL,
	version INTEGER NOT NULL,
	applied_at INTEGER NOT NULL, -- microseconds since 1970, UTC
	PRIMARY KEY (set_name, version)
) WITHOUT ROWID`

// SQLite applies the files of fsys that the database does not have yet, in
// order, each in a BEGIN IMMEDIATE transaction of its own, and records them
// under the name set in the table surehook_migrations. The files are numbered
// from 1 without gaps: 001_start.sql, 002_more.sql.
//
// When all are there, nothing is written and no lock is taken. Several processes
// may start at once: one applies a file while the others wait, for at most 15
// seconds. After an error, the files before the failed one stay applied and the
// failed one has left nothing. A database that has a file which fsys does not
// know belongs to a newer release, and is an error before anything is changed.
func SQLite(ctx context.Context, db *sql.DB, set string, fsys fs.FS) error {
	files, err := read(fsys)
	if err != nil {
		return fmt.Errorf("migrate: %s: %w", set, err)
	}
	var conn *sql.Conn
	// Connecting can meet a lock too, when the DSN sets the journal mode.
	if err := whileBusy(ctx, func() (err error) {
		conn, err = db.Conn(ctx)
		return err
	}); err != nil {
		return fmt.Errorf("migrate: %s: connecting: %w", set, err)
	}
	defer conn.Close()
	m := sqlite{conn: conn, set: set, files: files}

	var have int
	if err := whileBusy(ctx, func() (err error) {
		have, err = m.applied(ctx)
		return err
	}); err != nil {
		return fmt.Errorf("migrate: %s: reading surehook_migrations: %w", set, err)
	}
	for {
		if have > len(files) {
			return fmt.Errorf("migrate: %s: the database is at version %d and this release knows %d: run the newer release",
				set, have, len(files))
		}
		if have == len(files) {
			return nil
		}
		if err := whileBusy(ctx, func() (err error) {
			have, err = m.step(ctx)
			return err
		}); err != nil {
			return fmt.Errorf("migrate: %s: %w", set, err)
		}
	}
}

type sqlite struct {
	conn  *sql.Conn
	set   string
	files []file
}

// applied returns the highest version in the database, 0 if it has none.
func (m sqlite) applied(ctx context.Context) (version int, err error) {
	var tables int
	if err := m.conn.QueryRowContext(ctx,
		"SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'surehook_migrations'").Scan(&tables); err != nil || tables == 0 {
		return 0, err
	}
	err = m.conn.QueryRowContext(ctx,
		"SELECT coalesce(max(version), 0) FROM surehook_migrations WHERE set_name = ?", m.set).Scan(&version)
	return version, err
}

// step applies the next file, unless another process did in the meantime, and
// returns the version that the database then has.
func (m sqlite) step(ctx context.Context) (version int, err error) {
	// Deferred, the transaction would read first and could then find that it may
	// not write. BeginTx cannot say IMMEDIATE, whatever the driver.
	if _, err := m.conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			m.rollback(ctx)
		}
	}()
	if _, err := m.conn.ExecContext(ctx, createLedger); err != nil {
		return 0, fmt.Errorf("creating surehook_migrations: %w", err)
	}
	version, err = m.applied(ctx)
	if err != nil {
		return 0, fmt.Errorf("reading surehook_migrations: %w", err)
	}
	if version < len(m.files) {
		next := m.files[version]
		version++
		if _, err := m.conn.ExecContext(ctx, next.sql); err != nil {
			return 0, fmt.Errorf("%s: %w", next.name, err)
		}
		if _, err := m.conn.ExecContext(ctx,
			"INSERT INTO surehook_migrations (set_name, version, applied_at) VALUES (?, ?, ?)",
			m.set, version, time.Now().UnixMicro()); err != nil {
			return 0, fmt.Errorf("recording %s: %w", next.name, err)
		}
	}
	if _, err := m.conn.ExecContext(ctx, "COMMIT"); err != nil {
		return 0, fmt.Errorf("committing version %d: %w", version, err)
	}
	return version, nil
}

// rollback must not be stopped by the caller's context: a connection with an
// open transaction may not go back to the pool, so it is thrown away when even
// that fails. (SQLite may have rolled back by itself; that is an error here too.)
func (m sqlite) rollback(ctx context.Context) {
	if _, err := m.conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK"); err != nil {
		_ = m.conn.Raw(func(any) error { return driver.ErrBadConn })
	}
}

// whileBusy runs f until it no longer fails for another connection's lock.
func whileBusy(ctx context.Context, f func() error) error {
	start := time.Now()
	for wait := busyWaitMin; ; wait = min(2*wait, busyWaitMax) {
		err := f()
		if err == nil || dberr.Classify(err) != dberr.Retry {
			return err
		}
		if waited := time.Since(start); waited >= busyLimit {
			return fmt.Errorf("still locked by another connection after %s: %w", waited.Round(time.Second), err)
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return errors.Join(ctx.Err(), err)
		}
	}
}
