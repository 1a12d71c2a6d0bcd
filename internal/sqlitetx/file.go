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

// File is the file of a database, as a program has met it first. The zero value has met none.
// It is safe for concurrent use.
type File struct {
	mu   sync.Mutex
	met  bool
	path string      // "": there is none, or nobody can say where it is
	is   fs.FileInfo // of the file that was met
	at   time.Time   // of the last look
	err  error       // its answer
}

// Moved returns an error if another file, or none, is now where the database's file was. With a
// write-ahead log SQLite does not look. It goes on with the file that it has open: whatever is
// committed is gone with the process, and new connections work with the other file. An answer
// can be a tenth of a second old.
//
// on asks the database for its file, the first time.
func (f *File) Moved(ctx context.Context, on interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	switch {
	case !f.met:
		if err := on.QueryRowContext(ctx, `SELECT coalesce(max(file), '') FROM pragma_database_list WHERE name = 'main'`).Scan(&f.path); err != nil {
			return nil // what follows will fail, too
		}
		f.met = true
		is, err := os.Stat(f.path)
		if err != nil { // it is in memory, or in a file system of the driver's own
			f.path = ""
			return nil
		}
		os.SameFile(is, is) // on Windows the first call looks which file it is
		f.is = is
	case f.path == "" || now.Sub(f.at) < lookAgain:
		return f.err
	default:
		is, err := os.Stat(f.path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			f.err = fmt.Errorf("its file %s was removed while it was in use: what is committed would be lost: put that file back, or end the process and start it again with the right file", f.path)
		case err == nil && !os.SameFile(is, f.is):
			f.err = fmt.Errorf("its file %s was replaced while it was in use: what is committed would be lost: end the process, and start it again (after a restore, call Restored first)", f.path)
		default:
			f.err = nil
		}
	}
	f.at = now
	return f.err
}
