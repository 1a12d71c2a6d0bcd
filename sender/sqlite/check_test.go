package sqlite_test

import (
	"database/sql"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/sqlite"
)

func TestNewNeedsADatabase(t *testing.T) {
	_, err := sqlite.New(nil, nil)
	require.ErrorContains(t, err, "New needs a *sql.DB")
}

// Migrate says not to call it where the files were applied, but not to their ends.
func TestMigrateAfterAnotherTool(t *testing.T) {
	file, err := fs.ReadFile(sqlite.Migrations(), "001_start.sql")
	require.NoError(t, err)
	db := open(t, path(t), fit)
	unrecorded, _, found := strings.Cut(string(file), "INSERT INTO surehook_migrations")
	require.True(t, found)
	_, err = db.ExecContext(t.Context(), unrecorded)
	require.NoError(t, err)
	s, err := sqlite.New(db, nil)
	require.NoError(t, err)
	require.ErrorContains(t, s.Migrate(t.Context()), "if you applied the files with a tool of your own, do not call Migrate")

	db = open(t, path(t), fit)
	_, err = db.ExecContext(t.Context(), string(file))
	require.NoError(t, err)
	s, err = sqlite.New(db, nil)
	require.NoError(t, err)
	require.NoError(t, s.Migrate(t.Context()), "one that ran to its end has recorded itself")
	require.NoError(t, s.Check(t.Context()))
}

func TestCheckNamesWhatToSet(t *testing.T) {
	for name, c := range map[string]struct{ params, want string }{
		"journal in a file":  {"_pragma=journal_mode(delete)&_pragma=synchronous(full)", "its journal_mode is delete: set PRAGMA journal_mode = wal"},
		"synchronous normal": {"_pragma=journal_mode(wal)&_pragma=synchronous(normal)", "PRAGMA synchronous is 1"},
		"synchronous off":    {"_pragma=journal_mode(wal)&_pragma=synchronous(off)", "PRAGMA synchronous is 0"},
	} {
		t.Run(name, func(t *testing.T) {
			err := newStore(t, open(t, path(t), c.params), time.Now).Check(t.Context())
			require.ErrorIs(t, err, sender.ErrUnfit)
			require.ErrorContains(t, err, c.want)
		})
	}
	for _, level := range []string{"full", "extra"} {
		t.Run("synchronous "+level, func(t *testing.T) {
			s := newStore(t, open(t, path(t), "_pragma=journal_mode(wal)&_pragma=synchronous("+level+")"), time.Now)
			require.NoError(t, s.Check(t.Context()))
		})
	}
	t.Run("made by a newer release", func(t *testing.T) {
		db := open(t, path(t), fit)
		s := newStore(t, db, time.Now)
		newer(t, db, 1)
		require.NoError(t, s.Check(t.Context()), "that leaves this one working")
		require.NoError(t, s.Migrate(t.Context()))
		_, err := db.ExecContext(t.Context(), `INSERT INTO surehook_migrations (set_name, version, needs) VALUES ('sender', 9, 9)`)
		require.NoError(t, err)
		for _, err := range []error{s.Check(t.Context()), s.Migrate(t.Context())} {
			require.ErrorContains(t, err, "sender: the database is at version 9, for releases that know version 9, and this one knows 1: run a newer release")
		}
		require.ErrorIs(t, s.Check(t.Context()), sender.ErrUnfit)
	})
	t.Run("not migrated", func(t *testing.T) {
		db := open(t, path(t), fit)
		s, err := sqlite.New(db, nil)
		require.NoError(t, err)
		err = s.Check(t.Context())
		require.ErrorIs(t, err, sender.ErrUnfit)
		require.ErrorContains(t, err, "sender: migration 001_start.sql is missing: call Migrate before")
		err = publishInTx(t.Context(), s, draft("", 0))
		require.ErrorIs(t, err, sender.ErrUnfit, "publishing says so, too")
		require.ErrorContains(t, err, "call Migrate before")
		tx, err := db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		defer func() { _ = tx.Rollback() }()
		for _, d := range []sender.Draft{draft("", 0), draft("sub_a", 0)} {
			_, err = s.PublishTx(t.Context(), tx, []sender.Draft{d})
			require.ErrorIs(t, err, sender.ErrUnfit, "in the caller's transaction, too")
			require.ErrorContains(t, err, "call Migrate before")
		}
		require.NoError(t, tx.Rollback())
		err = s.InTx(t.Context(), func(*sql.Tx) error { return nil })
		require.ErrorIs(t, err, sender.ErrUnfit)
		require.Zero(t, count(t, db, `SELECT count(*) FROM sqlite_master`), "what Check made")
	})
}

// The store refuses every write that a loss of power could undo.
func TestUnfitConnectionsWriteNothing(t *testing.T) {
	for _, level := range []string{"normal", "off"} {
		t.Run(level, func(t *testing.T) {
			p, ctx := path(t), t.Context()
			good := open(t, p, fit)
			fine := newStore(t, good, time.Now)
			owners := register(t, fine, 1)
			publish(t, fine, 1, 0, owners)
			expandAll(t, fine)
			_, c, err := fine.Step(ctx, dispatch.ExpandParams{}, batchOf(nil, 1))
			require.NoError(t, err)
			require.Len(t, c.Claimed, 1)
			publish(t, fine, 1, 0, owners)
			expandAll(t, fine)
			publish(t, fine, 1, 0, owners)

			db := open(t, p, "_pragma=journal_mode(wal)&_pragma=synchronous("+level+")")
			s, err := sqlite.New(db, nil)
			require.NoError(t, err)
			unfit := func(err error) {
				t.Helper()
				require.ErrorIs(t, err, sender.ErrUnfit)
				require.ErrorContains(t, err, "PRAGMA synchronous")
			}
			tx, err := db.BeginTx(ctx, nil)
			require.NoError(t, err)
			_, err = s.PublishTx(ctx, tx, []sender.Draft{draft("", 0)})
			unfit(err)
			require.NoError(t, tx.Commit(), "of a caller who does not look at errors")
			unfit(s.InTx(ctx, func(*sql.Tx) error {
				t.Error("the function ran in a transaction that would not be durable")
				return nil
			}))
			_, _, err = s.Step(ctx, dispatch.ExpandParams{Events: 1, Deliveries: 1}, dispatch.Batch{})
			unfit(err)
			_, _, err = s.Step(ctx, dispatch.ExpandParams{}, batchOf(c.Claimed, 1))
			unfit(err)
			unfit(s.Release(ctx, []dispatch.Release{{Key: c.Claimed[0].Key, Token: c.Claimed[0].Token}}))

			require.Equal(t, 3, count(t, good, `SELECT count(*) FROM surehook_events`))
			require.Equal(t, 2, count(t, good, `SELECT event FROM surehook_expanded`))
			require.Equal(t, 1, count(t, good, `SELECT count(*) FROM surehook_pending`))
			require.Equal(t, 1, count(t, good, `SELECT count(*) FROM surehook_leases`))
			require.Zero(t, count(t, good, `SELECT count(*) FROM surehook_attempts`))
		})
	}
}

// Each connection has its own setting, which can change: one check says nothing about
// the next write.
func TestConnectionThatBecomesUnfit(t *testing.T) {
	ctx := t.Context()
	db := open(t, path(t), fit)
	db.SetMaxOpenConns(1)
	s := newStore(t, db, time.Now)
	require.NoError(t, s.Check(ctx))
	require.NoError(t, publishInTx(ctx, s, draft("", 0)))
	_, err := db.ExecContext(ctx, `PRAGMA synchronous = normal`)
	require.NoError(t, err)
	require.ErrorIs(t, s.Check(ctx), sender.ErrUnfit)
	require.ErrorIs(t, publishInTx(ctx, s, draft("", 0)), sender.ErrUnfit)
	tx, err := db.BeginTx(ctx, nil)
	require.NoError(t, err)
	_, err = s.PublishTx(ctx, tx, []sender.Draft{draft("", 0)})
	require.ErrorIs(t, err, sender.ErrUnfit)
	require.NoError(t, tx.Commit())
	require.Equal(t, 1, count(t, db, `SELECT count(*) FROM surehook_events`))
}
