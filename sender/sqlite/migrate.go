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
const migrationSet = "sender"

// Migrate brings the tables up to date. Call it before the first use, at every
// start: when nothing is to be done it writes nothing. Several processes may call
// it at once. It uses one connection and transactions of its own.
//
// Tables that a newer release has migrated are left as they are. It is an error if they
// say that this release cannot work with them.
func (s *Store) Migrate(ctx context.Context) error {
	if err := migrate.SQLite(ctx, s.db, migrationSet, Migrations()); err != nil {
		return err
	}
	// PublishTx finds out by prepared statements whether a transaction is of another *sql.DB.
	// Without them it would take such a one until the store has written by itself.
	_, err := s.prepare(ctx)
	return fail("preparing statements", err)
}

// Migrations returns the numbered files that Migrate applies, for those who have
// a tool of their own. They only ever go forward, and a released one never changes.
// They record themselves in surehook_migrations.
func Migrations() fs.FS {
	return migrate.Files(files)
}
