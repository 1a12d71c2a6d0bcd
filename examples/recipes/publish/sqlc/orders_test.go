package orders_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook"
	"github.com/surehook/surehook/examples/recipes/publish/order"
	"github.com/surehook/surehook/examples/recipes/publish/publishtest"
	orders "github.com/surehook/surehook/examples/recipes/publish/sqlc"
	"github.com/surehook/surehook/examples/recipes/publish/sqlc/queries"
	"github.com/surehook/surehook/sender/postgres"
)

func TestPlace(t *testing.T) {
	pool := publishtest.Pool(t)
	store, err := postgres.New(pool, nil)
	require.NoError(t, err)
	require.NoError(t, store.Migrate(t.Context()))
	hooks, err := surehook.NewSender(store, publishtest.Key, nil)
	require.NoError(t, err)
	o := orders.Orders{Queries: queries.New(pool), Hooks: hooks.Publisher}
	publishtest.Check(t, pool, hooks.Registry, hooks.History, o.Place)
}

// The queries were generated from the tables that all recipes share.
func TestSchema(t *testing.T) {
	text, err := os.ReadFile("schema.sql")
	require.NoError(t, err)
	require.Equal(t, order.Schema, "\n"+string(text[:len(text)-1]))
}
