package rules_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/rules"
)

func TestBytes(t *testing.T) {
	b := rules.NewBytes(10)
	require.True(t, b.Take(1, 6))
	require.True(t, b.Take(1, 6), "its body is counted already")
	require.True(t, b.Take(2, 4))
	require.True(t, b.Take(3, 0))
	require.True(t, b.Take(1, 6), "also after others")
	require.False(t, b.Over())
	require.False(t, b.Take(4, 1))
	require.True(t, b.Over())
	require.False(t, b.Take(1, 6), "what comes behind one that was refused waits for it")
	require.False(t, b.Take(5, 0))
}

func TestBytesLetOneGo(t *testing.T) {
	b := rules.NewBytes(10)
	require.True(t, b.Take(1, 1000))
	require.True(t, b.Take(1, 1000))
	require.False(t, b.Take(2, 0), "nothing goes beside one that is too large")
}

func TestBytesAgain(t *testing.T) {
	var b rules.Bytes
	require.True(t, b.Again(10).Take(1, 10))
	require.False(t, b.Take(2, 1))
	require.True(t, b.Again(5).Take(2, 5))
	require.False(t, b.Over())
	require.False(t, b.Take(1, 1), "what was counted before is not counted any more")
	require.True(t, b.Again(0).Take(1, 1))
	require.True(t, b.Take(2, 1), "without a bound")
}

func TestNoBoundOfBytes(t *testing.T) {
	b := rules.NewBytes(0)
	for event := range int64(100) {
		require.True(t, b.Take(event, 1<<40))
	}
	require.False(t, b.Over())
}
