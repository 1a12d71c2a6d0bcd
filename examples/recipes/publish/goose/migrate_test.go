package migrate_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook"
	dedup "github.com/surehook/surehook/dedup/postgres"
	migrate "github.com/surehook/surehook/examples/recipes/publish/goose"
	"github.com/surehook/surehook/examples/recipes/publish/publishtest"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/postgres"
)

func TestUp(t *testing.T) {
	pool := publishtest.Pool(t)
	db := publishtest.DB(t, pool)
	for range 2 { // the second time nothing is to be done
		require.NoError(t, migrate.Up(t.Context(), db, "goose_surehook_sender", postgres.Migrations()))
		require.NoError(t, migrate.Up(t.Context(), db, "goose_surehook_dedup", dedup.Migrations()))
	}

	store, err := postgres.New(pool, nil)
	require.NoError(t, err)
	require.NoError(t, store.Check(t.Context()), "a dispatcher would start")
	require.NoError(t, store.Migrate(t.Context()), "it finds nothing to do")
	require.NoError(t, dedup.Migrate(t.Context(), db, nil), "it finds nothing to do")
	hooks, err := surehook.NewSender(store, publishtest.Key, nil)
	require.NoError(t, err)
	_, err = hooks.Publish(t.Context(), sender.Event{Type: "order.updated", Object: sender.Object{Type: "order", ID: "o_1"}})
	require.NoError(t, err)
	events, _, err := hooks.History.Events(t.Context(), history.EventQuery{})
	require.NoError(t, err)
	require.Len(t, events, 1)
}
