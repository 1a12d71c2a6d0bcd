package sender

import (
	"fmt"
	"time"
)

// reach is how far back events may be sent again without being forced.
type reach struct {
	reach time.Duration
	now   func() time.Time
}

// newReach fills in the defaults. config names the type that they come from.
func newReach(config string, far time.Duration, now func() time.Time) (reach, error) {
	if far < 0 {
		return reach{}, fmt.Errorf("sender: %s.Reach is %v: it must be positive, or 0 for the default", config, far)
	}
	if far == 0 {
		far = defaultReach
	}
	if now == nil {
		now = time.Now
	}
	return reach{reach: far, now: now}, nil
}

// notBefore is the time of the oldest event that may be sent; zero: of any.
func (r reach) notBefore(force bool) time.Time {
	if force {
		return time.Time{}
	}
	return r.now().Add(-r.reach)
}
