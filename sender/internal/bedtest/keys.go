package bedtest

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
)

// NewKeys seals with the key of an id, and opens as well what older ones have sealed. Keys
// of one id are equal.
func NewKeys(t *testing.T, id string, older ...string) *sender.Keys {
	t.Helper()
	key := func(id string) sender.SealingKey {
		return sender.SealingKey{ID: id, Key: bytes.Repeat([]byte(id), 32)}
	}
	var olderKeys []sender.SealingKey
	for _, id := range older {
		olderKeys = append(olderKeys, key(id))
	}
	keys, err := sender.NewKeys(key(id), olderKeys...)
	require.NoError(t, err)
	return keys
}
