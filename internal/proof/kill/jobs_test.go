package kill_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/killtest"
	"github.com/surehook/surehook/internal/race"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/jobs"
	jobsPostgres "github.com/surehook/surehook/sender/jobs/postgres"
	jobsSQLite "github.com/surehook/surehook/sender/jobs/sqlite"
	"github.com/surehook/surehook/sender/postgres"
	"github.com/surehook/surehook/sender/sqlite"
	"github.com/surehook/surehook/sender/storetest"
)

const stepsOfJob = 5

// place is an SQLite file, or a schema.
type place struct {
	Path   string
	Schema schema
}

// worker is a service with jobs, as one of its processes has it.
type worker struct {
	db   *sql.DB
	jobs *jobs.Jobs[*sql.Tx]
	reg  *sender.Registry[*sql.Tx]
}

// openWorker opens the service. migrate says whether it must make the tables.
func openWorker(t testing.TB, p place, migrate bool) *worker {
	w := &worker{}
	var under storetest.Store[*sql.Tx]
	var store jobs.Store[*sql.Tx]
	var migrations []func(context.Context) error
	if p.Path != "" {
		w.db = openDeferred(t, p.Path)
		s, err := sqlite.New(w.db, nil)
		require.NoError(t, err)
		j, err := jobsSQLite.New(w.db, nil)
		require.NoError(t, err)
		under, store, migrations = s, j, append(migrations, s.Migrate, j.Migrate)
	} else {
		pool := openPool(t, p.Schema)
		w.db = stdlib.OpenDBFromPool(pool)
		t.Cleanup(func() { require.NoError(t, w.db.Close()) })
		s, err := postgres.NewSQL(pool, &postgres.Config{Schema: p.Schema.Name})
		require.NoError(t, err)
		j, err := jobsPostgres.NewSQL(pool, &jobsPostgres.Config{Schema: p.Schema.Name})
		require.NoError(t, err)
		under, store, migrations = s, j, append(migrations, s.Migrate, j.Migrate)
	}
	if migrate {
		for _, m := range migrations {
			require.NoError(t, m(t.Context()))
		}
		_, err := w.db.ExecContext(t.Context(), `CREATE TABLE effects (job text NOT NULL, step int NOT NULL)`)
		require.NoError(t, err)
	}
	var err error
	w.reg, err = sender.NewRegistry(under, testKeys(t), nil)
	require.NoError(t, err)
	pub, err := sender.NewPublisher[*sql.Tx](under, nil)
	require.NoError(t, err)
	callbacks, err := jobs.NewCallbacks(w.reg, pub, nil)
	require.NoError(t, err)
	lease := 400 * time.Millisecond // of processes that are killed
	if migrate {                    // nobody kills the test's, and on a slow machine a step takes longer
		lease = time.Minute
	}
	// Many tries end with their process here.
	w.jobs, err = jobs.New(store, []jobs.Kind[*sql.Tx]{
		{Name: "steps", Run: runSteps, MaxTries: 1000, Concurrency: 3},
		{Name: "fails", Run: func(context.Context, *jobs.Run[*sql.Tx]) (json.RawMessage, error) {
			return nil, jobs.Permanent(errors.New("as it must"))
		}, MaxTries: 1000},
	}, &jobs.Config[*sql.Tx]{Announcer: callbacks, Lease: lease, Poll: 20 * time.Millisecond, Logger: quiet})
	require.NoError(t, err)
	return w
}

// runSteps has one effect in each step, and goes on after the last step that was saved.
func runSteps(ctx context.Context, run *jobs.Run[*sql.Tx]) (json.RawMessage, error) {
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
			_, err := tx.ExecContext(ctx, fmt.Sprintf(`INSERT INTO effects VALUES ('%s', %d)`, run.Job().ID, done))
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return json.Marshal(done)
}

// working accepts jobs, cancels some, and runs them. It prints the jobs that it has
// accepted.
var working = killtest.NewChild("jobs", func(ctx context.Context, p place) error {
	w := openWorker(child{}, p, false)
	ran := make(chan error, 1)
	go func() { ran <- w.jobs.Run(ctx) }()
	for n := 0; ; n++ {
		s := jobs.Submission{Kind: "steps", Owner: "sub_a", Input: json.RawMessage(strconv.Itoa(n))}
		if n%5 == 4 {
			s.Kind = "fails"
		}
		if n%3 > 0 {
			s.CallbackURL = fmt.Sprintf("https://example.com/jobs/%d", n)
		}
		job, err := w.jobs.Submit(ctx, s)
		if err != nil {
			return err
		}
		fmt.Println(job.ID)
		if n%7 == 6 {
			if _, err := w.jobs.Cancel(ctx, jobs.Key{ID: job.ID}); err != nil && !errors.Is(err, jobs.ErrFinished) {
				return err
			}
		}
		select {
		case err := <-ran:
			return err
		case <-time.After(rand.N(10 * time.Millisecond)): // so that jobs do not pile up
		}
	}
})

// No accepted job is lost. Each job ends once, each step has its effect once, and each
// completion is announced once.
func TestJobs(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		db := testJobs(t, place{Path: filepath.Join(t.TempDir(), "a.db")}, 1)
		intact(t, db)
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		at, _ := testSchema(t)
		testJobs(t, place{Schema: at}, 2)
	})
}

func testJobs(t *testing.T, p place, processes int) *sql.DB {
	w := openWorker(t, p, true)
	_, _, err := w.reg.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: "sub_a"})
	require.NoError(t, err)
	kills := 20
	if race.Enabled { // it makes SQLite many times slower
		kills = 6
	}
	var accepted []string
	killtest.Run(t, killtest.Case{
		Child: func(int) *exec.Cmd { return working.Command(p) }, Rounds: kills / processes, Processes: processes,
		Point:  killtest.Lines(1, 12),
		Within: 20 * time.Millisecond,
		Heard:  func(id string) { accepted = append(accepted, id) },
	})
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- w.jobs.Run(ctx) }()
	require.Eventually(t, func() bool { // the leases of the killed end
		return count(t, w.db, `SELECT count(*) FROM surehook_jobs WHERE status IN ('queued', 'running')`) == 0 || len(ran) > 0
	}, 5*time.Minute, 50*time.Millisecond)
	cancel()
	require.NoError(t, <-ran)

	for _, id := range accepted {
		job, err := w.jobs.Get(t.Context(), jobs.Key{ID: id, Owner: "sub_a"})
		require.NoError(t, err, "an accepted job")
		require.True(t, job.Status.Finished(), "%+v", job)
	}
	total := count(t, w.db, `SELECT count(*) FROM surehook_jobs`)
	again := count(t, w.db, `SELECT count(*) FROM surehook_jobs WHERE token > 1`)
	t.Logf("%d jobs, %d of them accepted for all that is known, %d claimed more than once", total, len(accepted), again)
	require.NotZero(t, again, "jobs that were run again")
	require.Zero(t, count(t, w.db, `SELECT count(*) FROM surehook_jobs WHERE kind = 'fails' AND status NOT IN ('failed', 'cancelled')
		OR kind = 'steps' AND status NOT IN ('succeeded', 'cancelled')`), "jobs that have ended otherwise than they must")
	require.Zero(t, count(t, w.db, `SELECT count(*) FROM (SELECT 1 FROM effects GROUP BY job, step HAVING count(*) > 1) x`), "effects that were had twice")
	require.Zero(t, count(t, w.db, `SELECT count(*) FROM surehook_jobs j WHERE status = 'succeeded'
		AND (SELECT count(*) FROM effects e WHERE e.job = j.id) <> `+strconv.Itoa(stepsOfJob)), "jobs that have succeeded without all their effects")
	require.Zero(t, count(t, w.db, `SELECT count(*) FROM surehook_jobs j WHERE (SELECT count(*) FROM surehook_events e
		WHERE e.type = 'job.completed' AND e.object_type = 'job' AND e.object_id = j.id AND e.version = 1 AND e.url = j.callback_url)
		<> CASE WHEN j.callback_url = '' THEN 0 ELSE 1 END`), "completions that were not told of once")
	require.Equal(t, count(t, w.db, `SELECT count(*) FROM surehook_jobs WHERE callback_url <> ''`), count(t, w.db, `SELECT count(*) FROM surehook_events`), "events")
	require.Equal(t, 1, count(t, w.db, `SELECT count(*) FROM surehook_subscriptions`), "implicit subscriptions of one origin")
	return w.db
}
