package backoff_test

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surehook/surehook/backoff"
)

func upTo(most time.Duration) *rapid.Generator[time.Duration] {
	return rapid.Custom(func(t *rapid.T) time.Duration { return time.Duration(rapid.Int64Range(0, int64(most)).Draw(t, "ns")) })
}

// A receiver's Retry-After only ever makes a delay longer, and never past the horizon.
func TestPropertyRetryAfterOnlyLengthens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := backoff.Policy{
			Jitter:  rapid.SampledFrom([]backoff.Jitter{backoff.None(), backoff.Full(), backoff.Equal(), backoff.Proportional(0.3)}).Draw(t, "jitter"),
			Horizon: 1 + upTo(100*time.Hour).Draw(t, "horizon"), MaxRetryAfter: upTo(48*time.Hour).Draw(t, "most"),
		}
		s := backoff.State{Attempt: rapid.IntRange(1, 40).Draw(t, "attempt"), Age: upTo(110*time.Hour).Draw(t, "age")}
		chance := rapid.Float64Range(0, 0.999999).Draw(t, "chance")
		plain, again := p.Next(s, chance)
		s.RetryAfter = upTo(72*time.Hour).Draw(t, "retry after")
		asked, stillAgain := p.Next(s, chance)
		require.Equal(t, again, stillAgain)
		require.Equal(t, s.Age < p.Horizon, again, "final exactly at the horizon")
		if !again {
			return
		}
		left := p.Horizon - s.Age
		require.Equal(t, min(p.Jitter.Apply(p.WithDefaults().Schedule.Delay(s.Attempt), chance), left), plain)
		require.GreaterOrEqual(t, asked, plain)
		require.LessOrEqual(t, s.Age+asked, p.Horizon)
		want := min(s.RetryAfter, p.WithDefaults().MaxRetryAfter, p.Horizon-s.Age)
		require.GreaterOrEqual(t, asked, want, "no post before it was asked for")
	})
}

// Every value that net/http writes into the header is read back.
func TestPropertyRetryAfterIsReadAsItWasMeant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "now"), 0).UTC()
		wait := time.Duration(rapid.Int64Range(0, 1e6).Draw(t, "seconds")) * time.Second
		space := rapid.SampledFrom([]string{"", " ", "\t "}).Draw(t, "space")
		for _, text := range []string{strconv.FormatInt(int64(wait/time.Second), 10), now.Add(wait).Format(http.TimeFormat)} {
			got, ok := backoff.ParseRetryAfter(space+text+space, now)
			require.True(t, ok, text)
			require.Equal(t, wait, got, text)
		}
		_, ok := backoff.ParseRetryAfter("-"+strconv.FormatInt(int64(wait/time.Second), 10), now)
		require.False(t, ok)
	})
}
