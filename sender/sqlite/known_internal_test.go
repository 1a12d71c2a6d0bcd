package sqlite

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/internal/lru"
)

// If there are more entries than fit, the ones that were used last stay, and no more of
// them than the bound.
func TestKnownForgetsTheOldest(t *testing.T) {
	k := known{asked: lru.New[asked, []asker](knownLimit + 1)}
	list := make([]asker, 99)
	for no := range int64(knownLimit / 100) {
		k.remember(asked{subscriber: no + 1}, list)
	}
	require.Equal(t, knownLimit/100, k.asked.Len())
	_, ok := k.asked.Get(asked{subscriber: 1})
	require.True(t, ok)
	k.remember(asked{subscriber: knownLimit}, list)
	require.LessOrEqual(t, k.size, knownLimit)
	_, first := k.asked.Get(asked{subscriber: 1})
	_, second := k.asked.Get(asked{subscriber: 2})
	require.Equal(t, []bool{true, false}, []bool{first, second})
}
