package failover_test

import (
	"testing"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	dedup "github.com/surehook/surehook/dedup/postgres"
	"github.com/surehook/surehook/internal/pgtest"
	catchup "github.com/surehook/surehook/receiver/catchup/postgres"
	inbox "github.com/surehook/surehook/receiver/inbox/postgres"
	jobs "github.com/surehook/surehook/sender/jobs/postgres"
)

// Tools for change data capture, and moves by logical replication, publish all tables of a
// database. PostgreSQL then refuses to change a row of a table that names its rows by nothing.
func TestPublicationOfAllTables(t *testing.T) {
	t.Parallel()
	ctx, w := t.Context(), newWorld(t)
	server := serve(t, func() (*pgtest.Server, error) {
		return pgtest.Start(pgtest.Options{Durable: true, Settings: map[string]string{"wal_level": "logical"}})
	})
	s := newService(t, w, server.DSN())
	require.NoError(t, s.store.Migrate(ctx))
	work, err := jobs.New(s.pool, nil)
	require.NoError(t, err)
	require.NoError(t, work.Migrate(ctx))
	require.NoError(t, dedup.MigratePool(ctx, s.pool, nil))
	require.NoError(t, inbox.MigratePool(ctx, s.pool, nil))
	db := stdlib.OpenDBFromPool(s.pool)
	defer db.Close()
	require.NoError(t, catchup.Migrate(ctx, db, nil))
	run(t, s.pool, `CREATE PUBLICATION everything FOR ALL TABLES`)

	s.subscribe("r")
	event := s.publish("a")
	s.drain()
	require.Equal(t, []string{event.ID}, w.ids("r"))
	require.Empty(t, read[[]string](t, s.pool, `SELECT coalesce(array_agg(c.relname), '{}') FROM pg_class c WHERE c.relkind = 'r' AND c.relname LIKE 'surehook\_%'
		AND c.relreplident <> 'f' AND NOT EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary)`), "tables that name their rows by nothing")
}
