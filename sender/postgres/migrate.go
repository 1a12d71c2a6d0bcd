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
const migrationSet = "sender"

// Migrate brings the tables up to date, in Config.Schema, which it creates if it is
// not there. Call it before the first use, at every start: when nothing is to be done
// it writes nothing. Several processes may call it at once. It uses one connection,
// and a transaction for each migration. One that does not get its locks within two seconds
// lets others pass and tries again, 20 times.
//
// Tables that a newer release has migrated are left as they are. It is an error if they
// say that this release cannot work with them.
func (c *core) Migrate(ctx context.Context) error {
	db := stdlib.OpenDBFromPool(c.pool)
	defer func() { _ = db.Close() }() // the pool stays open
	return migrate.Postgres(ctx, db, c.schema, migrationSet, Migrations())
}

// Migrations returns the numbered files that Migrate applies, for those who have a tool of
// their own. They only ever go forward, and a released one never changes. They record
// themselves in surehook_migrations. The names in them are unqualified.
func Migrations() fs.FS {
	return migrate.Files(files)
}
