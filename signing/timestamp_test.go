package signing_test

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/signing"
)

// withTimestamp signs a timestamp's text with both schemes, whatever it is.
func withTimestamp(t *testing.T, text string) signing.Message {
	t.Helper()
	m := signed(t, signing.StandardWebhooks{}, ringOf(t, publishedHMAC), now)
	m.Header["Webhook-Timestamp"] = []string{text}
	m.Header["Webhook-Hmac-Sha256"] = []string{timestampBodyMAC(publishedHMAC, text, body)}
	return m
}

func TestTimestampSyntax(t *testing.T) {
	keys := ringOf(t, publishedHMAC)
	for _, text := range []string{"1", "9", "10", "1700000000", "99999999999"} {
		var unix int64
		_, err := fmt.Sscan(text, &unix)
		require.NoError(t, err)
		v, err := signing.TimestampBody{}.Verify(withTimestamp(t, text), keys, time.Unix(unix, 0), tolerance)
		require.NoError(t, err, text)
		require.Equal(t, time.Unix(unix, 0).UTC(), v.Timestamp)
	}
	for _, text := range []string{
		"", "0", "00", "-1", "+1700000000", "-1700000000", "01700000000", " 1700000000", "1700000000 ", "1700000000\n", "\t1700000000",
		"1700000000.0", "1700000000.99", "1.7e9", "1700000000e0", "0x6553f100", "1_700_000_000", "1,700,000,000", "1700000000,1700000000",
		"1700000000000", "100000000000", "999999999999", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
		"18446744073709551616", "１７００００００００", "٠١٢", "1700000000\x00", "NaN", "Inf", "2023-11-14T22:13:20Z", "Tue, 14 Nov 2023 22:13:20 GMT",
	} {
		m := withTimestamp(t, text)
		for _, scheme := range signing.DefaultSchemes() {
			refused(t, scheme, m, keys, now, signing.ErrMalformedHeader, text)
		}
	}
}

func TestWindow(t *testing.T) {
	keys := ringOf(t, publishedHMAC)
	for _, scheme := range signing.DefaultSchemes() {
		m := signed(t, scheme, keys, now)
		for _, c := range []struct {
			offset time.Duration
			ok     bool
		}{
			{0, true},
			{299 * time.Second, true},
			{300 * time.Second, true},
			{300*time.Second + 999*time.Millisecond, true}, // whole seconds
			{301 * time.Second, false},
			{-299 * time.Second, true},
			{-300 * time.Second, true},
			{-301 * time.Second, false},
			{time.Hour, false},
			{-time.Hour, false},
			{math.MaxInt64, false},
			{math.MinInt64, false},
		} {
			at := now.Add(c.offset)
			if c.ok {
				_, err := scheme.Verify(m, keys, at, tolerance)
				require.NoError(t, err, "%s %v", scheme.Name(), c.offset)
				require.NoError(t, scheme.Precheck(m.Header, at, tolerance))
				continue
			}
			refused(t, scheme, m, keys, at, signing.ErrTimestampOutsideWindow, fmt.Sprint(scheme.Name(), c.offset))
		}
		_, err := scheme.Verify(m, keys, now.Add(time.Second), 0)
		require.ErrorIs(t, err, signing.ErrTimestampOutsideWindow)
		_, err = scheme.Verify(m, keys, now, -1)
		require.ErrorIs(t, err, signing.ErrTimestampOutsideWindow)
		_, err = scheme.Verify(m, keys, now.Add(math.MaxInt64), math.MaxInt64)
		require.NoError(t, err, "the largest tolerance")
		_, err = scheme.Verify(m, keys, now.Add(-9_223_372_036*time.Second), math.MaxInt64)
		require.NoError(t, err, "the largest tolerance")
	}
}

func TestWindowAtTheEndsOfTheClock(t *testing.T) {
	keys := ringOf(t, publishedHMAC)
	for _, text := range []string{"1", "1700000000", "99999999999"} {
		m := withTimestamp(t, text)
		for _, unix := range []int64{math.MinInt64, math.MinInt64 + 1, math.MaxInt64, math.MaxInt64 - 1, math.MinInt64 + 99999999999, math.MaxInt64 - 62135596800} {
			for _, tolerance := range []time.Duration{time.Second, tolerance, math.MaxInt64} {
				_, err := signing.TimestampBody{}.Verify(m, keys, time.Unix(unix, 0), tolerance)
				var outside *signing.TimestampError
				require.ErrorAs(t, err, &outside, "%s at %d", text, unix)
				require.Equal(t, time.Unix(unix, 0).Unix() > 0, outside.Skew > 0)
			}
		}
		_, err := signing.TimestampBody{}.Verify(m, keys, time.Time{}, tolerance)
		require.ErrorIs(t, err, signing.ErrTimestampOutsideWindow)
	}
}

func TestTimestampErrorSaysHowFar(t *testing.T) {
	keys := ringOf(t, publishedHMAC)
	m := signed(t, signing.TimestampBody{}, keys, now)
	for _, c := range []struct {
		at   time.Time
		skew time.Duration
		text string
	}{
		{now.Add(301 * time.Second), 301 * time.Second, "signing: timestamp is 301 s behind the clock here: at most 300 s are accepted"},
		{now.Add(-500 * time.Second), -500 * time.Second, "signing: timestamp is 500 s ahead of the clock here: at most 300 s are accepted"},
	} {
		err := signing.TimestampBody{}.Precheck(m.Header, c.at, tolerance)
		outside, ok := errors.AsType[*signing.TimestampError](err)
		require.True(t, ok)
		require.Empty(t, cmp.Diff(signing.TimestampError{Timestamp: now.UTC(), Skew: c.skew, Tolerance: tolerance}, *outside))
		require.EqualError(t, err, c.text)
	}
}

// The window is decided before any MAC, so that a stale request costs nothing.
func TestTheWindowComesBeforeTheSignature(t *testing.T) {
	m := withTimestamp(t, seconds(now))
	m.Body = []byte("another")
	_, err := signing.TimestampBody{}.Verify(m, nil, now.Add(time.Hour), tolerance)
	require.ErrorIs(t, err, signing.ErrTimestampOutsideWindow)
}
