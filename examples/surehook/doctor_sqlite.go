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
	dir := filepath.Dir(d.path)
	judgeDrive(networkDrive(dir), found)
	free, size, err := diskSpace(dir)
	used, log := sizeOf(d.path), sizeOf(d.path+"-wal")
	judgeLog(d.path+"-wal", log, found)
	used += log
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

func sizeOf(name string) int64 {
	info, err := os.Stat(name)
	if err != nil {
		return 0
	}
	return info.Size()
}

// judgeDrive is given the name of a network's file system, if it is one.
func judgeDrive(name string, found *findings) {
	if name != "" {
		found.add("drive", warn, fmt.Sprintf("the file is on a drive of the network (%s): processes on two machines would spoil it, and a commit may not be durable", name), "move it to a disk of this machine")
	}
}

// largeLog is the size of a write-ahead log that something keeps from being begun anew. SQLite
// tries that each 4 MiB.
const largeLog = 256 << 20

func judgeLog(name string, size int64, found *findings) {
	if size >= largeLog {
		found.add("log", warn, fmt.Sprintf("%s has %s: a transaction that reads is or was open for long", name, bytesOf(size)),
			"look for rows that a program does not close, a shell or a copy that is open; the file goes when the last process closes the database")
	}
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
