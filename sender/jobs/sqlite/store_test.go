package sqlite_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/jobs"
	"github.com/surehook/surehook/sender/jobs/jobstest"
	"github.com/surehook/surehook/sender/jobs/sqlite"
	sendersqlite "github.com/surehook/surehook/sender/sqlite"
)

const fit = "_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(5000)"

func open(t testing.TB, path, params string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?"+params)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func path(t testing.TB) string { return filepath.Join(t.TempDir(), "a.db") }

func TestStore(t *testing.T) {
	for name, params := range map[string]string{"deferred": fit, "immediate": fit + "&_txlock=immediate"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			jobstest.Run(t, func(t *testing.T) jobstest.Harness[*sql.Tx] {
				db := open(t, path(t), params)
				var micros atomic.Int64
				micros.Store(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).UnixMicro())
				s, err := sqlite.New(db, &sqlite.Config{Now: func() time.Time { return time.UnixMicro(micros.Load()) }})
				require.NoError(t, err)
				require.NoError(t, s.Migrate(t.Context()))
				return jobstest.Harness[*sql.Tx]{
					Store:   s,
					Advance: func(d time.Duration) { micros.Add(d.Microseconds()) },
					Begin: func(t *testing.T) (*sql.Tx, func() error, func() error) {
						tx, err := db.BeginTx(t.Context(), nil)
						require.NoError(t, err)
						return tx, tx.Commit, tx.Rollback
					},
				}
			})
		})
	}
}

func TestUnfit(t *testing.T) {
	_, err := sqlite.New(nil, nil)
	require.ErrorContains(t, err, "needs a *sql.DB")

	s, err := sqlite.New(open(t, path(t), fit), nil)
	require.NoError(t, err)
	err = s.Check(t.Context())
	require.ErrorIs(t, err, sender.ErrUnfit)
	require.ErrorContains(t, err, "call Migrate before")

	for params, says := range map[string]string{
		"_pragma=journal_mode(wal)&_pragma=synchronous(normal)":  "synchronous is 1",
		"_pragma=journal_mode(delete)&_pragma=synchronous(full)": "journal_mode is delete",
	} {
		s, err := sqlite.New(open(t, path(t), params), nil)
		require.NoError(t, err)
		require.NoError(t, s.Migrate(t.Context()))
		err = s.Check(t.Context())
		require.ErrorIs(t, err, sender.ErrUnfit)
		require.ErrorContains(t, err, says)
	}

	// A job that a loss of power could lose is not accepted.
	s, err = sqlite.New(open(t, path(t), "_pragma=journal_mode(wal)&_pragma=synchronous(normal)"), nil)
	require.NoError(t, err)
	require.NoError(t, s.Migrate(t.Context()))
	err = s.InTx(t.Context(), func(tx *sql.Tx) error {
		_, _, err := s.InsertTx(t.Context(), tx, jobs.Record{Job: jobs.Job{ID: "job_1", Input: []byte("1")}})
		return err
	})
	require.ErrorIs(t, err, sender.ErrUnfit)
}

// A function that has ended its transaction, or in which SQLite has ended it, does not get its
// state stored without its effects, nor a job without its change.
func TestEndedTransaction(t *testing.T) {
	ctx := t.Context()
	s, err := sqlite.New(open(t, path(t), fit), nil)
	require.NoError(t, err)
	require.NoError(t, s.Migrate(ctx))
	require.NoError(t, s.InTx(ctx, func(tx *sql.Tx) error {
		_, _, err := s.InsertTx(ctx, tx, jobs.Record{Job: jobs.Job{ID: "job_1", Kind: "work", Input: []byte("1")}})
		return err
	}))
	for _, statement := range []string{"ROLLBACK", "COMMIT", "INSERT OR ROLLBACK INTO surehook_job_inputs VALUES (1, x'')"} {
		require.ErrorIs(t, s.InTx(ctx, func(tx *sql.Tx) error {
			r, _, err := s.LockTx(ctx, tx, jobs.Key{ID: "job_1"})
			require.NoError(t, err)
			_, _ = tx.ExecContext(ctx, statement)
			r.State = []byte(statement)
			return s.UpdateTx(ctx, tx, r)
		}), sql.ErrTxDone, statement)
		require.ErrorIs(t, s.InTx(ctx, func(tx *sql.Tx) error {
			_, _ = tx.ExecContext(ctx, statement)
			_, _, err := s.InsertTx(ctx, tx, jobs.Record{Job: jobs.Job{ID: "job_2", Kind: "work", Input: []byte("1")}})
			return err
		}), sql.ErrTxDone, statement)
		require.NoError(t, s.InTx(ctx, func(tx *sql.Tx) error {
			_, err := s.GetTx(ctx, tx, jobs.Key{ID: "job_2"})
			require.ErrorIs(t, err, jobs.ErrNotFound, statement)
			r, err := s.GetTx(ctx, tx, jobs.Key{ID: "job_1"})
			require.Empty(t, r.State, statement)
			return err
		}))
	}
}

// A claim finds due jobs without looking at the others.
func TestPlans(t *testing.T) {
	db := open(t, path(t), fit)
	s, err := sqlite.New(db, nil)
	require.NoError(t, err)
	require.NoError(t, s.Migrate(context.Background()))
	for index, query := range map[string]string{
		"surehook_jobs_due":        `SELECT no FROM surehook_jobs j WHERE j.kind = 'a' AND j.finished_at = 0 AND j.due <= 5 AND j.callback_url = '' AND j.owner NOT IN ('a', 'b') ORDER BY j.due, j.no LIMIT 4`,
		"surehook_jobs_finished":   `SELECT no FROM surehook_jobs WHERE finished_at > 0 AND finished_at < 5 ORDER BY finished_at, no LIMIT 4`,
		"surehook_jobs_owner":      `SELECT no FROM surehook_jobs j WHERE j.owner = 'a' AND j.no < 5 ORDER BY j.no DESC LIMIT 4`,
		"surehook_jobs_unfinished": `SELECT no FROM surehook_jobs j WHERE j.no < 5 AND j.owner = 'a' AND j.finished_at = 0 ORDER BY j.no DESC LIMIT 4`,
		"surehook_jobs_key":        `SELECT no FROM surehook_jobs j WHERE j.key_scope = 'a' AND j.idempotency_key = 'b' AND j.idempotency_key <> ''`,
	} {
		var id, parent, unused int
		var detail string
		require.NoError(t, db.QueryRowContext(t.Context(), `EXPLAIN QUERY PLAN `+query).Scan(&id, &parent, &unused, &detail), query)
		require.Contains(t, detail, "INDEX "+index+" (", query)
	}
}

// polled counts what workers ask for.
type polled struct {
	*sqlite.Store
	looks, pruned atomic.Int64
}

func (p *polled) AnyDue(ctx context.Context, queries []jobs.DueQuery) (bool, error) {
	p.looks.Add(1)
	return p.Store.AnyDue(ctx, queries)
}

func (p *polled) PruneTx(ctx context.Context, tx *sql.Tx, q jobs.PruneQuery) (int, error) {
	p.pruned.Add(1)
	return p.Store.PruneTx(ctx, tx, q)
}

func nothing(context.Context, *jobs.Run[*sql.Tx]) (json.RawMessage, error) { return nil, nil }

// onSender gives a sender with the subscriber sub_a, and a store of jobs beside it.
func onSender(t *testing.T, db *sql.DB, now func() time.Time) (*sendersqlite.Store, *sqlite.Store, *jobs.Callbacks[*sql.Tx]) {
	t.Helper()
	s, err := sendersqlite.New(db, &sendersqlite.Config{Now: now})
	require.NoError(t, err)
	require.NoError(t, s.Migrate(t.Context()))
	store, err := sqlite.New(db, nil)
	require.NoError(t, err)
	require.NoError(t, store.Migrate(t.Context()))
	keys, err := sender.NewKeys(sender.SealingKey{ID: "k", Key: bytes.Repeat([]byte{1}, 32)})
	require.NoError(t, err)
	registry, err := sender.NewRegistry(s, keys, nil)
	require.NoError(t, err)
	_, _, err = registry.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: "sub_a"})
	require.NoError(t, err)
	publisher, err := sender.NewPublisher(s, nil)
	require.NoError(t, err)
	callbacks, err := jobs.NewCallbacks(registry, publisher, nil)
	require.NoError(t, err)
	return s, store, callbacks
}

// A job that had ended in the time that a restore has lost ends once more. Its receiver may have
// the version that told of its first end.
func TestCompletionAfterARestore(t *testing.T) {
	s, store, callbacks := onSender(t, open(t, path(t), fit), time.Now)
	j, err := jobs.New(store, []jobs.Kind[*sql.Tx]{{Name: "work", Run: nothing}}, &jobs.Config[*sql.Tx]{Announcer: callbacks})
	require.NoError(t, err)
	job, err := j.Submit(t.Context(), jobs.Submission{Kind: "work", Owner: "sub_a", CallbackURL: "https://example.com/"})
	require.NoError(t, err)
	done, err := s.Restored(t.Context(), nil)
	require.NoError(t, err)
	_, err = j.Cancel(t.Context(), jobs.Key{ID: job.ID})
	require.NoError(t, err)
	all, err := history.New(s, nil)
	require.NoError(t, err)
	page, _, err := all.Events(t.Context(), history.EventQuery{})
	require.NoError(t, err)
	require.Len(t, page, 1)
	require.Greater(t, page[0].Version, done.Version)
}

// Workers that find nothing do not count as writers, for whom a dispatcher makes smaller steps.
func TestIdleWorkersAreNoWriters(t *testing.T) {
	db := open(t, path(t), fit)
	var micros atomic.Int64
	s, store, callbacks := onSender(t, db, func() time.Time { return time.UnixMicro(micros.Load()) })
	p := &polled{Store: store}
	j, err := jobs.New[*sql.Tx](p, []jobs.Kind[*sql.Tx]{{Name: "work", Run: nothing}}, &jobs.Config[*sql.Tx]{Announcer: callbacks, Poll: time.Millisecond})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- j.Run(ctx) }()
	require.Eventually(t, func() bool { return p.pruned.Load() > 0 }, 2*time.Minute, time.Millisecond)
	micros.Store(time.Hour.Microseconds())
	looked := p.looks.Load()
	require.Eventually(t, func() bool { return p.looks.Load() > looked+3 }, 2*time.Minute, time.Millisecond)
	require.Positive(t, s.StepSize())
	cancel()
	require.NoError(t, <-ran)
}

// A commit that fails leaves no transaction in the pool, which would keep everybody from
// writing.
func TestInTxAfterACommitThatFailed(t *testing.T) {
	db := open(t, path(t), fit+"&_pragma=foreign_keys(1)")
	_, err := db.Exec("CREATE TABLE orders (id INTEGER PRIMARY KEY); CREATE TABLE items (item INTEGER REFERENCES orders DEFERRABLE INITIALLY DEFERRED)")
	require.NoError(t, err)
	s, err := sqlite.New(db, nil)
	require.NoError(t, err)
	require.NoError(t, s.Migrate(t.Context()))
	run := func(statement string) error {
		return s.InTx(t.Context(), func(tx *sql.Tx) error {
			_, err := tx.Exec(statement)
			return err
		})
	}
	require.ErrorContains(t, run("INSERT INTO items VALUES (1)"), "FOREIGN KEY")
	require.NoError(t, run("INSERT INTO orders VALUES (2)"))
}
