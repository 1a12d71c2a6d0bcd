package schemes_test

import (
	"cmp"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/signing"
	"github.com/surehook/surehook/signing/sns"
	"github.com/surehook/surehook/signing/vendors"
)

func lower(h http.Header) map[string]string {
	all := map[string]string{}
	for name, values := range h {
		all[strings.ToLower(name)] = values[0]
	}
	return all
}

const whsec = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=" // text in base64

// npmVendors are the vendors whose npm library verifies what their entry signs, each with
// what is special to it.
var npmVendors = map[string]npmVendor{
	"standard-webhooks": {}, "clerk": {}, "openai": {}, "polar": {}, "replicate": {untimed: true}, "resend": {},
	"discord":     {untimed: true},
	"elevenlabs":  {lax: true, untimed: true}, // its window is 30 minutes
	"hookdeck":    {},
	"linear":      {body: `{"type":"Issue","webhookTimestamp":%MS%}`},
	"mercadopago": {body: `{"type":"payment","data":{"id":"123456"}}`, signed: "123456", header: http.Header{"X-Request-Id": {"bb56a2f1-6aae-46ac-982e-9dcd3581d08e"}}, untimed: true},
	"notion":      {}, "onfido": {}, "razorpay": {}, "todoist": {}, "x": {},
	"pusher":  {header: http.Header{"X-Pusher-Key": {"key"}, "Content-Type": {"application/json"}}},
	"stripe":  {lax: true},
	"telnyx":  {},
	"webflow": {untimed: true},
	"workos":  {lax: true},
	"zoom":    {untimed: true, body: `{"event":"bot_installed","payload":{"name":"Zoë"},"event_ts":1}`, signed: "Zoë"},
}

type npmVendor struct {
	body    string // "": any JSON
	signed  string // a part of it that is signed; "": its type
	header  http.Header
	untimed bool // the library looks at no time
	lax     bool // a time in the future is taken
}

func (v npmVendor) part() string { return cmp.Or(v.signed, `"type":"`) }

// npmSecret is a secret in the vendor's form that signs, and the text that a library takes.
func npmSecret(t *testing.T, v vendors.Vendor, seed string) (signing.Secret, string) {
	t.Helper()
	switch v.Key {
	case vendors.Whsec, vendors.Base64:
		s := base64Secret(t, seed)
		return s, s.Reveal()
	case vendors.Ed25519Hex, vendors.Ed25519Base64:
		public := ed25519.NewKeyFromSeed([]byte(seed)).Public().(ed25519.PublicKey)
		if v.Key == vendors.Ed25519Hex {
			return privateKey(t, seed), hex.EncodeToString(public)
		}
		return privateKey(t, seed), base64.StdEncoding.EncodeToString(public)
	}
	return textSecret(t, seed), seed
}

// The vendors' npm libraries take what our entries sign, and refuse it with another body,
// another key or outside of their window.
func TestWhatWeSignNPMLibrariesVerify(t *testing.T) {
	n := newNPM(t)
	for name, c := range npmVendors {
		t.Run(name, func(t *testing.T) {
			n.t = t
			v, s := vendor(t, name)
			sign := func(at time.Time, body string) npmQuestion {
				secret, shown := npmSecret(t, v, text)
				keys, err := signing.NewKeyring(signing.Key{Secret: secret})
				require.NoError(t, err)
				h := c.header.Clone()
				if h == nil {
					h = http.Header{}
				}
				body = strings.ReplaceAll(body, "%MS%", fmt.Sprint(at.UnixMilli()))
				require.NoError(t, s.Sign(h, eventID, at, []byte(body), keys))
				return npmQuestion{Do: "verify", Vendor: name, Secret: shown, Headers: lower(h), Body: body}
			}
			body := c.body
			if body == "" {
				body = `{"type":"thing.changed","name":"Zoë 🚀","list":[1,2.5,null]}`
			}
			good := sign(time.Now(), body)
			a := n.do(good)
			require.True(t, a.Good, a.Why)

			changed := good
			changed.Body = strings.Replace(good.Body, c.part(), c.part()+"x", 1)
			require.NotEqual(t, good.Body, changed.Body)
			require.False(t, n.do(changed).Good, "another body")
			_, shown := npmSecret(t, v, other)
			stranger := good
			stranger.Secret = shown
			require.False(t, n.do(stranger).Good, "another key")
			if v.SignsTime() && !c.untimed {
				require.False(t, n.do(sign(time.Now().Add(-time.Hour), body)).Good, "an hour ago")
			}
			if v.SignsTime() && !c.untimed && !c.lax {
				require.False(t, n.do(sign(time.Now().Add(time.Hour), body)).Good, "in an hour")
			}
		})
	}
}

// The entries take what the libraries sign, and refuse it with another body.
func TestWhatNPMLibrariesSignWeVerify(t *testing.T) {
	n := newNPM(t)
	const adyenBody = `{"live":"false","notificationItems":[{"NotificationRequestItem":{"pspReference":"7914073381342284","merchantAccountCode":"TestMerchant","merchantReference":"order:7 \\ Zoë","amount":{"value":1130,"currency":"EUR"},"eventCode":"AUTHORISATION","success":"true"}}]}`
	at := time.Now()
	for name, c := range map[string]struct{ secret, body, old, new string }{
		"adyen":             {"44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056", adyenBody, "1130", "1131"},
		"braintree":         {text, "", "bt_payload=", "bt_payload=A"},
		"notion":            {text, `{"type":"Zoë 🚀"}`, "type", "kind"},
		"standard-webhooks": {whsec, `{"type":"Zoë 🚀"}`, "type", "kind"},
		"stripe":            {text, `{"type":"Zoë 🚀"}`, "type", "kind"},
		"workos":            {text, `{"type":"Zoë 🚀"}`, "type", "kind"},
		"x":                 {text, `{"type":"Zoë 🚀"}`, "type", "kind"},
	} {
		v, s := vendor(t, name)
		a := n.do(npmQuestion{Do: "sign", Vendor: name, Secret: c.secret, Body: c.body, ID: eventID, At: at.Unix()})
		h := http.Header{}
		for header, value := range a.Headers {
			h.Set(header, value)
		}
		verify := func(body string) error {
			_, err := s.Verify(signing.Message{Header: h, Body: []byte(body)}, ringOf(t, v, c.secret), at, time.Minute)
			return err
		}
		require.NoError(t, verify(a.Body), name)
		changed := strings.Replace(a.Body, c.old, c.new, 1)
		require.NotEqual(t, a.Body, changed, name)
		require.ErrorIs(t, verify(changed), signing.ErrSignatureMismatch, name)
		if q := (npmQuestion{Do: "verify", Vendor: name, Secret: c.secret, Headers: a.Headers, Body: a.Body}); name == "adyen" || name == "braintree" {
			require.True(t, n.do(q).Good, name)
			q.Body = changed
			require.False(t, n.do(q).Good, name)
		}
	}
}

// Amazon's own validator and package sns say the same of each message.
func TestSNSAndAmazonsValidatorAgree(t *testing.T) {
	n := newNPM(t)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(48 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	const topic = "arn:aws:sns:eu-west-1:123456789012:orders"
	scheme, err := sns.New([]string{topic}, &sns.Config{Certificate: cert})
	require.NoError(t, err)
	fields := map[string]string{
		"Type": "Notification", "MessageId": "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324", "TopicArn": topic, "Subject": "Zoë",
		"Message": "Hello\nworld! 🚀", "Timestamp": time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), "SignatureVersion": "2",
		"SigningCertURL": "https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-0123456789abcdef.pem",
	}
	confirmation := maps.Clone(fields)
	delete(confirmation, "Subject")
	confirmation["Type"], confirmation["Token"], confirmation["SubscribeURL"] = "SubscriptionConfirmation", "token", "https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription"
	for _, message := range []map[string]string{fields, confirmation} {
		names := slices.DeleteFunc(slices.Sorted(maps.Keys(message)), func(name string) bool { return strings.HasPrefix(name, "Sign") })
		signed := ""
		for _, name := range names {
			signed += name + "\n" + message[name] + "\n"
		}
		sum := sha256.Sum256([]byte(signed))
		signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
		require.NoError(t, err)
		for _, change := range append(names, "") {
			sent := maps.Clone(message)
			sent["Signature"] = base64.StdEncoding.EncodeToString(signature)
			if change != "" && change != "Type" && change != "Timestamp" {
				sent[change] += "x"
			}
			body, err := json.Marshal(sent)
			require.NoError(t, err)
			a := n.do(npmQuestion{Do: "verify", Vendor: "sns", Body: string(body), Certificate: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))})
			_, err = scheme.Verify(signing.Message{Body: body, Header: http.Header{"X-Amz-Sns-Message-Type": {sent["Type"]}}}, nil, time.Now(), 5*time.Minute)
			require.Equal(t, a.Good, err == nil, "%s: %s, %v", change, a.Why, err)
			require.Equal(t, change == "" || change == "Type" || change == "Timestamp", a.Good, change)
		}
	}
}

// An entry that names an npm library as its evidence is compared with it here.
func TestEveryNPMLibraryOfTheTableIsCompared(t *testing.T) {
	compared := map[string]bool{"adyen": true, "braintree": true, "sns": true}
	for name := range npmVendors {
		compared[name] = true
	}
	for _, v := range vendors.All() {
		if v.Evidence == vendors.Library && (strings.Contains(v.Source, "(npm)") || strings.Contains(v.Source, "@")) {
			require.True(t, compared[v.Name], v.Name)
		}
	}
}
