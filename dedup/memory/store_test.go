package memory_test

import (
	"testing"

	"github.com/surehook/surehook/dedup/deduptest"
	"github.com/surehook/surehook/dedup/memory"
)

func TestStore(t *testing.T) {
	deduptest.Run(t, func(*testing.T) deduptest.Harness[*memory.Tx] {
		s := memory.New()
		return deduptest.Harness[*memory.Tx]{Store: s, InTx: s.InTx}
	})
}
