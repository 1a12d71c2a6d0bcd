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

// SQLite applies the files of fsys that the database does not have yet, in
// order, each in a BEGIN IMMEDIATE transaction of its own. They record themselves under
// the name set in the table surehook_migrations: see [Ledger]. The files are numbered
// from 1 without gaps: 001_start.sql, 002_more.sql.
//
// When all are there, nothing is written and no lock is taken. Several processes
// may start at once: one applies a file while the others wait, for at most 15
// seconds. After an error, the files before the failed one stay applied and the
// failed one has left nothing.
//
// A database that has files which fsys does not know is left as it is. It is an error if
// one of them says that releases which do not know it cannot work with it.
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
	// Connecting can meet a lock too, when the DSN sets the journal mode.
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

// step applies the next file, unless another process did in the meantime, and
// returns the ledger as it then is.
func (m sqlite) step(ctx context.Context) (l Ledger, err error) {
	// Deferred, the transaction would read first and could then find that it may
	// not write. BeginTx cannot say IMMEDIATE, whatever the driver.
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
			return l, wrap(next.name, err)
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
