package main_test

import (
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// change is a call that changes something.
type change struct {
	token, method, path string
	body, other         any // other: of a request that is another one; nil: there is none
	status              int
}

// Each call that is no GET heeds an Idempotency-Key: a repeat has the first one's answer and
// no effect, and another request with the same key is refused.
func TestEveryChangeHeedsItsKey(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p, "-schedule", "10ms", "-jitter", "0", "-horizon", "20ms")
		c, leaving, e := s.customer("c"), s.customer("leaving"), newEndpoint(t)
		e.answers(http.StatusGone)
		ordered := s.post(c.token, "/subscriptions", object{"url": e.URL, "event_types": []string{"order.*"}, "order": "object", "hold_dead": true}).is(http.StatusCreated)["id"].(string)
		s.change("1")
		holding := s.deliveries(c.token, ordered, "dead_lettered", 1)[0]["id"].(string)
		s.change("1") // it waits for the first
		s.deliveries(c.token, ordered, "pending", 1)
		e.answers(http.StatusOK)
		other := s.subscribe(c.token, e.URL, "order.*")
		s.change("2")
		sent := s.deliveries(c.token, other, "delivered", 1)[0]["id"].(string)
		notice := s.get(c.token, "/notices").data()[0]["id"].(string)
		s.stop()
		s = start(t, p, "-workers=false") // so that nothing changes by itself
		job := s.submit(c.token, "export_events", object{})
		spare := s.subscribe(c.token, e.URL)

		const op = operatorToken
		about := func(id string) object { return object{"object": object{"type": "order", "id": id}} }
		export := func(of string) object { return object{"kind": "export_events", "input": object{"event_type": of}} }
		done, all := map[string]bool{}, map[string]bool{}
		for path, methods := range s.get("", "/openapi.json").is(http.StatusOK)["paths"].(object) {
			for method := range methods.(object) {
				if method != "get" {
					all[strings.ToUpper(method)+" "+path] = true
				}
			}
		}
		paths := slices.Sorted(maps.Keys(all))
		for _, x := range []change{
			{op, "POST", "/subscribers", object{"name": "x"}, object{"name": "y"}, 201},
			{op, "PATCH", "/subscribers/" + leaving.id, object{"name": "x"}, object{"name": "y"}, 200},
			{c.token, "POST", "/subscribers/" + c.id + "/secret/rotate", object{"sign_after_seconds": 60}, object{"sign_after_seconds": 61}, 200},
			{c.token, "POST", "/subscribers/" + c.id + "/secret/activate", nil, nil, 204},
			{c.token, "POST", "/subscribers/" + c.id + "/secret/retire", nil, nil, 204},
			{op, "POST", "/subscribers/" + leaving.id + "/token/rotate", nil, nil, 200},
			{op, "POST", "/subscribers/" + c.id + "/portal", object{"ttl_seconds": 60}, object{"ttl_seconds": 61}, 200},
			{c.token, "POST", "/subscriptions", object{"url": e.URL}, object{"url": e.URL + "/other"}, 201},
			{c.token, "POST", "/subscriptions/preview", object{"filter": object{"object.id": "1"}}, object{"filter": object{"object.id": "2"}}, 200},
			{c.token, "POST", "/subscriptions/" + spare + "/test", nil, nil, 202},
			{c.token, "PATCH", "/subscriptions/" + spare, object{"status": "paused"}, object{"status": "active"}, 200},
			{c.token, "DELETE", "/subscriptions/" + spare, nil, nil, 204},
			{c.token, "POST", "/jobs", export("a"), export("b"), 202},
			{c.token, "POST", "/jobs/" + job + "/cancel", nil, nil, 202},
			{op, "POST", "/events", with(about("3"), "type", "order.paid"), with(about("4"), "type", "order.paid"), 201},
			{c.token, "POST", "/deliveries/" + sent + "/redeliver", nil, nil, 202},
			{c.token, "POST", "/deliveries/" + holding + "/pass-over", nil, nil, 200},
			{c.token, "POST", "/notices/" + notice + "/acknowledge", nil, nil, 200},
			{op, "POST", "/redactions", about("1"), about("3"), 200},
			{op, "POST", "/subscribers/" + leaving.id + "/redact", nil, nil, 200},
			{op, "DELETE", "/subscribers/" + leaving.id, nil, nil, 204},
		} {
			at := x.method + " " + x.path
			i := slices.IndexFunc(paths, func(path string) bool {
				return regexp.MustCompile("^" + regexp.MustCompile(`\{\w+\}`).ReplaceAllString(path, "[a-z]+_\\w+") + "$").MatchString(at)
			})
			require.GreaterOrEqual(t, i, 0, at)
			done[paths[i]] = true
			before := dump(t, p)
			first := s.call(x.token, x.method, x.path, x.body, "Idempotency-Key", "k")
			first.is(x.status)
			after := dump(t, p)
			require.NotEqual(t, before, after, "%s has an effect, or is remembered", at)
			again := s.call(x.token, x.method, x.path, x.body, "Idempotency-Key", "k")
			for _, header := range []string{"Location", "ETag"} {
				require.Equal(t, first.header.Get(header), again.header.Get(header), at)
			}
			require.Equal(t, []any{first.status, first.text}, []any{again.status, again.text}, at)
			require.Equal(t, after, dump(t, p), "%s: a repeat has an effect", at)
			if x.other != nil {
				s.call(x.token, x.method, x.path, x.other, "Idempotency-Key", "k").refused(http.StatusConflict, "header.Idempotency-Key")
				require.Equal(t, after, dump(t, p), at)
			}
		}
		require.Equal(t, all, done, "no call is left out")

		// A condition is a part of the request, and what is gone is refused with another key.
		s.remove(op, "/subscribers/"+leaving.id, "Idempotency-Key", "k", "If-Match", `"1"`).refused(http.StatusConflict, "header.Idempotency-Key")
		s.remove(op, "/subscribers/"+leaving.id, "Idempotency-Key", "l").refused(http.StatusNotFound)
		s.remove(c.token, "/subscriptions/"+spare, "Idempotency-Key", "l").refused(http.StatusNotFound)
		s.post(c.token, "/jobs/"+job+"/cancel", nil, "Idempotency-Key", "l").refused(http.StatusConflict)

		// One of many repeats at a time has the effect, and the others its answer.
		answers := make(chan string, 8)
		var wg sync.WaitGroup
		for range cap(answers) {
			wg.Go(func() { answers <- s.post(op, "/redactions", about("2"), "Idempotency-Key", "many").text })
		}
		wg.Wait()
		close(answers)
		for text := range answers {
			require.JSONEq(t, `{"events":1}`, text)
		}

		// A repeat does not say what was redacted since.
		record := s.post(c.token, "/deliveries/"+sent+"/redeliver", nil, "Idempotency-Key", "k").is(http.StatusAccepted)
		require.Empty(t, record["payload"])
	})
}
