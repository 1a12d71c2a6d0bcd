package main_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSubscriptionLifecycle(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p)
		c, other := s.customer("c"), s.customer("other")
		e := newEndpoint(t)
		s.patch(operatorToken, "/subscribers/"+c.id, object{"name": "before"}).is(http.StatusOK)

		r := s.post(c.token, "/subscriptions", object{"url": e.URL + "/x", "event_types": []string{"subscriber.*", "order.paid"}, "description": "mine"})
		made := r.is(http.StatusCreated)
		id := made["id"].(string)
		require.Equal(t, "/subscriptions/"+id, r.header.Get("Location"))
		require.Equal(t, c.id, made["subscriber_id"])
		require.Equal(t, e.URL+"/x", made["url"])
		require.ElementsMatch(t, []any{"subscriber.*", "order.paid"}, made["event_types"])
		require.Equal(t, "mine", made["description"])
		require.Equal(t, "active", made["status"])
		require.Equal(t, []any{"*"}, s.post(c.token, "/subscriptions", object{"url": e.URL + "/all"}).is(http.StatusCreated)["event_types"])

		read := s.get(c.token, "/subscriptions/"+id).is(http.StatusOK)
		for _, field := range []string{"failing_since", "disabled_at", "disabled_reason", "last_success_at", "last_failure_at"} {
			require.Contains(t, read, field)
			require.Nil(t, read[field])
		}
		require.InDelta(t, 0, read["backlog"], 0)

		// Oldest first, in pages; each sees its own, the operator all.
		s.subscribe(other.token, e.URL)
		page := s.get(c.token, "/subscriptions?limit=1")
		require.Equal(t, id, page.data()[0]["id"])
		next := s.get(c.token, "/subscriptions?limit=1&cursor="+page.body["next_cursor"].(string))
		require.Equal(t, e.URL+"/all", next.data()[0]["url"])
		require.Len(t, s.get(c.token, "/subscriptions").data(), 2)
		require.Len(t, s.get(operatorToken, "/subscriptions").data(), 3)
		require.Len(t, s.get(operatorToken, "/subscriptions?subscriber_id="+other.id).data(), 1)
		require.Empty(t, s.get(c.token, "/subscriptions?subscriber_id="+other.id).data())

		// The operator can register for a subscriber, who can do so for itself alone.
		byOperator := s.post(operatorToken, "/subscriptions", object{"url": e.URL, "subscriber_id": other.id}).is(http.StatusCreated)
		require.Equal(t, other.id, byOperator["subscriber_id"])
		s.post(c.token, "/subscriptions", object{"url": e.URL, "subscriber_id": other.id}).refused(http.StatusForbidden)
		s.post(c.token, "/subscriptions", object{"url": e.URL, "subscriber_id": c.id}).is(http.StatusCreated)

		changed := s.patch(c.token, "/subscriptions/"+id, object{"url": e.URL + "/y", "description": "", "event_types": []string{"order.*"}}).is(http.StatusOK)
		require.Equal(t, e.URL+"/y", changed["url"])
		require.Equal(t, []any{"order.*"}, changed["event_types"])
		require.Empty(t, changed["description"])

		// An empty list does not ask for all types.
		empty := s.patch(c.token, "/subscriptions/"+id, object{"event_types": []string{}})
		empty.refused(http.StatusUnprocessableEntity, "body.event_types")
		require.Equal(t, "body.event_types: the list is empty: name one or more, or leave it out", empty.body["detail"])
		require.Equal(t, []any{"order.*"}, s.get(c.token, "/subscriptions/"+id).is(http.StatusOK)["event_types"])

		require.Equal(t, http.StatusNoContent, s.remove(c.token, "/subscriptions/"+id).status)
		s.get(c.token, "/subscriptions/"+id).refused(http.StatusNotFound)
		require.Len(t, s.get(c.token, "/subscriptions").data(), 2)

		// An event that was committed before a subscription was made is not for it.
		for _, one := range e.received() {
			require.NotContains(t, string(one.body), `"version":2`)
		}
	})
}

// A subscription's filter on content decides what it gets, and null removes it.
func TestContentFilter(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p)
		c, e := s.customer("c"), newEndpoint(t)
		asked := object{"data.plan": "pro", "data.n": object{"gte": 2}}
		made := s.post(c.token, "/subscriptions", object{"url": e.URL, "event_types": []string{"order.paid"}, "filter": asked}).is(http.StatusCreated)
		id := made["id"].(string)
		require.Equal(t, map[string]any{"data.plan": "pro", "data.n": map[string]any{"gte": 2.0}}, made["filter"])
		require.Contains(t, s.post(c.token, "/subscriptions", object{"url": e.URL, "event_types": []string{"x"}}).is(http.StatusCreated), "filter")

		publish := func(n int) string {
			return s.post(operatorToken, "/events", object{"type": "order.paid", "object": object{"type": "order", "id": "1"}, "data": object{"plan": "pro", "n": n}}).is(http.StatusCreated)["id"].(string)
		}
		publish(1)
		two := publish(2)
		require.Equal(t, two, s.deliveries(c.token, id, "delivered", 1)[0]["event"].(map[string]any)["id"])

		r := s.patch(c.token, "/subscriptions/"+id, object{"filter": object{"data.n": object{"above": 2}}})
		r.refused(http.StatusUnprocessableEntity, "body.filter")
		require.Contains(t, r.body["detail"], "it is no operator")
		require.Equal(t, made["filter"], s.patch(c.token, "/subscriptions/"+id, object{"description": "else"}).is(http.StatusOK)["filter"])
		require.Nil(t, s.patch(c.token, "/subscriptions/"+id, object{"filter": nil}).is(http.StatusOK)["filter"])
		publish(1)
		require.Len(t, s.deliveries(c.token, id, "delivered", 2), 2)
	})
}

func TestFilters(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p)
		c, other := s.customer("c"), s.customer("other")
		mine, theirs, operators := newEndpoint(t), newEndpoint(t), newEndpoint(t)
		s.subscribe(c.token, mine.URL, "order.*")
		s.subscribe(other.token, theirs.URL, "order.paid", "invoice.sent")
		s.subscribe(operatorToken, operators.URL)
		for _, e := range []object{
			{"type": "order.paid", "object": object{"type": "order", "id": "1"}},                         // everybody's
			{"type": "order.sent", "object": object{"type": "order", "id": "2"}, "subscriber_id": c.id},  // c's
			{"type": "order.paid", "object": object{"type": "order", "id": "3"}, "subscriber_id": c.id},  // c's
			{"type": "invoice.sent", "object": object{"type": "invoice", "id": "1"}},                     // not c's
			{"type": "orders.paid", "object": object{"type": "order", "id": "4"}, "subscriber_id": c.id}, // nobody's type
		} {
			s.post(operatorToken, "/events", e).is(http.StatusCreated)
		}
		// The operator's secret signs what the operator gets, whoever it is about.
		secret := s.get(operatorToken, "/subscribers/sub_operator/secret").is(http.StatusOK)["signing_secret"].(string)
		for _, one := range operators.wait(t, 5) {
			verifies(t, one, secret)
		}
		var got []string
		for _, one := range mine.wait(t, 3) {
			verifies(t, one, c.secret)
			got = append(got, typeAndVersion(t, one.body))
		}
		require.ElementsMatch(t, []string{"order.paid 1", "order.sent 1", "order.paid 1"}, got)
		require.Len(t, theirs.wait(t, 2), 2)
		require.Len(t, mine.received(), 3)
	})
}

func TestPausedDeliveriesAreHeld(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p)
		c := s.customer("c")
		publish := func() string {
			return s.post(operatorToken, "/events", object{"type": "order.paid", "object": object{"type": "order", "id": "1"}}).is(http.StatusCreated)["id"].(string)
		}
		for _, take := range []struct {
			resume string
			posted int
		}{{"", 2}, {"all", 2}, {"0001-01-01T00:00:00Z", 2}, {"none", 0}, {"since", 1}} {
			e := newEndpoint(t)
			id := s.subscribe(c.token, e.URL)
			require.Equal(t, "paused", s.patch(c.token, "/subscriptions/"+id, object{"status": "paused"}).is(http.StatusOK)["status"])
			s.post(c.token, "/subscriptions/"+id+"/test", nil).refused(http.StatusConflict)
			publish()
			old := s.deliveries(c.token, id, "held", 1)[0]
			s.post(c.token, "/deliveries/"+old["id"].(string)+"/redeliver", nil).is(http.StatusAccepted)
			require.Contains(t, s.get(c.token, "/deliveries/"+old["id"].(string)).is(http.StatusOK)["why"], "paused")
			publish()
			held := s.deliveries(c.token, id, "held", 2)
			require.Empty(t, e.received(), "what is held is not posted, redelivered or not")

			body := object{"status": "active"}
			switch take.resume {
			case "since":
				body["resume"] = held[0]["event"].(object)["created_at"] // the newest
			case "":
			default:
				body["resume"] = take.resume
			}
			require.Equal(t, "active", s.patch(c.token, "/subscriptions/"+id, body).is(http.StatusOK)["status"])
			s.deliveries(c.token, id, "delivered", take.posted)
			cancelled := s.deliveries(c.token, id, "cancelled", 2-take.posted)
			require.Len(t, e.received(), take.posted)
			for _, d := range cancelled {
				s.post(c.token, "/deliveries/"+d["id"].(string)+"/redeliver", nil).refused(http.StatusConflict)
			}
			s.remove(c.token, "/subscriptions/"+id)
		}
	})
}

func TestDeletedSubscriptionCancels(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p)
		c := s.customer("c")
		e := newEndpoint(t)
		e.answers(http.StatusServiceUnavailable)
		id := s.subscribe(c.token, e.URL)
		s.patch(operatorToken, "/subscribers/"+c.id, object{"name": "x"}).is(http.StatusOK)
		d := s.deliveries(c.token, id, "awaiting_retry", 1)[0]["id"].(string)
		require.Equal(t, http.StatusNoContent, s.remove(c.token, "/subscriptions/"+id).status)
		record := s.get(c.token, "/deliveries/"+d).is(http.StatusOK)
		require.Equal(t, "cancelled", record["status"], "its records stay readable")
		require.Len(t, record["attempts"], 1)
		s.post(c.token, "/deliveries/"+d+"/redeliver", nil).refused(http.StatusConflict)
	})
}

func TestTestEvent(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p)
		c := s.customer("c")
		asked, beside := newEndpoint(t), newEndpoint(t)
		id := s.subscribe(c.token, asked.URL, "order.paid")
		s.subscribe(c.token, beside.URL)
		sent := s.post(c.token, "/subscriptions/"+id+"/test", nil).is(http.StatusAccepted)
		got := asked.wait(t, 1)[0]
		require.Equal(t, sent["event_id"], got.header.Get("Webhook-Id"))
		require.Contains(t, string(got.body), `"type":"webhook.test"`)
		require.Contains(t, string(got.body), `"object":{"type":"subscription","id":"`+id+`"}`)
		s.deliveries(c.token, id, "delivered", 1)
		require.Equal(t, sent["event_id"], s.get(c.token, "/deliveries/"+sent["delivery_id"].(string)).is(http.StatusOK)["event"].(object)["id"])
		require.Empty(t, beside.received(), "to it alone")
	})
}

// A subscription that fails for long enough is disabled. Its owner and the operator are
// told, and it can be enabled again with all that was held.
func TestDisabled(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p, "-schedule", "100ms", "-jitter", "0", "-disable-after", "2s")
		c := s.customer("c")
		bad, told := newEndpoint(t), newEndpoint(t)
		bad.answers(http.StatusTeapot)
		id := s.subscribe(c.token, bad.URL, "order.*")
		s.subscribe(c.token, told.URL, "subscription.*")
		s.post(operatorToken, "/events", object{"type": "order.paid", "object": object{"type": "order", "id": "1"}}).is(http.StatusCreated)
		disabled := eventually(t, "disabled", func() object {
			return s.get(c.token, "/subscriptions/"+id).is(http.StatusOK)
		}, func(o object) bool { return o["status"] == "disabled" })
		for _, field := range []string{"failing_since", "disabled_at", "disabled_reason", "last_failure_at"} {
			require.NotNil(t, disabled[field], field)
		}
		s.deliveries(c.token, id, "held", 1)
		require.Equal(t, []object{disabled}, s.get(c.token, "/subscriptions?status=disabled").data())

		kinds := map[string]int{}
		for _, n := range s.get(c.token, "/notices").data() {
			require.Equal(t, id, n["subscription_id"])
			kinds[n["kind"].(string)]++
		}
		require.Equal(t, 1, kinds["subscription.disabled"])
		// Half, three quarters and nine tenths of the way; a machine that is slow enough
		// passes some of them by.
		failing := kinds["subscription.failing"]
		require.True(t, failing >= 1 && failing <= 3, "%d warnings", failing)
		require.Len(t, kinds, 2)
		for _, one := range told.wait(t, failing+1) {
			verifies(t, one, c.secret)
		}

		bad.answers(http.StatusOK)
		enabled := s.patch(c.token, "/subscriptions/"+id, object{"status": "active"}).is(http.StatusOK)
		require.Nil(t, enabled["failing_since"])
		require.Nil(t, enabled["disabled_at"])
		s.deliveries(c.token, id, "delivered", 1)
		at, err := time.Parse(time.RFC3339, s.get(c.token, "/subscriptions/"+id).is(http.StatusOK)["last_success_at"].(string))
		require.NoError(t, err)
		require.WithinDuration(t, time.Now(), at, 2*time.Minute)
	})
}
