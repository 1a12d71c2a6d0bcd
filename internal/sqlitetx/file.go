package sqlitetx

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"
)

// lookAgain is how long an answer about a file holds.
const lookAgain = 100 * time.Millisecond

// Querier asks a database: a *sql.DB, or a connection or a transaction of one.
type Querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// File is the file of a database, as a program has met it first. The zero value has met none.
// It is safe for concurrent use.
type File struct {
	mu  sync.Mutex
	met *place
	at  time.Time // of the last look
	err error     // its answer
}

// Moved returns an error if another file, or none, is now where the database's file was. With a
// write-ahead log SQLite does not look. It goes on with the file that it has open: whatever is
// committed is gone with the process, and new connections work with the other file. An answer
// can be a tenth of a second old.
//
// on asks the database for its file, the first time.
func (f *File) Moved(ctx context.Context, on Querier) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	switch {
	case f.met == nil:
		path, err := pathOf(ctx, on)
		if err != nil {
			return nil // what follows will fail, too
		}
		f.met = meet(path)
	case now.Sub(f.at) < lookAgain:
		return f.err
	default:
		f.err = f.met.moved()
	}
	f.at = now
	return f.err
}

// Files are the files of the databases that a store is given transactions of, as it has met
// them first. Mostly it is one. The zero value has met none. It is safe for concurrent use.
type Files struct {
	mu  sync.Mutex
	met map[string]*place // by path
	at  time.Time         // of the last look, if all was well
}

// Kept is for statements of a transaction that write. It returns err, the error of one. If that
// is nil, it returns an error if what was written would be lost, as Moved of File does.
//
// A look asks the database for its file. While all is well there is one look in a tenth of a
// second, at the file of the transaction that comes just then. Once a look has found an error,
// each transaction's file is looked at, until all is well again. The look comes after the
// statement, because a transaction that reads first may be refused the write lock later.
func (f *Files) Kept(ctx context.Context, tx Querier, err error) error {
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if now.Sub(f.at) < lookAgain {
		return nil
	}
	path, err := pathOf(ctx, tx)
	if err != nil {
		return nil // what follows will fail, too
	}
	f.at = now
	p := f.met[path]
	if p == nil {
		if f.met == nil {
			f.met = map[string]*place{}
		}
		f.met[path] = meet(path)
		return nil
	}
	if err := p.moved(); err != nil {
		f.at = time.Time{}
		return fmt.Errorf("nothing is written to the database: %w", err)
	}
	return nil
}

func pathOf(ctx context.Context, on Querier) (path string, err error) {
	err = on.QueryRowContext(ctx, `SELECT coalesce(max(file), '') FROM pragma_database_list WHERE name = 'main'`).Scan(&path)
	return path, err
}

// place is where a file was met.
type place struct {
	path string
	is   fs.FileInfo // nil: there is none: it is in memory, or in a file system of the driver's own
}

func meet(path string) *place {
	is, err := os.Stat(path)
	if err != nil {
		return &place{path: path}
	}
	os.SameFile(is, is) // on Windows the first call looks which file it is
	return &place{path, is}
}

func (p *place) moved() error {
	if p.is == nil {
		return nil
	}
	is, err := os.Stat(p.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("its file %s was removed while it was in use: what is committed would be lost: put that file back, or end the process and start it again with the right file", p.path)
	case err == nil && !os.SameFile(is, p.is):
		return fmt.Errorf("its file %s was replaced while it was in use: what is committed would be lost: end the process, and start it again (after a restore of a sender's tables, call Restored first)", p.path)
	}
	return nil
}
