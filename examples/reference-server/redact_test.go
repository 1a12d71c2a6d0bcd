package main_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// Bodies are removed by object and by subscriber, of a deleted one too; the events and
// their deliveries stay on record.
func TestRedact(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p)
		c, other := s.customer("c"), s.customer("other")
		e := newEndpoint(t)
		id := s.subscribe(c.token, e.URL, "order.*")
		publish := func(object_, subscriber string) string {
			body := object{"type": "order.paid", "object": object{"type": "order", "id": object_}, "data": object{"name": "Ada Lovelace"}}
			if subscriber != "" {
				body["subscriber_id"] = subscriber
			}
			return s.post(operatorToken, "/events", body).is(http.StatusCreated)["id"].(string)
		}
		first, second, addressed := publish("1", ""), publish("2", ""), publish("3", c.id)
		s.deliveries(c.token, id, "delivered", 3)

		s.post(c.token, "/redactions", object{"object": object{"type": "order", "id": "1"}}).refused(http.StatusForbidden)
		s.post(c.token, "/subscribers/"+c.id+"/redact", nil).refused(http.StatusForbidden)
		s.post(c.token, "/subscribers/"+other.id+"/redact", nil).refused(http.StatusNotFound)
		s.post(operatorToken, "/subscribers/sub_never/redact", nil).refused(http.StatusNotFound)
		s.post(operatorToken, "/redactions", object{}).refused(http.StatusUnprocessableEntity, "body.object")
		s.post(operatorToken, "/redactions", object{"object": object{"type": "", "id": ""}}).refused(http.StatusUnprocessableEntity)
		s.post(operatorToken, "/redactions", object{"object": object{"type": "order", "id": "a\x00b"}}).refused(http.StatusUnprocessableEntity, "body.object.id")

		redacted := func(event string) bool {
			b := s.get(operatorToken, "/events/"+event).is(http.StatusOK)
			require.NotEmpty(t, b["deliveries"])
			if b["redacted"] != true {
				require.Equal(t, object{"name": "Ada Lovelace"}, b["data"])
				return false
			}
			require.NotContains(t, b, "data")
			return true
		}
		require.InDelta(t, 1, s.post(operatorToken, "/redactions", object{"object": object{"type": "order", "id": "1"}}).is(http.StatusOK)["events"], 0)
		require.Equal(t, []bool{true, false, false}, []bool{redacted(first), redacted(second), redacted(addressed)})
		require.InDelta(t, 0, s.post(operatorToken, "/redactions", object{"object": object{"type": "order", "id": "9"}}).is(http.StatusOK)["events"], 0)
		s.remove(operatorToken, "/subscribers/"+c.id).is(http.StatusNoContent)
		require.NotZero(t, s.post(operatorToken, "/subscribers/"+c.id+"/redact", nil).is(http.StatusOK)["events"])
		require.Equal(t, []bool{true, false, true}, []bool{redacted(first), redacted(second), redacted(addressed)})
	})
}
