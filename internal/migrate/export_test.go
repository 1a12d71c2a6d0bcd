package migrate

import (
	"testing"
	"time"
)

// HurryPostgres sets how long a migration waits for a lock, and how often it tries. Its
// pauses are a millisecond. When the test ends, the settings are as before.
func HurryPostgres(t *testing.T, lock time.Duration, tries int) {
	before := patience
	t.Cleanup(func() { patience = before })
	patience.lock, patience.tries, patience.min, patience.max = lock, tries, time.Millisecond, time.Millisecond
}
