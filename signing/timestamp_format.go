package signing

import (
	"strconv"
	"time"
)

// parse returns the whole seconds of a time in its one form.
func (f TimestampFormat) parse(text string) (unix int64, ok bool) {
	switch f {
	case UnixMillis:
		return parseMillis(text)
	case UnixSecondsOrMillis:
		if len(text) > maxTimestampDigits {
			return parseMillis(text)
		}
		return parseTimestamp(text)
	case RFC3339Time:
		return parseRFC3339(text)
	default:
		return parseTimestamp(text)
	}
}

func (f TimestampFormat) form() string {
	switch f {
	case UnixMillis:
		return "the milliseconds since 1970 in 4 to 14 digits, without a sign or a leading zero"
	case UnixSecondsOrMillis:
		return "the seconds since 1970 in 1 to 11 digits, or the milliseconds in up to 14, without a sign or a leading zero"
	case RFC3339Time:
		return "as in RFC 3339, like 2006-01-02T15:04:05Z"
	default:
		return "the seconds since 1970 in 1 to 11 digits, without a sign or a leading zero"
	}
}

func (f TimestampFormat) format(at time.Time) string {
	switch f {
	case UnixMillis:
		return strconv.FormatInt(at.UnixMilli(), 10)
	case RFC3339Time:
		return at.UTC().Format("2006-01-02T15:04:05Z")
	default:
		return strconv.FormatInt(at.Unix(), 10)
	}
}

func parseMillis(text string) (int64, bool) {
	if len(text) < 4 {
		return 0, false
	}
	for i := len(text) - 3; i < len(text); i++ {
		if text[i] < '0' || text[i] > '9' {
			return 0, false
		}
	}
	return parseTimestamp(text[:len(text)-3])
}

// maxRFC3339 leaves room for nanoseconds and an offset.
const maxRFC3339 = len("2006-01-02T15:04:05.999999999+07:00")

func parseRFC3339(text string) (int64, bool) {
	const form = "0000-00-00T00:00:00"
	if len(text) <= len(form) || len(text) > maxRFC3339 || text[len(form)] == ',' {
		return 0, false
	}
	for i := range len(form) { // Parse takes a single digit for an hour, too
		if digit := text[i] >= '0' && text[i] <= '9'; digit != (form[i] == '0') || !digit && text[i] != form[i] {
			return 0, false
		}
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return 0, false
	}
	unix := t.Unix()
	return unix, unix >= 1 && unix <= maxTimestamp
}
