package waittest_test

import (
	"os"
	"sync"
	"testing"

	"github.com/surehook/surehook/internal/waittest"
)

func TestMain(m *testing.M) { os.Exit(waittest.Run(m, 8)) }

// Each of eight tests waits for the others.
func TestEightAtOnce(t *testing.T) {
	var all sync.WaitGroup
	all.Add(8)
	for range 8 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			all.Done()
			all.Wait()
		})
	}
}
