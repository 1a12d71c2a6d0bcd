package migrate

import (
	"testing"
	"time"
)

// HurryPostgres makes migrations wait for a lock for so long and try so often, until the test
// ends.
func HurryPostgres(t *testing.T, lock time.Duration, tries int) {
	before := patience
	t.Cleanup(func() { patience = before })
	patience.lock, patience.tries, patience.min, patience.max = lock, tries, time.Millisecond, time.Millisecond
}
