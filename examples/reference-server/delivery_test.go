package main_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/porttest"
)

func TestDeliveryRecord(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p, "-schedule", "50ms,1h", "-jitter", "0", "-horizon", "2s") // a second attempt, and a last one
		c, other := s.customer("c"), s.customer("other")
		e, operators := newEndpoint(t), newEndpoint(t)
		e.with(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "out of order", http.StatusBadGateway) })
		id := s.subscribe(c.token, e.URL, "subscriber.*")
		s.subscribe(operatorToken, operators.URL, "delivery.dead_lettered")
		s.patch(operatorToken, "/subscribers/"+c.id, object{"name": "x"}).is(http.StatusOK)

		dead := s.deliveries(c.token, id, "dead_lettered", 1)[0]["id"].(string)
		record := s.get(c.token, "/deliveries/"+dead).is(http.StatusOK)
		posts := e.received()
		require.Equal(t, string(posts[0].body), record["payload"])
		require.Equal(t, strings.TrimSuffix(e.URL, "/"), strings.TrimSuffix(record["url"].(string), "/"))
		require.Equal(t, id, record["subscription_id"])
		event := record["event"].(object)
		require.Equal(t, "subscriber.updated", event["type"])
		require.Equal(t, object{"type": "subscriber", "id": c.id}, event["object"])
		require.InDelta(t, 2, event["version"], 0)
		require.NotEmpty(t, record["why"])
		require.Nil(t, record["next_attempt_at"])
		attempts := record["attempts"].([]any)
		require.Len(t, attempts, len(posts))
		require.GreaterOrEqual(t, len(attempts), 2)
		for i, one := range attempts {
			a := one.(object)
			require.InDelta(t, i+1, a["number"], 0)
			require.InDelta(t, http.StatusBadGateway, a["status_code"], 0)
			require.Equal(t, "status", a["error_class"])
			require.NotEmpty(t, a["error"])
			require.Equal(t, "out of order\n", a["response_snippet"])
			require.Contains(t, a["request_headers"], object{"name": "Webhook-Id", "value": event["id"]})
			require.Contains(t, a["request_headers"], object{"name": "Webhook-Signature", "value": "redacted"})
			require.Contains(t, a["response_headers"], object{"name": "Content-Type", "value": "text/plain; charset=utf-8"})
			require.NotNil(t, a["duration_ms"])
			require.Equal(t, i < len(attempts)-1, a["next_attempt_at"] != nil)
			_, err := time.Parse(time.RFC3339, a["started_at"].(string))
			require.NoError(t, err)
		}

		// A notice for the owner, listed, delivered as an event, acknowledged once.
		notices := s.get(c.token, "/notices").data()
		require.Len(t, notices, 1)
		n := notices[0]
		require.Equal(t, "delivery.dead_lettered", n["kind"])
		require.Equal(t, dead, n["delivery_id"])
		require.Equal(t, id, n["subscription_id"])
		require.NotEmpty(t, n["detail"])
		require.Nil(t, n["acknowledged_at"])
		require.Contains(t, string(operators.wait(t, 1)[0].body), dead)
		require.Empty(t, s.get(other.token, "/notices").data())
		s.post(other.token, "/notices/"+n["id"].(string)+"/acknowledge", nil).refused(http.StatusNotFound)
		read := s.post(c.token, "/notices/"+n["id"].(string)+"/acknowledge", nil).is(http.StatusOK)
		require.NotNil(t, read["acknowledged_at"])
		require.Equal(t, read["acknowledged_at"], s.post(operatorToken, "/notices/"+n["id"].(string)+"/acknowledge", nil).is(http.StatusOK)["acknowledged_at"])
		require.Contains(t, s.logged(), n["id"], "every notice is logged")

		// Redelivered, it starts anew, and its attempts go on.
		e.answers(http.StatusOK)
		s.post(c.token, "/deliveries/"+dead+"/redeliver", nil).is(http.StatusAccepted)
		delivered := s.deliveries(c.token, id, "delivered", 1)[0]
		require.Equal(t, dead, delivered["id"])
		last := s.get(c.token, "/deliveries/"+dead).is(http.StatusOK)["attempts"].([]any)[len(attempts)].(object)
		require.InDelta(t, len(attempts)+1, last["number"], 0)
		require.InDelta(t, http.StatusOK, last["status_code"], 0)
		require.Nil(t, last["error"])
		require.Equal(t, []any{}, last["request_headers"], "those of failed attempts are kept")
		require.Empty(t, last["error_class"])

		// A delivered one is sent a single time; failing leaves it delivered.
		e.answers(http.StatusInternalServerError)
		before := len(e.received())
		s.post(operatorToken, "/deliveries/"+dead+"/redeliver", nil).is(http.StatusAccepted)
		eventually(t, "one more attempt", func() int {
			return len(s.get(c.token, "/deliveries/"+dead).is(http.StatusOK)["attempts"].([]any))
		}, func(n int) bool { return n == len(attempts)+2 })
		require.Equal(t, "delivered", s.get(c.token, "/deliveries/"+dead).is(http.StatusOK)["status"])
		require.Len(t, e.received(), before+1)
	})
}

func TestErrorClasses(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p, "-timeout", "4s") // the others fail in that time
		require.Contains(t, s.logged(), "-timeout is short")
		c := s.customer("c")
		slow, redirecting := newEndpoint(t), newEndpoint(t)
		free := make(chan struct{})
		defer close(free)
		slow.with(func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-free:
			case <-r.Context().Done():
			}
		})
		target := newEndpoint(t)
		redirecting.with(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, target.URL, http.StatusTemporaryRedirect)
		})
		for class, where := range map[string]string{
			"timeout": slow.URL, "redirect": redirecting.URL, "connect": "http://" + porttest.Refusing(t), "dns": "http://nobody.invalid/", "tls": strings.Replace(target.URL, "http:", "https:", 1),
		} {
			id := s.subscribe(c.token, where, "order.paid")
			defer s.remove(c.token, "/subscriptions/"+id)
			sent := s.post(c.token, "/subscriptions/"+id+"/test", nil).is(http.StatusAccepted)
			record := eventually(t, class, func() object {
				return s.get(c.token, "/deliveries/"+sent["delivery_id"].(string)).is(http.StatusOK)
			}, func(o object) bool { return len(o["attempts"].([]any)) > 0 })
			attempt := record["attempts"].([]any)[0].(object)
			require.Equal(t, class, attempt["error_class"], "%v", attempt)
			require.Equal(t, "awaiting_retry", record["status"])
			require.NotNil(t, record["next_attempt_at"])
			if class != "redirect" {
				require.Nil(t, attempt["status_code"])
			}
		}
		require.Empty(t, target.received(), "redirects are never followed")
	})
}

func TestDeliveryFilters(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p)
		c, other := s.customer("c"), s.customer("other")
		e := newEndpoint(t)
		first, second := s.subscribe(c.token, e.URL), s.subscribe(c.token, e.URL)
		theirs := s.subscribe(other.token, e.URL)
		var ids []string
		for _, kind := range []string{"order.paid", "order.sent", "invoice.sent"} {
			ids = append(ids, s.post(operatorToken, "/events", object{"type": kind, "object": object{"type": "order", "id": kind}}).is(http.StatusCreated)["id"].(string))
		}
		for _, id := range []string{first, second, theirs} {
			s.deliveries(operatorToken, id, "delivered", 3)
		}
		count := func(token, query string) int { return len(s.get(token, "/deliveries?"+query).data()) }
		require.Equal(t, 6, count(c.token, ""))
		require.Equal(t, 9, count(operatorToken, ""))
		require.Equal(t, 3, count(c.token, "subscription_id="+first))
		require.Zero(t, count(c.token, "subscription_id="+theirs))
		require.Equal(t, 4, count(c.token, "event_type=order.*"))
		require.Equal(t, 2, count(c.token, "event_type=order.paid"))
		require.Equal(t, 2, count(c.token, "event_id="+ids[2]))
		require.Zero(t, count(c.token, "status=dead_lettered"))
		newest := s.get(c.token, "/deliveries?limit=1").data()[0]
		require.Equal(t, ids[2], newest["event"].(object)["id"], "newest first")
		at := url.QueryEscape(newest["event"].(object)["created_at"].(string))
		require.Equal(t, 2, count(c.token, "since="+at))
		require.Equal(t, 4, count(c.token, "until="+at))

		// By pages, all come once.
		seen := map[string]bool{}
		for cursor, pages := "", 0; ; pages++ {
			page := s.get(c.token, "/deliveries?limit=4&cursor="+cursor)
			for _, d := range page.data() {
				require.False(t, seen[d["id"].(string)])
				seen[d["id"].(string)] = true
			}
			if page.body["next_cursor"] == nil {
				require.LessOrEqual(t, pages, 2)
				break
			}
			cursor = url.QueryEscape(page.body["next_cursor"].(string))
		}
		require.Len(t, seen, 6)
	})
}
