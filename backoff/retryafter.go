package backoff

import (
	"math"
	"strings"
	"time"
)

// The forms of HTTP-date, RFC 9110 section 5.6.7: IMF-fixdate, which is the one
// to generate, and the two obsolete ones that recipients must accept.
const (
	imfFixdate = "Mon, 02 Jan 2006 15:04:05 GMT"
	rfc850Date = "Monday, 02-Jan-06 15:04:05 GMT"
	asctime    = "Mon Jan _2 15:04:05 2006"
)

// ParseRetryAfter reads the value of a Retry-After header, RFC 9110 section 10.2.3: a
// number of seconds, or an HTTP date, which is taken relative to now. It returns false
// for anything else. A date that is past is 0. Seconds that exceed a time.Duration are
// the longest one, in the spirit of RFC 9111 section 1.2.2: Policy.MaxRetryAfter bounds
// it. The result is never negative.
//
// Nothing but the two forms is read: no sign, fraction, exponent, unit or list. The
// weekday of a date is not checked against the date.
func ParseRetryAfter(value string, now time.Time) (time.Duration, bool) {
	value = strings.Trim(value, " \t") // optional whitespace, RFC 9110 section 5.5
	if value == "" {
		return 0, false
	}
	if value[0] >= '0' && value[0] <= '9' {
		return parseSeconds(value)
	}
	at, ok := parseHTTPDate(value, now)
	if !ok {
		return 0, false
	}
	return max(at.Sub(now), 0), true
}

func parseSeconds(value string) (time.Duration, bool) {
	const limit = int64(math.MaxInt64 / time.Second)
	var n int64
	for i := 0; i < len(value); i++ {
		c := value[i]
		if c < '0' || c > '9' {
			return 0, false
		}
		if n <= limit { // else it is too much already, and only its form matters
			n = n*10 + int64(c-'0')
		}
	}
	if n > limit {
		return math.MaxInt64, true
	}
	return time.Duration(n) * time.Second, true
}

func parseHTTPDate(value string, now time.Time) (time.Time, bool) {
	for _, layout := range []string{imfFixdate, rfc850Date, asctime} {
		t, err := time.Parse(layout, value)
		// time.Parse also takes fractions of a second and other cases of
		// letters, which the grammar does not have.
		if err != nil || afterWeekday(t.Format(layout)) != afterWeekday(value) {
			continue
		}
		if layout == rfc850Date {
			t = inCentury(t, now)
		}
		return t, true
	}
	return time.Time{}, false
}

func afterWeekday(date string) string {
	_, rest, _ := strings.Cut(date, " ")
	return rest
}

// inCentury gives a date with a two-digit year its century: one that would be
// more than 50 years in the future is the latest past year with the same two
// digits (RFC 9110 section 5.6.7).
func inCentury(t, now time.Time) time.Time {
	century := now.Year() - now.Year()%100
	at := func(year int) time.Time {
		return time.Date(year, t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
	}
	limit := now.AddDate(50, 0, 0)
	year := century + 100 + t.Year()%100
	for at(year).After(limit) {
		year -= 100
	}
	return at(year)
}
