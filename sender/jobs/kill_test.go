package jobs_test

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/surehook/surehook/internal/newid"
	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/internal/race"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/jobs"
	jobspostgres "github.com/surehook/surehook/sender/jobs/postgres"
	jobssqlite "github.com/surehook/surehook/sender/jobs/sqlite"
	"github.com/surehook/surehook/sender/postgres"
	"github.com/surehook/surehook/sender/sqlite"
)

const (
	killedPlace  = "SUREHOOK_TEST_JOBS_PLACE" // an SQLite file, or a PostgreSQL server
	killedSchema = "SUREHOOK_TEST_JOBS_SCHEMA"
	stepsOfJob   = 5
)

// TestMain lets TestKilled run this program as the processes that are killed.
func TestMain(m *testing.M) {
	if place := os.Getenv(killedPlace); place != "" {
		panic(takeAndRun(place, os.Getenv(killedSchema)))
	}
	os.Exit(m.Run())
}

// killed is a service in one of the databases, as one of its processes has it.
type killed struct {
	db     *sql.DB
	prefix string // of the tables
	jobs   *jobs.Jobs[*sql.Tx]
	reg    *sender.Registry[*sql.Tx]
}

// openKilled opens the service; migrate says whether its tables are to be made.
func openKilled(ctx context.Context, place, schema string, migrate bool) (*killed, error) {
	k := &killed{}
	var under sender.Store[*sql.Tx]
	var store jobs.Store[*sql.Tx]
	var errs []error
	migrated := []func(context.Context) error{}
	if schema == "" {
		db, err := sql.Open("sqlite", "file:"+place+"?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(5000)")
		if err != nil {
			return nil, err
		}
		s, err := sqlite.New(db, nil)
		j, err2 := jobssqlite.New(db, nil)
		errs = append(errs, err, err2)
		k.db, under, store, migrated = db, s, j, append(migrated, s.Migrate, j.Migrate)
	} else {
		pool, err := pgxpool.New(ctx, place)
		if err != nil {
			return nil, err
		}
		s, err := postgres.NewSQL(pool, &postgres.Config{Schema: schema})
		j, err2 := jobspostgres.NewSQL(pool, &jobspostgres.Config{Schema: schema})
		errs = append(errs, err, err2)
		k.db, k.prefix = stdlib.OpenDBFromPool(pool), `"`+schema+`".`
		under, store, migrated = s, j, append(migrated, s.Migrate, j.Migrate)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if migrate {
		for _, m := range migrated {
			if err := m(ctx); err != nil {
				return nil, err
			}
		}
		if _, err := k.db.ExecContext(ctx, `CREATE TABLE `+k.prefix+`effects (job text NOT NULL, step int NOT NULL)`); err != nil {
			return nil, err
		}
	}
	keys, err := sender.NewKeys(sender.SealingKey{ID: "1", Key: bytes.Repeat([]byte{1}, 32)})
	if err != nil {
		return nil, err
	}
	if k.reg, err = sender.NewRegistry(under, keys, nil); err != nil {
		return nil, err
	}
	pub, err := sender.NewPublisher[*sql.Tx](under, nil)
	if err != nil {
		return nil, err
	}
	callbacks, err := jobs.NewCallbacks(k.reg, pub, nil)
	if err != nil {
		return nil, err
	}
	// Many tries end with their process here.
	k.jobs, err = jobs.New(store, []jobs.Kind[*sql.Tx]{
		{Name: "steps", Run: k.steps, MaxTries: 1000, Concurrency: 3},
		{Name: "fails", Run: func(context.Context, *jobs.Run[*sql.Tx]) (json.RawMessage, error) {
			return nil, jobs.Permanent(errors.New("as it must"))
		}, MaxTries: 1000},
	}, &jobs.Config[*sql.Tx]{Announcer: callbacks, Lease: 400 * time.Millisecond, Poll: 20 * time.Millisecond, Logger: quiet})
	return k, err
}

// steps has one effect in each step, and goes on after the last step that was saved.
func (k *killed) steps(ctx context.Context, run *jobs.Run[*sql.Tx]) (json.RawMessage, error) {
	done := 0
	if s := run.State(); s != nil {
		var err error
		if done, err = strconv.Atoi(string(s)); err != nil {
			return nil, jobs.Permanent(err)
		}
	}
	for ; done < stepsOfJob; done++ {
		err := run.InTx(ctx, func(tx *sql.Tx, step *jobs.Step) error {
			step.Save([]byte(strconv.Itoa(done + 1)))
			step.Progress(int64(done+1), stepsOfJob)
			_, err := tx.ExecContext(ctx, fmt.Sprintf(`INSERT INTO %seffects VALUES ('%s', %d)`, k.prefix, run.Job().ID, done))
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return json.Marshal(done)
}

// takeAndRun accepts jobs, cancels some, and runs them, until it is killed. It prints
// the jobs that it has accepted.
func takeAndRun(place, schema string) error {
	ctx := context.Background()
	k, err := openKilled(ctx, place, schema, false)
	if err != nil {
		return err
	}
	ran := make(chan error, 1)
	go func() { ran <- k.jobs.Run(ctx) }()
	for n := 0; ; n++ {
		s := jobs.Submission{Kind: "steps", Owner: "sub_a", Input: json.RawMessage(strconv.Itoa(n))}
		if n%5 == 4 {
			s.Kind = "fails"
		}
		if n%3 > 0 {
			s.CallbackURL = fmt.Sprintf("https://example.com/jobs/%d", n)
		}
		job, err := k.jobs.Submit(ctx, s)
		if err != nil {
			return err
		}
		_, _ = os.Stdout.WriteString(job.ID + "\n")
		if n%7 == 6 {
			if _, err := k.jobs.Cancel(ctx, jobs.Key{ID: job.ID}); err != nil && !errors.Is(err, jobs.ErrFinished) {
				return err
			}
		}
		select {
		case err := <-ran:
			return err
		case <-time.After(rand.N(10 * time.Millisecond)): // so that jobs do not pile up
		}
	}
}

// Processes that are killed at any moment lose no accepted job. Each job ends once,
// each step has its effect once, and each completion is announced once.
func TestKilled(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { testKilled(t, filepath.Join(t.TempDir(), "a.db"), "", 1) })
	t.Run("postgres", func(t *testing.T) {
		dsn := pgtest.With(pgtest.DSN(t), "pool_max_conns", "12")
		testKilled(t, dsn, newid.New("test_", time.Now()), 2)
	})
}

func testKilled(t *testing.T, place, schema string, processes int) {
	k, err := openKilled(t.Context(), place, schema, true)
	require.NoError(t, err)
	t.Cleanup(func() {
		if schema != "" {
			_, err := k.db.ExecContext(context.Background(), `DROP SCHEMA "`+schema+`" CASCADE`)
			require.NoError(t, err)
		}
		require.NoError(t, k.db.Close())
	})
	_, _, err = k.reg.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: "sub_a"})
	require.NoError(t, err)
	kills := 20
	if race.Enabled { // it makes SQLite many times slower
		kills = 6
	}
	var accepted []string
	for range kills / processes {
		accepted = append(accepted, killSome(t, place, schema, processes)...)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- k.jobs.Run(ctx) }()
	for k.count(t, `SELECT count(*) FROM {}surehook_jobs WHERE status IN ('queued', 'running')`) > 0 {
		select {
		case err := <-ran:
			t.Fatal("the workers have stopped: ", err)
		case <-time.After(50 * time.Millisecond): // the leases of the killed end
		}
	}
	cancel()
	require.NoError(t, <-ran)

	for _, id := range accepted {
		job, err := k.jobs.Get(t.Context(), jobs.Key{ID: id, Owner: "sub_a"})
		require.NoError(t, err, "an accepted job")
		require.True(t, job.Status.Finished(), "%+v", job)
	}
	total := k.count(t, `SELECT count(*) FROM {}surehook_jobs`)
	again := k.count(t, `SELECT count(*) FROM {}surehook_jobs WHERE token > 1`)
	t.Logf("%d jobs, %d of them accepted for all that is known, %d claimed more than once", total, len(accepted), again)
	require.NotZero(t, again, "jobs that were run again")
	require.Zero(t, k.count(t, `SELECT count(*) FROM {}surehook_jobs WHERE kind = 'fails' AND status NOT IN ('failed', 'cancelled')
		OR kind = 'steps' AND status NOT IN ('succeeded', 'cancelled')`), "jobs that have ended otherwise than they must")
	require.Zero(t, k.count(t, `SELECT count(*) FROM (SELECT 1 FROM {}effects GROUP BY job, step HAVING count(*) > 1) x`), "effects that were had twice")
	require.Zero(t, k.count(t, `SELECT count(*) FROM {}surehook_jobs j WHERE status = 'succeeded'
		AND (SELECT count(*) FROM {}effects e WHERE e.job = j.id) <> `+strconv.Itoa(stepsOfJob)), "jobs that have succeeded without all their effects")
	require.Zero(t, k.count(t, `SELECT count(*) FROM {}surehook_jobs j WHERE (SELECT count(*) FROM {}surehook_events e
		WHERE e.type = 'job.completed' AND e.object_type = 'job' AND e.object_id = j.id AND e.version = 1 AND e.url = j.callback_url)
		<> CASE WHEN j.callback_url = '' THEN 0 ELSE 1 END`), "completions that were not told of once")
	require.Equal(t, k.count(t, `SELECT count(*) FROM {}surehook_jobs WHERE callback_url <> ''`), k.count(t, `SELECT count(*) FROM {}surehook_events`), "events")
	require.Equal(t, 1, k.count(t, `SELECT count(*) FROM {}surehook_subscriptions`), "implicit subscriptions of one origin")
}

// count reads a number; {} in a query is in front of the tables' names.
func (k *killed) count(t *testing.T, query string) (n int) {
	t.Helper()
	require.NoError(t, k.db.QueryRowContext(t.Context(), strings.ReplaceAll(query, "{}", k.prefix)).Scan(&n), query)
	return n
}

// killSome runs processes, kills each at some moment, and returns the jobs that they
// have printed as accepted.
func killSome(t *testing.T, place, schema string, processes int) (accepted []string) {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	reads, writes := io.Pipe()
	cmds := make([]*exec.Cmd, processes)
	said := make([]strings.Builder, processes)
	for i := range cmds {
		cmds[i] = exec.CommandContext(t.Context(), program)
		cmds[i].Env = append(os.Environ(), killedPlace+"="+place, killedSchema+"="+schema)
		cmds[i].Stdout, cmds[i].Stderr = writes, &said[i]
		require.NoError(t, cmds[i].Start())
	}
	enough := make(chan struct{})
	read := make(chan struct{})
	go func() {
		defer close(read)
		until := 1 + rand.N(12)
		for lines := bufio.NewScanner(reads); lines.Scan(); {
			accepted = append(accepted, lines.Text())
			if len(accepted) == until {
				close(enough)
			}
		}
	}()
	select {
	case <-enough:
	case <-time.After(time.Minute):
		t.Error("nothing is accepted")
	}
	// The pause waits for nothing: it varies the moment of the kill.
	<-time.After(rand.N(20 * time.Millisecond))
	for i, cmd := range cmds {
		_ = cmd.Process.Kill()
		require.ErrorContains(t, cmd.Wait(), "signal: killed", said[i].String())
	}
	require.NoError(t, writes.Close())
	<-read
	return accepted
}
