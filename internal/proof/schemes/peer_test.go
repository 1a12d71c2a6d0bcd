package schemes_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	paddle "github.com/PaddleHQ/paddle-go-sdk/v4"
	"github.com/bwmarrin/discordgo"
	"github.com/google/go-github/v90/github"
	"github.com/slack-go/slack"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"
	"github.com/stripe/stripe-go/v86/webhook"
	svix "github.com/svix/svix-webhooks/go"
	twilio "github.com/twilio/twilio-go/client"

	"github.com/surehook/surehook/signing"
)

const (
	eventID   = "evt_0123456789abcdefghijklmn"
	text      = "0123456789abcdef0123456789abcdef"
	other     = "fedcba9876543210fedcba9876543210"
	twilioURL = "https://example.com/sms?tenant=7"
)

// peer is a scheme and the library that its sender offers.
type peer struct {
	scheme signing.Scheme
	secret func(testing.TB, string) signing.Secret
	// verify is the library's answer to a request, or nil if it accepts it.
	verify func(tb testing.TB, h http.Header, body []byte) error
	// sign is the library's own signature, where it has one.
	sign func(tb testing.TB, h http.Header, at time.Time, body []byte)
	// untimed libraries check no time. A lax one checks only that a time is not too
	// old.
	untimed, lax bool
	form         bool
}

func peers(tb testing.TB) []peer {
	tb.Helper()
	whsec := "whsec_" + base64.StdEncoding.EncodeToString([]byte(text))
	twilioScheme, err := signing.NewTwilio(twilioURL)
	require.NoError(tb, err)
	return []peer{
		{
			scheme: signing.Stripe(), secret: textSecret, lax: true,
			verify: func(_ testing.TB, h http.Header, body []byte) error {
				return webhook.ValidatePayload(body, h.Get("Stripe-Signature"), text)
			},
			sign: func(_ testing.TB, h http.Header, at time.Time, body []byte) {
				p := webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{Payload: body, Secret: text, Timestamp: at})
				h.Set("Stripe-Signature", p.Header)
			},
		},
		{
			scheme: signing.GitHub(), secret: textSecret, untimed: true,
			verify: func(_ testing.TB, h http.Header, body []byte) error {
				return github.ValidateSignature(h.Get(github.SHA256SignatureHeader), body, []byte(text))
			},
		},
		{
			scheme: signing.Meta(), secret: textSecret, untimed: true,
			verify: func(_ testing.TB, h http.Header, body []byte) error {
				return github.ValidateSignature(h.Get(github.SHA256SignatureHeader), body, []byte(text))
			},
		},
		{
			scheme: signing.Slack(), secret: textSecret,
			verify: func(_ testing.TB, h http.Header, body []byte) error {
				v, err := slack.NewSecretsVerifier(h, text)
				if err != nil {
					return err
				}
				if _, err := v.Write(body); err != nil {
					return err
				}
				return v.Ensure()
			},
		},
		{
			scheme: signing.Paddle(), secret: textSecret,
			verify: func(_ testing.TB, h http.Header, body []byte) error {
				v := paddle.NewWebhookVerifier(text, paddle.VerifierWithTimestampTolerance(5*time.Minute))
				ok, err := v.Verify(request(h, body))
				if err == nil && !ok {
					err = errors.New("paddle-go-sdk: no match")
				}
				return err
			},
		},
		{
			scheme: twilioScheme, secret: textSecret, untimed: true, form: true,
			verify: func(_ testing.TB, h http.Header, body []byte) error {
				v := twilio.NewRequestValidator(text)
				if !v.ValidateBody(twilioURL, body, h.Get("X-Twilio-Signature")) {
					return errors.New("twilio-go: no match")
				}
				return nil
			},
		},
		{
			scheme: signing.Discord(), secret: privateKey, untimed: true,
			verify: func(_ testing.TB, h http.Header, body []byte) error {
				key := ed25519.NewKeyFromSeed([]byte(text)).Public().(ed25519.PublicKey)
				if !discordgo.VerifyInteraction(request(h, body), key) {
					return errors.New("discordgo: no match")
				}
				return nil
			},
		},
		{
			scheme: signing.StandardWebhooks{}, secret: base64Secret,
			verify: func(tb testing.TB, h http.Header, body []byte) error {
				w, err := standardwebhooks.NewWebhook(whsec)
				require.NoError(tb, err)
				return w.Verify(body, h)
			},
			sign: func(tb testing.TB, h http.Header, at time.Time, body []byte) {
				w, err := standardwebhooks.NewWebhook(whsec)
				require.NoError(tb, err)
				signature, err := w.Sign(eventID, at, body)
				require.NoError(tb, err)
				standardHeaders(h, "Webhook-", at, signature)
			},
		},
		{
			scheme: signing.Svix(), secret: base64Secret,
			verify: func(tb testing.TB, h http.Header, body []byte) error {
				w, err := svix.NewWebhook(whsec)
				require.NoError(tb, err)
				return w.Verify(body, h)
			},
			sign: func(tb testing.TB, h http.Header, at time.Time, body []byte) {
				w, err := svix.NewWebhook(whsec)
				require.NoError(tb, err)
				signature, err := w.Sign(eventID, at, body)
				require.NoError(tb, err)
				standardHeaders(h, "Svix-", at, signature)
			},
		},
	}
}

func textSecret(tb testing.TB, s string) signing.Secret {
	tb.Helper()
	secret, err := signing.ParseTextSecret(s)
	require.NoError(tb, err)
	return secret
}

func base64Secret(tb testing.TB, s string) signing.Secret {
	tb.Helper()
	secret, err := signing.ParseSecret("whsec_" + base64.StdEncoding.EncodeToString([]byte(s)))
	require.NoError(tb, err)
	return secret
}

func privateKey(tb testing.TB, s string) signing.Secret {
	tb.Helper()
	secret, err := signing.ParseSecret("whsk_" + base64.StdEncoding.EncodeToString([]byte(s)))
	require.NoError(tb, err)
	return secret
}

func request(h http.Header, body []byte) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
	r.Header = h
	return r
}

func (p peer) keys(tb testing.TB, s string) *signing.Keyring {
	tb.Helper()
	keys, err := signing.NewKeyring(signing.Key{Secret: p.secret(tb, s)})
	require.NoError(tb, err)
	return keys
}

func (p peer) ours(tb testing.TB, h http.Header, body []byte) error {
	tb.Helper()
	_, err := p.scheme.Verify(signing.Message{Header: h, Body: body}, p.keys(tb, text), time.Now(), 5*time.Minute)
	return err
}

func (p peer) bodies() [][]byte {
	if p.form {
		return [][]byte{nil, []byte("A=1"), []byte("B=2&A=1&C="), []byte("Body=Hello%2C+w%C3%B6rld%21&From=%2B14158675309")}
	}
	return [][]byte{nil, []byte("{}"), []byte(`{"name":"Zoë 🚀"}`), bytes.Repeat([]byte("x"), 5000), {0, 255, 10, 13}}
}

func TestWhatWeSignTheyVerify(t *testing.T) {
	for _, p := range peers(t) {
		for _, body := range p.bodies() {
			h := http.Header{}
			require.NoError(t, p.scheme.Sign(h, eventID, time.Now(), body, p.keys(t, text)))
			require.NoError(t, p.verify(t, h, body), "%s: %q", p.scheme.Name(), body)
			require.NoError(t, p.ours(t, h, body))
			changed := append(bytes.Clone(body), "&z=1"...)
			require.Error(t, p.verify(t, h, changed), p.scheme.Name())
			require.Error(t, p.ours(t, h, changed), p.scheme.Name())

			require.NoError(t, p.scheme.Sign(h, eventID, time.Now(), body, p.keys(t, other)))
			require.Error(t, p.verify(t, h, body), p.scheme.Name())
			require.Error(t, p.ours(t, h, body), p.scheme.Name())
		}
	}
}

func TestWhatTheySignWeVerify(t *testing.T) {
	signers := 0
	for _, p := range peers(t) {
		if p.sign == nil {
			continue
		}
		signers++
		for _, body := range p.bodies() {
			h := http.Header{}
			p.sign(t, h, time.Now(), body)
			require.NoError(t, p.ours(t, h, body), "%s: %q", p.scheme.Name(), body)
			require.Error(t, p.ours(t, h, append(bytes.Clone(body), ' ')), p.scheme.Name())
		}
	}
	require.Equal(t, 3, signers)
}

// Their library may accept more messages. Ours must not accept a message that theirs
// refuses.
func TestWindows(t *testing.T) {
	for _, p := range peers(t) {
		for _, offset := range []time.Duration{-time.Hour, -6 * time.Minute, -4 * time.Minute, 4 * time.Minute, 6 * time.Minute, time.Hour} {
			h := http.Header{}
			body := p.bodies()[1]
			require.NoError(t, p.scheme.Sign(h, eventID, time.Now().Add(offset), body, p.keys(t, text)))
			inside := offset.Abs() < 5*time.Minute
			theirs := p.verify(t, h, body) == nil
			require.Equal(t, inside || p.untimed || p.lax && offset > 0, theirs, "%s: theirs at %v", p.scheme.Name(), offset)
			timed := p.scheme.(interface {
				ReplayDefence() signing.ReplayDefence
			}).ReplayDefence() == signing.TimeWindow
			require.Equal(t, inside || !timed, p.ours(t, h, body) == nil, "%s: ours at %v", p.scheme.Name(), offset)
		}
	}
}

// While a secret is rotated, a receiver with the old secret and a receiver with the new
// secret both find a valid signature.
func TestRotation(t *testing.T) {
	for _, p := range peers(t) {
		switch p.scheme.Name() {
		case "stripe", "standard-webhooks", "svix": // paddle-go-sdk reads only one signature
		default:
			continue
		}
		for _, texts := range [][2]string{{text, other}, {other, text}} {
			keys, err := signing.NewKeyring(signing.Key{Secret: p.secret(t, texts[0])}, signing.Key{Secret: p.secret(t, texts[1])})
			require.NoError(t, err)
			h := http.Header{}
			require.NoError(t, p.scheme.Sign(h, eventID, time.Now(), []byte("{}"), keys))
			require.NoError(t, p.verify(t, h, []byte("{}")), p.scheme.Name())
		}
	}
}

// A public key in Discord's form verifies signatures by its private key.
func TestDiscordPublicKey(t *testing.T) {
	private := ed25519.NewKeyFromSeed([]byte(text))
	public, err := signing.ParseHexPublicKey(hex.EncodeToString(private.Public().(ed25519.PublicKey)))
	require.NoError(t, err)
	keys, err := signing.NewKeyring(signing.Key{Secret: public})
	require.NoError(t, err)
	at := time.Now()
	h := http.Header{}
	stamp := seconds(at)
	h.Set("X-Signature-Timestamp", stamp)
	h.Set("X-Signature-Ed25519", hex.EncodeToString(ed25519.Sign(private, []byte(stamp+`{"type":1}`))))
	require.True(t, discordgo.VerifyInteraction(request(h, []byte(`{"type":1}`)), private.Public().(ed25519.PublicKey)))
	_, err = signing.Discord().Verify(signing.Message{Header: h, Body: []byte(`{"type":1}`)}, keys, at, time.Minute)
	require.NoError(t, err)
}
