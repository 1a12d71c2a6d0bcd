package main_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// pull reads the feed from a cursor to its end, and returns the ids and the cursor.
func (s *process) pull(token, after string, limit int) (ids []string, next string) {
	s.t.Helper()
	for next = after; ; {
		page := s.get(token, fmt.Sprintf("/events?limit=%d&after=%s", limit, url.QueryEscape(next))).is(http.StatusOK)
		next = page["next_cursor"].(string)
		require.NotEmpty(s.t, next)
		if len(page["data"].([]any)) == 0 {
			return ids, next
		}
		for _, e := range page["data"].([]any) {
			ids = append(ids, e.(object)["id"].(string))
		}
	}
}

// pulled reads until there are n events.
func (s *process) pulled(token, after string, limit, n int) []string {
	s.t.Helper()
	return eventually(s.t, "events in the feed", func() []string {
		ids, _ := s.pull(token, after, limit)
		return ids
	}, func(ids []string) bool { return len(ids) >= n })
}

func TestFeed(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p)
		_, beginning := s.pull(operatorToken, "", 50)
		c, other := s.customer("c"), s.customer("other") // an event each, for itself
		publish := func(extra object) string {
			body := object{"type": "order.paid", "object": object{"type": "order", "id": "1"}}
			for k, v := range extra {
				body[k] = v
			}
			return s.post(operatorToken, "/events", body).is(http.StatusCreated)["id"].(string)
		}
		all := publish(object{"data": object{"n": 1}})
		mine := publish(object{"subscriber_id": c.id})
		theirs := publish(object{"subscriber_id": other.id})

		require.Len(t, s.pulled(operatorToken, beginning, 2, 5), 5, "the operator sees all")
		seen := s.pulled(c.token, "", 1, 3)
		require.Equal(t, []string{all, mine}, seen[1:], "its own, and what is for nobody in particular")
		require.NotContains(t, seen, theirs)
		first := s.get(c.token, "/events?limit=1").is(http.StatusOK)["next_cursor"].(string)
		byCursor := s.get(c.token, "/events?limit=1&cursor="+url.QueryEscape(first)).is(http.StatusOK)["data"].([]any)
		require.Equal(t, all, byCursor[0].(object)["id"], "the parameter of every other list does, too")

		// As it is posted; with its deliveries when asked for alone.
		read := s.get(c.token, "/events/"+all).is(http.StatusOK)
		require.Equal(t, "order.paid", read["type"])
		require.Equal(t, object{"n": float64(1)}, read["data"])
		require.InDelta(t, 1, read["version"], 0)
		require.Empty(t, read["deliveries"])
		s.get(c.token, "/events/"+theirs).refused(http.StatusNotFound)
		s.get(operatorToken, "/events/"+theirs).is(http.StatusOK)

		e := newEndpoint(t)
		mySubscription, theirSubscription := s.subscribe(c.token, e.URL), s.subscribe(other.token, e.URL)
		both := publish(nil)
		s.deliveries(operatorToken, mySubscription, "delivered", 1)
		s.deliveries(operatorToken, theirSubscription, "delivered", 1)
		require.Len(t, s.get(operatorToken, "/events/"+both).is(http.StatusOK)["deliveries"], 2)
		own := s.get(c.token, "/events/"+both).is(http.StatusOK)["deliveries"].([]any)
		require.Len(t, own, 1)
		require.Equal(t, mySubscription, own[0].(object)["subscription_id"])
	})
}

// A reader comes back after unread events were pruned: the answer says so, and with what to go
// on.
func TestExpiredCursor(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		publish := func(s *process) string {
			return s.post(operatorToken, "/events", object{"type": "order.paid", "object": object{"type": "order", "id": "1"}}).is(http.StatusCreated)["id"].(string)
		}
		s := start(t, p)
		publish(s)
		s.pulled(operatorToken, "", 50, 1)
		_, cursor := s.pull(operatorToken, "", 50)
		lost := publish(s)
		s.pulled(operatorToken, cursor, 50, 1)
		// Events are kept until they are expanded, and the next pass of pruning is an hour later.
		eventually(t, "it is expanded", func() string { return s.get(operatorToken, "/metrics").text },
			func(text string) bool { return strings.Contains(text, "surehook_unexpanded_events 0\n") })
		s.stop()
		older := []string{"UPDATE surehook_events SET created_at = created_at - interval '10 years'", "UPDATE surehook_feed SET newest = newest - interval '10 years'"}
		if p.driver == "sqlite" {
			older = []string{fmt.Sprint("UPDATE surehook_events SET created_at = created_at - ", (10 * 365 * 24 * time.Hour).Microseconds())}
		}
		for _, statement := range older {
			_, err := p.open(t).ExecContext(t.Context(), statement)
			require.NoError(t, err)
		}
		s = start(t, p)
		eventually(t, "it is pruned", func() int { return s.get(operatorToken, "/events/"+lost).status }, func(status int) bool { return status == http.StatusNotFound })
		r := s.get(operatorToken, "/events?after="+url.QueryEscape(cursor))
		r.refused(http.StatusGone)
		require.Regexp(t, "cursor-expired$", r.body["type"])
		kept := publish(s)
		require.Equal(t, []string{kept}, s.pulled(operatorToken, r.body["next_cursor"].(string), 50, 1))
	})
}

// An empty answer is held open until there is something to tell.
func TestLongPolling(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p)
		c := s.customer("c")
		s.pulled(c.token, "", 50, 1)
		_, next := s.pull(c.token, "", 50)
		var wg sync.WaitGroup
		got := make(chan *reply, 1)
		wg.Go(func() { got <- s.get(c.token, "/events?wait=30&after="+url.QueryEscape(next)) })
		id := s.post(operatorToken, "/events", object{"type": "order.paid", "object": object{"type": "order", "id": "1"}}).is(http.StatusCreated)["id"]
		wg.Wait()
		page := (<-got).is(http.StatusOK)
		require.Len(t, page["data"], 1)
		require.Equal(t, id, page["data"].([]any)[0].(object)["id"])

		empty := s.get(c.token, "/events?wait=1&after="+url.QueryEscape(page["next_cursor"].(string))).is(http.StatusOK)
		require.Empty(t, empty["data"])

		// The answer to a subscriber that is deleted meanwhile says so, and nothing else.
		gone := s.customer("gone")
		s.pulled(gone.token, "", 50, 2)
		_, next = s.pull(gone.token, "", 50)
		wg.Go(func() { got <- s.get(gone.token, "/events?wait=30&after="+url.QueryEscape(next)) })
		eventually(t, "the request is being answered", s.waiting, func(is bool) bool { return is })
		s.remove(operatorToken, "/subscribers/"+gone.id).is(http.StatusNoContent)
		wg.Wait()
		left := <-got
		left.refused(http.StatusUnauthorized)
		require.Contains(t, left.header.Get("WWW-Authenticate"), "Bearer")

		// A drain ends it with an empty page.
		wg.Go(func() {
			got <- s.get(c.token, "/events?wait=30&after="+url.QueryEscape(empty["next_cursor"].(string)))
		})
		eventually(t, "the request is being answered", func() bool { return s.waiting() }, func(is bool) bool { return is })
		s.stop()
		wg.Wait()
		require.Empty(t, (<-got).is(http.StatusOK)["data"])
		require.NoError(t, s.err)
	})
}

// waiting tells whether a request is being answered, besides the one that asks.
func (s *process) waiting() bool {
	return strings.Contains(s.get(operatorToken, "/metrics").text, "surehook_http_requests_in_flight 2")
}

// No committed event is ever skipped, while many commit at a time.
func TestFeedSkipsNothing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p)
		_, cursor := s.pull(operatorToken, "", 50)
		const writers, each = 8, 25
		var wg sync.WaitGroup
		var mu sync.Mutex
		acknowledged := map[string]bool{}
		for w := range writers {
			wg.Go(func() {
				for i := range each {
					id := s.post(operatorToken, "/events", object{"type": "order.paid", "object": object{"type": "order", "id": fmt.Sprint(w, i%3)}}).is(http.StatusCreated)["id"].(string)
					mu.Lock()
					acknowledged[id] = true
					mu.Unlock()
				}
			})
		}
		seen := map[string]bool{}
		for deadline := time.Now().Add(60 * time.Second); len(seen) < writers*each && time.Now().Before(deadline); {
			page := s.get(operatorToken, "/events?wait=1&limit=7&after="+url.QueryEscape(cursor)).is(http.StatusOK)
			cursor = page["next_cursor"].(string)
			for _, e := range page["data"].([]any) {
				id := e.(object)["id"].(string)
				require.False(t, seen[id], "twice")
				seen[id] = true
			}
		}
		wg.Wait()
		require.Equal(t, acknowledged, seen)
	})
}

func TestPublishing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p, "-workers=false")
		publish := func(body object, headers ...string) *reply {
			return s.post(operatorToken, "/events", body, headers...)
		}
		order := object{"type": "order.paid", "object": object{"type": "order", "id": "1"}}
		require.InDelta(t, 1, publish(order).is(http.StatusCreated)["version"], 0)
		require.InDelta(t, 2, publish(order).is(http.StatusCreated)["version"], 0)
		given := object{"type": "order.paid", "object": object{"type": "order", "id": "1"}, "version": int64(1)<<53 - 1}
		require.InDelta(t, int64(1)<<53-1, publish(given).is(http.StatusCreated)["version"], 0)
		publish(given).refused(http.StatusConflict)

		// The OpenAPI document says integer, which 10.0 and 1e2 are (JSON Schema).
		written := func(version string) *reply {
			return s.post(operatorToken, "/events", `{"type":"order.paid","object":{"type":"order","id":"3"},"version":`+version+`}`, "Idempotency-Key", "of order 3")
		}
		ten := written("10.0")
		require.InDelta(t, 10, ten.is(http.StatusCreated)["version"], 0)
		require.Equal(t, ten.text, written("1e1").text, "it is the same request")
		written("10.00000000000000000001").refused(http.StatusUnprocessableEntity, "body.version")
		written("9007199254740990.5").refused(http.StatusUnprocessableEntity, "body.version")

		// A repeat with the same key has the first one's answer, and no effect.
		other := object{"type": "order.paid", "object": object{"type": "order", "id": "2"}}
		first := publish(other, "Idempotency-Key", "one")
		first.is(http.StatusCreated)
		before := dump(t, p)
		again := publish(other, "Idempotency-Key", "one")
		require.Equal(t, first.text, again.text)
		require.Equal(t, first.status, again.status)
		require.Equal(t, first.header.Get("Location"), again.header.Get("Location"))
		require.Equal(t, before, dump(t, p))
		publish(order, "Idempotency-Key", "one").refused(http.StatusConflict)
		require.InDelta(t, 2, publish(other, "Idempotency-Key", "two").is(http.StatusCreated)["version"], 0)

		// One of many repeats at a time has the effect.
		var wg sync.WaitGroup
		ids := make(chan any, 10)
		for range cap(ids) {
			wg.Go(func() { ids <- publish(other, "Idempotency-Key", "many").is(http.StatusCreated)["id"] })
		}
		wg.Wait()
		close(ids)
		distinct := map[any]bool{}
		for id := range ids {
			distinct[id] = true
		}
		require.Len(t, distinct, 1)
		require.InDelta(t, 4, publish(other).is(http.StatusCreated)["version"], 0)
	})
}

// Keys are per caller and path, kept for 24 hours, and what they keep is sealed.
func TestIdempotencyKeys(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p, "-workers=false")
		const body = `{"name":"x & <y>","attributes":{"note":"x & <y>"}}`
		first := s.post(operatorToken, "/subscribers", body, "Idempotency-Key", "k")
		made := first.is(http.StatusCreated)
		require.Equal(t, first.text, s.post(operatorToken, "/subscribers", body, "Idempotency-Key", "k").text)
		require.Contains(t, s.get(operatorToken, "/subscribers/"+made["id"].(string)).text, `"attributes":{"note":"x & <y>"}`, "kept as they are given")
		for _, row := range dump(t, p) {
			require.NotContains(t, row, made["token"])
			require.NotContains(t, row, made["signing_secret"])
		}

		e := newEndpoint(t)
		c, other := s.customer("c"), s.customer("other")
		mine := s.post(c.token, "/subscriptions", object{"url": e.URL}, "Idempotency-Key", "k").is(http.StatusCreated)
		require.Equal(t, mine["id"], s.post(c.token, "/subscriptions", object{"url": e.URL}, "Idempotency-Key", "k").is(http.StatusCreated)["id"])
		theirs := s.post(other.token, "/subscriptions", object{"url": e.URL}, "Idempotency-Key", "k").is(http.StatusCreated)
		require.NotEqual(t, mine["id"], theirs["id"])

		// An empty key, and the second of two, would be passed over.
		s.post(operatorToken, "/subscribers", object{"name": "x"}, "Idempotency-Key", "").refused(http.StatusUnprocessableEntity)
		s.post(operatorToken, "/subscribers", object{"name": "x"}, "Idempotency-Key", "k", "Idempotency-Key", "l").refused(http.StatusUnprocessableEntity)
		s.patch(operatorToken, "/subscribers/"+c.id, object{"name": "x"}, "If-Match", "").refused(http.StatusUnprocessableEntity)

		// So are changes, with what a change of theirs would be: nothing else, or an empty list.
		change := func(path string, body object, headers ...string) *reply {
			return s.patch(c.token, path, body, append([]string{"Idempotency-Key", "change"}, headers...)...)
		}
		at := "/subscriptions/" + mine["id"].(string)
		paused := change(at, object{"status": "paused"})
		require.Equal(t, "paused", paused.is(http.StatusOK)["status"])
		s.patch(c.token, at, object{"status": "active"}).is(http.StatusOK)
		require.Equal(t, paused.text, change(at, object{"status": "paused"}).text)
		require.Equal(t, "active", s.get(c.token, at).is(http.StatusOK)["status"], "by a repeat nothing is changed")
		for _, other := range []object{{}, {"retry_delays_seconds": []int{}}, {"status": "paused", "description": "else"}} {
			change(at, other).refused(http.StatusConflict, "header.Idempotency-Key")
		}
		at = "/subscribers/" + c.id
		renamed := s.patch(operatorToken, at, object{"name": "renamed"}, "Idempotency-Key", "change", "If-Match", `"1"`)
		require.InDelta(t, 2, renamed.is(http.StatusOK)["version"], 0)
		again := s.patch(operatorToken, at, object{"name": "renamed"}, "Idempotency-Key", "change", "If-Match", `"1"`)
		require.Equal(t, []any{renamed.status, renamed.text, renamed.header.Get("ETag")}, []any{again.status, again.text, again.header.Get("ETag")})
		require.InDelta(t, 2, s.get(c.token, at).is(http.StatusOK)["version"], 0)
		s.patch(operatorToken, at, object{"name": "renamed"}, "Idempotency-Key", "change").refused(http.StatusConflict, "header.Idempotency-Key")
		s.patch(operatorToken, at, object{}, "Idempotency-Key", "nothing").is(http.StatusOK)
		s.patch(operatorToken, at, object{"attributes": object{}}, "Idempotency-Key", "nothing").refused(http.StatusConflict, "header.Idempotency-Key")

		// A refusal has no effect, and is not what a repeat gets.
		s.post(operatorToken, "/subscriptions", object{"url": e.URL, "subscriber_id": "sub_late"}, "Idempotency-Key", "late").refused(http.StatusUnprocessableEntity)
		s.post(operatorToken, "/subscribers", object{"name": "late", "id": "sub_late"}).is(http.StatusCreated)
		s.post(operatorToken, "/subscriptions", object{"url": e.URL, "subscriber_id": "sub_late"}, "Idempotency-Key", "late").is(http.StatusCreated)

		// After a day a key is free again.
		_, err := p.open(t).ExecContext(t.Context(), fmt.Sprintf("UPDATE server_answers SET created_at = created_at - %d", (24*time.Hour+time.Second).Microseconds()))
		require.NoError(t, err)
		require.NotEqual(t, mine["id"], s.post(c.token, "/subscriptions", object{"url": e.URL}, "Idempotency-Key", "k").is(http.StatusCreated)["id"])
	})
}
