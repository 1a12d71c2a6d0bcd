package signing_test

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/signing"
)

// sender is one of those whose scheme is here, with what a secret and an event of it
// look like.
type sender struct {
	scheme signing.Scheme
	secret func(testing.TB, string) signing.Secret // of a text of 32 characters
	header string                                  // the one with the signature
	body   string
	dedup  bool // nothing but deduplication is against replay attacks
	rotate signing.SignWith
}

func textSecret(tb testing.TB, text string) signing.Secret {
	tb.Helper()
	s, err := signing.ParseTextSecret(text)
	require.NoError(tb, err)
	return s
}

func base64Secret(tb testing.TB, text string) signing.Secret {
	tb.Helper()
	return secret(tb, "whsec_"+base64.StdEncoding.EncodeToString([]byte(text)))
}

func privateKey(tb testing.TB, text string) signing.Secret {
	tb.Helper()
	return secret(tb, "whsk_"+base64.StdEncoding.EncodeToString([]byte(text)))
}

// linearBody has the time of now.
const linearBody = `{"action":"create","type":"Comment","createdAt":"2023-11-14T22:13:19.084Z","webhookTimestamp":1700000000000}`

func senders(tb testing.TB) []sender {
	tb.Helper()
	twilio, err := signing.NewTwilio("https://example.com/sms?tenant=7")
	require.NoError(tb, err)
	own, err := signing.NewDescribed(signing.Description{
		Name:            "own",
		SignatureHeader: "x-own-signature",
		SignaturePrefix: "own:",
		Algorithm:       signing.HMACSHA512,
		Encoding:        signing.Base64,
		Key:             signing.DecodedKey,
		TimestampHeader: "X-Own-Time",
		TimestampFormat: signing.UnixMillis,
		IDHeader:        "X-Own-Id",
		Signed:          "own/{id}/{timestamp}\n{body}",
	})
	require.NoError(tb, err)
	event := string(body)
	return []sender{
		{signing.TimestampBody{}, textSecret, "Webhook-Hmac-Sha256", event, false, signing.NewestKey},
		{signing.StandardWebhooks{}, base64Secret, "Webhook-Signature", event, false, signing.EveryKey},
		{signing.Svix(), base64Secret, "Svix-Signature", event, false, signing.EveryKey},
		{signing.Stripe(), textSecret, "Stripe-Signature", event, false, signing.EveryKey},
		{signing.GitHub(), textSecret, "X-Hub-Signature-256", event, true, signing.NewestKey},
		{signing.Meta(), textSecret, "X-Hub-Signature-256", event, true, signing.NewestKey},
		{signing.Slack(), textSecret, "X-Slack-Signature", event, false, signing.NewestKey},
		{signing.Shopify(), textSecret, "X-Shopify-Hmac-Sha256", event, true, signing.OldestKey},
		{signing.Paddle(), textSecret, "Paddle-Signature", event, false, signing.EveryKey},
		{signing.Zendesk(), textSecret, "X-Zendesk-Webhook-Signature", event, false, signing.NewestKey},
		{signing.Linear(), textSecret, "Linear-Signature", linearBody, false, signing.NewestKey},
		{square(tb, squareURL), textSecret, "X-Square-Hmacsha256-Signature", event, true, signing.NewestKey},
		{twilio, textSecret, "X-Twilio-Signature", "Body=Hello%21&From=%2B14158675309&To=7", true, signing.NewestKey},
		{signing.Discord(), privateKey, "X-Signature-Ed25519", event, false, signing.NewestKey},
		{signing.Hook0(), textSecret, "X-Hook0-Signature", event, false, signing.NewestKey},
		{signing.Hook0Body(), textSecret, "X-Hook0-Signature", event, false, signing.NewestKey},
		{signing.ConvoySimple(), textSecret, "X-Convoy-Signature", event, true, signing.NewestKey},
		{signing.ConvoyAdvanced(), textSecret, "X-Convoy-Signature", event, false, signing.EveryKey},
		{own, base64Secret, "X-Own-Signature", event, false, signing.NewestKey},
	}
}

const (
	secretA = "0123456789abcdef0123456789abcdef"
	secretB = "fedcba9876543210fedcba9876543210"
)

func (s sender) message(tb testing.TB, keys *signing.Keyring) signing.Message {
	tb.Helper()
	m := signing.Message{Method: http.MethodPost, Header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, Body: []byte(s.body)}
	require.NoError(tb, s.scheme.Sign(m.Header, eventID, now, m.Body, keys), s.scheme.Name())
	return m
}

func (s sender) keys(tb testing.TB, texts ...string) *signing.Keyring {
	tb.Helper()
	var keys []signing.Key
	for i, text := range texts {
		keys = append(keys, signing.Key{ID: text, Secret: s.secret(tb, text), NotBefore: now.Add(time.Duration(i-9) * time.Hour)})
	}
	return ring(tb, keys...)
}

func TestEverySchemeVerifiesWhatItSigns(t *testing.T) {
	for _, s := range senders(t) {
		name := s.scheme.Name()
		keys := s.keys(t, secretA)
		m := s.message(t, keys)
		require.Len(t, m.Header[s.header], 1, name)
		require.NoError(t, s.scheme.Precheck(m.Header, now, tolerance), name)
		v, err := s.scheme.Verify(m, keys, now, tolerance)
		require.NoError(t, err, name)
		require.Equal(t, name, v.Scheme)
		require.Equal(t, secretA, v.KeyID, name)
		if s.dedup {
			require.Zero(t, v.Timestamp, name)
		} else {
			require.True(t, now.Equal(v.Timestamp), name)
		}

		_, err = s.scheme.Verify(m, s.keys(t, secretB), now, tolerance)
		require.ErrorIs(t, err, signing.ErrSignatureMismatch, name)
		for _, changed := range [][]byte{append([]byte(s.body), ' '), append([]byte{' '}, s.body...), []byte(s.body[:len(s.body)-1]), nil} {
			_, err = s.scheme.Verify(signing.Message{Header: m.Header, Body: changed}, keys, now, tolerance)
			require.ErrorIs(t, err, signing.ErrSignatureMismatch, name)
		}
	}
}

func TestEverySchemeNeedsItsHeadersOnce(t *testing.T) {
	for _, s := range senders(t) {
		name := s.scheme.Name()
		keys := s.keys(t, secretA)
		refusedAs := func(want error, what string, change func(http.Header)) {
			t.Helper()
			m := s.message(t, keys)
			change(m.Header)
			refused(t, s.scheme, m, keys, now, want, name+": "+what)
		}
		refusedAs(signing.ErrNotSigned, "absent", func(h http.Header) { delete(h, s.header) })
		refusedAs(signing.ErrRepeatedHeader, "repeated", func(h http.Header) { h.Add(s.header, h.Get(s.header)) })
		refusedAs(signing.ErrRepeatedHeader, "two spellings", func(h http.Header) {
			value := h[s.header]
			delete(h, s.header)
			h[strings.ToLower(s.header)], h[strings.ToUpper(s.header)] = value, value
		})
		for _, change := range []func(string) string{
			func(string) string { return "" },
			func(v string) string { return " " + v },
			func(v string) string { return v + " " },
			func(v string) string { return v + "\n" },
			func(v string) string { return v[:len(v)-1] },
			func(v string) string { return v[:len(v)-1] + "\xff" },
			func(v string) string { return v + v },
			func(v string) string { return v + ", " + v },
			func(string) string { return strings.Repeat("v1=00,", 21_000) },
			func(string) string { return strings.Repeat(";", 21_000) },
		} {
			if lists(s.scheme) {
				continue
			}
			refusedAs(signing.ErrMalformedHeader, "malformed", func(h http.Header) { h.Set(s.header, change(h.Get(s.header))) })
		}

		m := s.message(t, keys)
		lowerCase(m.Header)
		_, err := s.scheme.Verify(m, keys, now, tolerance)
		require.NoError(t, err, "%s: raw lower case", name)
	}
}

// lists reports whether a header of the scheme can have what counts for nothing. These
// have tests of their own.
func lists(s signing.Scheme) bool {
	switch s := s.(type) {
	case signing.StandardWebhooks:
		return true
	case *signing.Described:
		return s.Description().SignatureLabel != ""
	}
	return false
}

func TestEverySchemeHasItsWindow(t *testing.T) {
	for _, s := range senders(t) {
		keys := s.keys(t, secretA)
		m := s.message(t, keys)
		limit := 300
		if s.scheme.Name() == "linear" {
			limit = 60
		}
		for _, side := range []int{-1, 1} {
			for offset, want := range map[int]error{limit: nil, limit + 1: signing.ErrTimestampOutsideWindow} {
				if s.dedup {
					want = nil
				}
				_, err := s.scheme.Verify(m, keys, now.Add(time.Duration(side*offset)*time.Second), tolerance)
				require.ErrorIs(t, err, want, "%s: %d s", s.scheme.Name(), side*offset)
			}
		}
		_, err := s.scheme.Verify(m, keys, now.Add(30*time.Second), 10*time.Second)
		require.Equal(t, s.dedup, err == nil, "%s: the verifier's tolerance counts where it is less", s.scheme.Name())
	}
}

func TestEverySchemeRotates(t *testing.T) {
	for _, s := range senders(t) {
		name := s.scheme.Name()
		m := s.message(t, s.keys(t, secretA, secretB))
		for text, want := range map[string]bool{
			secretA: s.rotate != signing.NewestKey,
			secretB: s.rotate != signing.OldestKey,
		} {
			_, err := s.scheme.Verify(m, s.keys(t, text), now, tolerance)
			require.Equal(t, want, err == nil, "%s with %s: %v", name, text, err)
		}
		for _, text := range []string{secretA, secretB} {
			v, err := s.scheme.Verify(s.message(t, s.keys(t, text)), s.keys(t, secretA, secretB), now, tolerance)
			require.NoError(t, err, name)
			require.Equal(t, text, v.KeyID, name)
		}
	}
}

func TestEverySchemeSaysWhatStopsReplayAttacks(t *testing.T) {
	for _, s := range senders(t) {
		want := signing.TimeWindow
		if s.dedup {
			want = signing.DedupAlone
		}
		require.Equal(t, want, s.scheme.(interface {
			ReplayDefence() signing.ReplayDefence
		}).ReplayDefence(), s.scheme.Name())

		keys := s.keys(t, secretA)
		_, err := signing.NewVerifier(keys, &signing.VerifierConfig{Schemes: []signing.Scheme{s.scheme}})
		if s.dedup {
			require.ErrorContains(t, err, "set VerifierConfig.Deduplicated", s.scheme.Name())
		} else {
			require.NoError(t, err, s.scheme.Name())
		}
		_, err = signing.NewVerifier(keys, &signing.VerifierConfig{Schemes: []signing.Scheme{s.scheme}, Deduplicated: true})
		require.NoError(t, err, s.scheme.Name())
	}
}

func TestEverySchemeRefusesSecretsThatDoNotSuit(t *testing.T) {
	for _, s := range senders(t) {
		other := ring(t, signing.Key{Secret: privateKey(t, secretB)})
		if s.scheme.Name() == "discord" {
			other = ring(t, signing.Key{Secret: textSecret(t, secretB)})
		}
		if s.scheme.Name() == "standard-webhooks" || s.scheme.Name() == "svix" {
			other = ring(t, signing.Key{Secret: textSecret(t, secretB)})
		}
		h := http.Header{}
		require.ErrorIs(t, s.scheme.Sign(h, eventID, now, []byte(s.body), other), signing.ErrSecretUnsuited, s.scheme.Name())
		require.Empty(t, h, s.scheme.Name())
		_, err := s.scheme.Verify(s.message(t, s.keys(t, secretA)), other, now, tolerance)
		require.ErrorIs(t, err, signing.ErrSecretUnsuited, s.scheme.Name())
		_, err = signing.NewVerifier(other, &signing.VerifierConfig{Schemes: []signing.Scheme{s.scheme}, Deduplicated: true})
		require.ErrorIs(t, err, signing.ErrSecretUnsuited, s.scheme.Name())
	}
}

// Every bit of each signature is changed.
func TestEveryBitOfEverySchemeCounts(t *testing.T) {
	for _, s := range senders(t) {
		keys := s.keys(t, secretA)
		m := s.message(t, keys)
		value := m.Header.Get(s.header)
		at := strings.LastIndexAny(value[:len(value)-4], "=,:") + 1 // behind the last label or prefix
		encoded := value[at:]
		raw, err := hex.DecodeString(encoded)
		encode := hex.EncodeToString
		if err != nil {
			raw, err = base64.StdEncoding.DecodeString(encoded)
			encode = base64.StdEncoding.EncodeToString
		}
		require.NoError(t, err, s.scheme.Name())
		require.GreaterOrEqual(t, len(raw), 20, s.scheme.Name())
		for _, changed := range flips(raw) {
			m.Header.Set(s.header, value[:at]+encode(changed))
			_, err := s.scheme.Verify(m, keys, now, tolerance)
			require.ErrorIs(t, err, signing.ErrSignatureMismatch, s.scheme.Name())
		}
		m.Header.Set(s.header, value[:at]+strings.ToUpper(encoded))
		_, err = s.scheme.Verify(m, keys, now, tolerance)
		require.Error(t, err, "%s: upper case", s.scheme.Name())
	}
}

func TestSchemesOnValuesThatWereNeverMade(t *testing.T) {
	for _, s := range []signing.Scheme{new(signing.Described), new(signing.Twilio)} {
		keys := ring(t, signing.Key{Secret: textSecret(t, secretA)})
		_, err := s.Verify(signing.Message{}, keys, now, tolerance)
		require.ErrorIs(t, err, signing.ErrNoValidKey)
		require.ErrorIs(t, s.Precheck(http.Header{}, now, tolerance), signing.ErrNoValidKey)
		require.Error(t, s.Sign(http.Header{}, eventID, now, nil, keys))
		_, err = signing.NewVerifier(keys, &signing.VerifierConfig{Schemes: []signing.Scheme{s}, Deduplicated: true})
		require.ErrorContains(t, err, "was not made by New")
	}
}

func ExampleStripe() {
	secret, err := signing.ParseTextSecret("whsec_c4BGkQ1YwfKi2qTnZzPz0Rk1")
	if err != nil {
		panic(err)
	}
	keys, err := signing.NewKeyring(signing.Key{ID: "endpoint", Secret: secret})
	if err != nil {
		panic(err)
	}
	verifier, err := signing.NewVerifier(keys, &signing.VerifierConfig{Schemes: []signing.Scheme{signing.Stripe()}})
	if err != nil {
		panic(err)
	}

	m := signing.Message{Header: http.Header{}, Body: []byte(`{"id":"evt_1","type":"charge.succeeded","created":1700000000}`)}
	if err := signing.Stripe().Sign(m.Header, "", time.Now(), m.Body, keys); err != nil { // as Stripe does
		panic(err)
	}
	verified, facts, err := verifier.VerifyFacts(m)
	fmt.Println(verified.KeyID, facts.ID, facts.Type, facts.Time, err)
	// Output:
	// endpoint evt_1 charge.succeeded 2023-11-14 22:13:20 +0000 UTC <nil>
}

// GitHub signs the body alone. Its headers' facts have a type that does not pass for a
// text.
func ExampleGitHub() {
	secret, err := signing.ParseTextSecret("It's a Secret to Everybody")
	if err != nil {
		panic(err)
	}
	keys, err := signing.NewKeyring(signing.Key{Secret: secret})
	if err != nil {
		panic(err)
	}
	_, err = signing.NewVerifier(keys, &signing.VerifierConfig{Schemes: []signing.Scheme{signing.GitHub()}})
	fmt.Println(err)
	verifier, err := signing.NewVerifier(keys, &signing.VerifierConfig{Schemes: []signing.Scheme{signing.GitHub()}, Deduplicated: true})
	if err != nil {
		panic(err)
	}

	_, facts, err := verifier.VerifyFacts(signing.Message{
		Header: http.Header{
			"X-Hub-Signature-256": {"sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"},
			"X-Github-Delivery":   {"72d3162e-cc78-11e3-81ab-4c9367dc0958"},
		},
		Body: []byte("Hello, World!"),
	})
	if err != nil {
		panic(err)
	}
	fmt.Printf("%q %T\n", facts.ID, facts.UnsignedID)
	fmt.Println(facts.DedupKey())
	// Output:
	// signing: the signatures of github cover no time, so that a captured request stays valid: deduplicate by Facts.DedupKey and set VerifierConfig.Deduplicated
	// "" signing.Unsigned
	// sha256-dffd6021bb2bd5b0af676290809ec3a53191dd81c7f70a4b28688a362182986f
}

// A sender of one's own: Webflow, whose headers have milliseconds and a colon.
func ExampleNewDescribed() {
	webflow, err := signing.NewDescribed(signing.Description{
		Name:            "webflow",
		SignatureHeader: "X-Webflow-Signature",
		TimestampHeader: "X-Webflow-Timestamp",
		TimestampFormat: signing.UnixMillis,
		Signed:          "{timestamp}:{body}",
		TypeField:       "triggerType",
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(webflow.Name(), webflow.ReplayDefence() == signing.TimeWindow)

	_, err = signing.NewDescribed(signing.Description{Name: "mine", Signed: "{time}.{body}", TimestampHeader: "X-Time"})
	fmt.Println(err)
	// Output:
	// webflow true
	// signing: description of "mine": it needs a SignatureHeader, or a SignatureField if the signature is in the body
	// signing: description of "mine": Signed: {time} is not known: it may have {body}, {digest:HASH:ENCODING}, {timestamp}, {id}, {url}, {path}, {method}, {headers}, {header:NAME}, {field:PATH}, {lower:PATH} and {form:NAME}
}
