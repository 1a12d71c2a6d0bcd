package main_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/signing"
)

// verifies ends the test unless a post carries the signatures of exactly these
// secrets, the newest first: made here from the contract's words, and as the
// library's own receivers verify them.
func verifies(t *testing.T, p post, newestFirst ...string) {
	t.Helper()
	id, at := p.header.Get("Webhook-Id"), p.header.Get("Webhook-Timestamp")
	mac := hmac.New(sha256.New, []byte(newestFirst[0]))
	mac.Write([]byte(at + "." + string(p.body)))
	require.Regexp(t, "^[0-9a-f]{64}$", p.header.Get("Webhook-Hmac-Sha256"))
	require.Equal(t, hex(mac.Sum(nil)), p.header.Get("Webhook-Hmac-Sha256"))

	var want []string
	for _, secret := range newestFirst {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		require.NoError(t, err)
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + at + "." + string(p.body)))
		want = append(want, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	require.Equal(t, strings.Join(want, " "), p.header.Get("Webhook-Signature"))

	secret, err := signing.ParseSecret(newestFirst[0])
	require.NoError(t, err)
	keys, err := signing.NewKeyring(signing.Key{ID: "newest", Secret: secret})
	require.NoError(t, err)
	for _, scheme := range signing.DefaultSchemes() {
		v, err := signing.NewVerifier(keys, &signing.VerifierConfig{Schemes: []signing.Scheme{scheme}})
		require.NoError(t, err)
		_, err = v.Verify(signing.Message{Method: p.method, Header: p.header, Body: p.body})
		require.NoError(t, err, "scheme %s", scheme.Name())
	}
}

func hex(b []byte) string {
	const digits = "0123456789abcdef"
	out := make([]byte, 0, 2*len(b))
	for _, c := range b {
		out = append(out, digits[c>>4], digits[c&15])
	}
	return string(out)
}

// typeAndVersion reads the body of an event.
func typeAndVersion(t *testing.T, body []byte) string {
	t.Helper()
	var e struct {
		Type    string
		Version json.Number
	}
	require.NoError(t, json.Unmarshal(body, &e))
	return e.Type + " " + e.Version.String()
}

// The posts are those of the contract, byte for byte where it says the bytes.
func TestWhatIsPosted(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p)
		c := s.customer("c")
		e := newEndpoint(t)
		e.answers(http.StatusInternalServerError)
		s.subscribe(c.token, e.URL)
		s.patch(operatorToken, "/subscribers/"+c.id, object{"name": "x"}).is(http.StatusOK)
		first := e.wait(t, 1)[0]
		verifies(t, first, c.secret)

		require.Equal(t, http.MethodPost, first.method)
		require.Equal(t, "application/json", first.header.Get("Content-Type"))
		require.Regexp(t, "^surehook/.+", first.header.Get("User-Agent"))
		require.Regexp(t, "^[0-9]+$", first.header.Get("Webhook-Timestamp"))
		require.Equal(t, "1", first.header.Get("Webhook-Attempt"))
		thin := regexp.MustCompile(`^\{"id":"(evt_[0-9a-v]+)","type":"subscriber.updated","occurred_at":"[-0-9T:.]+Z","object":\{"type":"subscriber","id":"` + c.id + `"\},"version":2\}$`)
		require.Regexp(t, thin, string(first.body))
		require.Equal(t, thin.FindSubmatch(first.body)[1], []byte(first.header.Get("Webhook-Id")))

		// The same bytes at every attempt, with a number and a signature of its own.
		e.answers(http.StatusOK)
		failed := s.get(c.token, "/deliveries?event_id="+first.header.Get("Webhook-Id")).data()[0]["id"].(string)
		eventually(t, "the first attempt is recorded", func() any {
			return s.get(c.token, "/deliveries/"+failed).is(http.StatusOK)["status"]
		}, func(status any) bool { return status == "awaiting_retry" })
		s.post(c.token, "/deliveries/"+failed+"/redeliver", nil).is(http.StatusAccepted)
		second := e.wait(t, 2)[1]
		verifies(t, second, c.secret)
		require.Equal(t, first.body, second.body)
		require.Equal(t, first.header.Get("Webhook-Id"), second.header.Get("Webhook-Id"))
		require.Equal(t, "2", second.header.Get("Webhook-Attempt"))

		// A producer's data goes along as it came.
		s.post(operatorToken, "/events", `{"type":"order.paid","object":{"type":"order","id":"7"},"data":{"b":1.50,"a":"ü<"}}`).is(http.StatusCreated)
		third := e.wait(t, 3)[2]
		require.Contains(t, string(third.body), `"version":1,"data":{"b":1.50,"a":"ü<"}}`)

		// The OpenAPI document describes all of it.
		doc := s.get("", "/openapi.json").is(http.StatusOK)
		described := doc["webhooks"].(object)["event"].(object)["post"].(object)
		var names, sent []string
		for _, p := range described["parameters"].([]any) {
			names = append(names, p.(object)["name"].(string))
		}
		for name := range third.header {
			if strings.HasPrefix(name, "Webhook-") || name == "User-Agent" {
				sent = append(sent, name)
			}
		}
		require.ElementsMatch(t, sent, names)
		var body object
		require.NoError(t, json.Unmarshal(third.body, &body))
		fields := described["requestBody"].(object)["content"].(object)["application/json"].(object)["schema"].(object)["properties"].(object)
		// Each type of this server has one version, so its posts leave payload_version out.
		require.ElementsMatch(t, append(slices.Collect(maps.Keys(body)), "payload_version"), slices.Collect(maps.Keys(fields)))
	})
}

// Anybody can verify with a shell.
func TestOpenSSLVerifies(t *testing.T) {
	t.Parallel()
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		const missing = "there is no openssl here (on Debian: apt-get install openssl); TestWhatIsPosted computes the same"
		if slices.Contains(strings.Split(os.Getenv("SUREHOOK_REQUIRE"), ","), "openssl") {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	dir := t.TempDir()
	s := start(t, place{flag: filepath.Join(dir, "test.db")})
	c := s.customer("c")
	e := newEndpoint(t)
	s.subscribe(c.token, e.URL)
	s.patch(operatorToken, "/subscribers/"+c.id, object{"name": "x"}).is(http.StatusOK)
	got := e.wait(t, 1)[0]
	require.NoError(t, os.WriteFile(filepath.Join(dir, "body"), got.body, 0o600))
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `{ printf '%s.' "$TIMESTAMP"; cat body; } | `+openssl+` dgst -sha256 -hmac "$SECRET"`)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TIMESTAMP="+got.header.Get("Webhook-Timestamp"), "SECRET="+c.secret)
	out, err := cmd.Output()
	require.NoError(t, err)
	fields := bytes.Fields(out)
	require.Equal(t, got.header.Get("Webhook-Hmac-Sha256"), string(fields[len(fields)-1]))
}
