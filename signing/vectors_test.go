package signing_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/signing"
)

// RFC 4231 test case 7: a key and data longer than a block. Its data has a full
// stop, so it goes through the function that both schemes use.
func TestRFC4231(t *testing.T) {
	mac := signing.MAC(bytes.Repeat([]byte{0xaa}, 131),
		"This is a test using a larger than block-size key and a larger than block-size data",
		[]byte(" The key needs to be hashed before being used by the HMAC algorithm."))
	require.Equal(t, "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2", hex.EncodeToString(mac[:]))
}

// RFC 8032 section 7.1, tests 1 to 3.
func TestRFC8032(t *testing.T) {
	for _, c := range []struct{ seed, public, message, signature string }{
		{
			"9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
			"d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
			"e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
		},
		{
			"4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
			"3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
			"92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
		},
		{
			"c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
			"fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
			"6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
		},
	} {
		private := secret(t, "whsk_"+base64.StdEncoding.EncodeToString(unhex(t, c.seed)))
		public := secret(t, "whpk_"+base64.StdEncoding.EncodeToString(unhex(t, c.public)))
		message, signature := unhex(t, c.message), unhex(t, c.signature)
		require.Equal(t, signature, signing.SignBytes(private, message))
		require.True(t, signing.VerifyBytes(public, message, signature))
		require.False(t, signing.VerifyBytes(public, append(message, 0), signature))
	}
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	require.NoError(t, err)
	return b
}

// The values that the libraries of Standard Webhooks share in their tests, and those
// of the Svix server's test_asymmetric_key_signing, which the specification shows
// as its example of v1a.
const (
	publishedID   = "msg_p5jXN8AQM9LWM0D4loKWxJek"
	publishedTime = 1614265330
	publishedBody = `{"test": 2432232314}`
	publishedV1   = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	publishedV1a  = "v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg=="
	otherV1       = "v1,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc="
)

func published(signature string) signing.Message {
	return signing.Message{
		Header: http.Header{
			"Webhook-Id":        {publishedID},
			"Webhook-Timestamp": {"1614265330"},
			"Webhook-Signature": {signature},
		},
		Body: []byte(publishedBody),
	}
}

func TestStandardWebhooksPublishedValues(t *testing.T) {
	at := time.Unix(publishedTime, 0)
	for _, c := range []struct {
		what, secret, signature string
		want                    error
	}{
		{"v1", publishedHMAC, publishedV1, nil},
		{"secret without its prefix", publishedHMAC[len("whsec_"):], publishedV1, nil},
		{"list", publishedHMAC, otherV1 + " v2," + otherV1[3:] + " " + publishedV1 + " " + otherV1, nil},
		{"v1a", publishedPublic, publishedV1a, nil},
		{"v1a with the private key", publishedPrivate, publishedV1a, nil},
		{"v1a with the seed", publishedSeed, publishedV1a, nil},
		{"both, HMAC secret", publishedHMAC, publishedV1a + " " + publishedV1, nil},
		{"both, public key", publishedPublic, publishedV1 + " " + publishedV1a, nil},
		{"last character altered", publishedHMAC, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OA=", signing.ErrSignatureMismatch},
		{"nothing after the comma", publishedHMAC, "v1,", signing.ErrMalformedHeader},
		{"v1 as v1a", publishedPublic, "v1a," + publishedV1[3:], signing.ErrMalformedHeader},
		{"v1 as v2", publishedHMAC, "v2," + publishedV1[3:], signing.ErrMalformedHeader},
		{"v1 alone for a public key", publishedPublic, publishedV1, signing.ErrSignatureMismatch},
		{"v1a alone for an HMAC secret", publishedHMAC, publishedV1a, signing.ErrSignatureMismatch},
	} {
		verified, err := signing.StandardWebhooks{}.Verify(published(c.signature), ringOf(t, c.secret), at, tolerance)
		require.ErrorIs(t, err, c.want, c.what)
		if c.want == nil {
			require.Equal(t, publishedID, verified.ID, c.what)
			require.True(t, at.Equal(verified.Timestamp), c.what)
		}
	}

	for _, c := range []struct{ secret, signature string }{
		{publishedHMAC, publishedV1},
		{publishedPrivate, publishedV1a},
		{publishedSeed, publishedV1a},
	} {
		h := http.Header{}
		require.NoError(t, signing.StandardWebhooks{}.Sign(h, publishedID, at, []byte(publishedBody), ringOf(t, c.secret)))
		require.Equal(t, published(c.signature).Header, h)
	}
}
