package jose_test

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/signing"
	"github.com/surehook/surehook/signing/jose"
)

// A webhook that Plaid has sent, with its key, as its receiver has published them.
//
// Source: https://stackoverflow.com/questions/62117400
func TestPlaidsOwnWebhook(t *testing.T) {
	const (
		sent = "eyJhbGciOiJFUzI1NiIsImtpZCI6IjZjNTUxNmUxLTkyZGMtNDc5ZS1hOGZmLTVhNTE5OTJlMDAwMSIsInR5cCI6IkpXVCJ9." +
			"eyJpYXQiOjE1OTA4ODcwMDEsInJlcXVlc3RfYm9keV9zaGEyNTYiOiJiNjNhMDdiNTQ3YjAwZjk5MjU0N2Y2YmJjOGQ5YWNjNjFhOGNjZWUxMzhiYzgyZjQ0YTZiYWEwOTY4M2E1ZDBmIn0." +
			"OOKvIihgqCj7Qrb2bmz7T3t7uK-0JyjiEqL2s1kWeJBM4MMmjaHKK8GmU_z91QolBWMzvPgs718EElY-rE3cwQ"
		set = `{"keys":[{"alg":"ES256","created_at":1560466143,"crv":"P-256","expired_at":null,"kid":"6c5516e1-92dc-479e-a8ff-5a51992e0001","kty":"EC","use":"sig",
			"x":"35lvC8uz2QrWpQJ3TUH8t9o9DURMp7ydU518RKDl20k","y":"I8BuXB2bvxelzJAd7OKhd-ZwjCst05Fx47Mb_0ugros"}]}`
		body = "{\n  \"error\": null,\n  \"item_id\": \"yxQbxDjnD8hr69pKbQpbcKeVn3GL9QuyA7NV3\",\n  \"new_transactions\": 390,\n" +
			"  \"webhook_code\": \"HISTORICAL_UPDATE\",\n  \"webhook_type\": \"TRANSACTIONS\"\n}"
	)
	keys := must(jose.ParseJWKS([]byte(set)))
	at := time.Unix(1590887001, 0)
	v, err := signing.NewVerifier(nil, &signing.VerifierConfig{Schemes: []signing.Scheme{must(jose.Plaid(jose.FixedKeys(keys)))}, Now: func() time.Time { return at }})
	require.NoError(t, err)
	m := signing.Message{Header: http.Header{"Plaid-Verification": {sent}}, Body: []byte(body)}
	_, facts, err := v.VerifyFacts(m)
	require.NoError(t, err)
	require.Equal(t, "HISTORICAL_UPDATE", facts.Type)
	m.Body = []byte(strings.ReplaceAll(body, "390", "391"))
	refusedFor(t, signing.ErrSignatureMismatch, v, m)
}

// The reference values of MessageBird's own libraries, but those of HS384 and HS512, which
// its documentation does not name: the algorithm is pinned here.
//
// Source: https://github.com/messagebird/messagebird-nodejs, lib/testdata
func TestMessageBirdsReferenceValues(t *testing.T) {
	text, err := os.ReadFile("testdata/messagebird.json")
	require.NoError(t, err)
	var cases []struct {
		Name, Secret, URL, Payload, Timestamp, Token, Reason string
		Valid                                                bool
	}
	require.NoError(t, json.Unmarshal(text, &cases))
	accepted := 0
	for _, c := range cases {
		if c.Secret == "" {
			c.Secret = secret
		}
		at := must(time.Parse(time.RFC3339, c.Timestamp))
		v, err := signing.NewVerifier(must(signing.NewKeyring(signing.Key{Secret: must(signing.ParseTextSecret(c.Secret))})), &signing.VerifierConfig{
			Schemes: []signing.Scheme{must(jose.MessageBird(c.URL))}, Now: func() time.Time { return at },
		})
		require.NoError(t, err)
		_, err = v.Verify(signing.Message{Header: http.Header{"Messagebird-Signature-Jwt": {c.Token}}, Body: []byte(c.Payload)})
		want := c.Valid && !strings.HasPrefix(c.Name, "HS384") && !strings.HasPrefix(c.Name, "HS512")
		require.Equal(t, want, err == nil, "%s: %v", c.Name, err)
		if want {
			accepted++
		}
	}
	require.Greater(t, accepted, 3)
}

// These are the canonical forms that atlassian-jwt 2.0.3 (npm) makes of these requests.
func TestCanonicalRequests(t *testing.T) {
	for _, c := range []struct{ method, target, base, want string }{
		{"get", "/path/to/service?zee_last=param&repeated=parameter+1&first=param&repeated=parameter+2&repeated=Parameter+2", "", "GET&/path/to/service&first=param&repeated=Parameter%202,parameter%201,parameter%202&zee_last=param"},
		{"POST", "/jira/rest/api?a=1&jwt=x.y.z", "/jira", "POST&/rest/api&a=1"},
		{"GET", "/jira", "/jira", "GET&/&"},
		{"GET", "/", "", "GET&/&"},
		{"GET", "/a/?empty=", "", "GET&/a&empty="},
		{"GET", "/a?b=%2A~%2B+c", "", "GET&/a&b=%2A~%2B%20c"},
		{"GET", "/a?b=%21%27%28%29*", "", "GET&/a&b=%21%27%28%29%2A"},
		{"POST", "/a?project1=x&project.id=1&project=b&project=a&project%20c=2", "", "POST&/a&project=a,b&project%20c=2&project.id=1&project1=x"},
		{"POST", "/a?b=b:c&b=b1", "", "POST&/a&b=b1,b%3Ac"},
	} {
		got, err := jose.Canonical(c.method, c.target, c.base)
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
}

// A token that atlassian-jwt 2.0.3 (npm) has made.
func TestTokenOfAtlassiansLibrary(t *testing.T) {
	s := senders()["atlassian-connect"]
	_, err := s.verifier(t).Verify(s.carrying("eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1NiJ9." +
		"eyJpc3MiOiJjbGllbnQta2V5IiwiaWF0IjoxNzk1NjgzNTk5LCJleHAiOjE3OTU2ODM3NzksInFzaCI6IjE4ZDhmNjdiMTVlNWNmMDQ0MTE1MGVkMGU4YzFhMDA3YzJmYTJiNzM5YWJhZTA3YWE1MjFjYTAyMjQ5OTdlZWEifQ." +
		"SoVxEY3j7cBb02kIGKFqRJ-tvbofhjQcs5zvcW_PUJY"))
	require.NoError(t, err)
}
