package sns_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/signing"
	"github.com/surehook/surehook/signing/sns"
)

const (
	topic   = "arn:aws:sns:eu-west-1:123456789012:orders"
	certURL = "https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-0123456789abcdef.pem"
)

var (
	now = time.Date(2026, 11, 26, 9, 0, 0, 0, time.UTC)
	key = func() *rsa.PrivateKey {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			panic(err)
		}
		return key
	}()
)

func certificate(tb testing.TB, public any, signer crypto.Signer) *x509.Certificate {
	tb.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(48 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, signer)
	require.NoError(tb, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(tb, err)
	return cert
}

// notification is one that Amazon could send, with some fields changed, signed by key. The
// text is made as the documentation says, not by the package.
func notification(tb testing.TB, version string, change map[string]string) []byte {
	tb.Helper()
	fields := map[string]string{
		"Type": "Notification", "MessageId": "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324", "TopicArn": topic, "Subject": "My First Message",
		"Message": "Hello\nworld!", "Timestamp": "2026-11-26T08:59:00.751Z", "SignatureVersion": version, "SigningCertURL": certURL,
		"UnsubscribeURL": "https://sns.eu-west-1.amazonaws.com/?Action=Unsubscribe",
	}
	for name, value := range change {
		if fields[name] = value; value == "" {
			delete(fields, name)
		}
	}
	names := []string{"Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"}
	if fields["Type"] != "Notification" {
		names = []string{"Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"}
	}
	text := ""
	for _, name := range names {
		if value, there := fields[name]; there {
			text += name + "\n" + value + "\n"
		}
	}
	hash, sum := crypto.SHA256, sha256.New()
	if version == "1" {
		hash, sum = crypto.SHA1, sha1.New()
	}
	sum.Write([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, hash, sum.Sum(nil))
	require.NoError(tb, err)
	fields["Signature"] = base64.StdEncoding.EncodeToString(signature)
	body, err := json.Marshal(fields)
	require.NoError(tb, err)
	return body
}

func header() http.Header {
	return http.Header{"X-Amz-Sns-Message-Type": {"Notification"}, "Content-Type": {"text/plain; charset=UTF-8"}}
}

func scheme(tb testing.TB, cfg sns.Config) *sns.Scheme {
	tb.Helper()
	if cfg.Now == nil {
		cfg.Now = func() time.Time { return now }
	}
	s, err := sns.New([]string{topic}, &cfg)
	require.NoError(tb, err)
	return s
}

func verifier(tb testing.TB, s *sns.Scheme) *signing.Verifier {
	tb.Helper()
	v, err := signing.NewVerifier(nil, &signing.VerifierConfig{Schemes: []signing.Scheme{s}, Now: func() time.Time { return now }})
	require.NoError(tb, err)
	return v
}

func TestNotifications(t *testing.T) {
	v := verifier(t, scheme(t, sns.Config{Certificate: certificate(t, &key.PublicKey, key)}))
	for what, change := range map[string]map[string]string{
		"as it is": nil, "no subject": {"Subject": ""}, "a message like the text": {"Message": "a\nMessageId\nb\nSubject\nc\nTimestamp\nd\n"},
		"a confirmation": {"Type": "SubscriptionConfirmation", "Token": "t", "SubscribeURL": "https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription"},
		"an hour old":    {"Timestamp": "2026-11-26T08:00:00.000Z"},
	} {
		m := signing.Message{Header: header(), Body: notification(t, "2", change)}
		verified, facts, err := v.VerifyFacts(m)
		require.NoError(t, err, what)
		require.Equal(t, "sns", verified.Scheme)
		require.Equal(t, "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324", facts.ID)
		require.Equal(t, verified.ID, facts.ID)
		require.NotEmpty(t, facts.Type)
		require.False(t, facts.Time.IsZero())
		require.NoError(t, v.Precheck(m.Header))
	}
	require.Nil(t, v.Tried())
	found := v.Diagnose(signing.Message{Header: header(), Body: []byte("{}")})
	require.Len(t, found, 1)
	require.Contains(t, found[0], "there is no keyring, since the scheme has keys of its own")
}

// A signed notification is refused with a byte changed, and so is everything that has
// another form than Amazon's.
func TestTamperedNotificationsAreRefused(t *testing.T) {
	s := scheme(t, sns.Config{Certificate: certificate(t, &key.PublicKey, key)})
	v := verifier(t, s)
	good := notification(t, "2", nil)
	var fields map[string]string
	require.NoError(t, json.Unmarshal(good, &fields))
	for _, name := range []string{"Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type", "Signature", "SignatureVersion"} {
		for i := range fields[name] {
			changed := []byte(fields[name])
			changed[i] ^= 1
			other := map[string]string{}
			for n, value := range fields {
				other[n] = value
			}
			other[name] = string(changed)
			body, err := json.Marshal(other)
			require.NoError(t, err)
			_, err = v.Verify(signing.Message{Header: header(), Body: body})
			require.Error(t, err, "%s: %q", name, changed)
			require.NotErrorIs(t, err, sns.ErrCertificate)
		}
	}
	text := string(good)
	for what, body := range map[string]string{
		"twice":                 strings.Replace(text, `{`, `{"Message":"x",`, 1),
		"twice, another case":   strings.Replace(text, `{`, `{"message":"x",`, 1),
		"twice, escaped":        strings.Replace(text, `{`, `{"Messag\u0065":"x",`, 1),
		"a hundred names":       strings.Replace(text, `{`, `{`+manyNames(100), 1),
		"no JSON":               text[1:],
		"a list":                "[" + text + "]",
		"behind it":             text + "{}",
		"no text":               strings.Replace(text, `"Subject":"My First Message"`, `"Subject":1`, 1),
		"bad UTF-8":             strings.Replace(text, "Hello", "Hell\xff", 1),
		"line feed in an id":    string(notification(t, "2", map[string]string{"MessageId": "a\nb"})),
		"line feed in a topic":  string(notification(t, "2", map[string]string{"Subject": "a\nMessageId\nb"})),
		"another topic":         string(notification(t, "2", map[string]string{"TopicArn": "arn:aws:sns:eu-west-1:999999999999:orders"})),
		"SHA-1":                 string(notification(t, "1", nil)),
		"SHA-1 said to be 2":    strings.Replace(string(notification(t, "1", nil)), `"SignatureVersion":"1"`, `"SignatureVersion":"2"`, 1),
		"no signature":          string(notification(t, "2", map[string]string{"MessageId": ""})),
		"another type":          string(notification(t, "2", map[string]string{"Type": "Other"})),
		"a long line":           string(notification(t, "2", map[string]string{"Subject": strings.Repeat("a", 3000)})),
		"a time without millis": string(notification(t, "2", map[string]string{"Timestamp": "2026-11-26T08:59:00Z"})),
	} {
		_, err := v.Verify(signing.Message{Header: header(), Body: []byte(body)})
		require.True(t, errors.Is(err, signing.ErrSignatureMismatch) || errors.Is(err, signing.ErrNoValidKey), "%s: %v", what, err)
	}
	for stamp, want := range map[string]error{
		"2026-11-26T07:54:59.000Z": signing.ErrTimestampOutsideWindow, "2026-11-26T07:55:01.000Z": nil,
		"2026-11-26T09:05:01.000Z": signing.ErrTimestampOutsideWindow, "2026-11-26T09:04:59.000Z": nil,
		"0001-01-01T00:00:00.000Z": signing.ErrTimestampOutsideWindow, "9999-01-01T00:00:00.000Z": signing.ErrTimestampOutsideWindow,
	} {
		_, err := v.Verify(signing.Message{Header: header(), Body: notification(t, "2", map[string]string{"Timestamp": stamp})})
		require.ErrorIs(t, err, want, stamp)
	}
	for stamp, says := range map[string]string{"2026-11-26T07:54:59.000Z": "3901 s behind the clock here: at most 3900 s", "2026-11-26T09:05:01.000Z": "301 s ahead of the clock here: at most 300 s"} {
		_, err := v.Verify(signing.Message{Header: header(), Body: notification(t, "2", map[string]string{"Timestamp": stamp})})
		require.ErrorContains(t, err, says)
	}
	for want, h := range map[error]http.Header{
		signing.ErrNotSigned: {}, signing.ErrRepeatedHeader: {"X-AMZ-SNS-Message-Type": {"Notification"}, "x-amz-sns-message-type": {"Notification"}}, signing.ErrMalformedHeader: {"X-Amz-Sns-Message-Type": {"x"}},
	} {
		_, err := v.Verify(signing.Message{Header: h, Body: good})
		require.ErrorIs(t, err, want)
		require.ErrorIs(t, v.Precheck(h), want)
	}
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	_, err = verifier(t, scheme(t, sns.Config{Certificate: certificate(t, &other.PublicKey, other)})).Verify(signing.Message{Header: header(), Body: good})
	require.ErrorIs(t, err, signing.ErrSignatureMismatch)
	require.ErrorIs(t, s.Sign(http.Header{}, "", now, good, nil), signing.ErrSecretUnsuited)
	require.Error(t, (&sns.Scheme{}).Precheck(header(), now, time.Minute))
}

func manyNames(n int) (members string) {
	for i := range n {
		members += fmt.Sprintf("\"n%d\":0,", i)
	}
	return members
}

func TestSHA1IfAsked(t *testing.T) {
	v := verifier(t, scheme(t, sns.Config{SHA1: true, Certificate: certificate(t, &key.PublicKey, key)}))
	_, err := v.Verify(signing.Message{Header: header(), Body: notification(t, "1", nil)})
	require.NoError(t, err)
}

// amazon answers in place of Amazon, and counts.
type amazon struct {
	mu     sync.Mutex
	asked  []string
	answer func(*http.Request) (*http.Response, error)
}

func (a *amazon) RoundTrip(r *http.Request) (*http.Response, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, r.URL.String())
	return a.answer(r)
}

func answer(status int, body string) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: http.Header{"Location": {"https://evil.example/"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
	}
}

func pemOf(cert *x509.Certificate) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}))
}

// The certificate is fetched once and kept, and what cannot be had is no verdict.
func TestCertificatesAreFetched(t *testing.T) {
	clock := now
	s := scheme(t, sns.Config{Now: func() time.Time { return clock }})
	from := &amazon{answer: answer(200, pemOf(certificate(t, &key.PublicKey, key)))}
	s.SetTransport(from)
	v := verifier(t, s)
	good := signing.Message{Header: header(), Body: notification(t, "2", nil)}
	for range 3 {
		verified, err := v.Verify(good)
		require.NoError(t, err)
		require.Equal(t, "SimpleNotificationService-0123456789abcdef.pem", verified.KeyID)
	}
	require.Equal(t, []string{certURL}, from.asked)
	clock = clock.Add(25 * time.Hour)
	_, err := s.Verify(good, nil, now, time.Minute)
	require.NoError(t, err)
	require.Len(t, from.asked, 2, "it is fetched again after a day")
	clock = clock.Add(48 * time.Hour)
	_, err = s.Verify(good, nil, now, time.Minute)
	require.ErrorIs(t, err, sns.ErrCertificate, "it is over")
}

func TestWhatCannotBeHadIsNoVerdict(t *testing.T) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	good := pemOf(certificate(t, &key.PublicKey, key))
	for what, a := range map[string]func(*http.Request) (*http.Response, error){
		"refused":     func(*http.Request) (*http.Response, error) { return nil, errors.New("refused") },
		"404":         answer(404, ""),
		"a redirect":  answer(302, good),
		"no PEM":      answer(200, "x"),
		"another PEM": answer(200, strings.ReplaceAll(good, "CERTIFICATE", "PUBLIC KEY")),
		"no DER":      answer(200, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
		"too long":    answer(200, good+strings.Repeat(" ", 20_000)),
		"ECDSA":       answer(200, pemOf(certificate(t, &private.PublicKey, private))),
	} {
		clock := now
		s := scheme(t, sns.Config{Now: func() time.Time { return clock }})
		from := &amazon{answer: a}
		s.SetTransport(from)
		m := signing.Message{Header: header(), Body: notification(t, "2", nil)}
		for range 3 {
			_, err := s.Verify(m, nil, now, time.Minute)
			require.ErrorIs(t, err, sns.ErrCertificate, what)
			require.NotErrorIs(t, err, signing.ErrSignatureMismatch, what)
		}
		require.Len(t, from.asked, 1, "%s: a failure is remembered, and no redirect is followed", what)
		clock = clock.Add(11 * time.Second)
		from.answer = answer(200, good)
		_, err := s.Verify(m, nil, now, time.Minute)
		require.NoError(t, err, "%s: and forgotten", what)
	}
}

// A stranger who knows the topic cannot have many things fetched, nor push out what is kept.
func TestFetchesAreBounded(t *testing.T) {
	clock := now
	s := scheme(t, sns.Config{Now: func() time.Time { return clock }})
	from := &amazon{answer: answer(200, pemOf(certificate(t, &key.PublicKey, key)))}
	s.SetTransport(from)
	good := signing.Message{Header: header(), Body: notification(t, "2", nil)}
	_, err := s.Verify(good, nil, now, time.Minute)
	require.NoError(t, err)
	from.answer = answer(404, "")
	for i := range 100 {
		body := notification(t, "2", map[string]string{"SigningCertURL": strings.Replace(certURL, "0123", fmt.Sprintf("%04x", i), 1)})
		_, err := s.Verify(signing.Message{Header: header(), Body: body}, nil, now, time.Minute)
		require.ErrorIs(t, err, sns.ErrCertificate)
	}
	require.Len(t, from.asked, 8)
	_, err = s.Verify(good, nil, now, time.Minute)
	require.NoError(t, err, "what is kept stays")
	clock = clock.Add(time.Minute)
	from.answer = answer(200, pemOf(certificate(t, &key.PublicKey, key)))
	_, err = s.Verify(signing.Message{Header: header(), Body: notification(t, "2", map[string]string{"SigningCertURL": strings.Replace(certURL, "0123", "ffff", 1)})}, nil, now, time.Minute)
	require.NoError(t, err, "later there are fetches again")

	clock = now.Add(25 * time.Hour)
	from.answer = answer(404, "")
	for i := range 10 {
		body := notification(t, "2", map[string]string{"SigningCertURL": strings.Replace(certURL, "0123", fmt.Sprintf("%04x", i), 1)})
		_, err := s.Verify(signing.Message{Header: header(), Body: body}, nil, now, time.Minute)
		require.ErrorIs(t, err, sns.ErrCertificate)
	}
	from.answer = answer(200, pemOf(certificate(t, &key.PublicKey, key)))
	_, err = s.Verify(good, nil, now, time.Minute)
	require.NoError(t, err, "what is kept is fetched again after a day, whatever strangers ask for")
}

// Only Amazon's host for the topic's region is asked, and nothing before topic and time are
// right.
func TestOnlyAmazonIsAsked(t *testing.T) {
	s := scheme(t, sns.Config{})
	from := &amazon{answer: answer(200, "")}
	s.SetTransport(from)
	const host = "https://sns.eu-west-1.amazonaws.com"
	for _, u := range []string{
		"", "http://sns.eu-west-1.amazonaws.com/SimpleNotificationService-ab.pem", host + "/x.pem", host + ":443/SimpleNotificationService-ab.pem",
		"https://sns.us-east-1.amazonaws.com/SimpleNotificationService-ab.pem", "https://evil.example/SimpleNotificationService-ab.pem",
		host + ".evil.example/SimpleNotificationService-ab.pem", "https://sns.eu-west-1.amazonaws.com@evil.example/SimpleNotificationService-ab.pem",
		host + "/SimpleNotificationService-ab.pem?x", host + "/SimpleNotificationService-ab.pem#x", host + "/SimpleNotificationService-AB.pem",
		host + "/../SimpleNotificationService-ab.pem", host + "//SimpleNotificationService-ab.pem", host + "\\/SimpleNotificationService-ab.pem",
		"https://bucket.s3.eu-west-1.amazonaws.com/SimpleNotificationService-ab.pem", "HTTPS" + certURL[5:], certURL + "\n",
	} {
		_, err := s.Verify(signing.Message{Header: header(), Body: notification(t, "2", map[string]string{"SigningCertURL": u})}, nil, now, time.Minute)
		require.ErrorIs(t, err, signing.ErrSignatureMismatch, "%q", u)
	}
	_, err := s.Verify(signing.Message{Header: header(), Body: notification(t, "2", map[string]string{"Timestamp": "2026-11-20T08:59:00.751Z"})}, nil, now, time.Minute)
	require.ErrorIs(t, err, signing.ErrTimestampOutsideWindow)
	_, err = s.Verify(signing.Message{Header: header(), Body: notification(t, "2", map[string]string{"TopicArn": topic + "x"})}, nil, now, time.Minute)
	require.ErrorIs(t, err, signing.ErrNoValidKey)
	require.Empty(t, from.asked)
	china, err := sns.CertificateURL("https://sns.cn-north-1.amazonaws.com.cn/SimpleNotificationService-ab.pem", "arn:aws-cn:sns:cn-north-1:123456789012:x")
	require.NoError(t, err)
	require.NotEmpty(t, china)
}

func TestConfirm(t *testing.T) {
	s := scheme(t, sns.Config{})
	from := &amazon{answer: answer(200, "<ok/>")}
	s.SetTransport(from)
	const u = "https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription&TopicArn=" + topic + "&Token=t"
	change := map[string]string{"Type": "SubscriptionConfirmation", "Token": "t", "SubscribeURL": u}
	require.NoError(t, s.Confirm(t.Context(), notification(t, "2", change)))
	require.Equal(t, []string{u}, from.asked)
	for _, bad := range []map[string]string{
		nil, {"Type": "SubscriptionConfirmation", "Token": "t", "SubscribeURL": "https://evil.example/?x"},
		{"Type": "SubscriptionConfirmation", "Token": "t", "SubscribeURL": u, "TopicArn": topic + "x"}, {"Type": "SubscriptionConfirmation", "Token": "t", "SubscribeURL": "https://sns.eu-west-1.amazonaws.com.evil.example/?x"},
	} {
		require.Error(t, s.Confirm(context.Background(), notification(t, "2", bad)))
	}
	require.Len(t, from.asked, 1)
	from.answer = answer(403, "")
	require.ErrorContains(t, s.Confirm(t.Context(), notification(t, "2", change)), "403")
}

func TestNew(t *testing.T) {
	for problem, topics := range map[string][]string{"no topic is given": nil, "is no topic's ARN": {"arn:aws:sns:evil.example/:123456789012:x"}} {
		_, err := sns.New(topics, nil)
		require.ErrorContains(t, err, problem)
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	_, err = sns.New([]string{topic}, &sns.Config{Certificate: certificate(t, &private.PublicKey, private), MaxAge: 1})
	require.ErrorContains(t, err, "has no RSA key")
	require.ErrorContains(t, err, "MaxAge must be")
	_, err = signing.NewVerifier(nil, &signing.VerifierConfig{Schemes: []signing.Scheme{scheme(t, sns.Config{}), signing.Stripe()}})
	require.ErrorContains(t, err, "needs a keyring")
}

// The text can be split in one way alone: reading it from its end finds the fields again.
func FuzzMessages(f *testing.F) {
	f.Add(notification(f, "2", nil))
	f.Add(notification(f, "2", map[string]string{"Message": "a\nMessageId\nb\nSubject\nc\n"}))
	f.Add(append([]byte(`{"x":1e999,`), notification(f, "2", nil)[1:]...)) // no float64
	f.Add([]byte(`{"Type":"Notification","Type":1}`))
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, body []byte) {
		text := sns.Text(body)
		if text == nil {
			return
		}
		var fields map[string]any
		d := json.NewDecoder(bytes.NewReader(body))
		d.UseNumber()
		if err := d.Decode(&fields); err != nil || !json.Valid(body) {
			t.Fatalf("%q is read, and is no JSON: %v", body, err)
		}
		lines := bytes.Split(text, []byte("\n"))
		lines = lines[:len(lines)-1]
		names := []string{"Type", "TopicArn", "Timestamp", "Subject", "MessageId"}
		if fields["Type"] != "Notification" {
			names = []string{"Type", "TopicArn", "Token", "Timestamp", "SubscribeURL", "MessageId"}
		}
		for _, name := range names {
			label, value := string(lines[len(lines)-2]), string(lines[len(lines)-1])
			if name == "Subject" && label != name {
				continue
			}
			if label != name || fields[name] != value {
				t.Fatalf("%q: %s is %q", text, name, value)
			}
			lines = lines[:len(lines)-2]
		}
		if message := string(bytes.Join(lines, []byte("\n"))); message != fmt.Sprint("Message\n", fields["Message"]) {
			t.Fatalf("%q: the message is %q", text, message)
		}
	})
}
