//go:build unix

package sqlite_test

import (
	"testing"
	"time"

	"github.com/surehook/surehook/sender/internal/takeovertest"
)

// The deliveries that a killed process held are attempted again within seconds.
func TestKilledIsTakenOver(t *testing.T) {
	t.Parallel()
	p := path(t)
	takeovertest.Killed(t, newStore(t, open(t, p, fit), time.Now), p)
}

// A stopped process is taken over too, and changes nothing when it comes back.
func TestStoppedIsTakenOver(t *testing.T) {
	t.Parallel()
	p := path(t)
	takeovertest.Stopped(t, newStore(t, open(t, p, fit), time.Now), p)
}
