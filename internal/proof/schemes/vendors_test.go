package schemes_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/PagerDuty/go-pagerduty/webhookv3"
	line "github.com/line/line-bot-sdk-go/v8/linebot/webhook"
	"github.com/mailgun/mailgun-go/v4"
	razorpay "github.com/razorpay/razorpay-go/utils"
	"github.com/sendgrid/sendgrid-go/helpers/eventwebhook"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/signing"
	"github.com/surehook/surehook/signing/vendors"
)

func vendor(tb testing.TB, name string) (vendors.Vendor, signing.Scheme) {
	tb.Helper()
	v, found := vendors.Find(name)
	require.True(tb, found, name)
	s, err := v.Scheme("")
	require.NoError(tb, err)
	return v, s
}

func ringOf(tb testing.TB, v vendors.Vendor, text string) *signing.Keyring {
	tb.Helper()
	secret, err := v.Secret(text)
	require.NoError(tb, err)
	keys, err := signing.NewKeyring(signing.Key{Secret: secret})
	require.NoError(tb, err)
	return keys
}

// The vendors' own libraries take what an entry of package vendors signs, and refuse what it
// refuses.
func TestVendorsLibrariesVerify(t *testing.T) {
	mismatch := func(ok bool) error {
		if ok {
			return nil
		}
		return errors.New("no match")
	}
	for name, verify := range map[string]func(h http.Header, body []byte) error{
		"pagerduty": func(h http.Header, body []byte) error { return webhookv3.VerifySignature(request(h, body), text) },
		"line": func(h http.Header, body []byte) error {
			return mismatch(line.ValidateSignature(text, h.Get("X-Line-Signature"), body))
		},
		"razorpay": func(h http.Header, body []byte) error {
			return mismatch(razorpay.VerifyWebhookSignature(string(body), h.Get("X-Razorpay-Signature"), text))
		},
	} {
		v, s := vendor(t, name)
		for _, body := range [][]byte{[]byte("{}"), []byte(`{"name":"Zoë 🚀"}`), []byte(strings.Repeat("x", 5000))} {
			h := http.Header{}
			require.NoError(t, s.Sign(h, eventID, time.Now(), body, ringOf(t, v, text)), name)
			require.NoError(t, verify(h, body), name)
			require.Error(t, verify(h, append([]byte(" "), body...)), name)
			require.NoError(t, s.Sign(h, eventID, time.Now(), body, ringOf(t, v, other)), name)
			require.Error(t, verify(h, body), name)
		}
	}
}

func TestMailgun(t *testing.T) {
	v, s := vendor(t, "mailgun")
	mg := mailgun.NewMailgun("example.com", "key")
	mg.SetWebhookSigningKey(text)
	at := time.Now()
	for _, signature := range []string{macOf(text, seconds(at)+other), macOf(other, seconds(at)+other)} {
		theirs, err := mg.VerifyWebhookSignature(mailgun.Signature{TimeStamp: seconds(at), Token: other, Signature: signature})
		require.NoError(t, err)
		body := fmt.Sprintf(`{"signature":{"timestamp":"%s","token":"%s","signature":"%s"},"event-data":{}}`, seconds(at), other, signature)
		_, err = s.Verify(signing.Message{Body: []byte(body)}, ringOf(t, v, text), at, time.Minute)
		require.Equal(t, theirs, err == nil)
	}
}

func macOf(key, text string) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(text))
	return hex.EncodeToString(mac.Sum(nil))
}

func TestSendGrid(t *testing.T) {
	v, s := vendor(t, "sendgrid")
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalPKIXPublicKey(&private.PublicKey)
	require.NoError(t, err)
	shown := base64.StdEncoding.EncodeToString(der)
	public, err := eventwebhook.ConvertPublicKeyBase64ToECDSA(shown)
	require.NoError(t, err)
	at, body := time.Now(), []byte("[{}]\r\n")
	sum := sha256.Sum256(append([]byte(seconds(at)), body...))
	raw, err := ecdsa.SignASN1(rand.Reader, private, sum[:])
	require.NoError(t, err)
	signature := base64.StdEncoding.EncodeToString(raw)
	for _, c := range []struct {
		body string
		good bool
	}{{string(body), true}, {"[{}]", false}} {
		theirs, err := eventwebhook.VerifySignature(public, []byte(c.body), signature, seconds(at))
		require.NoError(t, err)
		require.Equal(t, c.good, theirs)
		h := http.Header{"X-Twilio-Email-Event-Webhook-Signature": {signature}, "X-Twilio-Email-Event-Webhook-Timestamp": {seconds(at)}}
		_, err = s.Verify(signing.Message{Header: h, Body: []byte(c.body)}, ringOf(t, v, shown), at, time.Minute)
		require.Equal(t, c.good, err == nil)
	}
}
