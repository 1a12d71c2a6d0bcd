package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

func checkSQLite(ctx context.Context, d *database, found *findings) {
	var version, mode string
	if err := d.sql.QueryRowContext(ctx, "SELECT sqlite_version()").Scan(&version); err != nil {
		found.failed("file", err)
		return
	}
	if err := d.sql.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode); err != nil {
		found.failed("durability", err)
		return
	}
	if strings.EqualFold(mode, "wal") {
		found.add("durability", ok, "the file is in WAL mode. Whether commits are synced is a setting of each of the service's connections, which PublishTx checks", "")
	} else {
		found.add("durability", fail, "the file's journal_mode is "+mode, "set _pragma=journal_mode(wal)&_pragma=synchronous(full) in the service's DSN, or with mattn/go-sqlite3 _journal_mode=WAL&_synchronous=FULL")
	}
	checkMode(d.path, found)
	free, size, err := diskSpace(filepath.Dir(d.path))
	used := int64(0)
	for _, suffix := range []string{"", "-wal"} {
		if info, err := os.Stat(d.path + suffix); err == nil {
			used += info.Size()
		}
	}
	switch {
	case err != nil:
		found.add("disk space", warn, err.Error(), "look for yourself")
	case free < 1<<30 && free < size/10:
		found.add("disk space", warn, fmt.Sprintf("the file has %s, and %s are free", bytesOf(used), bytesOf(int64(free))), "a full disk stops the service: make room")
	default:
		found.add("disk space", ok, fmt.Sprintf("the file has %s, and %s are free", bytesOf(used), bytesOf(int64(free))), "")
	}
	found.add("clock", ok, "the database's is this machine's", "")
}

// checkMode looks at who else may read what customers are told.
func checkMode(path string, found *findings) {
	if runtime.GOOS == "windows" { // there the folder says who may read
		return
	}
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		info, err := os.Stat(name)
		if err != nil {
			continue // the others are there only while the database is open
		}
		if info.Mode().Perm()&0o077 != 0 {
			found.add("file mode", warn, fmt.Sprintf("%s has mode %04o: others on this machine can read what customers are told", name, info.Mode().Perm()), "chmod 600 "+name)
			return
		}
	}
	found.add("file mode", ok, "the file is its owner's alone", "")
}

func bytesOf(n int64) string {
	for _, unit := range []string{"bytes", "KiB", "MiB", "GiB"} {
		if n < 10<<10 || unit == "GiB" {
			return fmt.Sprintf("%d %s", n, unit)
		}
		n >>= 10
	}
	return ""
}
