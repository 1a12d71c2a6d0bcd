package simulation

import (
	"context"
	"database/sql"
	"time"

	"github.com/surehook/surehook/sender/sqlite"
	"github.com/surehook/surehook/sender/storetest"
)

// SQLiteFile is the driver's DSN for a file. Each commit is durable, as the store
// requires. In a file system in memory that costs little.
func SQLiteFile(path string) string {
	return "file:" + path + "?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(5000)"
}

// SQLite is an empty SQLite database, for one run. Each process has a store of its own
// in it, with its own memory.
func SQLite(db *sql.DB) Database[*sql.Tx] { return &inSQLite{db: db} }

type inSQLite struct {
	db       *sql.DB
	migrated bool
}

func (d *inSQLite) Open(ctx context.Context, now, _ func() time.Time) (storetest.Store[*sql.Tx], error) {
	store, err := sqlite.New(d.db, &sqlite.Config{Now: now})
	if err != nil || d.migrated {
		return store, err
	}
	d.migrated = true
	return store, store.Migrate(ctx)
}
