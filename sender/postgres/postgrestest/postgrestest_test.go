package postgrestest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/postgres"
	"github.com/surehook/surehook/sender/postgres/postgrestest"
)

// Two stores of one process are independent.
func TestPool(t *testing.T) {
	for range 2 {
		pool := postgrestest.Pool(t)
		store, err := postgres.New(pool, nil)
		require.NoError(t, err)
		require.NoError(t, store.Migrate(t.Context()))
		publisher, err := sender.NewPublisher(store, nil)
		require.NoError(t, err)
		ref, err := publisher.Publish(t.Context(), sender.Event{Type: "invoice.paid", Object: sender.Object{Type: "invoice", ID: "in_1"}})
		require.NoError(t, err)
		require.EqualValues(t, 1, ref.Version)
	}
}

func TestDSN(t *testing.T) {
	require.Contains(t, postgrestest.DSN(t), "postgres")
	require.Equal(t, postgrestest.DSN(t), postgrestest.DSN(t))
}
