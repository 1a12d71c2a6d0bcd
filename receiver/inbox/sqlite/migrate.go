package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"io/fs"

	"github.com/surehook/surehook/internal/migrate"
)

//go:embed migrations/*.sql
var files embed.FS

// Migrate brings the tables up to date. Call it before the first use, at every start:
// when nothing is to be done it writes nothing. Several processes may call it at
// once. It uses one connection of db and transactions of its own.
//
// Tables that a newer release has migrated are left as they are. It is an error if they
// say that this release cannot work with them.
func Migrate(ctx context.Context, db *sql.DB) error {
	return migrate.SQLite(ctx, db, "inbox", Migrations())
}

// Migrations returns the numbered files that Migrate applies, for those who have a
// tool of their own. They only ever go forward, and a released one never changes.
// They record themselves in surehook_migrations.
func Migrations() fs.FS {
	return migrate.Files(files)
}
