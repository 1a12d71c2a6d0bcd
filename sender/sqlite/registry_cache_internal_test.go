package sqlite

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/internal/lru"
)

// If there are more entries than fit, the ones that were used last stay, and no more of
// them than the bound.
func TestRegistryCacheForgetsTheOldest(t *testing.T) {
	k := registryCache{matched: lru.New[question, []match](registryCacheLimit + 1)}
	list := make([]match, 99)
	for no := range int64(registryCacheLimit / 100) {
		k.remember(question{subscriber: no + 1}, list)
	}
	require.Equal(t, registryCacheLimit/100, k.matched.Len())
	_, ok := k.matched.Get(question{subscriber: 1})
	require.True(t, ok)
	k.remember(question{subscriber: registryCacheLimit}, list)
	require.LessOrEqual(t, k.size, registryCacheLimit)
	_, first := k.matched.Get(question{subscriber: 1})
	_, second := k.matched.Get(question{subscriber: 2})
	require.Equal(t, []bool{true, false}, []bool{first, second})
}
