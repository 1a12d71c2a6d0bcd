package sender

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Through any number of rotations, what is sealed opens as long as its key is there,
// in its row and in no other; and sealed anew it needs the new key alone.
func TestPropertySealedSurvivesRotation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := func(i int) SealingKey {
			return SealingKey{ID: fmt.Sprint("key-", i), Key: bytes.Repeat([]byte{byte(i + 1)}, 32)}
		}
		bound := rapid.StringMatching(`[a-z_|]{1,20}`).Draw(t, "bound")
		plain := rapid.SliceOf(rapid.Byte()).Draw(t, "plain")
		rotations := rapid.IntRange(1, 6).Draw(t, "rotations")
		keys, err := NewKeys(key(0))
		require.NoError(t, err)
		sealed, sealedWith := keys.sealFor(bound, plain), 0
		for i := 1; i <= rotations; i++ {
			var older []SealingKey
			for j := range i {
				if rapid.Bool().Draw(t, "kept") {
					older = append(older, key(j))
				}
			}
			keys, err := NewKeys(key(i), older...)
			require.NoError(t, err)
			has := slices.ContainsFunc(older, func(k SealingKey) bool { return k.ID == fmt.Sprint("key-", sealedWith) })
			got, err := keys.openFor(bound, sealed)
			if !has {
				require.ErrorIs(t, err, ErrSealed)
				require.ErrorContains(t, err, fmt.Sprint("key-", sealedWith), "it says which key is asked for")
				require.ErrorIs(t, keys.missing([]string{fmt.Sprint("key-", sealedWith)}), ErrSealed)
				continue
			}
			require.NoError(t, err)
			require.Equal(t, string(plain), string(got))
			_, err = keys.openFor(bound+"'", sealed)
			require.ErrorIs(t, err, ErrSealed)
			if rapid.Bool().Draw(t, "renewed") {
				sealed, err = keys.renewFor(bound, sealed)
				require.NoError(t, err)
				id, err := keyOf(sealed)
				require.NoError(t, err)
				require.Equal(t, fmt.Sprint("key-", i), id)
				sealedWith = i
			}
		}
	})
}
