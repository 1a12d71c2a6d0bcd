package main_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A field that is left out has its old meaning, and a change of one leaves the others alone.
func TestOrderIsSetAndRead(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p, "-workers=false")
		c, other := s.customer("c"), s.customer("other")
		order := func(o object) []any {
			return []any{o["order"], o["hold_tries"], o["hold_for_seconds"], o["hold_dead"], o["payload_version"]}
		}
		plain := s.post(c.token, "/subscriptions", object{"url": "http://127.0.0.1:1/"}).is(http.StatusCreated)
		require.Equal(t, []any{"relaxed", 0.0, 0.0, false, nil}, order(plain))
		made := s.post(c.token, "/subscriptions", object{"url": "http://127.0.0.1:1/", "order": "object", "hold_tries": 3, "hold_for_seconds": 90, "hold_dead": true}).is(http.StatusCreated)
		require.Equal(t, []any{"object", 3.0, 90.0, true, nil}, order(made))
		at := "/subscriptions/" + made["id"].(string)
		require.Equal(t, order(made), order(s.get(c.token, at).is(http.StatusOK)))
		for _, step := range []struct {
			change object
			want   []any
		}{
			{object{"description": "else"}, []any{"object", 3.0, 90.0, true, nil}},
			{object{"hold_tries": 0}, []any{"object", 0.0, 90.0, true, nil}},
			{object{"hold_dead": false, "hold_for_seconds": 1}, []any{"object", 0.0, 1.0, false, nil}},
			{object{"order": "object", "hold_tries": 7}, []any{"object", 7.0, 1.0, false, nil}},
			{object{"order": "latest"}, []any{"latest", 0.0, 0.0, false, nil}},
			{object{"order": "relaxed"}, []any{"relaxed", 0.0, 0.0, false, nil}},
		} {
			require.Equal(t, step.want, order(s.patch(c.token, at, step.change).is(http.StatusOK)), "%v", step.change)
		}
		for _, wrong := range []struct {
			change object
			at     string
			says   string
		}{
			{object{"order": "strict"}, "body.order", "latest"},
			{object{"order": ""}, "body.order", "relaxed"},
			{object{"order": "latest", "hold_dead": true}, "body.order", `for the order "object" alone`},
			{object{"hold_tries": 1}, "body.order", `for the order "object" alone`},
			{object{"order": "object", "hold_tries": 101}, "body.hold_tries", "at most 100"},
			{object{"order": "object", "hold_tries": -1}, "body.hold_tries", "at least 0"},
			{object{"order": "object", "hold_tries": "3"}, "body.hold_tries", "integer"},
			{object{"order": "object", "hold_for_seconds": 2592001}, "body.hold_for_seconds", "at most 2592000"},
			{object{"order": "object", "hold_for_seconds": 0.5}, "body.hold_for_seconds", "integer"},
			{object{"order": "object", "hold_dead": "yes"}, "body.hold_dead", "boolean"},
			{object{"payload_version": "newest"}, "body.payload_version", "2026-11-25"},
			{object{"payload_version": "2026-11-25"}, "body.payload_version", "there are none here"},
			{object{"hold_for": 1}, "body.hold_for", "it is unknown here"},
		} {
			for _, r := range []*reply{
				s.patch(c.token, at, wrong.change),
				s.post(c.token, "/subscriptions", with(wrong.change, "url", "http://127.0.0.1:1/")),
			} {
				r.refused(http.StatusUnprocessableEntity, wrong.at)
				require.Contains(t, r.body["detail"], wrong.says, "%v", wrong.change)
			}
		}
		require.Equal(t, "relaxed", s.get(c.token, at).is(http.StatusOK)["order"], "nothing has changed")
		s.patch(other.token, at, object{"order": "latest"}).refused(http.StatusNotFound)
	})
}

func with(o object, name string, value any) object {
	all := object{name: value}
	for k, v := range o {
		all[k] = v
	}
	return all
}

func (s *process) change(id string) string {
	s.t.Helper()
	return s.post(operatorToken, "/events", object{"type": "order.paid", "object": object{"type": "order", "id": id}}).is(http.StatusCreated)["id"].(string)
}

// A dead letter holds back the later versions of its object until its owner passes over it.
func TestPassOver(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p, "-schedule", "10ms", "-jitter", "0", "-horizon", "20ms")
		c, other, e := s.customer("c"), s.customer("other"), newEndpoint(t)
		e.answers(http.StatusGone)
		id := s.post(c.token, "/subscriptions", object{"url": e.URL, "event_types": []string{"order.*"}, "order": "object", "hold_dead": true}).is(http.StatusCreated)["id"].(string)
		s.change("1")
		dead := "/deliveries/" + s.deliveries(c.token, id, "dead_lettered", 1)[0]["id"].(string)
		e.answers(http.StatusOK)
		s.change("1")
		later := "/deliveries/" + s.deliveries(c.token, id, "pending", 1)[0]["id"].(string)
		require.Equal(t, strings.TrimPrefix(dead, "/deliveries/"), s.get(c.token, later).is(http.StatusOK)["waits_for"])
		held := s.get(c.token, dead).is(http.StatusOK)
		require.Equal(t, true, held["holds_back"])
		require.Nil(t, held["waits_for"])

		s.post(other.token, dead+"/pass-over", nil).refused(http.StatusNotFound)
		s.post(c.token, "/deliveries/dlv_never/pass-over", nil).refused(http.StatusNotFound)
		r := s.post(c.token, later+"/pass-over", nil)
		r.refused(http.StatusConflict)
		require.Contains(t, r.body["detail"], "it holds nothing back")
		passed := s.post(c.token, dead+"/pass-over", nil).is(http.StatusOK)
		require.Equal(t, "dead_lettered", passed["status"])
		require.Equal(t, false, passed["holds_back"])
		s.deliveries(c.token, id, "delivered", 1)
		s.post(operatorToken, dead+"/pass-over", nil).refused(http.StatusConflict)
	})
}

// Superseded deliveries are listed and replayed by their status.
func TestSuperseded(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p, "-schedule", "1h")
		c, e := s.customer("c"), newEndpoint(t)
		e.answers(http.StatusServiceUnavailable)
		id := s.post(c.token, "/subscriptions", object{"url": e.URL, "event_types": []string{"order.*"}, "order": "latest"}).is(http.StatusCreated)["id"].(string)
		first := s.change("1")
		s.deliveries(c.token, id, "awaiting_retry", 1)
		e.answers(http.StatusOK)
		s.change("1")
		s.deliveries(c.token, id, "delivered", 1)
		ended := s.deliveries(c.token, id, "superseded", 1)[0]
		require.Equal(t, first, ended["event"].(object)["id"])
		require.Contains(t, s.get(c.token, "/deliveries/"+ended["id"].(string)).is(http.StatusOK)["why"], "Superseded")
		require.Equal(t, "superseded", s.get(c.token, "/subscriptions/"+id+"/why?event_id="+first).is(http.StatusOK)["reason"])

		job := s.post(c.token, "/jobs", object{"kind": "replay", "input": object{"status": "superseded", "dry_run": true}}).is(http.StatusAccepted)["id"].(string)
		done := eventually(t, "counted", func() object { return s.get(c.token, "/jobs/"+job).is(http.StatusOK) }, func(j object) bool { return j["status"] == "succeeded" })
		require.InDelta(t, 1, done["result"].(object)["matched"], 0)
		r := s.get(c.token, "/deliveries?status=replaced")
		r.refused(http.StatusUnprocessableEntity, "query.status")
		require.Contains(t, r.body["detail"], "superseded")
	})
}

// A subscription says of each event why it got it, or why not, and of another's says nothing.
func TestWhyOfAnEvent(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p)
		c, other, e := s.customer("c"), s.customer("other"), newEndpoint(t)
		publish := func(kind, subscriber string, n int) string {
			return s.post(operatorToken, "/events", object{"type": kind, "object": object{"type": "order", "id": "1"}, "data": object{"n": n}, "subscriber_id": subscriber}).is(http.StatusCreated)["id"].(string)
		}
		id := s.post(c.token, "/subscriptions", object{"url": e.URL, "event_types": []string{"order.*"}, "filter": object{"data.n": object{"gte": 2}}}).is(http.StatusCreated)["id"].(string)
		few, many, bill := publish("order.paid", c.id, 1), publish("order.paid", c.id, 2), publish("bill.paid", c.id, 2)
		theirs := publish("order.paid", other.id, 2)
		d := s.deliveries(c.token, id, "delivered", 1)[0]
		for event, want := range map[string][]any{
			few: {"filtered", "it is 1", nil}, many: {"delivered", "204", d["id"]}, bill: {"not_asked", "bill.paid", nil},
		} {
			why := s.get(c.token, "/subscriptions/"+id+"/why?event_id="+event).is(http.StatusOK)
			require.Equal(t, want[0], why["reason"])
			require.Contains(t, why["why"], want[1])
			require.Equal(t, want[2], why["delivery_id"])
			require.Equal(t, []any{event, id}, []any{why["event_id"], why["subscription_id"]})
		}
		require.Equal(t, "not_addressed", s.get(operatorToken, "/subscriptions/"+id+"/why?event_id="+theirs).is(http.StatusOK)["reason"])
		for _, event := range []string{theirs, "evt_never"} {
			s.get(c.token, "/subscriptions/"+id+"/why?event_id="+event).refused(http.StatusNotFound)
		}
		for _, of := range []string{id, "wsub_never"} {
			s.get(other.token, "/subscriptions/"+of+"/why?event_id="+few).refused(http.StatusNotFound)
		}
		for query, at := range map[string]string{"": "query.event_id", "?event_id=": "query.event_id", "?event_id=x&event=y": "query.event"} {
			s.get(c.token, "/subscriptions/"+id+"/why"+query).refused(http.StatusUnprocessableEntity, at)
		}
	})
}

// A preview counts what a filter would have passed, among a bounded number of the caller's
// events.
func TestPreview(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p, "-workers=false")
		c, other := s.customer("c"), s.customer("other")
		for n := range 6 {
			s.post(operatorToken, "/events", object{"type": "order.paid", "object": object{"type": "order", "id": fmt.Sprint(n)}, "data": object{"n": n}, "subscriber_id": c.id}).is(http.StatusCreated)
		}
		s.post(operatorToken, "/events", object{"type": "bill.paid", "object": object{"type": "bill", "id": "1"}, "data": object{"n": 9}, "subscriber_id": other.id}).is(http.StatusCreated)
		counts := func(token string, body object) []any {
			r := s.post(token, "/subscriptions/preview", body).is(http.StatusOK)
			return []any{r["events"], r["matching"], r["more"], r["since"] != nil}
		}
		some := object{"data.n": object{"gte": 4}}
		orders := []string{"order.*"}
		require.Equal(t, []any{6.0, 2.0, false, true}, counts(c.token, object{"event_types": orders, "filter": some}))
		require.Equal(t, []any{6.0, 2.0, false, true}, counts(c.token, object{"event_types": orders, "filter": some, "subscriber_id": c.id}))
		require.Equal(t, []any{1.0, 1.0, true, true}, counts(c.token, object{"event_types": orders, "filter": some, "events": 1}))
		require.Equal(t, []any{0.0, 0.0, false, false}, counts(other.token, object{"event_types": orders, "filter": some}))
		require.Equal(t, []any{7.0, 3.0, false, true}, counts(operatorToken, object{"event_types": []string{"order.*", "bill.*"}, "filter": some}))
		require.Equal(t, []any{1.0, 1.0, false, true}, counts(operatorToken, object{"event_types": []string{"order.*", "bill.*"}, "filter": some, "subscriber_id": other.id}))
		require.Empty(t, s.get(operatorToken, "/subscriptions").data(), "nothing was made")

		s.post("", "/subscriptions/preview", object{}).refused(http.StatusUnauthorized)
		s.post(c.token, "/subscriptions/preview", object{"filter": some, "subscriber_id": other.id}).refused(http.StatusForbidden, "body.subscriber_id")
		for _, wrong := range []struct {
			token string
			body  any
			at    string
			says  string
		}{
			{c.token, object{"filter": object{"data.n": object{"above": 1}}}, "body.filter", "it is no operator"},
			{c.token, object{"filter": []int{1}}, "body.filter", "object"},
			{c.token, object{"filter": object{"a..b": 1, "data.n": object{"gt": "x", "lt": true}}}, "body.filter", "a..b"},
			{c.token, object{}, "body.filter", "required"},
			{c.token, object{"filter": nil}, "body.filter", "object"},
			{c.token, object{"event_types": []string{}, "filter": some}, "body.event_types", "the list is empty"},
			{c.token, object{"event_types": []string{"no blanks?", "a..b"}, "filter": some}, "body.event_types", "no blanks?"},
			{c.token, object{"events": 201, "filter": some}, "body.events", "at most 200"},
			{c.token, object{"events": 0, "filter": some}, "body.events", "at least 1"},
			{operatorToken, object{"subscriber_id": "sub_never", "filter": some}, "body.subscriber_id", "there is no subscriber"},
			{operatorToken, object{"subscriber": c.id, "filter": some}, "body.subscriber", "it is unknown here"},
		} {
			r := s.post(wrong.token, "/subscriptions/preview", wrong.body)
			r.refused(http.StatusUnprocessableEntity, wrong.at)
			require.Contains(t, r.body["detail"], wrong.says)
		}
		s.get(c.token, "/subscriptions/preview").refused(http.StatusNotFound)
		s.call(c.token, http.MethodPut, "/subscriptions/preview", object{}).refused(http.StatusMethodNotAllowed)
	})
}
