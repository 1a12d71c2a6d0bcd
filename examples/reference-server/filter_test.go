package main_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// Deliveries and notices are found by what an operator asks for. A parameter that is no
// filter is refused, since it would show everything.
func TestListFilters(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p, "-schedule", "10ms", "-jitter", "0", "-horizon", "20ms")
		a, b := s.customer("a"), s.customer("b")
		gone, moved := newEndpoint(t), newEndpoint(t)
		gone.answers(http.StatusGone)
		moved.answers(http.StatusFound)
		ofA, ofB := s.subscribe(a.token, gone.URL, "order.*"), s.subscribe(b.token, moved.URL, "order.*")
		for i := range 2 {
			s.post(operatorToken, "/events", object{"type": "order.paid", "object": object{"type": "order", "id": fmt.Sprint(i)}}).is(http.StatusCreated)
		}
		s.deliveries(a.token, ofA, "dead_lettered", 2)
		s.deliveries(b.token, ofB, "dead_lettered", 2)
		for query, subscriptions := range map[string][]any{
			"subscriber_id=" + a.id: {ofA, ofA}, "subscriber_id=sub_never": nil, "error_class=redirect": {ofB, ofB}, "error_class=timeout": nil,
			"status_code=410": {ofA, ofA}, "status_code=302": {ofB, ofB}, "status_code=200": nil,
			"status_code=410&error_class=redirect": nil, "status_code=302&subscriber_id=" + b.id: {ofB, ofB},
		} {
			var got []any
			for _, d := range s.get(operatorToken, "/deliveries?event_type=order.*&"+query).data() {
				got = append(got, d["subscription_id"])
			}
			require.Equal(t, subscriptions, got, query)
		}
		require.Len(t, s.get(a.token, "/deliveries?subscriber_id="+a.id).data(), 2)
		require.Empty(t, s.get(a.token, "/deliveries?subscriber_id="+b.id).data())

		notices := s.get(a.token, "/notices?kind=delivery.dead_lettered&unacknowledged=true").data()
		require.Len(t, notices, 2)
		s.post(a.token, "/notices/"+notices[0]["id"].(string)+"/acknowledge", nil).is(http.StatusOK)
		require.Len(t, s.get(a.token, "/notices?unacknowledged=true").data(), 1)
		require.Len(t, s.get(a.token, "/notices?unacknowledged=false").data(), 2)
		require.Empty(t, s.get(a.token, "/notices?kind=subscription.disabled").data())

		for path, at := range map[string]string{
			"/deliveries?subscriber=x": "query.subscriber", "/deliveries?status_code=99": "query.status_code", "/deliveries?error_class=x": "query.error_class",
			"/notices?kind=x": "query.kind", "/notices?unread=true": "query.unread", "/jobs?status=queued": "query.status", "/events?type=x": "query.type",
			"/subscriptions?limit=1&limit=2": "query.limit", "/subscriptions/" + ofA + "?x=1": "query.x", "/healthz?x=1": "query.x", "/readyz?x=1": "query.x", "/openapi.json?x=1": "query.x",
			"/metrics?x=1": "query.x",
		} {
			s.get(operatorToken, path).refused(http.StatusUnprocessableEntity, at)
		}
		s.post(operatorToken, "/jobs?dry_run=true", object{"kind": "replay", "input": object{}}).refused(http.StatusUnprocessableEntity, "query.dry_run")
		require.Empty(t, s.get(operatorToken, "/jobs").data())
		require.Contains(t, s.get(operatorToken, "/metrics?name[]=go_goroutines").text, "go_goroutines")
	})
}
