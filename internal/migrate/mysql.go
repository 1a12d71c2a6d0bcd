package migrate

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"strings"
)

// MySQL applies the files of fsys that the connection's database does not have yet, in order.
// They record themselves under the name set in the table surehook_migrations: see [Ledger].
// The files are numbered as for [SQLite]. It is for MySQL and MariaDB.
//
// The server commits each statement that changes tables by itself, so a file is no
// transaction. Each of its statements bears to be run again: by the next call, if this one
// fails in the middle, or by another process that starts at the same time. A statement ends
// with a semicolon at the end of a line, and is sent alone: connections need not take several.
//
// If the database has all files, MySQL writes nothing. If it has files that fsys does not
// have, it stays as it is. It is an error if one of them says that releases without it cannot
// work with the database.
func MySQL(ctx context.Context, db *sql.DB, set string, fsys fs.FS) error {
	if err := mysqlTo(ctx, db, set, fsys); err != nil {
		return fmt.Errorf("migrate: %s: %w", set, err)
	}
	return nil
}

func mysqlTo(ctx context.Context, db *sql.DB, set string, fsys fs.FS) error {
	files, err := read(fsys)
	if err != nil {
		return err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	defer conn.Close()
	ledger := func() (Ledger, error) {
		return readMySQL(set, func(query string, args ...any) Row { return conn.QueryRowContext(ctx, query, args...) })
	}
	l, err := ledger()
	if err != nil {
		return err
	}
	if err := l.suits(len(files)); err != nil {
		return err
	}
	for l.Version < len(files) {
		next, version := files[l.Version], l.Version+1
		if err := applyMySQL(ctx, conn, next); err != nil {
			return err
		}
		if l, err = ledger(); err != nil {
			return err
		}
		if l.Version > version { // another process has gone on meanwhile
			continue
		}
		if err := l.recorded(next, version); err != nil {
			return err
		}
	}
	return l.suits(len(files)) // a newer release may have gone on meanwhile
}

// applyMySQL ends with a commit, for connections that do not commit by themselves.
func applyMySQL(ctx context.Context, conn *sql.Conn, f file) error {
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("beginning: %w", err)
	}
	defer func() { _ = tx.Rollback() }()
	for statement := range strings.SplitSeq(f.sql, ";\n") {
		if strings.TrimSpace(statement) == "" {
			continue
		}
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return applying(f.name, err)
		}
	}
	return wrap("committing "+f.name, tx.Commit())
}
