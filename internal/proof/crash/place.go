package crash

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/surehook/surehook/dedup"
	deduppostgres "github.com/surehook/surehook/dedup/postgres"
	dedupsqlite "github.com/surehook/surehook/dedup/sqlite"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/jobs"
	jobspostgres "github.com/surehook/surehook/sender/jobs/postgres"
	jobssqlite "github.com/surehook/surehook/sender/jobs/sqlite"
	"github.com/surehook/surehook/sender/postgres"
	"github.com/surehook/surehook/sender/replay"
	"github.com/surehook/surehook/sender/sqlite"
	"github.com/surehook/surehook/sender/storetest"
)

// place is where processes work together: a folder with an SQLite database, or a schema
// of a PostgreSQL database, which the connection string's search_path names.
type place struct {
	Folder string
	DSN    string
}

// opened is a place that a process has opened. The sender and the receiver share one
// database, so that one of each kind is enough. No service should do this.
type opened struct {
	db       *sql.DB
	keys     *sender.Keys
	store    storetest.Store[*sql.Tx]
	registry *sender.Registry[*sql.Tx]
	pub      *sender.Publisher[*sql.Tx]
	history  *history.History
	replays  *replay.Replays
	jobStore jobs.Store[*sql.Tx]
	jobs     *jobs.Jobs[*sql.Tx]
	dedup    dedup.Store[*sql.Tx]
	migrate  []func(context.Context) error
	close    func()
}

var (
	quiet   = slog.New(slog.NewTextHandler(io.Discard, nil))
	network = sender.Network{AllowPrivateNetworks: true} // the endpoint is on this machine
)

func (p place) open(ctx context.Context, t *trap) (*opened, error) {
	o := &opened{}
	var errs []error
	if p.DSN == "" {
		db, err := openSQLite(filepath.Join(p.Folder, "a.db"), t)
		if err != nil {
			return nil, err
		}
		s, err := sqlite.New(db, nil)
		j, err2 := jobssqlite.New(db, nil)
		errs = append(errs, err, err2)
		o.db, o.store, o.jobStore, o.dedup = db, s, j, dedupsqlite.New()
		o.migrate = append(o.migrate, s.Migrate, j.Migrate, func(ctx context.Context) error { return dedupsqlite.Migrate(ctx, db) })
		o.close = func() { _ = db.Close() }
	} else {
		pool, err := openPostgres(ctx, p.DSN, t)
		if err != nil {
			return nil, err
		}
		db := stdlib.OpenDBFromPool(pool)
		s, err := postgres.NewSQL(pool, nil)
		j, err2 := jobspostgres.NewSQL(pool, nil)
		d, err3 := deduppostgres.NewSQL(nil)
		errs = append(errs, err, err2, err3)
		o.db, o.store, o.jobStore, o.dedup = db, s, j, d
		o.migrate = append(o.migrate, s.Migrate, j.Migrate, func(ctx context.Context) error { return deduppostgres.Migrate(ctx, db, nil) })
		o.close = func() { _ = db.Close(); pool.Close() }
	}
	var err error
	add := func(e error) { errs = append(errs, e) }
	o.keys, err = sender.NewKeys(sender.SealingKey{ID: "1", Key: bytes.Repeat([]byte{1}, 32)})
	add(err)
	o.registry, err = sender.NewRegistry(o.store, o.keys, &sender.RegistryConfig{Network: network})
	add(err)
	o.pub, err = sender.NewPublisher[*sql.Tx](o.store, nil)
	add(err)
	o.history, err = history.New(o.store, nil)
	add(err)
	o.replays, err = replay.New(o.store, nil)
	add(err)
	if err := errors.Join(errs...); err != nil {
		o.close()
		return nil, err
	}
	if err := o.openJobs(); err != nil {
		o.close()
		return nil, err
	}
	return o, nil
}

func (o *opened) openJobs() error {
	callbacks, err := jobs.NewCallbacks(o.registry, o.pub, &jobs.CallbacksConfig{Logger: quiet})
	if err != nil {
		return err
	}
	o.jobs, err = jobs.New(o.jobStore, []jobs.Kind[*sql.Tx]{{Name: "two.steps", Run: twoSteps, MaxTries: 1000}},
		&jobs.Config[*sql.Tx]{Announcer: callbacks, Lease: jobLease, Poll: jobPoll, Logger: quiet})
	return err
}

// twoSteps has one effect in each of its steps.
func twoSteps(ctx context.Context, run *jobs.Run[*sql.Tx]) (json.RawMessage, error) {
	for done := len(run.State()); done < 2; done++ {
		err := run.InTx(ctx, func(tx *sql.Tx, step *jobs.Step) error {
			step.Save(bytes.Repeat([]byte{'x'}, done+1))
			_, err := tx.ExecContext(ctx, fmt.Sprintf(`INSERT INTO steps VALUES ('%s', %d)`, run.Job().ID, done))
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return json.RawMessage("2"), nil
}

// setUp makes the tables, those of the applications too. The latter have no unique
// keys, so that doubles show.
func (o *opened) setUp(ctx context.Context) error {
	for _, m := range o.migrate {
		if err := m(ctx); err != nil {
			return err
		}
	}
	for _, table := range []string{"things (id text NOT NULL)", "effects (event text NOT NULL, object text NOT NULL, version bigint NOT NULL)", "steps (job text NOT NULL, step int NOT NULL)"} {
		if _, err := o.db.ExecContext(ctx, "CREATE TABLE "+table); err != nil {
			return err
		}
	}
	return nil
}

// column reads the first column of a query, as text.
func (o *opened) column(ctx context.Context, query string) (all []string, err error) {
	rows, err := o.db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var v string
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, rows.Err()
}
