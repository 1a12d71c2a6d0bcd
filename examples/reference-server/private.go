package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
)

const (
	ownersAlone = 0o600
	others      = 0o077 // group and all
)

// makePrivate keeps others from reading the database. It makes the file before the driver
// would, with the rights that the umask leaves. From a file that is there it takes away
// the rights that others have. SQLite gives the files that it puts beside it the mode of
// the file itself (os_unix.c, findCreateFileMode). No connection may be open: to close a
// file gives up the locks that its process has on it.
func makePrivate(path string, log *slog.Logger) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, ownersAlone)
	if err != nil {
		return fmt.Errorf("-database: %w", err)
	}
	info, err := f.Stat()
	if err == nil && info.Mode().IsRegular() && info.Size() == 0 && info.Mode()&ownersAlone != ownersAlone {
		err = f.Chmod(ownersAlone) // the umask has taken its owner's away, too
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("-database: %w", err)
	}
	file, err := filepath.EvalSymlinks(path) // beside which SQLite puts the others
	if err != nil {
		return fmt.Errorf("-database: %w", err)
	}
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if err := tighten(file+suffix, log); err != nil {
			return fmt.Errorf("-database: %w", err)
		}
	}
	return nil
}

// tighten takes the rights of others to a file away, if it is there and ours. Not
// being able to is no reason not to serve.
func tighten(path string, log *slog.Logger) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case runtime.GOOS == "windows", !info.Mode().IsRegular(), info.Mode()&others == 0: // on Windows the folder says who may read
		return nil
	}
	if err := os.Chmod(path, info.Mode().Perm()&^others); err != nil {
		log.Warn("the database can be read by others: take that right away with chmod 600", "file", path, "mode", info.Mode().String(), "error", err)
		return nil
	}
	log.Warn("the database could be read by others, and no longer can: it is its owner's alone", "file", path, "mode", info.Mode().String())
	return nil
}
