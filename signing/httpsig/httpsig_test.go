package httpsig_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/signing"
	"github.com/surehook/surehook/signing/httpsig"
)

const (
	eventID   = "evt_0123456789abcdefghijklmn"
	tolerance = 300 * time.Second
	url       = "https://example.com/hooks?tenant=7"
	secretA   = "correct-horse-battery-staple-aaa"
	secretB   = "correct-horse-battery-staple-bbb"
)

var (
	now     = time.Unix(1_700_000_000, 0)
	covered = []string{"@method", "@target-uri", "content-digest", "content-type", "x-event-id"}
)

func ring(tb testing.TB, keys ...signing.Key) *signing.Keyring {
	tb.Helper()
	r, err := signing.NewKeyring(keys...)
	require.NoError(tb, err)
	return r
}

func hmacKey(tb testing.TB, text string) signing.Key {
	tb.Helper()
	s, err := signing.ParseTextSecret(text)
	require.NoError(tb, err)
	return signing.Key{ID: "key-" + text[len(text)-3:], Secret: s}
}

func scheme(tb testing.TB, algorithm signing.Algorithm, covered []string, cfg httpsig.Config) *httpsig.Scheme {
	tb.Helper()
	s, err := httpsig.New(algorithm, covered, &cfg)
	require.NoError(tb, err)
	return s
}

// keyPair is a private key and what a receiver has of it.
type keyPair struct {
	algorithm signing.Algorithm
	signer    crypto.Signer
	key       signing.Key
}

// pairs makes one of each public algorithm. RSA keys take long to make, so all tests have the same.
var pairs = sync.OnceValue(func() []keyPair {
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	must(err)
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	rs, err := rsa.GenerateKey(rand.Reader, 2048)
	must(err)
	edPublic, err := signing.ParseHexPublicKey(hex.EncodeToString(ed.Public().(ed25519.PublicKey)))
	must(err)
	ecPublic, err := signing.ParseECDSAPublicKey(base64.StdEncoding.EncodeToString(der(&ec.PublicKey)))
	must(err)
	rsPublic, err := signing.ParseRSAPublicKey(string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der(&rs.PublicKey)})))
	must(err)
	return []keyPair{
		{signing.Ed25519, ed, signing.Key{ID: "ed", Secret: edPublic}},
		{signing.ECDSAP256, ec, signing.Key{ID: "ec", Secret: ecPublic}},
		{signing.RSAPSSSHA512, rs, signing.Key{ID: "rs", Secret: rsPublic}},
		{signing.RSASHA256, rs, signing.Key{ID: "rs", Secret: rsPublic}},
	}
})

func der(key any) []byte {
	raw, err := x509.MarshalPKIXPublicKey(key)
	must(err)
	return raw
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// signed is a request as a sender makes it.
func signed(tb testing.TB, s *httpsig.Scheme, keys *signing.Keyring, body string) signing.Message {
	tb.Helper()
	h := http.Header{"Content-Type": {"application/json"}}
	require.NoError(tb, s.Sign(h, eventID, now, []byte(body), keys))
	return signing.Message{Method: http.MethodPost, URL: "/hooks?tenant=7", Header: h, Body: []byte(body)}
}

func config() httpsig.Config {
	return httpsig.Config{URL: url, IDHeader: "x-event-id", NeedKeyID: true, NeedNonce: true, NeedExpires: true, Tag: "hooks"}
}

// Each algorithm through a Verifier, with the facts and the key that made the signature.
func TestSignedRequestsVerify(t *testing.T) {
	a, b := hmacKey(t, secretA), hmacKey(t, secretB)
	for _, p := range append([]keyPair{{signing.HMACSHA256, nil, b}}, pairs()...) {
		cfg := config()
		cfg.IDField, cfg.TypeField, cfg.Signer, cfg.SignerID = "id", "type", p.signer, p.key.ID
		s := scheme(t, p.algorithm, covered, cfg)
		keys := ring(t, a, p.key)
		v, err := signing.NewVerifier(keys, &signing.VerifierConfig{Schemes: []signing.Scheme{s}, Now: func() time.Time { return now }})
		require.NoError(t, err)
		m := signed(t, s, keys, `{"type":"paid"}`)
		require.NoError(t, v.Precheck(m.Header))
		verified, facts, err := v.VerifyFacts(m)
		require.NoError(t, err)
		require.Equal(t, signing.Verified{Scheme: "httpsig", KeyID: p.key.ID, Timestamp: now.UTC(), ID: eventID}, verified)
		require.Equal(t, eventID, facts.ID)
		require.Equal(t, "paid", facts.Type)
		require.Equal(t, "id-"+eventID, facts.DedupKey())
		m.Body = []byte(`{"type":"void"}`)
		_, err = v.Verify(m)
		require.ErrorIs(t, err, signing.ErrSignatureMismatch)
	}
}

// A request over the wire, whose headers net/http has read.
func TestRequestsFromTheWireVerify(t *testing.T) {
	keys := ring(t, hmacKey(t, secretA))
	got := make(chan error, 1)
	var s *httpsig.Scheme
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var body bytes.Buffer
		_, _ = body.ReadFrom(r.Body)
		_, err := s.Verify(signing.Message{Method: r.Method, URL: r.RequestURI, Header: r.Header, Body: body.Bytes()}, keys, now, tolerance)
		got <- err
	}))
	defer server.Close()
	s = scheme(t, signing.HMACSHA256, []string{"@method", "@target-uri", "@authority", "@query", "content-digest", "host", "content-length"}, httpsig.Config{URL: server.URL})
	req, err := http.NewRequest(http.MethodPut, server.URL+"/a%2Fb?x=1&y", strings.NewReader("{}"))
	require.NoError(t, err)
	req.Header.Set("Content-Length", "2")
	require.NoError(t, s.SignMessage(&signing.Message{Method: req.Method, URL: "/a%2Fb?x=1&y", Header: req.Header, Body: []byte("{}")}, "", now, keys))
	resp, err := server.Client().Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.NoError(t, <-got)
}

// A signature can cover the URL to which it is sent. Without Config.URL the error says what to
// set.
func TestTheTargetWithoutItsURL(t *testing.T) {
	keys := ring(t, hmacKey(t, secretA))
	const giveURL = "set Config.URL to the URL to which the sender sends, such as https://example.com/webhooks"
	for component, c := range map[string]struct {
		is  error
		cfg httpsig.Config
		say string
	}{
		"host":       {signing.ErrMissingHeader, httpsig.Config{}, giveURL},
		"@authority": {signing.ErrSignatureMismatch, httpsig.Config{}, `"@authority" of the target is signed, and what a request says of it a proxy may have changed: ` + giveURL},
		"@path":      {signing.ErrSignatureMismatch, httpsig.Config{URL: "https://example.com"}, `"@path" of the target is signed, and Config.URL ends behind the host: set signing.Message.URL`},
	} {
		m := signed(t, scheme(t, signing.HMACSHA256, []string{"content-digest", component}, httpsig.Config{URL: "https://example.com/webhooks"}), keys, "{}")
		m.URL = ""
		_, err := scheme(t, signing.HMACSHA256, []string{"content-digest"}, c.cfg).Verify(m, keys, now, tolerance)
		require.ErrorIs(t, err, c.is, component)
		require.ErrorContains(t, err, c.say)
		if c.cfg.URL == "" && component != "host" {
			_, err = httpsig.New(signing.HMACSHA256, []string{"content-digest", component}, &c.cfg)
			require.ErrorContains(t, err, giveURL)
		}
	}
}

// The scheme, not the request, says what counts. Each change makes a request that one of the
// promises of the package's documentation refuses, and the error names it.
func TestRefusedRequests(t *testing.T) {
	keys := ring(t, hmacKey(t, secretA), hmacKey(t, secretB))
	type change func(m *signing.Message)
	set := func(name string, values ...string) change {
		return func(m *signing.Message) { m.Header[name] = values }
	}
	edit := func(name, from, to string) change {
		return func(m *signing.Message) {
			was := m.Header.Get(name)
			m.Header[name] = []string{strings.Replace(was, from, to, 1)}
			require.NotEqual(t, was, m.Header.Get(name), from)
		}
	}
	both := func(changes ...change) change {
		return func(m *signing.Message) {
			for _, c := range changes {
				c(m)
			}
		}
	}
	twice := func(name string) change {
		return func(m *signing.Message) { m.Header[name] = append(m.Header[name], m.Header[name]...) }
	}
	input := "Signature-Input"
	for _, c := range []struct {
		what   string
		change change
		kind   error
		says   string
	}{
		{"no signature", set("Signature"), signing.ErrNotSigned, "Signature is missing"},
		{"no input", set(input), signing.ErrMissingHeader, "Signature-Input is missing"},
		{"another label alone", both(edit(input, "sig1=", "sig2="), edit("Signature", "sig1=", "sig2=")), signing.ErrNotSigned, "no signature with the label"},
		{"another tag alone", edit(input, `tag="hooks"`, `tag="other"`), signing.ErrNotSigned, "the tag"},
		{"label in one header", edit("Signature", "sig1=", "sig2="), signing.ErrMalformedHeader, "no signature under the label"},
		{"label twice in the input", edit(input, "sig1=", `sig1=("date");created=1, sig1=`), signing.ErrMalformedHeader, "label twice"},
		{"label twice in the signature", edit("Signature", "sig1=", "sig1=:AAAA:, sig1="), signing.ErrMalformedHeader, "each label once"},
		{"signature header twice", twice("Signature"), signing.ErrRepeatedHeader, "Signature is there 2 times"},
		{"input header twice", twice(input), signing.ErrRepeatedHeader, "Signature-Input is there 2 times"},
		{"another spelling beside it", func(m *signing.Message) { m.Header["content-digest"] = m.Header["Content-Digest"] }, nil, ""},
		{"two spellings", func(m *signing.Message) {
			m.Header["content-digest"], m.Header["CONTENT-DIGEST"] = m.Header["Content-Digest"], m.Header["Content-Digest"]
			delete(m.Header, "Content-Digest")
		}, signing.ErrRepeatedHeader, "2 times"},
		{"covered header twice", twice("Content-Type"), signing.ErrRepeatedHeader, "Content-Type is there 2 times"},
		{"covered header split", set("Content-Type", "application", "json"), signing.ErrRepeatedHeader, "2 times"},
		{"covered header gone", set("Content-Type"), signing.ErrMissingHeader, "Content-Type is missing"},
		{"digest gone", set("Content-Digest"), signing.ErrMissingHeader, "Content-Digest is missing"},
		{"folded header", set("Content-Type", "application/json\r\n x"), signing.ErrMalformedHeader, "visible ASCII"},
		{"a line of the text in a header", set("Content-Type", "application/json\n\"x-event-id\": evt_x"), signing.ErrMalformedHeader, "visible ASCII"},
		{"space around a header", set("Content-Type", " application/json"), signing.ErrMalformedHeader, "visible ASCII"},
		{"beyond ASCII", set("Content-Type", "application/jsön"), signing.ErrMalformedHeader, "visible ASCII"},
		{"too long", set("Content-Type", strings.Repeat("x", 9000)), signing.ErrMalformedHeader, "at most 8192"},
		{"component missing", edit(input, ` "content-digest"`, ""), signing.ErrMalformedHeader, `does not cover "content-digest"`},
		{"component in part only", edit(input, `"content-digest"`, `"content-digest";key="sha-256"`), signing.ErrMalformedHeader, `does not cover "content-digest"`},
		{"component as bytes", edit(input, `"content-type"`, `"content-type";bs`), signing.ErrMalformedHeader, `does not cover "content-type"`},
		{"component twice", edit(input, `"content-type"`, `"content-type" "content-type"`), signing.ErrMalformedHeader, "covered twice"},
		{"unknown derived component", edit(input, `"content-type"`, `"content-type" "@nothing"`), signing.ErrMalformedHeader, "begins with @"},
		{"of an answer", edit(input, `"@method"`, `"@method" "@status"`), signing.ErrMalformedHeader, "@status is for answers"},
		{"of another request", edit(input, `"@method"`, `"@method";req`), signing.ErrMalformedHeader, "req is for answers"},
		{"structured", edit(input, `"content-type"`, `"content-type" "date";sf`), signing.ErrMalformedHeader, "parameter sf"},
		{"trailer", edit(input, `"content-type"`, `"content-type" "date";tr`), signing.ErrMalformedHeader, "parameter tr"},
		{"upper case", edit(input, `"content-type"`, `"Content-Type"`), signing.ErrMalformedHeader, "lower case"},
		{"over the signature", edit(input, `"content-type"`, `"content-type" "signature";key="sig1"`), signing.ErrMalformedHeader, "cannot be covered"},
		{"another algorithm", edit(input, ";created", `;alg="ed25519";created`), signing.ErrMalformedHeader, "another algorithm than hmac-sha256"},
		{"its algorithm, unsigned", edit(input, ";created", `;alg="hmac-sha256";created`), signing.ErrSignatureMismatch, ""},
		{"no algorithm", edit(input, ";created", `;alg="";created`), signing.ErrMalformedHeader, "not empty"},
		{"parameter twice", edit(input, ";created", `;created=1;created`), signing.ErrMalformedHeader, "twice"},
		{"unknown parameter twice", edit(input, ";created", `;x=1;x=2;created`), signing.ErrMalformedHeader, "twice"},
		{"created gone", edit(input, ";created=1700000000", ""), signing.ErrMalformedHeader, "no created"},
		{"created as a text", edit(input, "=1700000000", `="1700000000"`), signing.ErrMalformedHeader, "seconds since 1970"},
		{"created before 1970", edit(input, "=1700000000", "=-1"), signing.ErrMalformedHeader, "seconds since 1970"},
		{"created with a fraction", edit(input, "=1700000000", "=1700000000.0"), signing.ErrMalformedHeader, "serialised"},
		{"created with a zero", edit(input, "=1700000000", "=01700000000"), signing.ErrMalformedHeader, "seconds since 1970"},
		{"created earlier", edit(input, "=1700000000", "=1699999999"), signing.ErrSignatureMismatch, ""},
		{"created too early", edit(input, "=1700000000", "=1699999699"), signing.ErrTimestampOutsideWindow, ""},
		{"created too late", edit(input, "=1700000000", "=1700000301"), signing.ErrMalformedHeader, "expires before"},
		{"expires gone", edit(input, ";expires=1700000300", ""), signing.ErrMalformedHeader, "no expires"},
		{"expired", both(edit(input, "=1700000000", "=1699999990"), edit(input, "=1700000300", "=1699999999")), signing.ErrTimestampOutsideWindow, ""},
		{"expires later", edit(input, "=1700000300", "=1800000000"), signing.ErrSignatureMismatch, ""},
		{"nonce gone", func(m *signing.Message) {
			before, rest, _ := strings.Cut(m.Header.Get(input), ";nonce=")
			_, after, _ := strings.Cut(rest, ";")
			m.Header[input] = []string{before + ";" + after}
		}, signing.ErrMalformedHeader, "no nonce"},
		{"nonce twice", edit(input, ";keyid", `;nonce="a";keyid`), signing.ErrMalformedHeader, "there twice"},
		{"keyid gone", edit(input, `;keyid="key-bbb"`, ""), signing.ErrMalformedHeader, "no keyid"},
		{"another key of the ring", edit(input, `;keyid="key-bbb"`, `;keyid="key-aaa"`), signing.ErrSignatureMismatch, ""},
		{"a key of another's", edit(input, `;keyid="key-bbb"`, `;keyid="key-ccc"`), signing.ErrNoValidKey, ""},
		{"spaces in the list", edit(input, ` "content-type"`, `  "content-type"`), signing.ErrMalformedHeader, "serialised"},
		{"a space behind a semicolon", edit(input, ";created", "; created"), signing.ErrMalformedHeader, "without a name"},
		{"something behind", edit(input, `tag="hooks"`, `tag="hooks" x`), signing.ErrMalformedHeader, "serialised"},
		{"a comma at the end", edit(input, `tag="hooks"`, `tag="hooks",`), signing.ErrMalformedHeader, "not followed"},
		{"no list", set(input, "sig1=1"), signing.ErrMalformedHeader, "no list"},
		{"too many signatures", set(input, strings.Repeat(`a=();created=1, `, 17)+"b=()"), signing.ErrMalformedHeader, "twice"},
		{"a parameter more", edit(input, ";created", `;x=:AA==:;created`), signing.ErrSignatureMismatch, ""},
		{"a component more", edit(input, `"@method"`, `"@method" "@path"`), signing.ErrSignatureMismatch, ""},
		{"another order", edit(input, `"@method" "@target-uri"`, `"@target-uri" "@method"`), signing.ErrSignatureMismatch, ""},
		{"a query's parameter that is not there", edit(input, `"@method"`, `"@method" "@query-param";name="none"`), signing.ErrSignatureMismatch, "parameter of the query"},
		{"short signature", set("Signature", "sig1=:AAAA:"), signing.ErrMalformedHeader, "as many bytes"},
		{"no base64", edit("Signature", ":", ":*"), signing.ErrMalformedHeader, ""},
		{"signature with a parameter", edit("Signature", "=:", "=:AAAA:;a=:"), signing.ErrMalformedHeader, "between colons"},
		{"another method", func(m *signing.Message) { m.Method = "PUT" }, signing.ErrSignatureMismatch, ""},
		{"no method", func(m *signing.Message) { m.Method = "" }, signing.ErrSignatureMismatch, "method is signed"},
		{"a line in the method", func(m *signing.Message) { m.Method = "POST\n" }, signing.ErrSignatureMismatch, "method is signed"},
		{"another body", func(m *signing.Message) { m.Body = []byte("{ }") }, signing.ErrSignatureMismatch, "another digest"},
		{"another body and digest", both(set("Content-Digest", "sha-256=:"+base64Digest("{ }")+":"), func(m *signing.Message) { m.Body = []byte("{ }") }), signing.ErrSignatureMismatch, ""},
		{"a digest of another algorithm", set("Content-Digest", rfcSHA512), signing.ErrSignatureMismatch, ""},
		{"an unknown digest", set("Content-Digest", "md5=:1B2M2Y8AsgTpgAmY7PhCfg==:"), signing.ErrMalformedHeader, "needs sha-256 or sha-512"},
		{"a short digest", set("Content-Digest", "sha-256=:AAAA:"), signing.ErrMalformedHeader, "algorithm's length"},
		{"a digest twice", set("Content-Digest", rfcSHA256+", "+rfcSHA256), signing.ErrMalformedHeader, "each algorithm once"},
		{"a digest with a parameter", set("Content-Digest", rfcSHA256+";a"), signing.ErrMalformedHeader, "base64"},
		{"no digest", set("Content-Digest", "x"), signing.ErrMalformedHeader, "list of digests"},
		{"an empty id", set("X-Event-Id", ""), signing.ErrMalformedHeader, "an id has"},
	} {
		cfg := config()
		cfg.Label = "sig1"
		s := scheme(t, signing.HMACSHA256, covered, cfg)
		m := signed(t, s, keys, "{}")
		warm, err := s.Verify(m, keys, now, tolerance) // so that the list of components is known
		require.NoError(t, err)
		require.Equal(t, "key-bbb", warm.KeyID)
		c.change(&m)
		_, err = s.Verify(m, keys, now, tolerance)
		if c.kind == nil {
			require.NoError(t, err, c.what)
			continue
		}
		require.ErrorIs(t, err, c.kind, c.what)
		require.ErrorContains(t, err, c.says, c.what)
		cold := scheme(t, signing.HMACSHA256, covered, cfg)
		_, again := cold.Verify(m, keys, now, tolerance)
		require.EqualError(t, again, err.Error(), c.what)
		var header *signing.HeaderError
		if errors.As(err, &header) {
			require.EqualError(t, cold.Precheck(m.Header, now, tolerance), err.Error(), c.what)
		}
	}
}

// A target that comes from the request has a bound, as everything else of it has: each
// parameter of the query that is covered is looked for in all of it.
func TestLongTargets(t *testing.T) {
	s := scheme(t, signing.HMACSHA256, []string{`@query-param;name="a"`, "content-digest"}, httpsig.Config{URL: "https://example.com"})
	keys := ring(t, hmacKey(t, secretA))
	m := signing.Message{Method: http.MethodPost, URL: "/?a=1&b=" + strings.Repeat("x", 8192-8), Header: http.Header{}}
	require.NoError(t, s.SignMessage(&m, eventID, now, keys))
	_, err := s.Verify(m, keys, now, tolerance)
	require.NoError(t, err)
	m.URL += "x"
	_, err = s.Verify(m, keys, now, tolerance)
	require.ErrorIs(t, err, signing.ErrSignatureMismatch)
	require.ErrorContains(t, err, "the target has 8193 bytes: at most 8192 are read")
}

func base64Digest(body string) string {
	sum := sha256.Sum256([]byte(body))
	return base64.StdEncoding.EncodeToString(sum[:])
}
