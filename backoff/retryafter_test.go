package backoff_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/backoff"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

func TestParseRetryAfter(t *testing.T) {
	t.Parallel()
	const most = time.Duration(math.MaxInt64)
	tests := []struct {
		value string
		want  time.Duration
		ok    bool
	}{
		// seconds
		{"0", 0, true},
		{"1", time.Second, true},
		{"120", 2 * time.Minute, true},
		{"00120", 2 * time.Minute, true},
		{"86400", 24 * time.Hour, true},
		{" 120", 2 * time.Minute, true},
		{"\t120 \t", 2 * time.Minute, true},
		{"2147483648", 2147483648 * time.Second, true},
		{"9223372036", 9223372036 * time.Second, true}, // the most that fits
		{"9223372037", most, true},
		{"9223372036854775807", most, true},
		{"9223372036854775808", most, true},
		{"18446744073709551617", most, true}, // 2^64+1: no wrap to 1
		{strings.Repeat("9", 400), most, true},
		{strings.Repeat("0", 400) + "5", 5 * time.Second, true},
		{"", 0, false},
		{" ", 0, false},
		{"-1", 0, false},
		{"-0", 0, false},
		{"+120", 0, false},
		{"1.5", 0, false},
		{"120.", 0, false},
		{"1e9", 0, false},
		{"0x10", 0, false},
		{"1_000", 0, false},
		{"12/0", 0, false}, // next to the digits
		{"12:0", 0, false},
		{"1 000", 0, false},
		{"120s", 0, false},
		{"2m", 0, false},
		{"NaN", 0, false},
		{"Infinity", 0, false},
		{"120, 240", 0, false},
		{"120;", 0, false},
		{"120\r\n", 0, false},
		{"120\x00", 0, false},
		{"\u00a0120", 0, false},
		{"１２０", 0, false},
		{"99999999999999999999x", 0, false},
		{"soon", 0, false},
		{`"120"`, 0, false},

		// IMF-fixdate
		{"Sun, 01 Mar 2026 12:02:00 GMT", 2 * time.Minute, true},
		{"  Sun, 01 Mar 2026 12:02:00 GMT\t", 2 * time.Minute, true},
		{"Mon, 02 Mar 2026 12:00:00 GMT", 24 * time.Hour, true},
		{"Tue, 01 Mar 2026 12:02:00 GMT", 2 * time.Minute, true}, // it was a Sunday
		{"Sun, 01 Mar 2026 12:00:00 GMT", 0, true},
		{"Sun, 06 Nov 1994 08:49:37 GMT", 0, true},
		{"Mon, 01 Jan 0001 00:00:00 GMT", 0, true},
		{"Fri, 31 Dec 9999 23:59:59 GMT", most, true},
		{"Sun, 1 Mar 2026 12:02:00 GMT", 0, false},
		{"Sun, 01 Mar 2026 12:02:00.5 GMT", 0, false},
		{"Sun, 01 Mar 2026 12:02:00,5 GMT", 0, false},
		{"Sun, 01 Mar 2026 12:02:00 UTC", 0, false},
		{"Sun, 01 Mar 2026 12:02:00 +0000", 0, false},
		{"Sun, 01 Mar 2026 12:02:00", 0, false},
		{"Sun, 01 MAR 2026 12:02:00 GMT", 0, false},
		{"Xyz, 01 Mar 2026 12:02:00 GMT", 0, false},
		{"Sun, 30 Feb 2026 12:02:00 GMT", 0, false},
		{"Sun, 01 Mar 2026 24:00:00 GMT", 0, false},
		{"Sun, 01 Mar 2026 12:02:00 GMT, Sun, 01 Mar 2026 12:03:00 GMT", 0, false},
		{"2026-03-01T12:02:00Z", 0, false},

		// rfc850-date
		{"Sunday, 01-Mar-26 12:02:00 GMT", 2 * time.Minute, true},
		{"Sunday, 06-Nov-94 08:49:37 GMT", 0, true},
		{"Sunday, 01-Mar-76 12:00:00 GMT", noon.AddDate(50, 0, 0).Sub(noon), true}, // 50 years ahead, not more
		{"Monday, 01-Mar-76 12:00:01 GMT", 0, true},                                // more: 1976
		{"Thursday, 01-Mar-70 12:00:00 GMT", noon.AddDate(44, 0, 0).Sub(noon), true},
		{"Wednesday, 01-Mar-00 12:00:00 GMT", 0, true},
		{"Sunday, 01-Mar-26 12:02:00 CET", 0, false},
		{"Sun, 01-Mar-26 12:02:00 GMT", 0, false},
		{"Sunday, 01-Mar-2026 12:02:00 GMT", 0, false},

		// asctime-date
		{"Sun Mar  1 12:02:00 2026", 2 * time.Minute, true},
		{"Tue Mar 10 12:00:00 2026", 9 * 24 * time.Hour, true},
		{"Sun Nov  6 08:49:37 1994", 0, true},
		{"Sun Mar 1 12:02:00 2026", 0, false},
		{"Sun Mar  1 12:02:00 GMT 2026", 0, false},
	}
	for _, tt := range tests {
		got, ok := backoff.ParseRetryAfter(tt.value, noon)
		require.Equal(t, tt.ok, ok, "%q", tt.value)
		require.Equal(t, tt.want, got, "%q", tt.value)
	}
}

func TestParseRetryAfterInAnyZoneOfNow(t *testing.T) {
	t.Parallel()
	now := time.Date(2000, time.January, 1, 1, 30, 0, 0, time.FixedZone("", 2*3600)) // in 1999 still, in UTC
	for _, value := range []string{"Sat, 01 Jan 2000 00:30:00 GMT", "Saturday, 01-Jan-00 00:30:00 GMT", "Sat Jan  1 00:30:00 2000"} {
		got, ok := backoff.ParseRetryAfter(value, now)
		require.True(t, ok, value)
		require.Equal(t, time.Hour, got, value)
	}
}

func FuzzParseRetryAfter(f *testing.F) {
	for _, seed := range []string{
		"120", "-1", "99999999999999999999", "9223372037", " 5 ", "NaN", "1e9", "",
		"Sun, 01 Mar 2026 12:02:00 GMT", "Sunday, 01-Mar-26 12:02:00 GMT", "Sun Mar  1 12:02:00 2026",
		"Monday, 29-Feb-00 00:00:00 GMT",
	} {
		f.Add(seed, noon.Unix())
	}
	f.Fuzz(func(t *testing.T, value string, unix int64) {
		now := time.Unix(unix%253402300800, 0) // four-digit years
		d, ok := backoff.ParseRetryAfter(value, now)
		require.GreaterOrEqual(t, d, time.Duration(0))
		if !ok {
			require.Zero(t, d)
			return
		}
		padded, ok := backoff.ParseRetryAfter("\t "+value+" \t", now)
		require.True(t, ok)
		require.Equal(t, d, padded)
		later, ok := backoff.ParseRetryAfter("1"+strings.Trim(value, " \t"), now)
		if ok { // seconds: another digit in front asks for more
			require.Greater(t, later, time.Duration(0))
			require.GreaterOrEqual(t, later, d)
		}
	})
}
