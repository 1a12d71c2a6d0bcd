package postgres_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/newid"
	"github.com/surehook/surehook/sender"
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
