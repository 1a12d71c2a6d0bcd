package overlap_test

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"github.com/surehook/surehook/internal/overlap"
)

const n = 7

func TestMain(m *testing.M) {
	overlap.Tests(n)
	os.Exit(m.Run())
}

// n tests run at a time: each waits until as many have begun.
func TestTests(t *testing.T) {
	var begun atomic.Int64
	all := make(chan struct{})
	for i := range 2 * n {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			if begun.Add(1) == n {
				close(all)
			}
			<-all
		})
	}
}
