package simulation

import (
	"context"
	"database/sql"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/sqlite"
)

// SQLiteFile is how the driver is told of a file: each commit is durable, as the store
// demands it. In a file system in memory that costs little.
func SQLiteFile(path string) string {
	return "file:" + path + "?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(5000)"
}

// SQLite is an empty database of SQLite, for one run. Each process has a store of its
// own in it, with what that remembers.
func SQLite(db *sql.DB) Database[*sql.Tx] { return &inSQLite{db: db} }

type inSQLite struct {
	db       *sql.DB
	migrated bool
}

func (d *inSQLite) Open(ctx context.Context, now, _ func() time.Time) (sender.Store[*sql.Tx], error) {
	store, err := sqlite.New(d.db, &sqlite.Config{Now: now})
	if err != nil || d.migrated {
		return store, err
	}
	d.migrated = true
	return store, store.Migrate(ctx)
}
