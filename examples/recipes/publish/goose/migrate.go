// Package migrate brings the library's tables up to date with goose, beside the
// application's own migrations.
package migrate

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
)

// Up applies the migrations of one package of the library: those of postgres.Migrations,
// of sender/postgres, dedup/postgres or another one. table is where goose keeps how far it
// is. Each package needs a table of its own, because each counts from 1.
//
// Our files are plain SQL without goose's annotations, which goose's own reader asks for.
// So each file becomes a migration in Go. There is no way down: they only go forward.
func Up(ctx context.Context, db *sql.DB, table string, files fs.FS) error {
	migrations, err := read(files)
	if err != nil {
		return err
	}
	store, err := database.NewStore(database.DialectPostgres, table)
	if err != nil {
		return err
	}
	// DialectCustom ("") goes with WithStore. Global migrations are the application's.
	provider, err := goose.NewProvider(goose.DialectCustom, db, nil, goose.WithStore(store),
		goose.WithGoMigrations(migrations...), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	_, err = provider.Up(ctx)
	return err
}

func read(files fs.FS) (migrations []*goose.Migration, err error) {
	names, err := fs.Glob(files, "*.sql") // in their order
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		run := func(ctx context.Context, tx *sql.Tx) error {
			// Others wait behind a migration that waits for a lock: rather fail, and run again.
			if _, err := tx.ExecContext(ctx, "SET LOCAL lock_timeout = '2s'"); err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, string(text)); err != nil { // several statements
				return fmt.Errorf("%s: %w", name, err)
			}
			return nil
		}
		migrations = append(migrations, goose.NewGoMigration(int64(i+1), &goose.GoFunc{RunTx: run}, nil))
	}
	return migrations, nil
}
