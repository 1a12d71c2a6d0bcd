package main_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every refusal is a problem document, says where the mistake is, and leaves the
// database as it was.
func TestRefusals(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p, "-workers=false", "-allow-private-networks=false")
		c, other := s.customer("c"), s.customer("other")
		sub := s.subscribe(c.token, "https://hooks.example.com/c")
		theirs := s.subscribe(other.token, "https://hooks.example.com/other")
		event := s.post(operatorToken, "/events", object{"type": "order.paid", "object": object{"type": "order", "id": "1"}, "version": 5}, "Idempotency-Key", "used").is(http.StatusCreated)["id"].(string)
		private := s.post(operatorToken, "/events", object{"type": "order.paid", "object": object{"type": "order", "id": "2"}, "subscriber_id": other.id}).is(http.StatusCreated)["id"].(string)

		const op = operatorToken
		ok := object{"type": "x.y", "object": object{"type": "x", "id": "1"}}
		with := func(o object, more ...any) object {
			all := object{}
			for k, v := range o {
				all[k] = v
			}
			for i := 0; i < len(more); i += 2 {
				all[more[i].(string)] = more[i+1]
			}
			return all
		}
		tests := []struct {
			token, method, path string
			body                any
			status              int
			at                  string // a location, if the problem is to name one
			headers             []string
		}{
			// Callers and their rights.
			{"", "GET", "/subscriptions", nil, 401, "", nil},
			{"wrong", "GET", "/subscriptions", nil, 401, "", nil},
			{"", "GET", "/subscriptions", nil, 401, "", []string{"Authorization", "Basic " + op}},
			{"", "GET", "/subscriptions", nil, 401, "", []string{"Authorization", op}},
			{"", "POST", "/subscribers", "{", 401, "", nil},
			{"", "GET", "/metrics", nil, 401, "", nil},
			{c.token, "GET", "/metrics", nil, 403, "", nil},
			{c.token, "POST", "/subscribers", object{"name": "x"}, 403, "", nil},
			{c.token, "POST", "/subscribers", "{", 403, "", nil},
			{c.token, "POST", "/events", ok, 403, "", nil},
			{c.token, "PATCH", "/subscribers/" + c.id, object{"name": "x"}, 403, "", nil},
			{c.token, "DELETE", "/subscribers/" + c.id, nil, 403, "", nil},
			// Another's does not exist, which comes before what one may not do.
			{c.token, "GET", "/subscribers/" + other.id, nil, 404, "", nil},
			{c.token, "PATCH", "/subscribers/" + other.id, object{"name": "x"}, 404, "", nil},
			{c.token, "DELETE", "/subscribers/" + other.id, nil, 404, "", nil},
			{c.token, "DELETE", "/subscribers/sub_never", nil, 404, "", nil},
			{c.token, "POST", "/subscribers/" + other.id + "/secret/rotate", nil, 404, "", nil},
			{c.token, "POST", "/subscribers/" + other.id + "/secret/activate", nil, 404, "", nil},
			{c.token, "POST", "/subscribers/" + other.id + "/secret/retire", nil, 404, "", nil},
			{c.token, "POST", "/subscribers/" + other.id + "/token/rotate", nil, 404, "", nil},
			{c.token, "GET", "/subscribers/sub_operator/secret", nil, 404, "", nil},
			{c.token, "GET", "/subscriptions/" + theirs, nil, 404, "", nil},
			{c.token, "PATCH", "/subscriptions/" + theirs, object{"status": "paused"}, 404, "", nil},
			{c.token, "DELETE", "/subscriptions/" + theirs, nil, 404, "", nil},
			{c.token, "POST", "/subscriptions/" + theirs + "/test", nil, 404, "", nil},
			{c.token, "GET", "/events/" + private, nil, 404, "", nil},
			{op, "GET", "/subscribers/sub_never", nil, 404, "", nil},
			{op, "POST", "/subscribers/sub_never/secret/rotate", nil, 404, "", nil},
			{op, "POST", "/subscribers/sub_never/token/rotate", nil, 404, "", nil},
			{op, "GET", "/subscriptions/wsub_never", nil, 404, "", nil},
			{op, "GET", "/events/evt_never", nil, 404, "", nil},
			{op, "GET", "/deliveries/dlv_never", nil, 404, "", nil},
			{op, "POST", "/deliveries/dlv_never/redeliver", nil, 404, "", nil},
			{op, "POST", "/notices/ntc_never/acknowledge", nil, 404, "", nil},
			{op, "GET", "/nowhere", nil, 404, "", nil},
			{op, "POST", "//events", ok, 404, "", nil},
			{op, "POST", "/x/../events", ok, 404, "", nil},
			{op, "GET", "/subscribers//" + c.id, nil, 404, "", nil},
			{op, "PUT", "/subscribers/" + c.id, object{}, 405, "", nil},
			{op, "DELETE", "/events", nil, 405, "", nil},
			{op, "POST", "/healthz", nil, 405, "", nil},

			// The form of a body.
			{op, "POST", "/subscribers", "", 400, "body", nil},
			{op, "POST", "/subscribers", "{", 400, "body", nil},
			{op, "POST", "/subscribers", `{"name":"x"} {}`, 400, "body", nil},
			{op, "POST", "/subscribers", `{"name":"x","name":"y"}`, 400, "body.name", nil},
			{op, "POST", "/subscribers", `{"name":"x","attributes":{"a":[1,{"b":1,"\u0062":{}}]}}`, 400, "body.attributes.a[1].b", nil},
			{op, "POST", "/subscribers", `{"Name":"x"}`, 422, "body.Name", nil},
			{op, "POST", "/subscribers", `{"name":"x","NAME":"y"}`, 422, "body.NAME", nil},
			{c.token, "POST", "/subscriptions/" + sub + "/test", "test", 400, "body", nil},
			// If a call takes no body, all fields are unknown.
			{c.token, "POST", "/subscriptions/" + sub + "/test", object{"type": "order.paid"}, 422, "body.type", nil},
			{c.token, "POST", "/subscriptions/" + sub + "/test", []string{"order.paid"}, 422, "body", nil},
			{c.token, "POST", "/subscribers/" + c.id + "/token/rotate", object{"overlap_seconds": 3600}, 422, "body.overlap_seconds", nil},
			{c.token, "POST", "/subscribers/" + c.id + "/secret/retire", object{"at": "tomorrow"}, 422, "body.at", nil},
			{c.token, "GET", "/deliveries", object{"status": "held"}, 422, "body.status", nil},
			{c.token, "GET", "/deliveries", "held", 415, "", []string{"Content-Type", "text/plain"}},
			{op, "GET", "/metrics", strings.Repeat("x", 1<<20+1), 413, "", nil},
			{c.token, "DELETE", "/subscriptions/" + sub, object{"keep": true}, 422, "body.keep", nil},
			// No database takes such a number as one.
			{op, "POST", "/subscribers", `{"name":"x","attributes":{"a":[1,{"b":1e999}]}}`, 422, "body.attributes.a[1].b", nil},
			{op, "POST", "/events", `{"type":"x.y","object":{"type":"x","id":"1"},"data":-1e400}`, 422, "body.data", nil},
			// A page wraps it in more, and its readers may not take so much.
			{op, "POST", "/events", `{"type":"x.y","object":{"type":"x","id":"1"},"data":` + strings.Repeat("[", 500) + strings.Repeat("]", 500) + `}`, 422, "body.data", nil},
			{op, "POST", "/subscribers", `{"name":"x","attributes":` + strings.Repeat(`{"a":`, 500) + "1" + strings.Repeat("}", 501), 422, "body.attributes", nil},
			{op, "POST", "/subscribers", "{\"name\":\"\xff\"}", 400, "body", nil},
			{op, "POST", "/subscribers", "[]", 422, "body", nil},
			{op, "POST", "/subscribers", "name=x", 415, "", []string{"Content-Type", "application/x-www-form-urlencoded"}},
			{op, "POST", "/subscribers", `{"name":"x"}`, 415, "", []string{"Content-Type", "text/plain"}},
			{op, "POST", "/subscribers", `{"name":"x"}`, 415, "", []string{"Content-Encoding", "gzip"}},
			{op, "POST", "/subscribers", `{"name":"x"}`, 415, "", []string{"Content-Encoding", "identity", "Content-Encoding", "identity, br"}},
			{op, "POST", "/subscribers", `{"name":"x","attributes":{"a":"` + strings.Repeat("x", 1<<20) + `"}}`, 413, "", nil},
			{op, "POST", "/subscribers", object{"name": "x", "nick": "y"}, 422, "body.nick", nil},
			{op, "POST", "/subscribers", object{}, 422, "body.name", nil},
			{op, "POST", "/subscribers", object{"name": 7}, 422, "body.name", nil},
			{op, "POST", "/subscribers", object{"name": "a\x00b"}, 422, "body.name", nil},
			{op, "POST", "/subscribers", object{"name": "x", "attributes": []int{1}}, 422, "body.attributes", nil},
			{op, "POST", "/subscribers", object{"name": "x", "id": "ada"}, 422, "body.id", nil},
			{op, "POST", "/subscribers", object{"name": "x", "id": "sub_" + strings.Repeat("x", 65)}, 422, "body.id", nil},
			{op, "POST", "/subscribers", object{"name": "x", "id": c.id}, 409, "body.id", nil},
			{op, "POST", "/subscribers", object{"name": "x", "id": "sub_operator"}, 409, "body.id", nil},
			{op, "PATCH", "/subscribers/" + c.id, object{"version": 7}, 422, "body.version", nil},
			{op, "PATCH", "/subscribers/" + c.id, object{"name": "x"}, 412, "", []string{"If-Match", `"9"`}},
			{op, "PATCH", "/subscribers/" + c.id, object{"name": "x"}, 412, "", []string{"If-Match", `W/"1"`}},
			{op, "DELETE", "/subscribers/sub_operator", nil, 409, "", nil},
			{op, "POST", "/subscribers/sub_operator/token/rotate", nil, 409, "", nil},
			{op, "POST", "/subscribers/" + c.id + "/secret/rotate", object{"overlap_seconds": -1}, 422, "body.overlap_seconds", nil},
			{op, "POST", "/subscribers/" + c.id + "/secret/rotate", object{"overlap_seconds": 31 * 24 * 3600}, 422, "body.overlap_seconds", nil},
			{op, "POST", "/subscribers/" + c.id + "/secret/rotate", object{"overlap": 1}, 422, "body.overlap", nil},
			{op, "POST", "/subscribers/" + c.id + "/secret/rotate", object{"sign_after_seconds": -1}, 422, "body.sign_after_seconds", nil},
			{op, "POST", "/subscribers/" + c.id + "/secret/rotate", object{"sign_after_seconds": 24 * 3600}, 422, "body.sign_after_seconds", nil},
			{op, "POST", "/subscribers/" + c.id + "/secret/rotate", object{"overlap_seconds": 60, "sign_after_seconds": 60}, 422, "body.sign_after_seconds", nil},
			{op, "POST", "/subscribers/" + c.id + "/secret/rotate", object{"overlap_seconds": 0, "sign_after_seconds": 1}, 422, "body.sign_after_seconds", nil},
			{op, "POST", "/subscribers/sub_never/secret/activate", nil, 404, "", nil},

			// Subscriptions.
			{c.token, "POST", "/subscriptions", object{}, 422, "body.url", nil},
			{c.token, "POST", "/subscriptions", object{"url": "https://hooks.example.com", "event_types": []string{"a b"}}, 422, "body.event_types", nil},
			{c.token, "POST", "/subscriptions", object{"url": "https://hooks.example.com", "event_types": "order.paid"}, 422, "body.event_types", nil},
			{c.token, "POST", "/subscriptions", object{"url": "https://hooks.example.com", "event_types": []string{}}, 422, "body.event_types", nil},
			{c.token, "PATCH", "/subscriptions/" + sub, object{"event_types": []string{}}, 422, "body.event_types", nil},
			{c.token, "PATCH", "/subscriptions/" + sub, object{"event_types": []string{}, "description": "x", "status": "paused"}, 422, "body.event_types", nil},
			{c.token, "POST", "/subscriptions", object{"url": "https://hooks.example.com", "description": strings.Repeat("x", 2000)}, 422, "body.description", nil},
			{c.token, "POST", "/subscriptions", object{"url": "https://hooks.example.com", "subscriber_id": other.id}, 403, "", nil},
			{op, "POST", "/subscriptions", object{"url": "https://hooks.example.com", "subscriber_id": "sub_never"}, 422, "body.subscriber_id", nil},
			{op, "POST", "/subscriptions", object{"url": "https://hooks.example.com", "subscriber_id": ""}, 422, "body.subscriber_id", nil},
			{c.token, "PATCH", "/subscriptions/" + sub, object{"url": "https://127.0.0.1/"}, 422, "body.url", nil},
			{c.token, "PATCH", "/subscriptions/" + sub, object{"url": "https://127.0.0.1/", "status": "paused"}, 422, "body.url", nil},
			{c.token, "PATCH", "/subscriptions/" + sub, object{"status": "disabled"}, 422, "body.status", nil},
			{c.token, "PATCH", "/subscriptions/" + sub, object{"status": "active", "resume": "yesterday"}, 422, "body.resume", nil},
			{c.token, "PATCH", "/subscriptions/" + sub, object{"status": "active", "resume": ""}, 422, "body.resume", nil},
			{c.token, "PATCH", "/subscriptions/" + sub, object{"status": "paused", "resume": "all"}, 422, "body.resume", nil},
			{c.token, "PATCH", "/subscriptions/" + sub, object{"resume": "all"}, 422, "body.resume", nil},

			{c.token, "PATCH", "/subscriptions/" + sub, `{"order":"object","hold_tries":1.00000000000000000001}`, 422, "body.hold_tries", nil},
			{c.token, "POST", "/subscriptions", `{"url":"https://hooks.example.com","horizon_seconds":100000.00000000000000000001}`, 422, "body.horizon_seconds", nil},
			{c.token, "POST", "/jobs", `{"kind":"replay","input":{"status_code":400.00000000000000000001}}`, 422, "body.input.status_code", nil},

			// Publishing.
			{op, "POST", "/events", object{"type": "x.y"}, 422, "body.object", nil},
			{op, "POST", "/events", with(ok, "type", "x y"), 422, "body.type", nil},
			{op, "POST", "/events", with(ok, "object", object{"type": "x", "id": ""}), 422, "body.object.id", nil},
			{op, "POST", "/events", with(ok, "object", object{"type": "x y", "id": "1"}), 422, "body.object.type", nil},
			{op, "POST", "/events", with(ok, "object", object{"type": "x", "id": "1", "no": 1}), 422, "body.object.no", nil},
			{op, "POST", "/events", with(ok, "object", object{"type": "subscriber", "id": c.id}), 422, "body.object.type", nil},
			{op, "POST", "/events", with(ok, "version", 0), 422, "body.version", nil},
			{op, "POST", "/events", with(ok, "version", int64(1)<<53), 422, "body.version", nil},
			{op, "POST", "/events", with(ok, "version", 1.5), 422, "body.version", nil},
			{op, "POST", "/events", `{"type":"x.y","object":{"type":"x","id":"1"},"version":10.00000000000000000001}`, 422, "body.version", nil},
			{op, "POST", "/events", `{"type":"x.y","object":{"type":"x","id":"1"},"version":"1"}`, 422, "body.version", nil},
			{op, "POST", "/events", object{"type": "order.paid", "object": object{"type": "order", "id": "1"}, "version": 5}, 409, "", nil},
			{op, "POST", "/events", object{"type": "order.paid", "object": object{"type": "order", "id": "1"}, "version": 4}, 409, "", nil},
			{op, "POST", "/events", with(ok, "subscriber_id", "sub_never"), 422, "body.subscriber_id", nil},
			{op, "POST", "/events", with(ok, "subscriber_id", ""), 422, "body.subscriber_id", nil},
			{op, "POST", "/events", ok, 409, "header.Idempotency-Key", []string{"Idempotency-Key", "used"}},
			{op, "POST", "/events", ok, 422, "header.Idempotency-Key", []string{"Idempotency-Key", strings.Repeat("k", 256)}},
			{op, "POST", "/events", with(ok, "subscriber_id", "sub_never"), 422, "body.subscriber_id", []string{"Idempotency-Key", "refused"}},

			// A condition on what has no version.
			{c.token, "PATCH", "/subscriptions/" + sub, object{"description": "x"}, 422, "header.If-Match", []string{"If-Match", `"1"`}},
			{c.token, "DELETE", "/subscriptions/" + sub, nil, 422, "header.If-Match", []string{"If-Match", `"1"`}},

			// Lists.
			{c.token, "GET", "/deliveries?limit=", nil, 422, "query.limit", nil},
			{c.token, "GET", "/deliveries?subscription_id=", nil, 422, "query.subscription_id", nil},
			{c.token, "GET", "/deliveries?status=&since=", nil, 422, "query.since", nil},
			{c.token, "GET", "/notices?unacknowledged", nil, 422, "query.unacknowledged", nil},
			{c.token, "GET", "/events?wait=&after=", nil, 422, "query.wait", nil},
			{c.token, "GET", "/deliveries?limit=0", nil, 422, "query.limit", nil},
			{c.token, "GET", "/deliveries?limit=201", nil, 422, "query.limit", nil},
			{c.token, "GET", "/deliveries?limit=many", nil, 422, "query.limit", nil},
			{c.token, "GET", "/deliveries?status=lost", nil, 422, "query.status", nil},
			{c.token, "GET", "/deliveries?since=today", nil, 422, "query.since", nil},
			{c.token, "GET", "/deliveries?event_type=a+b", nil, 422, "query.event_type", nil},
			{c.token, "GET", "/deliveries?since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z", nil, 422, "query.until", nil},
			{c.token, "GET", "/deliveries?event_id=%00", nil, 400, "query.event_id", nil},
			{c.token, "GET", "/deliveries?event_id=%zz", nil, 400, "query", nil},
			{c.token, "GET", "/deliveries?cursor=%00", nil, 422, "query.cursor", nil},
			{c.token, "GET", "/jobs?cursor=%ff", nil, 422, "query.cursor", nil},
			{c.token, "GET", "/events?after=%ff", nil, 422, "query.after", nil},
			{c.token, "GET", "/subscriptions?status=gone", nil, 422, "query.status", nil},
			{c.token, "GET", "/subscriptions?cursor=x", nil, 422, "query.cursor", nil},
			{c.token, "GET", "/deliveries?cursor=invalid", nil, 422, "query.cursor", nil},
			{c.token, "GET", "/notices?cursor=33", nil, 422, "query.cursor", nil},
			{c.token, "GET", "/events?after=invalid", nil, 422, "query.after", nil},
			{c.token, "GET", "/events?cursor=invalid", nil, 422, "query.cursor", nil},
			{c.token, "GET", "/events?after=a&cursor=b", nil, 422, "query.cursor", nil},
			{c.token, "GET", "/events?wait=31", nil, 422, "query.wait", nil},
			{c.token, "GET", "/events?limit=201", nil, 422, "query.limit", nil},

			// Half of a character.
			{op, "POST", "/subscribers", `{"name":"a\ud800b"}`, 400, "body.name", nil},
			{op, "POST", "/subscribers", `{"name":"x","attributes":{"a":["\udc00\ud800"]}}`, 400, "body.attributes.a[0]", nil},
			{op, "POST", "/subscribers", `{"name":"x","attributes":{"\ud83d\ud83d":1}}`, 400, "body.attributes", nil},
		}
		for _, word := range []string{"subscriber", "job", "delivery", "subscription", "webhook"} {
			tests = append(tests, struct {
				token, method, path string
				body                any
				status              int
				at                  string
				headers             []string
			}{op, "POST", "/events", with(ok, "type", word+".updated"), 422, "body.type", nil})
		}
		before := dump(t, p)
		for _, test := range tests {
			name := fmt.Sprintf("%s %s %v %v", test.method, test.path, test.status, test.at)
			r := s.call(test.token, test.method, test.path, test.body, test.headers...)
			t.Logf("%s", name)
			if test.at == "" {
				r.refused(test.status)
			} else {
				r.refused(test.status, test.at)
			}
			switch test.status {
			case http.StatusUnauthorized:
				require.Contains(t, r.header.Get("WWW-Authenticate"), "Bearer", name)
			case http.StatusMethodNotAllowed:
				require.NotEmpty(t, r.header.Get("Allow"), name)
			}
			for _, secret := range []string{c.token, operatorToken, c.secret} {
				require.NotContains(t, r.text, secret, name)
			}
		}
		require.Equal(t, before, dump(t, p), "a refusal has changed the database")
		s.get(c.token, "/events/"+event).is(http.StatusOK) // addressed to nobody in particular
		for _, secret := range []string{c.token, other.token, operatorToken, c.secret} {
			require.NotContains(t, s.logged(), secret)
		}
	})
}

// Refusals are in words for people, without what Go and the library call things.
func TestRefusalsInWords(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p)
		c := s.customer("c")
		says := func(r *reply, words string) {
			t.Helper()
			require.GreaterOrEqual(t, r.status, 400)
			require.Contains(t, r.body["detail"], words)
			for _, inner := range []string{"sender:", "postgres:", "sqlite:", "jobs:", "e+", "format 2006", "expected number", "reading a", "Go value", "unexpected property", "Config", "to match pattern"} {
				require.NotContains(t, r.text, inner)
			}
		}
		says(s.post(c.token, "/subscribers/"+c.id+"/secret/rotate", object{"overlap_seconds": 2592001}), "it must be at most 2592000")
		event := object{"type": "order.paid", "object": object{"type": "order", "id": "1"}, "version": int64(1) << 53}
		says(s.post(operatorToken, "/events", event), "it must be at most 9007199254740991")
		event["version"] = 0
		says(s.post(operatorToken, "/events", event), "it must be at least 1")
		event["version"] = int64(1)<<53 - 1
		s.post(operatorToken, "/events", event).is(http.StatusCreated)
		delete(event, "version")
		says(s.post(operatorToken, "/events", event), "has had the highest version that there is")
		says(s.get(c.token, "/deliveries?since=today"), "it must be a time such as 2006-01-02T15:04:05Z")
		says(s.get(c.token, "/deliveries?since=2026-01-02T00:00:00+02:00"), "a + in a query is written %2B")
		says(s.get(c.token, "/deliveries?cursor=x"), "query.cursor: it must be the next_cursor of a page of the same list")
		says(s.post(operatorToken, "/subscribers", object{"name": "a\x00b"}), "body.name: it must not hold a NUL character")
		says(s.post(operatorToken, "/subscribers", object{"nick": "a"}), "body.nick: it is unknown here")
		says(s.post(operatorToken, "/subscribers", `{"name":"a","attributes":{"n":1e999}}`), "body.attributes.n: the number is too large")
		says(s.post(operatorToken, "/subscribers", object{"name": "a"}, "Idempotency-Key", "é"), "header.Idempotency-Key: expected string to be visible ASCII characters")
		says(s.post(operatorToken, "/subscribers/sub_never/secret/rotate", nil), "there is no such subscriber")
		says(s.post(operatorToken, "/subscribers/sub_never/secret/activate", nil), "there is no such subscriber")
		says(s.post(operatorToken, "/subscribers/sub_never/secret/retire", nil), "there is no such subscriber")
		says(s.post(operatorToken, "/events", object{"type": "order.paid", "object": object{"type": "order", "id": "2"}, "data": strings.Repeat("x", 1<<20-100)}), "send less data, or a thin event")
		id := s.subscribe(c.token, newEndpoint(t).URL)
		sent := s.post(c.token, "/subscriptions/"+id+"/test", nil).is(http.StatusAccepted)["delivery_id"].(string)
		s.deliveries(c.token, id, "delivered", 1)
		s.patch(c.token, "/subscriptions/"+id, object{"status": "paused"}).is(http.StatusOK)
		held := s.post(c.token, "/subscriptions/"+id+"/test", nil)
		says(held, "")
		s.remove(c.token, "/subscriptions/"+id).is(http.StatusNoContent)
		says(s.post(c.token, "/deliveries/"+sent+"/redeliver", nil), "")

		// A whole character that is written in halves is one.
		name := s.post(operatorToken, "/subscribers", `{"name":"\ud83d\ude00 \\ud800"}`).is(http.StatusCreated)["name"]
		require.Equal(t, "\U0001F600 \\ud800", name)
	})
}

// However much of a request is wrong, its refusal is short, and says how much there is.
func TestRefusalsAreShort(t *testing.T) {
	t.Parallel()
	s := start(t, place{flag: filepath.Join(t.TempDir(), "test.db")}, "-workers=false")
	c := s.customer("c")
	const many = 50_000
	numbers := strings.Repeat("1,", many-1) + "1"
	names := object{}
	for i := range many {
		names[fmt.Sprint("x", i)] = 1
	}
	for path, body := range map[string]any{
		"/subscriptions":                         `{"url":"https://hooks.example.com/","event_types":[` + numbers + `]}`,
		"/jobs":                                  object{"kind": "export_events", "input": names},
		"/subscribers/" + c.id + "/token/rotate": names,
	} {
		r := s.post(c.token, path, body)
		r.refused(http.StatusUnprocessableEntity)
		require.Less(t, len(r.text), 64<<10, path)
		require.Contains(t, r.body["detail"], fmt.Sprintf("; and %d more", many-3), path)
	}
	long := strings.Repeat("<", 100_000) // it has six bytes as \u003c
	for path, body := range map[string]any{
		"/openapi.json?" + long:                  nil,
		"/events?" + long:                        nil,
		"/deliveries?event_type=" + long:         nil,
		"/jobs":                                  object{long: 1},
		"/subscriptions":                         `{"a":{"` + long + `":{"a":1,"a":1}}}`,
		"/subscribers/" + c.id + "/token/rotate": object{long: 1},
	} {
		method := http.MethodPost
		if body == nil {
			method = http.MethodGet
		}
		r := s.call(c.token, method, path, body)
		require.Contains(t, []int{http.StatusBadRequest, http.StatusUnprocessableEntity}, r.status)
		require.Less(t, len(r.text), 64<<10, path[:min(len(path), 40)])
		require.Contains(t, r.body["detail"], "<…")
	}
}

// Answers that show a secret are kept nowhere on their way.
func TestSecretsAreNotStored(t *testing.T) {
	t.Parallel()
	s := start(t, place{flag: filepath.Join(t.TempDir(), "test.db")}, "-workers=false")
	made := s.post(operatorToken, "/subscribers", object{"name": "c"})
	at := "/subscribers/" + made.is(http.StatusCreated)["id"].(string)
	for _, r := range []*reply{made, s.get(operatorToken, "/subscribers/sub_operator/secret"), s.post(operatorToken, at+"/secret/rotate", nil), s.post(operatorToken, at+"/token/rotate", nil), s.post(operatorToken, at+"/portal", nil)} {
		require.Less(t, r.status, 300)
		require.Equal(t, "no-store", r.header.Get("Cache-Control"))
	}
}

// With -require-subscriber no event is for everybody because a field was forgotten.
func TestRequireSubscriber(t *testing.T) {
	t.Parallel()
	s := start(t, place{flag: filepath.Join(t.TempDir(), "test.db")}, "-workers=false", "-require-subscriber")
	c := s.customer("c")
	event := object{"type": "order.paid", "object": object{"type": "order", "id": "1"}}
	s.post(operatorToken, "/events", event).refused(http.StatusUnprocessableEntity, "body.subscriber_id")
	event["subscriber_id"] = c.id
	s.post(operatorToken, "/events", event).is(http.StatusCreated)
}

// Callback URLs are checked where they are given, in whatever notation.
func TestCallbackURLs(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p, "-workers=false", "-allow-private-networks=false")
		c := s.customer("c")
		before := dump(t, p)
		for _, bad := range []string{
			"", "hooks.example.com", "/x", "ftp://hooks.example.com/", "http://hooks.example.com/", "https://", "https:///x",
			"https://user@hooks.example.com/", "https://user:secret@hooks.example.com/", "https://hooks.example.com/#x",
			"https://localhost/", "https://LOCALHOST./", "https://a.localhost/", "https://intranet/", "https://hooks.7/", "https://1.2.3.4.5/",
			"https://127.0.0.1/", "https://0x7f.1/", "https://2130706433/", "https://017700000001/", "https://10.1.2.3/", "https://192.168.0.1/",
			"https://169.254.169.254/", "https://100.64.0.1/", "https://0.0.0.0/", "https://224.0.0.1/", "https://255.255.255.255/",
			"https://[::1]/", "https://[::]/", "https://[fe80::1]/", "https://[fc00::1]/", "https://[::ffff:127.0.0.1]/",
			"https://[64:ff9b::7f00:1]/", "https://[2002:7f00:1::]/", "https://[ff02::1]/", "https://hooks.example.com:0/", "https://hooks.example.com:99999/",
		} {
			s.post(c.token, "/subscriptions", object{"url": bad}).refused(http.StatusUnprocessableEntity, "body.url")
		}
		require.Equal(t, before, dump(t, p))
		// Names are not looked up then.
		for _, good := range []string{"https://hooks.example.com/x?y=z", "https://nobody.invalid/", "https://93.184.216.34:8443/", "https://[2606:4700::1111]/"} {
			s.post(c.token, "/subscriptions", object{"url": good}).is(http.StatusCreated)
		}
	})
}

// A name that leads into the own network is found out when it is dialled.
func TestBlocked(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		// Registered while it was allowed, attempted when it is not any more.
		e := newEndpoint(t)
		s := start(t, p, "-workers=false")
		c := s.customer("c")
		id := s.subscribe(c.token, e.URL)
		s.post(c.token, "/subscriptions/"+id+"/test", nil).is(http.StatusAccepted)
		s.stop()
		s = start(t, p, "-allow-private-networks=false")
		d := s.deliveries(c.token, id, "awaiting_retry", 1)[0]["id"].(string)
		attempt := s.get(c.token, "/deliveries/"+d).is(http.StatusOK)["attempts"].([]any)[0].(object)
		require.Equal(t, "blocked", attempt["error_class"])
		require.Empty(t, e.received())
	})
}
