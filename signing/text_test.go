package signing_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/signing"
)

func rsaKey(t *testing.T, bits int) (*rsa.PrivateKey, string) {
	t.Helper()
	t.Setenv("GODEBUG", "rsa1024min=0") // to make one that is refused
	private, err := rsa.GenerateKey(rand.Reader, bits)
	require.NoError(t, err)
	der, err := x509.MarshalPKIXPublicKey(&private.PublicKey)
	require.NoError(t, err)
	return private, base64.StdEncoding.EncodeToString(der)
}

func TestParseRSAPublicKey(t *testing.T) {
	private, text := rsaKey(t, 2048)
	der, err := base64.StdEncoding.DecodeString(text)
	require.NoError(t, err)
	block := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	var prints []string
	for _, form := range []string{text, block("PUBLIC KEY", der), block("RSA PUBLIC KEY", x509.MarshalPKCS1PublicKey(&private.PublicKey))} {
		s, err := signing.ParseRSAPublicKey(form)
		require.NoError(t, err)
		require.Equal(t, form, s.Reveal())
		prints = append(prints, s.Fingerprint())
	}
	require.Equal(t, []string{prints[0], prints[0], prints[0]}, prints, "one key, whatever its form")
	_, short := rsaKey(t, 1024)
	_, ec := ecdsaKey(t)
	for _, form := range []string{
		"", "x", short, ec.Reveal(), text + "x", strings.Repeat("A", 5000), block("PUBLIC KEY", der) + "x",
		block("PUBLIC KEY", x509.MarshalPKCS1PublicKey(&private.PublicKey)), block("RSA PUBLIC KEY", der), block("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(private)),
	} {
		_, err := signing.ParseRSAPublicKey(form)
		require.ErrorIs(t, err, signing.ErrSecret, form)
	}
}

// Each algorithm takes the signature of its own key over the text alone, and none of another
// algorithm or key. A text that names a key is tried with that one, however many are newer.
func TestTexts(t *testing.T) {
	private, shown := rsaKey(t, 2048)
	rsaPublic, err := signing.ParseRSAPublicKey(shown)
	require.NoError(t, err)
	ecPrivate, ecPublic := ecdsaKey(t)
	message := []byte("a text")
	sum, long := sha256.Sum256(message), sha512.Sum512(message)
	made := func(signature []byte, err error) []byte {
		require.NoError(t, err)
		return signature
	}
	keys := ring(t, signing.Key{ID: "rsa", Secret: rsaPublic}, signing.Key{ID: "ec", Secret: ecPublic}, signing.Key{ID: "ed", Secret: privateKey(t, secretA)}, signing.Key{ID: "mac", Secret: textSecret(t, secretA)},
		signing.Key{ID: "b", Secret: textSecret(t, secretB)}, signing.Key{ID: "c", Secret: textSecret(t, secretB+"c")}, signing.Key{ID: "old", Secret: textSecret(t, secretB+"o"), NotAfter: now})
	signatures := map[signing.Algorithm][]byte{
		signing.RSASHA256:    made(private.Sign(rand.Reader, sum[:], crypto.SHA256)),
		signing.RSAPSSSHA512: made(private.Sign(rand.Reader, long[:], &rsa.PSSOptions{SaltLength: 64, Hash: crypto.SHA512})),
		signing.ECDSAP256:    made(ecPrivate.Sign(rand.Reader, sum[:], crypto.SHA256)),
	}
	ids := map[signing.Algorithm]string{signing.RSASHA256: "rsa", signing.RSAPSSSHA512: "rsa", signing.ECDSAP256: "ec", signing.Ed25519: "ed", signing.HMACSHA256: "mac", signing.HMACSHA512: "mac", signing.HMACSHA1: "mac"}
	for a, id := range ids {
		text := &signing.Text{Algorithm: a, KeyID: id, Bytes: message}
		signature, by, err := keys.SignText(text, now)
		if signatures[a] != nil {
			require.ErrorIs(t, err, signing.ErrSecretUnsuited, "its key is public")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, id, by)
		signatures[a] = signature
	}
	for a, id := range ids {
		text := &signing.Text{Algorithm: a, KeyID: id, Bytes: message}
		require.True(t, keys.Suits(text))
		require.True(t, keys.Suits(&signing.Text{Algorithm: a}), "whichever key it is")
		require.False(t, keys.Suits(&signing.Text{Algorithm: a, KeyID: "none"}))
		for other, otherID := range ids {
			require.Equal(t, otherID == id, keys.Suits(&signing.Text{Algorithm: other, KeyID: id}), "%v with %s", other, id)
		}
		for b, signature := range signatures {
			text.Algorithm = b
			got, err := keys.VerifyText(text, signature, now)
			if ids[b] == id {
				require.NoError(t, err)
				require.Equal(t, id, got)
			} else {
				require.ErrorIs(t, err, signing.ErrNoValidKey, "the key is of another kind")
			}
			text.Bytes = []byte("another")
			_, err = keys.VerifyText(text, signature, now)
			require.Error(t, err)
			text.Bytes = message
		}
	}
	_, err = keys.VerifyText(&signing.Text{Algorithm: signing.HMACSHA256, KeyID: "old", Bytes: message}, signatures[signing.HMACSHA256], now.Add(time.Second))
	require.ErrorIs(t, err, signing.ErrNoValidKey, "it has ended")
	_, err = keys.VerifyText(&signing.Text{Algorithm: signing.HMACSHA256, KeyID: "none", Bytes: message}, signatures[signing.HMACSHA256], now)
	require.ErrorIs(t, err, signing.ErrNoValidKey)
	salted := made(private.Sign(rand.Reader, long[:], &rsa.PSSOptions{SaltLength: 190, Hash: crypto.SHA512}))
	_, err = keys.VerifyText(&signing.Text{Algorithm: signing.RSAPSSSHA512, KeyID: "rsa", Bytes: message}, salted, now)
	require.NoError(t, err, "the longest salt, as Node has it by default")
	_, err = keys.VerifyText(&signing.Text{Algorithm: signing.RSASHA256, KeyID: "rsa", Bytes: message}, signatures[signing.RSAPSSSHA512], now)
	require.ErrorIs(t, err, signing.ErrSignatureMismatch)
	require.False(t, (*signing.Keyring)(nil).Suits(&signing.Text{}))
	for _, id := range []string{"", "mac"} {
		_, err = (*signing.Keyring)(nil).VerifyText(&signing.Text{KeyID: id}, nil, now)
		require.ErrorIs(t, err, signing.ErrNoValidKey)
	}
	unknown := &signing.Text{Algorithm: 99, Bytes: message}
	require.False(t, keys.Suits(unknown))
	_, err = keys.VerifyText(unknown, signatures[signing.HMACSHA256], now)
	require.ErrorIs(t, err, signing.ErrNoValidKey)
	_, _, err = keys.SignText(unknown, now)
	require.ErrorIs(t, err, signing.ErrSecretUnsuited)
}
