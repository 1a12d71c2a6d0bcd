package main_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// With -challenge no URL is called before its owner has said so: not a registered one, not
// a changed one, and not a job's.
func TestChallenge(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p, "-challenge", "-workers=false")
		c := s.customer("c")
		stranger, own := newEndpoint(t), newEndpoint(t)
		own.with(func(w http.ResponseWriter, _ *http.Request) {
			posts := own.received()
			var body struct {
				Type string `json:"type"`
				Data struct {
					Token string `json:"token"`
				} `json:"data"`
			}
			last := posts[len(posts)-1]
			mac := hmac.New(sha256.New, []byte(c.secret))
			mac.Write([]byte(last.header.Get("Webhook-Timestamp") + "." + string(last.body)))
			if json.Unmarshal(last.body, &body) != nil || body.Type != "webhook.challenge" ||
				last.header.Get("Webhook-Hmac-Sha256") != hex(mac.Sum(nil)) {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			_ = json.NewEncoder(w).Encode(object{"token": body.Data.Token})
		})
		before := dump(t, p)
		s.post(c.token, "/subscriptions", object{"url": stranger.URL}).refused(http.StatusUnprocessableEntity, "body.url")
		s.post(operatorToken, "/subscriptions", object{"url": stranger.URL, "subscriber_id": c.id}).refused(http.StatusUnprocessableEntity, "body.url")
		s.post(operatorToken, "/subscriptions", object{"url": stranger.URL, "subscriber_id": "sub_never"}).refused(http.StatusUnprocessableEntity, "body.subscriber_id")
		s.post(c.token, "/subscriptions", object{"url": "ftp://x.example.com/"}).refused(http.StatusUnprocessableEntity, "body.url")
		s.post(c.token, "/jobs", object{"kind": "export_events", "input": object{}, "callback_url": stranger.URL}).refused(http.StatusUnprocessableEntity, "body.callback_url")
		require.Equal(t, before, dump(t, p))

		made := s.post(c.token, "/subscriptions", object{"url": own.URL + "/a"}, "Idempotency-Key", "1").is(http.StatusCreated)
		at := "/subscriptions/" + made["id"].(string)
		s.patch(c.token, at, object{"url": stranger.URL}).refused(http.StatusUnprocessableEntity, "body.url")
		require.Len(t, own.received(), 1)
		s.patch(c.token, at, object{"url": own.URL + "/a", "description": "the same URL"}).is(http.StatusOK)
		require.Len(t, own.received(), 1)
		s.patch(c.token, at, object{"url": own.URL + "/b"}, "Idempotency-Key", "1").is(http.StatusOK)
		s.post(c.token, "/jobs", object{"kind": "export_events", "input": object{}, "callback_url": own.URL}, "Idempotency-Key", "1").is(http.StatusAccepted)
		asked := len(own.received())
		require.Equal(t, 3, asked)
		require.Equal(t, made, s.post(c.token, "/subscriptions", object{"url": own.URL + "/a"}, "Idempotency-Key", "1").is(http.StatusCreated))
		require.Len(t, own.received(), asked, "a repeat asks nobody")
		describesChallenge(s, own.received()[0])

		// A repeat is what it is when it comes, and nobody decides it again when its answer may
		// be forgotten: whoever writes waits here for the test.
		s.client = &http.Client{Timeout: 30 * time.Second}
		aging, err := p.open(t).BeginTx(t.Context(), nil)
		require.NoError(t, err)
		_, err = aging.ExecContext(t.Context(), fmt.Sprintf("UPDATE server_answers SET created_at = created_at - %d", (24*time.Hour).Microseconds()))
		require.NoError(t, err)
		others := func(status int, atURL, atCallback string) {
			s.post(c.token, "/subscriptions", object{"url": stranger.URL}, "Idempotency-Key", "1").refused(status, atURL)
			s.patch(c.token, at, object{"url": stranger.URL}, "Idempotency-Key", "1").refused(status, atURL)
			s.post(c.token, "/jobs", object{"kind": "export_events", "input": object{}, "callback_url": stranger.URL}, "Idempotency-Key", "1").refused(status, atCallback)
		}
		others(http.StatusConflict, "header.Idempotency-Key", "header.Idempotency-Key")
		require.Equal(t, made, s.post(c.token, "/subscriptions", object{"url": own.URL + "/a"}, "Idempotency-Key", "1").is(http.StatusCreated))
		require.NoError(t, aging.Commit())
		others(http.StatusUnprocessableEntity, "body.url", "body.callback_url")
		require.Len(t, own.received(), asked)
		require.NotEqual(t, made, s.post(c.token, "/subscriptions", object{"url": own.URL + "/a"}, "Idempotency-Key", "1").is(http.StatusCreated))
		require.Len(t, own.received(), asked+1, "what is forgotten is no repeat")
	})
}

// describesChallenge holds the OpenAPI document to a challenge: who has nothing else can answer
// one by it.
func describesChallenge(s *process, got post) {
	webhooks := s.get("", "/openapi.json").is(http.StatusOK)["webhooks"].(object)
	require.Contains(s.t, webhooks, "challenge")
	described := webhooks["challenge"].(object)["post"].(object)
	var names []string
	for _, p := range described["parameters"].([]any) {
		names = append(names, p.(object)["name"].(string))
	}
	for _, name := range names {
		require.Len(s.t, got.header.Values(name), 1, name)
	}
	require.Contains(s.t, names, "Webhook-Signature")
	var body object
	require.NoError(s.t, json.Unmarshal(got.body, &body))
	sent := described["requestBody"].(object)["content"].(object)["application/json"].(object)
	for _, of := range []object{sent["schema"].(object)["properties"].(object), sent["example"].(object)} {
		require.ElementsMatch(s.t, slices.Collect(maps.Keys(body)), slices.Collect(maps.Keys(of)))
	}
	fields := sent["schema"].(object)["properties"].(object)
	require.Equal(s.t, []any{body["type"]}, fields["type"].(object)["enum"])
	token := fields["data"].(object)["properties"]
	require.ElementsMatch(s.t, slices.Collect(maps.Keys(body["data"].(object))), slices.Collect(maps.Keys(token.(object))))
	answers := described["responses"].(object)["2XX"].(object)["content"].(object)
	require.Contains(s.t, answers, "application/json")
	require.Contains(s.t, answers, "text/plain")
}
