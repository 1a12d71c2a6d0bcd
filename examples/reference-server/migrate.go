package main

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrateLock is any number that nobody else takes: processes that start at once
// take turns (PostgreSQL's advisory locks).
const migrateLock = 0x5375_7265_686f

// migrate brings the library's tables and the service's own up to date.
func (d *database) migrate(ctx context.Context) error {
	if err := d.sender.Migrate(ctx); err != nil {
		return err
	}
	if err := d.jobs.Migrate(ctx); err != nil {
		return err
	}
	files, err := fs.Glob(migrations, "migrations/*.sql") // in order
	if err != nil {
		return err
	}
	return d.inTx(ctx, func(tx *sql.Tx) error {
		if d.kind == "postgres" {
			if _, err := d.exec(ctx, tx, "SELECT pg_advisory_xact_lock($1)", int64(migrateLock)); err != nil {
				return err
			}
		}
		if _, err := d.exec(ctx, tx, "CREATE TABLE IF NOT EXISTS server_migrations (name TEXT PRIMARY KEY)"); err != nil {
			return err
		}
		for _, file := range files {
			n, err := d.exec(ctx, tx, "INSERT INTO server_migrations VALUES ($1) ON CONFLICT DO NOTHING", strings.TrimPrefix(file, "migrations/"))
			if err != nil {
				return err
			}
			if n == 0 {
				continue
			}
			text, err := migrations.ReadFile(file)
			if err != nil {
				return err
			}
			for one := range strings.SplitSeq(string(text), ";\n") {
				if strings.TrimSpace(one) == "" {
					continue
				}
				if _, err := d.exec(ctx, tx, one); err != nil {
					return fmt.Errorf("%s: %w", file, err)
				}
			}
		}
		return nil
	})
}
