package postgres

import (
	"context"
	"embed"
	"io/fs"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/surehook/surehook/internal/migrate"
)

//go:embed migrations/*.sql
var files embed.FS

// migrationSet is the name under which surehook_migrations counts the files.
const migrationSet = "jobs"

// Migrate brings the tables up to date, in Config.Schema, which it creates if it is not
// there. Call it before the first use, at every start: when the tables are up to date
// it writes nothing. Several processes may call it at once. It uses one connection, and
// a transaction for each migration. A migration that does not get its locks within two
// seconds lets others pass and tries again, 20 times.
//
// Tables that a newer release has migrated stay as they are. It is an error if they say
// that this release cannot work with them.
func (s *Store[Tx]) Migrate(ctx context.Context) error {
	db := stdlib.OpenDBFromPool(s.pool)
	defer func() { _ = db.Close() }() // the pool stays open
	return migrate.Postgres(ctx, db, s.schema, migrationSet, Migrations())
}

// Migrations returns the numbered files that Migrate applies, for applications that
// have a migration tool. They only ever go forward, and a released one never changes.
// They record themselves in surehook_migrations. The names in them are unqualified.
func Migrations() fs.FS {
	return migrate.Files(files)
}
