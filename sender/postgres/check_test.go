package postgres_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/newid"
	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/postgres"
)

func TestCheckReadsTheLedger(t *testing.T) {
	ctx := t.Context()
	p := &place{schema: newid.New("test_", time.Now()), pool: openPool(t)}
	s := p.store(t)
	err := s.Check(ctx)
	require.ErrorIs(t, err, sender.ErrUnfit)
	require.ErrorContains(t, err, "sender: migration 001_start.sql is missing: call Migrate before")

	err = publishInTx(ctx, s, draft(""))
	require.ErrorIs(t, err, sender.ErrUnfit, "publishing says so, too")
	require.ErrorContains(t, err, "call Migrate before")
	tx, err := p.pool.Begin(ctx)
	require.NoError(t, err)
	_, err = s.PublishTx(ctx, tx, []sender.Draft{draft("sub_a")})
	require.ErrorIs(t, err, sender.ErrUnfit, "in the caller's transaction, too")
	require.NoError(t, tx.Rollback(ctx))
	err = s.InTx(ctx, func(tx pgx.Tx) error { _, err := tx.Exec(ctx, "INSERT INTO things VALUES (1)"); return err })
	require.Error(t, err)
	require.NotErrorIs(t, err, sender.ErrUnfit, "a table of the application's is not the library's to migrate")

	require.NoError(t, s.Migrate(ctx))
	t.Cleanup(func() { p.exec(t, `DROP SCHEMA {} CASCADE`) })
	require.NoError(t, s.Check(ctx))
	newer(t, p.pool, p.schema, 1)
	require.NoError(t, s.Check(ctx), "a newer release leaves this one working")
	require.NoError(t, s.Migrate(ctx))

	p.exec(t, `INSERT INTO {}.surehook_migrations (set_name, version, needs) VALUES ('sender', 9, 9)`)
	for _, err := range []error{s.Check(ctx), s.Migrate(ctx)} {
		require.ErrorContains(t, err, "sender: the database is at version 9, for releases that know version 9, and this one knows 1: run a newer release")
	}
	require.ErrorIs(t, s.Check(ctx), sender.ErrUnfit)
}

// A server that does not sync its commits is refused, unless it is one of Neon, whose commits
// are kept by other servers. A branch of Neon that is restored is noticed.
func TestFsync(t *testing.T) {
	if err := pgtest.Missing(); err != nil {
		t.Skipf("NOT TESTED on PostgreSQL: %v", err)
	}
	ctx := t.Context()
	server, err := pgtest.Start(pgtest.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	on := func(settings ...string) *pgxStore {
		pool, err := pgxpool.New(ctx, pgtest.With(server.DSN(), settings...))
		require.NoError(t, err)
		t.Cleanup(pool.Close)
		s, err := postgres.New(pool, nil)
		require.NoError(t, err)
		return s
	}
	s := on()
	require.NoError(t, s.Migrate(ctx))
	err = s.Check(ctx)
	require.ErrorIs(t, err, sender.ErrUnfit)
	require.ErrorContains(t, err, "fsync is off: set it to on")

	neon := on("neon.timeline_id", "0123")
	require.NoError(t, neon.Check(ctx))
	_, moved, err := neon.RestoreIfMoved(ctx)
	require.NoError(t, err)
	require.False(t, moved)
	r, moved, err := on("neon.timeline_id", "4567").RestoreIfMoved(ctx)
	require.NoError(t, err)
	require.True(t, moved)
	require.Equal(t, "0123", r.LineageBefore[len(r.LineageBefore)-4:])
	require.Equal(t, "4567", r.Lineage[len(r.Lineage)-4:])
}
