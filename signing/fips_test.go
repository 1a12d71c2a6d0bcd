package signing_test

import (
	"bytes"
	"crypto/fips140"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/signing"
	"github.com/surehook/surehook/signing/sns"
	"github.com/surehook/surehook/signing/vendors"
)

// Under GODEBUG=fips140=only everything works that needs no SHA-1. What needs it is refused
// before there is a request, with the setting's name, and nothing panics.
func TestFIPS140Only(t *testing.T) {
	if !fips140.Enforced() {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFIPS140Only$") //nolint:gosec // this program
		child.Env = append(os.Environ(), "GODEBUG=fips140=only")
		out, err := child.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return
	}
	var all []vendorRequest
	fips140.WithoutEnforcement(func() { all = vendorRequests(t) }) // they are others' requests
	for _, r := range all {
		v := r.vendor
		t.Run(v.Name, func(t *testing.T) {
			scheme, err := schemeOf(v, map[bool]string{true: vendorURL}[v.NeedsURL()])
			verifier := new(signing.Verifier)
			if err == nil {
				verifier, err = signing.NewVerifier(r.keys, &signing.VerifierConfig{Schemes: []signing.Scheme{scheme}, Deduplicated: true, UnsignedBody: true, Now: at(now)})
			}
			if v.Kind == vendors.Twilio || v.Kind == vendors.Braintree || v.Description.Algorithm == signing.HMACSHA1 {
				require.ErrorContains(t, err, "fips140=only")
				return
			}
			require.NoError(t, err)
			_, _, err = verifier.VerifyFacts(r.m)
			require.NoError(t, err)
			r.m.Body = append(bytes.Clone(r.m.Body), ' ')
			_ = verifier.Diagnose(r.m)
		})
	}

	// Its base64 is a key that is too short, and Diagnose tries that one, too.
	secret, err := signing.ParseTextSecret("MDEyMzQ1Njc4OUFC")
	require.NoError(t, err)
	m := signedWith(now, diagnosedSecret, "{}")
	require.NotNil(t, diagnosing(t, &signing.VerifierConfig{Now: at(now)}, signing.Key{Secret: secret}).Diagnose(m))

	text := &signing.Text{Algorithm: signing.HMACSHA1, Bytes: []byte("text")}
	_, err = ringOf(t, secretA).VerifyText(text, make([]byte, 20), now)
	require.ErrorIs(t, err, signing.ErrSecretUnsuited)
	_, _, err = ringOf(t, secretA).SignText(text, now)
	require.ErrorIs(t, err, signing.ErrSecretUnsuited)

	_, err = sns.New([]string{"arn:aws:sns:eu-west-1:123456789012:orders"}, &sns.Config{SHA1: true})
	require.ErrorContains(t, err, "fips140=only")

	small, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	small.E = 3
	der, err := x509.MarshalPKIXPublicKey(&small.PublicKey)
	require.NoError(t, err)
	_, err = signing.ParseRSAPublicKey(base64.StdEncoding.EncodeToString(der))
	require.ErrorIs(t, err, signing.ErrSecret)
	require.ErrorContains(t, err, "public exponent")
}
