package memory_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/memory"
	"github.com/surehook/surehook/sender/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Harness[*memory.Tx] {
		var passed atomic.Int64
		start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		store, err := memory.New(&memory.Config{Now: func() time.Time { return start.Add(time.Duration(passed.Load())) }})
		require.NoError(t, err)
		return storetest.Harness[*memory.Tx]{
			Store:      store,
			Advance:    func(d time.Duration) { passed.Add(int64(d)) },
			SettingsOf: func(_ *testing.T, id string) sender.Settings { return store.SettingsOf(id) },
			Begin: func(t *testing.T) (*memory.Tx, func() error, func() error) {
				tx, err := store.Begin(t.Context())
				require.NoError(t, err)
				return tx, tx.Commit, tx.Rollback
			},
		}
	})
}
