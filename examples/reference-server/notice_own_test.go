package main_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// The event of a notice goes to the subscriptions that ask for its type, and never to the one
// that it is about: however that asks for it, and whatever else it asks for.
func TestNoticeIsNotPostedToWhomItIsAbout(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p, "-schedule", "10ms", "-jitter", "0", "-horizon", "20ms")
		c := s.customer("c")
		told := newEndpoint(t)
		about := s.subscribe(c.token, told.URL, "delivery.dead_lettered")
		order := func() {
			s.post(operatorToken, "/events", object{"type": "order.paid", "object": object{"type": "order", "id": "1"}, "data": object{"n": 1}, "subscriber_id": c.id}).is(http.StatusCreated)
		}
		subscribe := func(more object) string {
			e := newEndpoint(t)
			e.answers(http.StatusGone)
			return s.post(c.token, "/subscriptions", with(more, "url", e.URL)).is(http.StatusCreated)["id"].(string)
		}
		both := []string{"order.paid", "delivery.dead_lettered"}
		named := subscribe(object{"event_types": both})
		filtered := subscribe(object{"event_types": both, "filter": object{"or": []object{{"data.n": 1}, {"data.notice_id": object{"exists": true}}}}})
		star := subscribe(object{})
		later := subscribe(object{"event_types": []string{"order.paid"}})
		require.Nil(t, s.get(c.token, "/subscriptions/"+later).is(http.StatusOK)["filter"], "it names no notice")
		s.patch(c.token, "/subscriptions/"+later, object{"event_types": both}).is(http.StatusOK)
		without := subscribe(object{"event_types": both, "filter": object{"data.n": 1}})
		s.patch(c.token, "/subscriptions/"+without, object{"filter": nil}).is(http.StatusOK)
		all := []string{named, filtered, star, later, without}
		order()
		for _, id := range all {
			// Its own dead letter, and those of the four others.
			list := s.deliveries(c.token, id, "dead_lettered", len(all))
			orders := 0
			for _, d := range list {
				if d["event"].(object)["type"] == "order.paid" {
					orders++
				}
			}
			require.Equal(t, 1, orders)
			for _, n := range s.get(c.token, "/notices?kind=delivery.dead_lettered").data() {
				event := s.eventOf(n)
				why := s.get(c.token, "/subscriptions/"+id+"/why?event_id="+event).is(http.StatusOK)
				require.Equal(t, n["subscription_id"] != id, why["delivery_id"] != nil, "%v", why)
			}
		}
		s.deliveries(c.token, about, "delivered", len(all))

		// A client reads the filter that was made, and can send it back as it is.
		read := s.get(c.token, "/subscriptions/"+named).is(http.StatusOK)["filter"]
		require.Equal(t, read, s.patch(c.token, "/subscriptions/"+named, object{"filter": read}).is(http.StatusOK)["filter"])
		require.Nil(t, s.patch(c.token, "/subscriptions/"+named, object{"event_types": []string{"order.paid"}}).is(http.StatusOK)["filter"])
		s.patch(c.token, "/subscriptions/"+named, object{"event_types": both, "filter": object{"a": 1}}).refused(http.StatusUnprocessableEntity, "body.filter")
	})
}

// eventOf is the event that tells of a notice.
func (s *process) eventOf(notice object) string {
	s.t.Helper()
	for _, e := range s.get(operatorToken, "/events?limit=200").is(http.StatusOK)["data"].([]any) {
		e := e.(object)
		if data, ok := e["data"].(object); ok && data["notice_id"] == notice["id"] {
			return e["id"].(string)
		}
	}
	s.t.Fatalf("no event tells of %v", notice)
	return ""
}
