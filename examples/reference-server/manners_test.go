package main_test

import (
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Where the contract is silent, the server does what an HTTP client expects.
func TestManners(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p, "-workers=false")
		c := s.customer("c")
		at := "/subscribers/" + c.id

		head := s.call(c.token, http.MethodHead, at, nil)
		require.Equal(t, http.StatusOK, head.status)
		require.Empty(t, head.text)
		require.Equal(t, s.get(c.token, at).header.Get("ETag"), head.header.Get("ETag"))
		require.Equal(t, http.StatusNotFound, s.call(c.token, http.MethodHead, at+"x", nil).status)
		require.Equal(t, http.StatusOK, s.call("", http.MethodHead, "/healthz", nil).status)

		s.get(c.token, "/subscribers/sub%5F"+c.id[len("sub_"):]).is(http.StatusOK)
		s.get(c.token, at+"%2Fsecret").refused(http.StatusNotFound)
		s.get(c.token, at+"/").refused(http.StatusNotFound)
		s.post(operatorToken, "/subscribers/", object{"name": "x"}).refused(http.StatusNotFound)
		s.get(c.token, "/jobs/%ff").refused(http.StatusBadRequest, "path")
		s.get(c.token, "/jobs/job_%00").refused(http.StatusBadRequest, "path")

		for path, allowed := range map[string]string{at: "DELETE, GET, HEAD, PATCH", "/jobs": "GET, HEAD, POST", "/openapi.json": "GET, HEAD", "/": "GET, HEAD"} {
			r := s.call(operatorToken, http.MethodOptions, path, nil)
			r.refused(http.StatusMethodNotAllowed)
			require.Equal(t, allowed, r.header.Get("Allow"))
		}

		// A call that takes no body takes an empty one, and a media type is in any letters.
		s.post(c.token, at+"/secret/retire", object{}).is(http.StatusNoContent)
		s.post(c.token, at+"/secret/retire", "null").is(http.StatusNoContent)
		s.post(operatorToken, "/subscribers", `{"name":"x"}`, "Content-Type", "Application/JSON; Charset=UTF-8").is(http.StatusCreated)
		s.post(operatorToken, "/subscribers", `{"name":"x"}`, "Content-Encoding", "Identity").is(http.StatusCreated)

		// An answer is JSON whatever is asked for, and the scheme's name is in any letters.
		s.get(c.token, at, "Accept", "text/html").is(http.StatusOK)
		s.get("", at, "Authorization", "bearer "+c.token).is(http.StatusOK)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.base+at, nil)
		require.NoError(t, err)
		req.Header.Add("Authorization", "Bearer "+c.token)
		req.Header.Add("Authorization", "Bearer "+operatorToken)
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, http.StatusUnauthorized, res.StatusCode, "whose request is it?")

		// The first page can also be asked for with an empty cursor, and all names begin with none.
		for token, path := range map[string]string{c.token: "/deliveries?cursor=", operatorToken: "/subscribers?name=&cursor="} {
			s.get(token, path).is(http.StatusOK)
		}
		require.Equal(t, s.get(operatorToken, "/subscribers").data(), s.get(operatorToken, "/subscribers?name&cursor").data())
		s.patch(operatorToken, at, object{}, "If-Match", "*").is(http.StatusOK)
		nested := strings.Repeat("[", 499) + strings.Repeat("]", 499)
		s.post(operatorToken, "/events", `{"type":"x.y","object":{"type":"x","id":"1"},"data":`+nested+`}`).is(http.StatusCreated)

		// A list may stand in several lines (RFC 9110, section 5.3).
		tag := s.get(operatorToken, at).header.Get("ETag")
		require.Equal(t, http.StatusNotModified, s.get(operatorToken, at, "If-None-Match", `"0"`, "If-None-Match", tag).status)
		s.patch(operatorToken, at, object{}, "If-Match", `"0"`, "If-Match", tag).is(http.StatusOK)
		s.post(c.token, at+"/secret/retire", nil, "If-Match", "*").is(http.StatusNoContent)

		// Empty is empty and not null, and what there is not is null and not absent.
		for _, list := range []string{"/subscriptions", "/deliveries", "/notices", "/jobs"} {
			r := s.get(c.token, list).is(http.StatusOK)
			require.Equal(t, object{"data": []any{}, "next_cursor": nil}, r, list)
		}
		job := s.post(c.token, "/jobs", object{"kind": "export_events", "input": object{}}).is(http.StatusAccepted)
		for _, field := range []string{"progress", "result", "error", "started_at", "finished_at"} {
			require.Contains(t, job, field)
			require.Nil(t, job[field], field)
		}
		require.NotContains(t, job, "callback_url")
	})
}

// A field that may be left out and is null is left out, so that the same key makes the request a
// repeat of one without it. One that must be there is refused by its name.
func TestNullIsLeftOut(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p, "-workers=false")
		c := s.customer("c")
		const order = `"type":"order.paid","object":{"type":"order","id":"1"}`
		for path, bodies := range map[string][3]string{ // without the fields, with null, and with null for one that must be there
			"/subscribers":   {`{"name":"x"}`, `{"name":"x","id":null,"attributes":null}`, `{"name":null}`},
			"/subscriptions": {`{"url":"https://example.com/"}`, `{"url":"https://example.com/","event_types":null,"filter":null,"description":null,"subscriber_id":null,"order":null,"hold_tries":null,"retry_delays_seconds":null,"horizon_seconds":null,"gone":null}`, `{"url":null}`},
			"/events":        {`{` + order + `}`, `{` + order + `,"version":null,"data":null,"subscriber_id":null}`, `{"type":"order.paid","object":null}`},
			"/jobs":          {`{"kind":"export_events","input":{}}`, `{"kind":"export_events","input":{},"callback_url":null}`, `{"kind":"export_events","input":null}`},
		} {
			first := s.post(operatorToken, path, bodies[0], "Idempotency-Key", "a")
			require.Less(t, first.status, 300, "%s: %v", path, first.body)
			require.Equal(t, first.body, s.post(operatorToken, path, bodies[1], "Idempotency-Key", "a").is(first.status), path)
			with := s.post(operatorToken, path, bodies[1]).is(first.status)
			if path == "/events" {
				require.NotContains(t, s.get(operatorToken, "/events/"+with["id"].(string)).is(http.StatusOK), "data")
			}
			field := map[string]string{"/subscribers": "name", "/subscriptions": "url", "/events": "object", "/jobs": "input"}[path]
			s.post(operatorToken, path, bodies[2]).refused(http.StatusUnprocessableEntity, "body."+field)
		}
		s.post(operatorToken, "/jobs", `{"kind":"export_events","input":{"since":null,"until":null,"event_type":null}}`).is(http.StatusAccepted)
		before := s.patch(operatorToken, "/subscribers/"+c.id, `{"attributes":{"a":1}}`).is(http.StatusOK)
		after := s.patch(operatorToken, "/subscribers/"+c.id, `{"name":null,"attributes":null}`).is(http.StatusOK)
		require.Equal(t, []any{before["name"], before["attributes"]}, []any{after["name"], after["attributes"]})
	})
}

// If requests with one key and different bodies come at a time, one has the effect, and
// the others learn that the key is taken.
func TestOneKeyTwoBodies(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p, "-workers=false")
		statuses := make(chan int, 8)
		var wg sync.WaitGroup
		for i := range cap(statuses) {
			wg.Go(func() {
				statuses <- s.post(operatorToken, "/subscribers", object{"name": fmt.Sprint(i)}, "Idempotency-Key", "one").status
			})
		}
		wg.Wait()
		close(statuses)
		got := map[int]int{}
		for status := range statuses {
			got[status]++
		}
		require.Equal(t, map[int]int{http.StatusCreated: 1, http.StatusConflict: cap(statuses) - 1}, got)
	})
}

// A reader who goes through a list while things come and go sees everything once that was
// there all the time.
func TestPagesWhileThingsChange(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p)
		c := s.customer("c")
		e := newEndpoint(t)
		var subscriptions []string
		for range 5 {
			subscriptions = append(subscriptions, s.subscribe(c.token, e.URL, "order.none"))
		}
		next := func(list string, page *reply) *reply {
			return s.get(c.token, list+"&cursor="+url.QueryEscape(page.body["next_cursor"].(string)))
		}
		page := s.get(c.token, "/subscriptions?limit=2")
		require.Equal(t, subscriptions[1], page.data()[1]["id"])
		s.remove(c.token, "/subscriptions/"+subscriptions[1]) // where the cursor stands
		s.remove(c.token, "/subscriptions/"+subscriptions[2])
		late := s.subscribe(c.token, e.URL)
		page = next("/subscriptions?limit=2", page)
		require.Equal(t, subscriptions[3:], []string{page.data()[0]["id"].(string), page.data()[1]["id"].(string)})
		page = next("/subscriptions?limit=2", page)
		require.Equal(t, late, page.data()[0]["id"], "the newest is the last")
		require.Nil(t, page.body["next_cursor"])

		var events []string
		publish := func() {
			events = append(events, s.post(operatorToken, "/events", object{"type": "order.paid", "object": object{"type": "order", "id": "1"}}).is(http.StatusCreated)["id"].(string))
			s.deliveries(c.token, late, "delivered", len(events))
		}
		for range 4 {
			publish()
		}
		eventOf := func(d object) any { return d["event"].(object)["id"] }
		page = s.get(c.token, "/deliveries?limit=2")
		require.Equal(t, []any{events[3], events[2]}, []any{eventOf(page.data()[0]), eventOf(page.data()[1])})
		publish() // newer than where the cursor stands
		page = next("/deliveries?limit=2", page)
		require.Equal(t, []any{events[1], events[0]}, []any{eventOf(page.data()[0]), eventOf(page.data()[1])})

		var jobs []string
		for range 3 {
			jobs = append(jobs, s.submit(c.token, "export_events", object{}))
		}
		page = s.get(c.token, "/jobs?limit=2")
		require.Equal(t, jobs[1], page.data()[1]["id"])
		s.submit(c.token, "export_events", object{})
		page = next("/jobs?limit=2", page)
		require.Equal(t, jobs[0], page.data()[0]["id"])
		require.Nil(t, page.body["next_cursor"])
	})
}

// Times and subscriptions bound what an export has and what a replay sends.
func TestJobsWithin(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p, "-schedule", "10ms", "-jitter", "0", "-horizon", "20ms")
		c := s.customer("c")
		bad := newEndpoint(t)
		bad.answers(http.StatusGone)
		first, second := s.subscribe(c.token, bad.URL, "order.*"), s.subscribe(c.token, bad.URL, "order.*")
		var ids, at []string
		for i := range 3 {
			ids = append(ids, s.post(operatorToken, "/events", object{"type": "order.paid", "object": object{"type": "order", "id": fmt.Sprint(i)}}).is(http.StatusCreated)["id"].(string))
		}
		s.deliveries(c.token, first, "dead_lettered", 3)
		for _, d := range s.deliveries(c.token, second, "dead_lettered", 3) {
			at = append([]string{d["event"].(object)["created_at"].(string)}, at...) // the oldest first
		}
		for _, test := range []struct {
			input object
			want  []string
		}{
			{object{"since": at[1]}, ids[1:]}, {object{"until": at[1]}, ids[:1]}, {object{"since": at[1], "until": at[2]}, ids[1:2]},
			{object{"until": "0001-01-01T00:00:00Z"}, nil}, {object{"until": "0000-01-01T00:00:00Z"}, nil},
		} {
			test.input["event_type"] = "order.paid"
			var got []string
			for _, e := range s.finished(c.token, s.submit(c.token, "export_events", test.input))["result"].([]any) {
				got = append(got, e.(object)["id"].(string))
			}
			require.Equal(t, test.want, got, "%v", test.input)
			test.input["dry_run"] = true
			replay := func() any { return s.finished(c.token, s.submit(c.token, "replay", test.input))["result"] }
			require.Equal(t, object{"matched": float64(2 * len(test.want)), "replayed": 0.0}, replay(), "%v", test.input)
			test.input["subscription_id"] = first
			require.Equal(t, object{"matched": float64(len(test.want)), "replayed": 0.0}, replay(), "%v", test.input)
		}
		require.Empty(t, s.get(c.token, "/deliveries?until=0001-01-01T00:00:00Z").data())
		require.Len(t, s.get(c.token, "/deliveries?since=0001-01-01T00:00:00Z").data(), 6)
		bad.answers(http.StatusOK)
		before := len(bad.received())
		s.finished(c.token, s.submit(c.token, "replay", object{"subscription_id": first, "until": at[2]}))
		s.deliveries(c.token, first, "delivered", 2)
		s.finished(c.token, s.submit(c.token, "replay", object{"status": "delivered", "until": time.Now().UTC().Add(time.Hour).Format(time.RFC3339)}))
		eventually(t, "they are sent once more", func() int { return len(bad.received()) }, func(n int) bool { return n >= before+4 })
		require.Len(t, bad.received(), before+4)
		s.deliveries(c.token, second, "dead_lettered", 3)
	})
}

// Reads wait for no writer: SQLite has one at a time.
func TestReadsWaitForNoWriter(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	p := place{driver: "sqlite", url: "file:" + path, flag: path}
	s := start(t, p, "-workers=false")
	c := s.customer("c")
	id := s.subscribe(c.token, "https://hooks.example.com/")
	event, job := s.change("1"), s.submit(c.token, "export_events", object{})

	tx, err := p.open(t).Conn(t.Context())
	require.NoError(t, err)
	_, err = tx.ExecContext(t.Context(), "BEGIN IMMEDIATE")
	require.NoError(t, err)
	for path, status := range map[string]int{
		"/subscribers/" + c.id: 200, "/subscriptions": 200, "/subscriptions/" + id: 200, "/subscriptions/" + id + "/why?event_id=" + event: 200,
		"/events": 200, "/events/" + event: 200, "/deliveries": 200, "/deliveries/dlv_never": 404, "/notices": 200,
		"/jobs": 200, "/jobs/" + job: 200, "/jobs/" + job + "/events": 409,
	} {
		require.Equal(t, status, s.get(c.token, path).status, path)
	}
	_, err = tx.ExecContext(t.Context(), "ROLLBACK")
	require.NoError(t, err)
	s.patch(c.token, "/subscriptions/"+id, object{"description": "x"}).is(http.StatusOK)
}

// If two changes are made at the same time, neither undoes what the other has changed.
func TestChangesAtATime(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p, "-workers=false")
		c := s.customer("c")
		id := s.subscribe(c.token, "https://hooks.example.com/")
		end := func() {}
		if p.driver == "pgx" { // both begin before one of them ends
			tx, err := p.open(t).BeginTx(t.Context(), nil)
			require.NoError(t, err)
			_, err = tx.ExecContext(t.Context(), "SELECT FROM surehook_subscriptions WHERE id = $1 FOR UPDATE", id)
			require.NoError(t, err)
			end = func() {
				twoWait(t, tx)
				require.NoError(t, tx.Rollback())
			}
		}
		changes := []object{{"gone": "stop"}, {"order": "latest"}}
		var wg sync.WaitGroup
		for _, change := range changes {
			wg.Go(func() { s.patch(c.token, "/subscriptions/"+id, change).is(http.StatusOK) })
		}
		end()
		wg.Wait()
		got := s.get(c.token, "/subscriptions/"+id).is(http.StatusOK)
		require.Equal(t, []any{"stop", "latest"}, []any{got["gone"], got["order"]})
	})
}
