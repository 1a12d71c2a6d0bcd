package main

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	deduppostgres "github.com/surehook/surehook/dedup/postgres"
	dedupsqlite "github.com/surehook/surehook/dedup/sqlite"
	catchuppostgres "github.com/surehook/surehook/receiver/catchup/postgres"
	catchupsqlite "github.com/surehook/surehook/receiver/catchup/sqlite"
	inboxpostgres "github.com/surehook/surehook/receiver/inbox/postgres"
	inboxsqlite "github.com/surehook/surehook/receiver/inbox/sqlite"
	jobspostgres "github.com/surehook/surehook/sender/jobs/postgres"
	jobssqlite "github.com/surehook/surehook/sender/jobs/sqlite"
	"github.com/surehook/surehook/sender/postgres"
	"github.com/surehook/surehook/sender/sqlite"
)

// tableSet is the tables of one package, which surehook_migrations counts by its name.
type tableSet struct {
	name, about  string
	lite, server fs.FS // its files for SQLite, and for PostgreSQL
	up           func(ctx context.Context, d *database) error
}

func tableSets() []tableSet {
	return []tableSet{
		{"sender", "to send", sqlite.Migrations(), postgres.Migrations(), func(ctx context.Context, d *database) error {
			return d.store.Migrate(ctx)
		}},
		{"dedup", "to receive", dedupsqlite.Migrations(), deduppostgres.Migrations(), func(ctx context.Context, d *database) error {
			if d.postgres() {
				return deduppostgres.Migrate(ctx, d.sql, &deduppostgres.Config{Schema: d.schema})
			}
			return dedupsqlite.Migrate(ctx, d.sql)
		}},
		{"jobs", "package sender/jobs", jobssqlite.Migrations(), jobspostgres.Migrations(), migrateJobs},
		{"inbox", "package receiver/inbox", inboxsqlite.Migrations(), inboxpostgres.Migrations(), func(ctx context.Context, d *database) error {
			if d.postgres() {
				return inboxpostgres.Migrate(ctx, d.sql, &inboxpostgres.Config{Schema: d.schema})
			}
			return inboxsqlite.Migrate(ctx, d.sql)
		}},
		{"catchup", "package receiver/catchup", catchupsqlite.Migrations(), catchuppostgres.Migrations(), func(ctx context.Context, d *database) error {
			if d.postgres() {
				return catchuppostgres.Migrate(ctx, d.sql, &catchuppostgres.Config{Schema: d.schema})
			}
			return catchupsqlite.Migrate(ctx, d.sql)
		}},
	}
}

func migrateJobs(ctx context.Context, d *database) error {
	if d.postgres() {
		s, err := jobspostgres.NewSQL(d.pool, &jobspostgres.Config{Schema: d.schema})
		if err != nil {
			return err
		}
		return s.Migrate(ctx)
	}
	s, err := jobssqlite.New(d.sql, nil)
	if err != nil {
		return err
	}
	return s.Migrate(ctx)
}

func (s *tableSet) files(postgres bool) (fs.FS, []string, error) {
	files := s.lite
	if postgres {
		files = s.server
	}
	names, err := fs.Glob(files, "*.sql")
	slices.Sort(names)
	return files, names, err
}

// setState is how far a database is with a set.
type setState struct {
	Set       string   `json:"set"`
	State     string   `json:"state"`   // absent, current, behind or newer
	Version   int      `json:"version"` // the last file that was applied; 0: none
	Known     int      `json:"known"`   // the last that this program has
	Missing   []string `json:"missing"` // files
	AppliedAt string   `json:"applied_at,omitempty"`
	fits      bool     // a release that knows as much as this program can work with it
}

// states reads surehook_migrations.
func (d *database) states(ctx context.Context) (all []setState, err error) {
	type row struct {
		version, needs int
		at             string
	}
	rows := map[string]row{}
	ledger, there, err := d.ledger(ctx)
	if err != nil {
		return nil, err
	}
	if there {
		found, err := d.sql.QueryContext(ctx, "SELECT set_name, max(version), max(needs), max(applied_at) FROM "+ledger+" GROUP BY set_name")
		if err != nil {
			return nil, fmt.Errorf("reading surehook_migrations: %w", err)
		}
		defer found.Close()
		for found.Next() {
			var name string
			var r row
			var at any
			if err := found.Scan(&name, &r.version, &r.needs, &at); err != nil {
				return nil, err
			}
			switch at := at.(type) {
			case time.Time:
				r.at = clock(at)
			case int64:
				r.at = clock(time.UnixMicro(at))
			}
			rows[name] = r
		}
		if err := found.Err(); err != nil {
			return nil, err
		}
	}
	for _, set := range tableSets() {
		_, names, err := set.files(d.postgres())
		if err != nil {
			return nil, err
		}
		r := rows[set.name]
		s := setState{Set: set.name, State: "current", Version: r.version, Known: len(names), Missing: []string{}, AppliedAt: r.at, fits: r.needs <= len(names)}
		switch {
		case r.version == 0:
			s.State = "absent"
		case r.version < len(names):
			s.State = "behind"
		case r.version > len(names):
			s.State = "newer"
		}
		s.Missing = append(s.Missing, names[min(r.version, len(names)):]...)
		all = append(all, s)
	}
	return all, nil
}

// ledger is the table's name for a statement, and whether it is there.
func (d *database) ledger(ctx context.Context) (name string, there bool, err error) {
	name = "surehook_migrations"
	if !d.postgres() {
		err = d.sql.QueryRowContext(ctx, "SELECT count(*) > 0 FROM sqlite_master WHERE name = ?", name).Scan(&there)
		return name, there, err
	}
	if d.schema != "" {
		name = pgx.Identifier{d.schema, name}.Sanitize()
	}
	err = d.sql.QueryRowContext(ctx, "SELECT to_regclass($1) IS NOT NULL", name).Scan(&there)
	return name, there, err
}

// chosen returns the sets that a list names, with commas between.
func chosen(list string) (all []tableSet, err error) {
	known := tableSets()
	for name := range strings.SplitSeq(list, ",") {
		at := slices.IndexFunc(known, func(s tableSet) bool { return s.name == strings.TrimSpace(name) })
		if at < 0 {
			return nil, fmt.Errorf("-sets has %q: the sets are sender (to send), dedup (to receive), jobs, inbox and catchup", name)
		}
		if slices.ContainsFunc(all, func(s tableSet) bool { return s.name == known[at].name }) {
			return nil, fmt.Errorf("-sets has %s twice", known[at].name)
		}
		all = append(all, known[at])
	}
	return all, nil
}
