//go:build race

package storetest_test

import "testing"

// The race detector finds nothing in a suite that runs on broken stores in memory, and all
// their methods take it long to compile.
func TestBrokenStores(t *testing.T) {
	t.Skip(".ci/run runs the tests of this package without the race detector")
}
