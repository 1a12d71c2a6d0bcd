package main

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// backup writes a whole copy of the SQLite file, which may be in use meanwhile, with no
// rights for others (sqlite.org/lang_vacuum.html, section 4). The key file is not in it.
func (d *database) backup(ctx context.Context, to string) error {
	if d.kind != "sqlite" {
		return errors.New("-backup is for a SQLite file: make a backup of PostgreSQL with its own tools, such as pg_dump")
	}
	// An empty file with the rights that the copy is to have; one that is there stays.
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, ownersAlone)
	if err != nil {
		return fmt.Errorf("-backup: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("-backup: %w", err)
	}
	if _, err = d.sql.ExecContext(ctx, "VACUUM INTO ?", to); err == nil {
		err = synced(to)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("-backup: %w", err), os.Remove(to))
	}
	return nil
}

// synced has a file survive a loss of power.
func synced(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
