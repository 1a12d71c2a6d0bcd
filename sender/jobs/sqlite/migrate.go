package sqlite

import (
	"context"
	"embed"
	"io/fs"

	"github.com/surehook/surehook/internal/migrate"
)

//go:embed migrations/*.sql
var files embed.FS

// migrationSet is the name under which surehook_migrations counts the files.
const migrationSet = "jobs"

// Migrate brings the tables up to date. Call it before the first use, at every start:
// when the tables are up to date it writes nothing. Several processes may call it at
// once. It uses one connection and transactions of its own.
//
// Tables that a newer release has migrated stay as they are. It is an error if they say
// that this release cannot work with them.
func (s *Store) Migrate(ctx context.Context) error {
	return migrate.SQLite(ctx, s.db, migrationSet, Migrations())
}

// Migrations returns the numbered files that Migrate applies, for applications that
// have a migration tool. They only ever go forward, and a released one never changes.
// They record themselves in surehook_migrations.
func Migrations() fs.FS {
	return migrate.Files(files)
}
