package lru_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/internal/lru"
)

func TestMapForgetsWhatWasUsedLongestAgo(t *testing.T) {
	m := lru.New[string, int](2)
	get := func(key string) int {
		v, ok := m.Get(key)
		require.Equal(t, ok, v != 0)
		return v
	}
	m.Put("a", 1)
	m.Put("b", 2)
	require.Equal(t, 1, get("a"))
	m.Put("c", 3)
	require.Equal(t, 2, m.Len())
	require.Zero(t, get("b"))
	require.Equal(t, 1, get("a"))
	m.Put("c", 4)
	m.Put("d", 5)
	require.Zero(t, get("a"), "c was set again")
	require.Equal(t, 4, get("c"))
	m.Delete("c")
	m.Delete("none")
	require.Zero(t, get("c"))
	require.Equal(t, 5, get("d"))
	require.Equal(t, 1, m.Len())
	m.Put("e", 6)
	oldest, ok := m.DeleteOldest()
	require.Equal(t, []any{5, true}, []any{oldest, ok})
	require.Equal(t, 6, get("e"))
	_, _ = m.DeleteOldest()
	_, ok = m.DeleteOldest()
	require.False(t, ok)
	require.Zero(t, m.Len())
}
