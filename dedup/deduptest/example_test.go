package deduptest_test

import (
	"testing"

	"github.com/surehook/surehook/dedup/deduptest"
	"github.com/surehook/surehook/dedup/memory"
)

func ExampleRun() {
	testStore := func(t *testing.T) { // func TestStore(t *testing.T)
		deduptest.Run(t, func(*testing.T) deduptest.Harness[*memory.Tx] {
			store := memory.New() // yours
			return deduptest.Harness[*memory.Tx]{Store: store, InTx: store.InTx}
		})
	}
	_ = testStore
}
