package sender

import "time"

// TakeRate is not built yet on this branch.
func TakeRate(rate float64, at, now time.Time, want int) (granted int, next, again time.Time) {
	return want, at, now
}
