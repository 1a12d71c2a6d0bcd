package postgres

import (
	"context"
	"database/sql"
	"embed"
	"io/fs"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/surehook/surehook/internal/migrate"
	"github.com/surehook/surehook/internal/pgtx"
)

//go:embed migrations/*.sql
var files embed.FS

// Migrate brings the tables up to date, and makes the schema of the config if it
// is not there. Call it before the first use, at every start: when nothing is to
// be done it writes nothing and takes no lock. Several processes may call it at
// once. It uses one connection of db and a transaction for each migration. A nil config is
// an empty one.
//
// Tables that a newer release has migrated are left as they are. It is an error if they
// say that this release cannot work with them.
func Migrate(ctx context.Context, db *sql.DB, cfg *Config) error {
	if cfg == nil {
		cfg = &Config{}
	}
	return migrate.Postgres(ctx, db, cfg.Schema, "dedup", Migrations())
}

// MigratePool is [Migrate] with a connection of a pool of pgx.
func MigratePool(ctx context.Context, pool *pgxpool.Pool, cfg *Config) error {
	return pgtx.WithSQL(pool, func(db *sql.DB) error { return Migrate(ctx, db, cfg) })
}

// Migrations returns the numbered files that Migrate applies, for those who have a tool of
// their own. Their names are unqualified. They only ever go forward, and a released one
// never changes. They record themselves in surehook_migrations.
func Migrations() fs.FS {
	return migrate.Files(files)
}
