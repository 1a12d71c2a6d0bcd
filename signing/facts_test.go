package signing_test

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/signing"
)

func TestFacts(t *testing.T) {
	day := time.Date(2024, time.March, 20, 10, 7, 35, 590_857_000, time.UTC)
	unsigned := http.Header{"X-Github-Delivery": {"guid-1"}, "X-Github-Event": {"push"}, "X-Shopify-Event-Id": {"guid-2"}, "X-Shopify-Topic": {"orders/create"}, "Linear-Delivery": {"guid-3"}, "X-Event-Id": {"guid-4"}}
	for _, c := range []struct {
		scheme signing.FactReader
		body   string
		want   signing.Facts
	}{
		{signing.Stripe(), `{"id":"evt_1","object":"event","type":"charge.succeeded","created":1710929255}`, signing.Facts{ID: "evt_1", Type: "charge.succeeded", Time: day.Truncate(time.Second)}},
		{signing.Paddle(), paddleBody, signing.Facts{ID: "evt_01hsdn97563968dy0szkmgjwh3", Type: "price.created", Time: day}},
		{signing.Slack(), `{"type":"event_callback","event_id":"Ev1","event_time":1710929255,"event":{"type":"message"}}`, signing.Facts{ID: "Ev1", Type: "message", Time: day.Truncate(time.Second)}},
		{signing.Slack(), slackBody, signing.Facts{}},
		{square(t, squareURL), squareBody, signing.Facts{ID: "ac3ac95b-f97d-458c-a6e6-18981597e05f", Type: "webhooks.test_notification", Time: time.Date(2022, time.July, 13, 20, 30, 59, 37_339_943, time.UTC)}},
		{signing.GitHub(), `{"id":"evil","type":"evil"}`, signing.Facts{UnsignedID: "guid-1", UnsignedType: "push"}},
		{signing.Shopify(), `{"id":820982911946154508}`, signing.Facts{UnsignedID: "guid-2", UnsignedType: "orders/create"}},
		{signing.Linear(), linearBody, signing.Facts{Type: "Comment", Time: time.Date(2023, time.November, 14, 22, 13, 19, 84_000_000, time.UTC), UnsignedID: "guid-3"}},
		{signing.Discord(), `{"id":"846462639134605312","type":2}`, signing.Facts{ID: "846462639134605312", Type: "2"}},
		{signing.Meta(), `{"object":"page","entry":[{"id":"1"}]}`, signing.Facts{Type: "page"}},
		{signing.Zendesk(), `{"id":"2b24ef10","type":"zen:event-type:user.active_changed","time":"2024-03-20T10:07:35.590857Z","event":{"id":1}}`, signing.Facts{ID: "2b24ef10", Type: "zen:event-type:user.active_changed", Time: day}},
		{signing.TimestampBody{}, `{"id":"evt_1","type":"subscriber.updated","occurred_at":"2024-03-20T12:07:35.590857+02:00"}`, signing.Facts{ID: "evt_1", Type: "subscriber.updated", Time: day}},
		{signing.TimestampBody{}, `{"id":"evt_1","occurred_at":99999999999999}`, signing.Facts{ID: "evt_1", Time: time.Date(5138, time.November, 16, 9, 46, 39, 999_000_000, time.UTC)}},
		{described(t, signing.Description{Signed: "{timestamp}.{header:X-Github-Event}.{body}", TimestampHeader: "X-Time", TypeHeader: "X-GitHub-Event"}), `{}`, signing.Facts{Type: "push"}},
		{described(t, signing.Description{Signed: "{timestamp}.{header:X-Github-Event}.{body}", TimestampHeader: "X-Time", TypeHeader: "X-GitHub-Event", TypeField: "type"}), `{"type":"a"}`, signing.Facts{Type: "a"}},
		{signing.Hook0Body(), `{}`, signing.Facts{UnsignedID: "guid-4"}},
	} {
		got := c.scheme.Facts(signing.Message{Header: unsigned, Body: []byte(c.body)}, signing.Verified{})
		if c.want.ID != "" {
			got.UnsignedID = "" // a header beside a signed id is of no interest
		}
		require.Empty(t, cmp.Diff(c.want, got, cmpopts.IgnoreUnexported(signing.Facts{})), c.scheme.Name())
	}
}

func TestVerifyFacts(t *testing.T) {
	keys := ringOf(t, publishedHMAC)
	v := verifier(t, keys, signing.Svix(), signing.StandardWebhooks{}, signing.TimestampBody{})
	message := []byte(`{"type":"a.b","timestamp":"2024-03-20T10:07:35Z","id":"not this"}`)
	for _, scheme := range []signing.Scheme{signing.Svix(), signing.StandardWebhooks{}} {
		h := http.Header{}
		require.NoError(t, scheme.Sign(h, eventID, now, message, keys))
		verified, facts, err := v.VerifyFacts(signing.Message{Header: h, Body: message})
		require.NoError(t, err)
		require.Equal(t, scheme.Name(), verified.Scheme)
		require.Equal(t, eventID, facts.ID)
		require.Equal(t, "a.b", facts.Type)
		require.Equal(t, "id-"+eventID, facts.DedupKey())
	}
	_, facts, err := v.VerifyFacts(signing.Message{Header: http.Header{"Webhook-Signature": {otherV1}}, Body: message})
	require.Error(t, err)
	require.Zero(t, facts, "nothing is said of what is not verified")

	_, facts, err = verifier(t, keys, silent{signing.TimestampBody{}}).VerifyFacts(signed(t, signing.TimestampBody{}, keys, now))
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(facts.DedupKey(), "sha256-"), "a scheme that knows no facts")
}

// By the default schemes an event of this module has the same facts whichever header has
// decided, and by its body alone.
func TestFactsOfTheDefaultSchemes(t *testing.T) {
	keys := ringOf(t, publishedHMAC)
	v := verifier(t, keys)
	message := []byte(`{"id":"` + eventID + `","type":"a.b","occurred_at":"2024-03-20T10:07:35Z"}`)
	want := signing.Facts{ID: eventID, Type: "a.b", Time: time.Date(2024, time.March, 20, 10, 7, 35, 0, time.UTC)}
	require.Empty(t, cmp.Diff(want, v.BodyFacts(message), cmpopts.IgnoreUnexported(signing.Facts{})))
	for _, schemes := range [][]signing.Scheme{signing.DefaultSchemes(), {signing.StandardWebhooks{}}, {signing.TimestampBody{}}} {
		h := http.Header{}
		require.NoError(t, signing.Sign(h, schemes, eventID, now, message, keys))
		_, facts, err := v.VerifyFacts(signing.Message{Header: h, Body: message})
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(want, facts, cmpopts.IgnoreUnexported(signing.Facts{})))
	}
	noID := []byte(`{"type":"a.b","timestamp":"2024-03-20T10:07:35Z"}`)
	require.Empty(t, cmp.Diff(signing.Facts{Type: "a.b", Time: want.Time}, v.BodyFacts(noID), cmpopts.IgnoreUnexported(signing.Facts{})))
	require.Equal(t, fmt.Sprintf("sha256-%x", sha256.Sum256(noID)), v.BodyFacts(noID).DedupKey())
}

// silent is a scheme of somebody else's, which reads no facts.
type silent struct{ signing.Scheme }

// reading is a scheme of somebody else's, which reads what facts says.
type reading struct {
	signing.Scheme
	facts func(signing.Message, signing.Verified) signing.Facts
}

func (r reading) Facts(m signing.Message, v signing.Verified) signing.Facts { return r.facts(m, v) }

// Events without an id are told apart by the bytes that were verified, whatever a scheme's
// reader has taken its facts from.
func TestFactsOfASchemeOfOnesOwn(t *testing.T) {
	keys := ringOf(t, publishedHMAC)
	first, second := []byte(`{"no":1}`), []byte(`{"no":2}`)
	twilio, err := signing.NewTwilio("https://example.com/sms")
	require.NoError(t, err)
	kept := signing.GitHub().Facts(signing.Message{Body: first}, signing.Verified{})
	for name, facts := range map[string]func(signing.Message, signing.Verified) signing.Facts{
		"no body":         func(signing.Message, signing.Verified) signing.Facts { return signing.Facts{Type: "made"} },
		"an earlier body": func(signing.Message, signing.Verified) signing.Facts { return kept },
		"a part of it": func(m signing.Message, v signing.Verified) signing.Facts {
			return signing.GitHub().Facts(signing.Message{Body: m.Body[:3]}, v)
		},
		"another form": func(signing.Message, signing.Verified) signing.Facts {
			return twilio.Facts(signing.Message{URL: "/sms", Body: []byte("A=1")}, signing.Verified{})
		},
		"no form of Twilio's": func(m signing.Message, v signing.Verified) signing.Facts {
			return twilio.Facts(signing.Message{URL: "/else", Body: m.Body}, v)
		},
	} {
		v := verifier(t, keys, reading{signing.TimestampBody{}, facts})
		for _, b := range [][]byte{first, second, first} {
			m := signing.Message{Header: http.Header{}, Body: b}
			require.NoError(t, signing.TimestampBody{}.Sign(m.Header, eventID, now, b, keys))
			_, got, err := v.VerifyFacts(m)
			require.NoError(t, err)
			want := fmt.Sprintf("sha256-%x", sha256.Sum256(b))
			require.Equal(t, want, got.DedupKey(), name)
			require.Equal(t, want, v.BodyFacts(b).DedupKey(), "%s, by the body alone", name)
		}
	}
	silent := struct{ signing.Scheme }{signing.TimestampBody{}} // it reads no facts
	require.Equal(t, eventID, verifier(t, keys, silent, signing.TimestampBody{}).BodyFacts(body).ID, "the next scheme's are taken")
	require.Empty(t, signing.Facts{Type: "made"}.DedupKey(), "of no message at all")
	require.Equal(t, fmt.Sprintf("sha256-%x", sha256.Sum256(nil)), signing.Facts{}.Of(signing.Message{}).DedupKey(), "an empty body is one")

	// An id decides alone, and a scheme that hands on what Twilio's says has its key.
	require.Equal(t, "id-1", signing.Facts{ID: "1"}.Of(signing.Message{Body: first}).DedupKey())
	m := signing.Message{URL: "/sms", Body: []byte("A=1&B=2")}
	other := signing.Message{URL: "/sms", Body: []byte("B=2&A=1")}
	require.Equal(t, twilio.Facts(m, signing.Verified{}).Of(m).DedupKey(), twilio.Facts(other, signing.Verified{}).Of(other).DedupKey())
}

// Copies of one event have one key, and different events have different keys.
func TestDedupKeys(t *testing.T) {
	key := func(s signing.FactReader, m signing.Message) string { return s.Facts(m, signing.Verified{}).DedupKey() }
	at := func(url, body string) signing.Message { return signing.Message{URL: url, Body: []byte(body)} }

	one := at("", `{"a":1}`)
	same := at("", `{"a":1}`)
	same.Header = http.Header{"X-Github-Delivery": {"another"}}
	require.Equal(t, key(signing.GitHub(), one), key(signing.GitHub(), same), "the unsigned id makes no new event")
	require.NotEqual(t, key(signing.GitHub(), one), key(signing.GitHub(), at("", `{"a":2}`)))

	twilio, err := signing.NewTwilio("https://example.com/sms")
	require.NoError(t, err)
	require.Equal(t, key(twilio, at("/sms", "A=1&B=2")), key(twilio, at("/sms", "B=%32&A=1&")), "the same signature holds for both")
	require.NotEqual(t, key(twilio, at("/sms", "A=1&B=2")), key(twilio, at("/sms", "A=1&B=3")))
	require.NotEqual(t, key(twilio, at("/sms", "A=1&B=2")), key(twilio, at("/sms?x=1", "A=1&B=2")))
}

func TestJSONText(t *testing.T) {
	for _, c := range []struct {
		doc, path, want string
		found           bool
	}{
		{`{"a":"x"}`, "a", "x", true},
		{"\n{ \"b\" : {} , \"a\" : \"x\" }\t", "a", "x", true},
		{`{"a":"\u0078\n"}`, "a", "x\n", true},
		{`{"\u0061":"x"}`, "a", "x", true},
		{`{"a":{"b":{"c":12}}}`, "a.b.c", "12", true},
		{`{"b":[{"a":"y"},"}",{"a":[]}],"a":"x"}`, "a", "x", true},
		{`{"b":"\"a\":\"y\"","a":"x"}`, "a", "x", true},
		{`{"a":0}`, "a", "0", true},
		{`{"a":"x","a":"y"}`, "a", "", false},
		{`{"a":"x","\u0061":"y"}`, "a", "", false},
		{`{"a":{"b":"x"},"a":{"b":"x"}}`, "a.b", "", false},
		{`{"a":1.5}`, "a", "", false},
		{`{"a":1e3}`, "a", "", false},
		{`{"a":-1}`, "a", "", false},
		{`{"a":true}`, "a", "", false},
		{`{"a":null}`, "a", "", false},
		{`{"a":{}}`, "a", "", false},
		{`{"a":["x"]}`, "a", "", false},
		{`{"a":"\ud800"}`, "a", "", false},
		{"{\"a\":\"\xff\"}", "a", "", false},
		{`{"A":"x"}`, "a", "", false},
		{`["a"]`, "a", "", false},
		{`"a"`, "a", "", false},
		{`{"a":"x"}{`, "a", "", false},
		{`{"a":"x"`, "a", "", false},
		{``, "a", "", false},
		{`{"":"x"}`, "", "", false},
		{`{"a":"x"}`, "a.b", "", false},
	} {
		got, found := signing.JSONText([]byte(c.doc), c.path)
		require.Equal(t, c.found, found, c.doc)
		require.Equal(t, c.want, got, c.doc)
	}
}
