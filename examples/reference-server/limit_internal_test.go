package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRates(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	r := newRates(4, 4)
	r.now = func() time.Time { return now }
	took := func(id string) (n int) {
		for {
			wait, ok := r.take(id)
			if !ok {
				require.Positive(t, wait)
				require.LessOrEqual(t, wait, 250*time.Millisecond)
				return n
			}
			n++
		}
	}
	require.Equal(t, 4, took("a"))
	require.Equal(t, 4, took("b"), "each has its own")
	now = now.Add(500 * time.Millisecond)
	require.Equal(t, 2, took("a"))
	now = now.Add(time.Hour)
	require.Equal(t, 4, took("a"), "no more is saved up")

	for i := range 2 * forgetCallers {
		_, ok := r.take(fmt.Sprint(i))
		require.True(t, ok)
		now = now.Add(2 * time.Millisecond)
	}
	require.Less(t, len(r.callers), 2*forgetCallers-1)
	_, ok := newRates(0, 0).take("a")
	require.True(t, ok, "no limit")

	guesses := newRates(guessesAtOnce, guessesASecond)
	guesses.now = r.now
	for range 100 {
		_, ok := guesses.take("a")
		require.True(t, ok, "what is given back does not count")
		guesses.giveBack("a")
	}
	for range guessesAtOnce {
		_, ok := guesses.take("a")
		require.True(t, ok)
	}
	wait, ok := guesses.take("a")
	require.False(t, ok)
	require.Equal(t, 2*time.Second, wait)
}
