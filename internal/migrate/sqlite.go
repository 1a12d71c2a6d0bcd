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

// busyLimit bounds a migration's wait for other writers, on top of the connection's own
// busy_timeout.
const (
	busyLimit   = 15 * time.Second
	busyWaitMin = 5 * time.Millisecond
	busyWaitMax = 250 * time.Millisecond
)

// SQLite applies the files of fsys that the database does not have yet, in
// order, each in a BEGIN IMMEDIATE transaction of its own. They record themselves under
// the name set in the table surehook_migrations: see [Ledger]. The files are numbered
// from 1 without gaps: 001_start.sql, 002_more.sql.
//
// If the database has all files, SQLite writes nothing and takes no lock. Several
// processes may start at once: one applies a file while the others wait, for at most 15
// seconds. After an error, the files before the failed one stay applied and the failed
// one has no effect.
//
// If the database has files that fsys does not have, it stays as it is. It is an error
// if one of them says that releases without it cannot work with the database.
func SQLite(ctx context.Context, db *sql.DB, set string, fsys fs.FS) error {
	if err := sqliteTo(ctx, db, set, fsys); err != nil {
		return fmt.Errorf("migrate: %s: %w", set, err)
	}
	return nil
}

func sqliteTo(ctx context.Context, db *sql.DB, set string, fsys fs.FS) error {
	files, err := read(fsys)
	if err != nil {
		return err
	}
	var conn *sql.Conn
	// A new connection can meet a lock too, if the DSN sets the journal mode.
	if err := whileBusy(ctx, func() (err error) {
		conn, err = db.Conn(ctx)
		return err
	}); err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	defer conn.Close()
	m := sqlite{conn: conn, set: set, files: files}

	var l Ledger
	if err := whileBusy(ctx, func() (err error) {
		l, err = m.ledger(ctx)
		return err
	}); err != nil {
		return err
	}
	if err := l.suits(len(files)); err != nil {
		return err
	}
	for l.Version < len(files) {
		if err := whileBusy(ctx, func() (err error) {
			l, err = m.step(ctx)
			return err
		}); err != nil {
			return err
		}
	}
	return l.suits(len(files)) // a newer release may have gone on meanwhile
}

type sqlite struct {
	conn  *sql.Conn
	set   string
	files []file
}

func (m sqlite) ledger(ctx context.Context) (Ledger, error) {
	return ReadSQLite(m.set, func(query string, args ...any) Row { return m.conn.QueryRowContext(ctx, query, args...) })
}

// step applies the next file, unless another process has done so meanwhile, and returns
// the new ledger.
func (m sqlite) step(ctx context.Context) (l Ledger, err error) {
	// A deferred transaction would read first, and might be refused the write lock
	// later. BeginTx has no way to say IMMEDIATE, whatever the driver.
	if _, err := m.conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return l, err
	}
	defer func() {
		if err != nil {
			m.rollback(ctx)
		}
	}()
	if l, err = m.ledger(ctx); err != nil {
		return l, err
	}
	if l.Version < len(m.files) {
		next, version := m.files[l.Version], l.Version+1
		if _, err := m.conn.ExecContext(ctx, next.sql); err != nil {
			return l, applying(next.name, err)
		}
		if l, err = m.ledger(ctx); err == nil {
			err = l.recorded(next, version)
		}
		if err != nil {
			return l, err
		}
	}
	_, err = m.conn.ExecContext(ctx, "COMMIT")
	return l, wrap(fmt.Sprintf("committing version %d", l.Version), err)
}

// rollback ignores the caller's context: a connection with an open transaction must not
// go back to the pool. If rollback fails the connection is closed. (SQLite may have
// rolled back by itself; that is an error here too.)
func (m sqlite) rollback(ctx context.Context) {
	if _, err := m.conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK"); err != nil {
		_ = m.conn.Raw(func(any) error { return driver.ErrBadConn })
	}
}

// whileBusy repeats f while it fails because of another connection's lock.
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
