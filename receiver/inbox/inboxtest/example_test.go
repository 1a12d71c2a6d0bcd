package inboxtest_test

import (
	"testing"

	"github.com/surehook/surehook/receiver/inbox/inboxtest"
)

// A test in the package of your own store runs the suite on it.
func Example() {
	_ = func(t *testing.T) {
		inboxtest.Run(t, func(t *testing.T) inboxtest.Harness[tx] {
			b := open(t) // an empty inbox of its own
			return inboxtest.Harness[tx]{Store: b, InTx: b.inTx}
		})
	}
}
