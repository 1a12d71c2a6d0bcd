package main

import (
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/signing/jose"
	"github.com/surehook/surehook/signing/sns"
)

const (
	stripeSecret = "whsec_7e0c0a1b2c3d4e5f60718293a4b5c6d7"
	githubSecret = "It's a Secret to Everybody"
	topic        = "arn:aws:sns:eu-west-1:123456789012:orders"
	audience     = "https://shop.example/webhooks/google-pubsub"
	account      = "push@project.iam.gserviceaccount.com"
)

// request is one as a sender makes it.
type request struct {
	path   string
	header http.Header
	body   string
}

func (r request) post(t *testing.T, server string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server+r.path, strings.NewReader(r.body))
	require.NoError(t, err)
	req.Header = r.header
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(text)
}

func mac(secret, text string) string {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte(text))
	return hex.EncodeToString(h.Sum(nil))
}

func sign(t *testing.T, key *rsa.PrivateKey, text string) []byte {
	t.Helper()
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	require.NoError(t, err)
	return signature
}

// requests are the events of the four, signed as their documentation says.
func requests(t *testing.T, key *rsa.PrivateKey) map[string]request {
	t.Helper()
	now := time.Now().UTC()
	stripe := fmt.Sprintf(`{"id":"evt_1","type":"invoice.paid","created":%d,"data":{"object":{"id":"in_1","object":"invoice"}}}`, now.Unix())
	const github = `{"action":"opened","number":1}`
	fields := map[string]string{
		"Message": "an order", "MessageId": "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324", "Timestamp": now.Format("2006-01-02T15:04:05.000Z"), "TopicArn": topic, "Type": "Notification",
	}
	text := ""
	for _, name := range []string{"Message", "MessageId", "Timestamp", "TopicArn", "Type"} {
		text += name + "\n" + fields[name] + "\n"
	}
	fields["Signature"] = base64.StdEncoding.EncodeToString(sign(t, key, text))
	fields["SignatureVersion"], fields["SigningCertURL"] = "2", "https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-01.pem"
	amazon, err := json.Marshal(fields)
	require.NoError(t, err)
	encode := base64.RawURLEncoding.EncodeToString
	token := encode([]byte(`{"alg":"RS256","kid":"k"}`)) + "." + encode(fmt.Appendf(nil,
		`{"aud":%q,"email":%q,"email_verified":true,"exp":%d,"iat":%d,"iss":"https://accounts.google.com"}`, audience, account, now.Unix()+3600, now.Unix()))
	token += "." + encode(sign(t, key, token))
	return map[string]request{
		"stripe":        {"/webhooks/stripe", http.Header{"Stripe-Signature": {fmt.Sprintf("t=%d,v1=%s", now.Unix(), mac(stripeSecret, fmt.Sprintf("%d.%s", now.Unix(), stripe)))}, "Content-Type": {"application/json"}}, stripe},
		"github":        {"/webhooks/github", http.Header{"X-Hub-Signature-256": {"sha256=" + mac(githubSecret, github)}, "X-Github-Event": {"pull_request"}, "Content-Type": {"application/json"}}, github},
		"sns":           {"/webhooks/sns", http.Header{"X-Amz-Sns-Message-Type": {"Notification"}, "Content-Type": {"text/plain; charset=UTF-8"}}, string(amazon)},
		"google-pubsub": {"/webhooks/google-pubsub", http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"}}, `{"message":{"data":"b3JkZXI=","messageId":"2070443601311540"},"subscription":"projects/p/subscriptions/s","deliveryAttempt":1}`},
	}
}

// One server takes the events of the four. Each has one effect, however often it comes, and
// none has an effect that another one has signed.
func TestFourSendersHaveOneEffectEach(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	amazon, err := sns.New([]string{topic}, &sns.Config{Certificate: cert})
	require.NoError(t, err)
	google, err := jose.PubSub(audience, account, jose.FixedKeys(map[string]crypto.PublicKey{"k": &key.PublicKey}))
	require.NoError(t, err)
	db, err := sql.Open("sqlite", "file:"+filepath.ToSlash(filepath.Join(t.TempDir(), "hooks.db"))+"?_pragma=journal_mode(wal)&_pragma=busy_timeout(5000)&_txlock=immediate")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	require.NoError(t, migrate(t.Context(), db))
	all, err := senders(db, stripeSecret, githubSecret, amazon, google)
	require.NoError(t, err)
	mux := http.NewServeMux()
	for name, hooks := range all {
		mux.Handle("POST /webhooks/"+name, hooks.Handler(effect(name, amazon)))
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)

	sent := requests(t, key)
	for name, r := range sent {
		for i, want := range []string{"applied", "duplicate", "duplicate"} {
			if i == 2 { // as Pub/Sub repeats it
				r.body = strings.Replace(r.body, `"deliveryAttempt":1`, `"deliveryAttempt":2`, 1)
			}
			status, text := r.post(t, server.URL)
			require.Equal(t, 200, status, "%s: %s", name, text)
			require.JSONEq(t, `{"result":"`+want+`"}`, text, name)
		}
		for other := range sent {
			if other != name {
				forged := r
				forged.path = "/webhooks/" + other
				status, _ := forged.post(t, server.URL)
				require.GreaterOrEqual(t, status, 400, "%s at %s", name, other)
			}
		}
		forged := r
		forged.header = r.header.Clone()
		if forged.body += " "; name == "google-pubsub" { // whose token does not cover the body
			forged.header.Set("Authorization", strings.Replace(r.header.Get("Authorization"), ".", ".e", 1))
		}
		if name != "sns" { // whose signature covers fields
			status, _ := forged.post(t, server.URL)
			require.GreaterOrEqual(t, status, 400, name)
		}
	}
	var effects string
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT group_concat(effect, ', ') FROM (SELECT sender || ' ' || type AS effect FROM effects ORDER BY sender)").Scan(&effects))
	require.Equal(t, "github pull_request, google-pubsub untyped, sns Notification, stripe invoice.paid", effects)
}

// The page shows what is run here.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/four-senders.md")
	require.NoError(t, err)
	program, err := os.ReadFile("main.go")
	require.NoError(t, err)
	_, text, found := strings.Cut(string(program), "\npackage main\n")
	require.True(t, found)
	require.Contains(t, string(page), "```go\npackage main\n"+text+"```\n")
}
