package signing_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/race"
	"github.com/surehook/surehook/signing"
)

func TestVerifyingAllocatesNothing(t *testing.T) {
	for _, scheme := range signing.DefaultSchemes() {
		t.Run(scheme.Name(), func(t *testing.T) {
			keys := ring(t, signing.Key{ID: "old", Secret: signing.GenerateSecret()}, signing.Key{ID: "new", Secret: signing.GenerateSecret()})
			m := delivery(t, scheme, keys, 1<<10)
			v, err := signing.NewVerifier(keys, &signing.VerifierConfig{Schemes: []signing.Scheme{scheme}})
			require.NoError(t, err)

			var verified signing.Verified
			allocs := testing.AllocsPerRun(200, func() {
				if err = v.Precheck(m.Header); err == nil {
					verified, err = v.Verify(m)
				}
			})
			require.NoError(t, err)
			require.Equal(t, "new", verified.KeyID)
			if !race.Enabled {
				require.Zero(t, allocs, fmt.Sprintf("%s must verify without allocating", scheme.Name()))
			}
		})
	}
}

// Three: the text of the timestamp, the text of the signature, and the values of
// the headers.
func TestSigningAllocatesLittle(t *testing.T) {
	for _, scheme := range signing.DefaultSchemes() {
		keys := ring(t, signing.Key{Secret: signing.GenerateSecret()})
		m := delivery(t, scheme, keys, 1<<10)
		var err error
		allocs := testing.AllocsPerRun(200, func() { err = scheme.Sign(m.Header, eventID, now, m.Body, keys) })
		require.NoError(t, err)
		if !race.Enabled {
			require.LessOrEqual(t, allocs, 3.0, scheme.Name())
		}
	}
}

// All of them, Ed25519 and Linear's look into the body included. The first run fills
// the pools.
func TestVerifyingWithEverySchemeAllocatesNothing(t *testing.T) {
	for _, s := range senders(t) {
		keys := s.keys(t, secretA, secretB)
		m := s.message(t, keys)
		v, err := signing.NewVerifier(keys, &signing.VerifierConfig{Schemes: []signing.Scheme{s.scheme}, Deduplicated: true, Now: at(now)})
		require.NoError(t, err)
		allocs := testing.AllocsPerRun(200, func() {
			if err = v.Precheck(m.Header); err == nil {
				_, err = v.Verify(m)
			}
		})
		require.NoError(t, err, s.scheme.Name())
		if !race.Enabled {
			require.Zero(t, allocs, s.scheme.Name())
		}
	}
}
