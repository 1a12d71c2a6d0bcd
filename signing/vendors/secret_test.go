package vendors_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/signing"
	"github.com/surehook/surehook/signing/vendors"
)

// A secret is read in the form in which its vendor shows it, and in no other.
func TestSecret(t *testing.T) {
	hexed, based := strings.Repeat("0123456789abcdef", 4), "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	for key, c := range map[vendors.Key]struct{ right, wrong, says string }{
		vendors.Whsec:         {"whsec_" + based, "short", ""},
		vendors.Base64:        {based, "short", ""},
		vendors.Ed25519Hex:    {hexed, based, ""},
		vendors.Ed25519Base64: {based, "not base64", "a public key of Acme is base64"},
		vendors.Certificate:   {"", "x", "its certificates are fetched"},
		vendors.PublicKeys:    {"", "x", "its public keys are fetched"},
	} {
		v := vendors.Vendor{Title: "Acme", Key: key}
		_, err := v.Secret(c.wrong)
		require.ErrorIs(t, err, signing.ErrSecret, key)
		require.ErrorContains(t, err, c.says)
		if c.right != "" {
			s, err := v.Secret(c.right)
			require.NoError(t, err, key)
			again, err := v.Secret(s.Reveal()) // as it was sealed at rest
			require.NoError(t, err, key)
			require.Equal(t, s.Fingerprint(), again.Fingerprint(), key)
		}
	}
}
