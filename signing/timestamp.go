package signing

import (
	"math"
	"time"
)

const (
	maxTimestampDigits = 11
	maxTimestamp       = 99_999_999_999
)

// parseTimestamp accepts [1-9][0-9]{0,10} and nothing else. A laxer reading would
// take two texts for the same time, and let "T.99" with the body "rest" pass for
// "T" with the body "99.rest".
func parseTimestamp(s string) (unix int64, ok bool) {
	if s == "" || len(s) > maxTimestampDigits || s[0] == '0' {
		return 0, false
	}
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		unix = unix*10 + int64(s[i]-'0')
	}
	return unix, true
}

// checkWindow refuses |now − unix| > tolerance in whole seconds. With unix between 1 and
// maxTimestamp and a tolerance below 2^34 seconds neither bound overflows, for every
// value of the clock.
func checkWindow(unix int64, now time.Time, tolerance time.Duration) error {
	t, seconds := now.Unix(), int64(tolerance/time.Second)
	if t >= unix-seconds && t <= unix+seconds && tolerance >= 0 {
		return nil
	}
	return &TimestampError{
		Timestamp: time.Unix(unix, 0).UTC(),
		Skew:      skew(t, unix),
		Tolerance: tolerance,
	}
}

func skew(now, unix int64) time.Duration {
	const most = math.MaxInt64 / int64(time.Second)
	switch {
	case now > unix && now-unix < most: // unix is positive: no overflow
		return time.Duration(now-unix) * time.Second
	case now > unix:
		return time.Duration(most) * time.Second
	case now > unix-most:
		return time.Duration(now-unix) * time.Second
	}
	return -time.Duration(most) * time.Second
}
