package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// manager is a tool that applies files of SQL.
type manager struct {
	name func(number int64, set, file string) string // of a file
	text func(sql string) string
}

func same(sql string) string { return sql }

// managers are the tools that print knows. Each runs our files whole: none of them has a
// way back.
var managers = map[string]manager{
	"plain": {func(n int64, set, file string) string { return fmt.Sprintf("%03d_surehook_%s_%s.sql", n, set, file) }, same},
	// StatementBegin: goose would split the file at each semicolon.
	"goose": {func(n int64, set, file string) string { return fmt.Sprintf("%05d_surehook_%s_%s.sql", n, set, file) }, func(sql string) string {
		return "-- +goose Up\n-- +goose StatementBegin\n" + sql + "-- +goose StatementEnd\n"
	}},
	"dbmate": {func(n int64, set, file string) string { return fmt.Sprintf("%03d_surehook_%s_%s.sql", n, set, file) }, func(sql string) string {
		return "-- migrate:up\n" + sql + "\n-- migrate:down\n"
	}},
	"golang-migrate": {func(n int64, set, file string) string {
		return fmt.Sprintf("%06d_surehook_%s_%s.up.sql", n, set, file)
	}, same},
	"flyway": {func(n int64, set, file string) string { return fmt.Sprintf("V%d__surehook_%s_%s.sql", n, set, file) }, same},
}

// within has the files make their tables in a schema of PostgreSQL. The tool notes in the same
// transaction that it has applied a file, in a table of its own: so each file ends with the
// connection's own search_path.
func (m manager) within(schema string) manager {
	text := m.text
	m.text = func(sql string) string {
		return text("SET LOCAL search_path TO " + pgx.Identifier{schema}.Sanitize() + ";\n" + sql + "SET LOCAL search_path TO DEFAULT;\n")
	}
	return m
}

// printed is a file as it is written.
type printed struct {
	Set  string `json:"set"`
	File string `json:"file"`
	SQL  string `json:"sql"`
}

func migratePrint(ctx context.Context, t *terminal, o *migrateOptions) error {
	as, known := managers[o.manager]
	switch {
	case o.sets == "":
		return errors.New("which tables? Give -sets sender (to send), -sets dedup (to receive), or -sets sender,dedup")
	case !known:
		return fmt.Errorf("-for is %q: the tools are %s", o.manager, strings.Join(slices.Sorted(maps.Keys(managers)), ", "))
	case !slices.Contains([]string{"", "sqlite", "postgres"}, o.dialect):
		return fmt.Errorf("-dialect is %q: it must be sqlite or postgres", o.dialect)
	case o.first < 1:
		return fmt.Errorf("-first is %d: it must be 1 or more", o.first)
	}
	sets, err := chosen(o.sets)
	if err != nil {
		return err
	}
	inPostgres, have, err := o.dialectOf(ctx, t)
	if err != nil {
		return err
	}
	if o.place.schema != "" {
		if !inPostgres {
			return errSchema
		}
		as = as.within(o.place.schema)
	}
	files, err := filesOf(sets, inPostgres, have, as, o.first)
	if err != nil {
		return err
	}
	if o.into != "" {
		if err := writeFiles(o.into, files); err != nil {
			return err
		}
	}
	return showFiles(t, o, files)
}

// dialectOf says for which database to print, and how far that one is, if it is given.
func (o *migrateOptions) dialectOf(ctx context.Context, t *terminal) (inPostgres bool, have map[string]int, err error) {
	if o.place.database == "" && o.place.file == "" {
		switch {
		case o.dialect != "": // whatever database the environment names for other commands
			return o.dialect == "postgres", nil, nil
		case t.env("SUREHOOK_DATABASE") == "":
			return false, nil, errors.New("for which database? Give -dialect sqlite, -dialect postgres, the -database or SUREHOOK_DATABASE")
		}
	}
	d, err := o.place.open(ctx, t.env, false)
	if err != nil {
		return false, nil, err
	}
	defer d.close()
	if o.dialect != "" && (o.dialect == "postgres") != d.postgres() {
		return false, nil, fmt.Errorf("-dialect %s is not the database's: leave it out", o.dialect)
	}
	all, err := d.states(ctx)
	have = map[string]int{}
	for _, s := range all {
		have[s.Set] = s.Version
	}
	return d.postgres(), have, err
}

func filesOf(sets []tableSet, inPostgres bool, have map[string]int, as manager, number int64) ([]printed, error) {
	all := []printed{}
	for _, set := range sets {
		from, names, err := set.files(inPostgres)
		if err != nil {
			return nil, err
		}
		for _, name := range names[min(have[set.name], len(names)):] {
			text, err := fs.ReadFile(from, name)
			if err != nil {
				return nil, err
			}
			_, short, _ := strings.Cut(strings.TrimSuffix(name, ".sql"), "_")
			all = append(all, printed{set.name, as.name(number, set.name, short), as.text(string(text))})
			number++
		}
	}
	return all, nil
}

// writeFiles writes all or, if one is there already, none.
func writeFiles(dir string, files []printed) error {
	for _, f := range files {
		path := filepath.Join(dir, f.File)
		switch _, err := os.Lstat(path); {
		case err == nil:
			return fmt.Errorf("%s is there already: nothing was written (-first chooses other numbers)", path)
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(dir, f.File), []byte(f.SQL), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func showFiles(t *terminal, o *migrateOptions, files []printed) error {
	switch {
	case t.json:
		return t.encode(map[string]any{"files": files})
	case len(files) == 0:
		t.note("the database has all of them: there is nothing to print")
	case o.into != "":
		for _, f := range files {
			t.say("wrote %s", filepath.Join(o.into, f.File))
		}
	default:
		for _, f := range files {
			// For psql and sqlite3: each file is one transaction.
			if o.manager == "plain" {
				f.SQL = "BEGIN;\n" + f.SQL + "COMMIT;\n"
			}
			fmt.Fprintf(t.out, "-- %s\n%s\n", f.File, f.SQL)
		}
	}
	return nil
}
