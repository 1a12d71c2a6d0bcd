package migrate

import (
	"errors"
	"fmt"
	"io/fs"
)

// Ledger has the rows of surehook_migrations for a set.
type Ledger struct {
	Version int // the last migration that was applied; 0: none
	Needs   int // the last migration that a release must know to work with these tables

	unreleased bool // every release writes needs into the ledger
}

// Row is the result of a query for one row, of any driver.
type Row interface {
	Scan(dest ...any) error
}

// ReadPostgres reads a set's ledger. row runs a query for one row, and puts the schema
// in front of the table's name, surehook_migrations. table is the name with its schema,
// as in a statement. If the table does not exist, no file was applied.
func ReadPostgres(table, set string, row func(query string, args ...any) Row) (Ledger, error) {
	return readLedger(
		// to_regclass sees what was committed since the statement began. So both answers come from
		// the columns.
		row(`SELECT count(*) > 0, count(*) FILTER (WHERE attname = 'needs') > 0 FROM pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 0`, table),
		func() Row {
			return row(`SELECT coalesce(max(version), 0), coalesce(max(needs), 0) FROM surehook_migrations WHERE set_name = $1`, set)
		})
}

// ReadSQLite is ReadPostgres for SQLite.
func ReadSQLite(set string, row func(query string, args ...any) Row) (Ledger, error) {
	return readLedger(
		row(`SELECT count(*) > 0, count(*) FILTER (WHERE name = 'needs') > 0 FROM pragma_table_info('surehook_migrations')`),
		func() Row {
			return row(`SELECT coalesce(max(version), 0), coalesce(max(needs), 0) FROM surehook_migrations WHERE set_name = ?`, set)
		})
}

// readMySQL is ReadPostgres for MySQL and MariaDB, in the connection's database.
func readMySQL(set string, row func(query string, args ...any) Row) (Ledger, error) {
	return readLedger(
		row(`SELECT COUNT(*) > 0, COUNT(CASE WHEN column_name = 'needs' THEN 1 END) > 0 FROM information_schema.columns
			WHERE table_schema = DATABASE() AND table_name = 'surehook_migrations'`),
		func() Row {
			return row(`SELECT COALESCE(MAX(version), 0), COALESCE(MAX(needs), 0) FROM surehook_migrations WHERE set_name = ?`, set)
		})
}

func readLedger(table Row, entries func() Row) (l Ledger, err error) {
	var there, told bool
	if err := table.Scan(&there, &told); err != nil {
		return l, wrap("looking for surehook_migrations", err)
	}
	if !there {
		return l, nil
	}
	if !told {
		return Ledger{unreleased: true}, nil
	}
	return l, wrap("reading surehook_migrations", entries().Scan(&l.Version, &l.Needs))
}

// Fits returns nil if this release, which has the files of fsys, can work with the
// tables as they are, and else an error that says what to do.
func (l Ledger) Fits(fsys fs.FS) error {
	files, err := read(fsys)
	if err != nil {
		return err
	}
	if err := l.suits(len(files)); err != nil {
		return err
	}
	if l.Version < len(files) {
		return fmt.Errorf("migration %s is missing: call Migrate before", files[l.Version].name)
	}
	return nil
}

// suits returns an error if a release that knows n migrations is too old.
func (l Ledger) suits(known int) error {
	if l.unreleased {
		return errors.New("surehook_migrations has no column needs: these tables were made before the first release: drop them and call Migrate")
	}
	if l.Needs <= known {
		return nil
	}
	return fmt.Errorf("the database is at version %d, for releases that know version %d, and this one knows %d: run a newer release",
		l.Version, l.Needs, known)
}

// recorded returns an error unless a file has recorded itself as the version.
func (l Ledger) recorded(f file, version int) error {
	if l.Version == version && l.Needs >= 1 && l.Needs <= version {
		return nil
	}
	return fmt.Errorf("%s must end with its row of surehook_migrations: version %d, and needs of 1 to %d", f.name, version, version)
}
