package migrate

import (
	"testing"
	"time"
)

// HurryPostgres makes migrations give up soon, until the test ends.
func HurryPostgres(t *testing.T) {
	before := patience
	t.Cleanup(func() { patience = before })
	patience.lock, patience.tries, patience.min, patience.max = 10*time.Millisecond, 3, time.Millisecond, time.Millisecond
}
