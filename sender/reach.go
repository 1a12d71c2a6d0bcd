package sender

import (
	"errors"
	"time"
)

// reach is how far back events may be sent again without being forced.
type reach struct {
	keeps Retention
	now   func() time.Time
}

// newReach fills in the defaults.
func newReach(keeps Retention, now func() time.Time) (reach, error) {
	keeps = keeps.withDefaults()
	if now == nil {
		now = time.Now
	}
	return reach{keeps: keeps, now: now}, errors.Join(keeps.problems(0)...)
}

// notBefore is the time of the oldest event that may be sent; zero: of any.
func (r reach) notBefore(force bool) time.Time {
	if force {
		return time.Time{}
	}
	return r.keeps.notBefore(r.now())
}
