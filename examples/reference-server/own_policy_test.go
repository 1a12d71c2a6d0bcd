package main_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// A subscription's own policy is set, read and refused. A field that is left out stays as
// it was.
func TestOwnPolicyIsSetAndRead(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p, "-workers=false", "-own-policies")
		c := s.customer("c")
		policy := func(o object) []any {
			return []any{o["retry_delays_seconds"], o["horizon_seconds"], o["disable_after_seconds"], o["gone"]}
		}
		plain := s.post(c.token, "/subscriptions", object{"url": "http://127.0.0.1:1/"}).is(http.StatusCreated)
		require.Equal(t, []any{[]any{}, 0.0, 0.0, "failure"}, policy(plain))
		made := s.post(c.token, "/subscriptions", object{
			"url": "http://127.0.0.1:1/", "retry_delays_seconds": []int{10, 3600}, "horizon_seconds": 7200, "disable_after_seconds": 36000, "gone": "stop",
		}).is(http.StatusCreated)
		require.Equal(t, []any{[]any{10.0, 3600.0}, 7200.0, 36000.0, "stop"}, policy(made))
		at := "/subscriptions/" + made["id"].(string)
		for _, step := range []struct {
			change object
			want   []any
		}{
			{object{"description": "else"}, []any{[]any{10.0, 3600.0}, 7200.0, 36000.0, "stop"}},
			{object{"order": "latest"}, []any{[]any{10.0, 3600.0}, 7200.0, 36000.0, "stop"}},
			{object{"gone": "failure", "horizon_seconds": 60}, []any{[]any{10.0, 3600.0}, 60.0, 36000.0, "failure"}},
			{object{"retry_delays_seconds": []int{}}, []any{[]any{}, 60.0, 36000.0, "failure"}},
			{object{"horizon_seconds": 0, "disable_after_seconds": 0}, []any{[]any{}, 0.0, 0.0, "failure"}},
		} {
			require.Equal(t, step.want, policy(s.patch(c.token, at, step.change).is(http.StatusOK)), "%v", step.change)
		}
		for _, wrong := range []struct {
			change   object
			at, says string
		}{
			{object{"retry_delays_seconds": []int{9}}, "body.retry_delays_seconds", "retry delay 1 is 9s: it must be at least 10s"},
			{object{"retry_delays_seconds": []int{10}}, "body.retry_delays_seconds", "25921 attempts in 72h0m0s: at most 30"},
			{object{"retry_delays_seconds": []int64{1 << 62, -1 << 62}}, "body.retry_delays_seconds", "retry delay 2"},
			{object{"horizon_seconds": 72*3600 + 1}, "body.horizon_seconds", "it must be from 1m0s to 72h0m0s"},
			{object{"horizon_seconds": -1}, "body.horizon_seconds", "at least 0"},
			{object{"disable_after_seconds": 60}, "body.disable_after_seconds", "it must be from 1h0m0s to 120h0m0s"},
			{object{"gone": "Stop"}, "body.gone", "stop"},
		} {
			for _, r := range []*reply{
				s.patch(c.token, at, wrong.change),
				s.post(c.token, "/subscriptions", with(wrong.change, "url", "http://127.0.0.1:1/")),
			} {
				r.refused(http.StatusUnprocessableEntity, wrong.at)
				require.Contains(t, r.body["detail"], wrong.says, "%v", wrong.change)
			}
		}
	})
}

// Without the flag there are no own policies, but 410 can stop a subscription; made active
// again, it gets what was held.
func TestGoneStopsASubscription(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p)
		c, e := s.customer("c"), newEndpoint(t)
		e.answers(http.StatusGone)
		for field, value := range map[string]any{"retry_delays_seconds": []int{600}, "horizon_seconds": 3600, "disable_after_seconds": 7200} {
			r := s.post(c.token, "/subscriptions", object{"url": e.URL, field: value})
			r.refused(http.StatusUnprocessableEntity, "body."+field)
			require.Contains(t, r.body["detail"], "no policy of their own here")
		}
		id := s.post(c.token, "/subscriptions", object{"url": e.URL, "event_types": []string{"order.*"}, "gone": "stop"}).is(http.StatusCreated)["id"].(string)
		s.change("1")
		held := s.deliveries(c.token, id, "held", 1)[0]
		require.Contains(t, s.get(c.token, "/deliveries/"+held["id"].(string)).is(http.StatusOK)["why"], "410 Gone")
		sub := s.get(c.token, "/subscriptions/"+id).is(http.StatusOK)
		require.Equal(t, "disabled", sub["status"])
		require.Contains(t, sub["disabled_reason"], "410 Gone")

		e.answers(http.StatusOK)
		s.patch(c.token, "/subscriptions/"+id, object{"status": "active"}).is(http.StatusOK)
		s.deliveries(c.token, id, "delivered", 1)
		require.Len(t, e.received(), 2)
	})
}
