package main_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// submit submits a job and returns its id.
func (s *process) submit(token, kind string, input any, more ...any) string {
	s.t.Helper()
	body := object{"kind": kind, "input": input}
	for i := 0; i < len(more); i += 2 {
		body[more[i].(string)] = more[i+1]
	}
	return s.post(token, "/jobs", body).is(http.StatusAccepted)["id"].(string)
}

// finished waits for a job's end.
func (s *process) finished(token, id string) object {
	s.t.Helper()
	return eventually(s.t, "the end of job "+id, func() object {
		return s.get(token, "/jobs/"+id).is(http.StatusOK)
	}, func(j object) bool { return j["finished_at"] != nil })
}

func TestJobLifecycle(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p)
		c, other := s.customer("c"), s.customer("other")
		e := newEndpoint(t)
		everything := newEndpoint(t)
		s.subscribe(c.token, everything.URL)

		body := object{"kind": "export_events", "input": object{}, "callback_url": e.URL + "/done?x=1"}
		r := s.post(c.token, "/jobs", body, "Idempotency-Key", "one")
		made := r.is(http.StatusAccepted)
		id := made["id"].(string)
		require.True(t, strings.HasPrefix(id, "job_"))
		require.Equal(t, "/jobs/"+id, r.header.Get("Location"))
		require.Equal(t, "queued", made["status"])
		require.Equal(t, "export_events", made["kind"])
		require.Equal(t, e.URL+"/done?x=1", made["callback_url"])
		require.NotEmpty(t, made["created_at"])
		require.Equal(t, id, s.post(c.token, "/jobs", body, "Idempotency-Key", "one").is(http.StatusAccepted)["id"])
		s.post(c.token, "/jobs", object{"kind": "export_events", "input": object{"event_type": "x"}}, "Idempotency-Key", "one").refused(http.StatusConflict)

		job := s.finished(c.token, id)
		require.Equal(t, "succeeded", job["status"], "%v", job)
		require.Nil(t, job["error"])
		for _, field := range []string{"started_at", "finished_at", "result"} {
			require.NotNil(t, job[field], field)
		}

		// The callback goes to that URL alone, signed with the submitter's secret.
		got := e.wait(t, 1)[0]
		verifies(t, got, c.secret)
		require.Equal(t, "/done?x=1", got.path)
		require.Regexp(t, `^\{"id":"evt_[0-9a-v]+","type":"job.completed","occurred_at":"[^"]+","object":\{"type":"job","id":"`+id+`"\},"version":1,"data":\{"status":"succeeded"\}\}$`, string(got.body))
		require.Empty(t, everything.received())
		implicit := s.get(c.token, "/subscriptions?implicit=true").data()
		require.Len(t, implicit, 2)
		require.Len(t, s.get(c.token, "/subscriptions").data(), 1)
		d := s.get(c.token, "/deliveries?event_id="+got.header.Get("Webhook-Id")).data()[0]
		require.Equal(t, e.URL+"/done?x=1", d["url"])

		// Another URL of the origin is reached, too, by the same implicit subscription.
		s.submit(c.token, "export_events", object{}, "callback_url", e.URL+"/other")
		require.Equal(t, "/other", e.wait(t, 2)[1].path)
		require.Len(t, s.get(c.token, "/subscriptions?implicit=true").data(), 2)

		// Others' do not exist; the operator sees it, and lists its own.
		s.get(other.token, "/jobs/"+id).refused(http.StatusNotFound)
		s.post(other.token, "/jobs/"+id+"/cancel", nil).refused(http.StatusNotFound)
		s.get(other.token, "/jobs/"+id+"/events").refused(http.StatusNotFound)
		s.get(operatorToken, "/jobs/"+id).is(http.StatusOK)
		s.post(c.token, "/jobs/"+id+"/cancel", nil).refused(http.StatusConflict)
		list := s.get(c.token, "/jobs?limit=1")
		require.NotEqual(t, id, list.data()[0]["id"], "newest first")
		require.Equal(t, id, s.get(c.token, "/jobs?cursor="+list.body["next_cursor"].(string)).data()[0]["id"])
		require.Empty(t, s.get(other.token, "/jobs").data())

		// A repeat has the first one's answer, though the same job could not be submitted now.
		gone := s.subscribe(c.token, e.URL)
		again := object{"kind": "replay", "input": object{"subscription_id": gone, "dry_run": true}}
		first := s.post(c.token, "/jobs", again, "Idempotency-Key", "two").is(http.StatusAccepted)
		s.remove(c.token, "/subscriptions/"+gone).is(http.StatusNoContent)
		s.post(c.token, "/jobs", again).refused(http.StatusUnprocessableEntity, "body.input.subscription_id")
		require.Equal(t, first, s.post(c.token, "/jobs", again, "Idempotency-Key", "two").is(http.StatusAccepted))

		// Without a callback URL there is no event.
		quiet := s.submit(c.token, "export_events", object{})
		s.finished(c.token, quiet)
		for _, id := range s.pulled(operatorToken, "", 50, 2) {
			require.NotEqual(t, object{"type": "job", "id": quiet}, s.get(operatorToken, "/events/"+id).is(http.StatusOK)["object"])
		}
	})
}

func TestJobRefusals(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p, "-workers=false", "-allow-private-networks=false")
		c, other := s.customer("c"), s.customer("other")
		theirs := s.subscribe(other.token, "https://hooks.example.com/")
		before := dump(t, p)
		for _, test := range []struct {
			token  string
			body   any
			status int
			at     string
		}{
			{c.token, object{}, 422, "body.kind"},
			{c.token, object{"kind": "sleep", "input": object{}}, 422, "body.kind"},
			{c.token, object{"kind": "export_events", "input": object{}, "url": "x"}, 422, "body.url"},
			// Null counts as left out, and is no empty input: that of a replay means everything.
			{c.token, object{"kind": "export_events", "input": nil}, 422, "body.input"},
			{c.token, object{"kind": "replay", "input": nil}, 422, "body.input"},
			{operatorToken, object{"kind": "import_subscribers", "input": nil}, 422, "body.input"},
			{c.token, object{"kind": "replay"}, 422, "body.input"},
			{c.token, object{"kind": "export_events", "input": object{"sinec": "x"}}, 422, "body.input.sinec"},
			{c.token, object{"kind": "export_events", "input": object{"since": "x"}}, 422, "body.input.since"},
			{c.token, object{"kind": "export_events", "input": []int{1}}, 422, "body.input"},
			{c.token, object{"kind": "export_events", "input": object{"since": "2026-02-01T00:00:00Z", "until": "2026-01-01T00:00:00Z"}}, 422, "body.input.until"},
			{c.token, object{"kind": "export_events", "input": object{}, "callback_url": "https://127.0.0.1/"}, 422, "body.callback_url"},
			{c.token, object{"kind": "export_events", "input": object{}, "callback_url": ""}, 422, "body.callback_url"},
			{c.token, object{"kind": "replay", "input": object{"subscription_id": ""}}, 422, "body.input.subscription_id"},
			{c.token, `{"kind":"export_events","input":{"since":"2026-01-01T00:00:00Z","since":"2027-01-01T00:00:00Z"}}`, 400, "body.input.since"},
			{c.token, object{"kind": "export_events", "input": object{"Since": "2026-01-01T00:00:00Z"}}, 422, "body.input.Since"},
			{c.token, object{"kind": "export_events", "input": object{}, "callback_url": "https://user@hooks.example.com/"}, 422, "body.callback_url"},
			{c.token, object{"kind": "import_subscribers", "input": object{"subscribers": []object{}}}, 403, ""},
			{operatorToken, object{"kind": "import_subscribers", "input": object{}}, 422, "body.input.subscribers"},
			{operatorToken, object{"kind": "import_subscribers", "input": object{"subscribers": []object{{"name": 1}}}}, 422, "body.input.subscribers[0].name"},
			{c.token, object{"kind": "replay", "input": object{"status": "held"}}, 422, "body.input.status"},
			{c.token, object{"kind": "replay", "input": object{"rate_per_second": -1}}, 422, "body.input.rate_per_second"},
			{c.token, object{"kind": "replay", "input": object{"event_type": "a b"}}, 422, "body.input.event_type"},
			{c.token, object{"kind": "replay", "input": object{"subscription_id": theirs}}, 422, "body.input.subscription_id"},
			{c.token, object{"kind": "replay", "input": object{"subscriber_id": "sub_operator"}}, 422, "body.input.subscriber_id"},
			{c.token, object{"kind": "replay", "input": object{"error_class": "gone"}}, 422, "body.input.error_class"},
			{c.token, object{"kind": "replay", "input": object{"status_code": 7}}, 422, "body.input.status_code"},
			{operatorToken, object{"kind": "replay", "input": object{"subscription_id": "wsub_never"}}, 422, "body.input.subscription_id"},
		} {
			r := s.post(test.token, "/jobs", test.body)
			if test.at == "" {
				r.refused(test.status)
			} else {
				r.refused(test.status, test.at)
			}
		}
		s.get(c.token, "/jobs/job_never").refused(http.StatusNotFound)
		s.post(c.token, "/jobs/job_never/cancel", nil).refused(http.StatusNotFound)
		s.get(c.token, "/jobs?cursor=invalid").refused(http.StatusUnprocessableEntity, "query.cursor")
		require.Equal(t, before, dump(t, p))

		// One that is queued is cancelled at once, and its owner is told.
		e := s.post(c.token, "/jobs", object{"kind": "export_events", "input": object{}, "callback_url": "https://hooks.example.com/x"}).is(http.StatusAccepted)["id"].(string)
		require.Equal(t, "cancelled", s.post(c.token, "/jobs/"+e+"/cancel", nil).is(http.StatusAccepted)["status"])
		s.post(c.token, "/jobs/"+e+"/cancel", nil).refused(http.StatusConflict)
		s.get(c.token, "/jobs/"+e+"/events").refused(http.StatusConflict)
	})
}

func TestImport(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p)
		known := s.customer("before")
		gone := s.customer("gone")
		s.remove(operatorToken, "/subscribers/"+gone.id)
		e := newEndpoint(t)
		s.subscribe(operatorToken, e.URL, "subscriber.*")
		rows := []object{
			{"id": known.id, "name": "after", "attributes": object{"plan": "pro"}},
			{"id": "sub_new", "name": "new"},
			{"id": "ada", "name": "no id"},
			{"name": "unnamed"},
			{"id": gone.id, "name": "again"},
			{},
			{"id": "", "name": "whose id is missing where it comes from"},
			{"id": nil, "name": "left out"},
		}
		for i := range 120 {
			rows = append(rows, object{"id": fmt.Sprintf("sub_row-%d", i), "name": fmt.Sprint(i)})
		}
		job := s.finished(operatorToken, s.submit(operatorToken, "import_subscribers", object{"subscribers": rows}))
		require.Equal(t, "succeeded", job["status"], "%v", job)
		result := job["result"].(object)
		require.InDelta(t, 123, result["created"], 0)
		require.InDelta(t, 1, result["updated"], 0)
		require.InDelta(t, 4, result["failed"], 0)
		require.Equal(t, object{"done": 128.0, "total": 128.0}, job["progress"])
		var failed []string
		for _, one := range result["errors"].([]any) {
			o := one.(object)
			require.NotEmpty(t, o["message"])
			failed = append(failed, fmt.Sprintf("%v %v", o["index"], o["id"]))
		}
		require.Equal(t, []string{"2 ada", "4 " + gone.id, "5 ", "6 "}, failed)

		after := s.get(operatorToken, "/subscribers/"+known.id).is(http.StatusOK)
		require.Equal(t, "after", after["name"])
		require.Equal(t, object{"plan": "pro"}, after["attributes"])
		require.InDelta(t, 2, after["version"], 0)
		created := s.get(operatorToken, "/subscribers/sub_new").is(http.StatusOK)
		require.InDelta(t, 1, created["version"], 0)
		token := s.post(operatorToken, "/subscribers/sub_new/token/rotate", nil).is(http.StatusOK)["token"].(string)
		s.get(token, "/subscribers/sub_new").is(http.StatusOK)
		told := map[string]int{}
		for _, one := range e.wait(t, 124) {
			told[typeAndVersion(t, one.body)]++
		}
		require.Equal(t, map[string]int{"subscriber.created 1": 123, "subscriber.updated 2": 1}, told)
	})
}

// Two imports of one subscriber at the same time: one creates it, the other updates it,
// as if it had come later.
func TestImportsOfTheSame(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p)
		together := func(do func()) { do() }
		if p.driver == "pgx" { // on SQLite a transaction that writes has no other beside it
			together = func(do func()) {
				tx, err := p.open(t).BeginTx(t.Context(), nil)
				require.NoError(t, err)
				defer func() { require.NoError(t, tx.Rollback()) }()
				_, err = tx.ExecContext(t.Context(), "LOCK TABLE server_subscribers IN SHARE MODE")
				require.NoError(t, err)
				do()
				// One waits for the lock, and one for what that one will have made.
				twoWait(t, tx)
			}
		}
		var submitted []string
		together(func() {
			for _, name := range []string{"one", "other"} {
				submitted = append(submitted, s.submit(operatorToken, "import_subscribers", object{"subscribers": []object{{"id": "sub_same", "name": name}}}))
			}
		})
		did := map[string]float64{}
		for _, id := range submitted {
			for what, n := range s.finished(operatorToken, id)["result"].(object) {
				if n, counted := n.(float64); counted {
					did[what] += n
				}
			}
		}
		require.Equal(t, map[string]float64{"created": 1, "updated": 1, "failed": 0}, did)
		require.InDelta(t, 2, s.get(operatorToken, "/subscribers/sub_same").is(http.StatusOK)["version"], 0)
	})
}

// Two imports of the same subscribers do not wait for each other, whatever order they have them
// in: each waits for the first of them before it takes another. On SQLite a transaction that
// writes has no other beside it.
func TestImportsInOtherOrders(t *testing.T) {
	t.Parallel()
	p := onPostgres(t)
	s := start(t, p)
	rows := []object{{"id": "sub_b", "name": "b"}, {"id": "sub_a", "name": "a"}}
	s.finished(operatorToken, s.submit(operatorToken, "import_subscribers", object{"subscribers": rows}))
	tx, err := p.open(t).BeginTx(t.Context(), nil)
	require.NoError(t, err)
	hold := func(id string) {
		_, err := tx.ExecContext(t.Context(), "SELECT 1 FROM server_subscribers WHERE id = $1 FOR UPDATE NOWAIT", id)
		require.NoError(t, err)
	}
	hold("sub_a")
	again := s.submit(operatorToken, "import_subscribers", object{"subscribers": rows})
	eventually(t, "one who waits", func() (n int) {
		_, err := tx.ExecContext(t.Context(), "SELECT pg_stat_clear_snapshot()")
		require.NoError(t, err)
		require.NoError(t, tx.QueryRowContext(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid))").Scan(&n))
		return n
	}, func(n int) bool { return n > 0 })
	hold("sub_b")
	require.NoError(t, tx.Rollback())
	require.InDelta(t, 2, s.finished(operatorToken, again)["result"].(object)["updated"], 0)
}

// twoWait waits until two others wait for a transaction, or one for it and one for the other.
func twoWait(t *testing.T, tx *sql.Tx) {
	t.Helper()
	eventually(t, "two who wait", func() (n int) {
		// Within a transaction the list of connections stays as it was first read.
		_, err := tx.ExecContext(t.Context(), "SELECT pg_stat_clear_snapshot()")
		require.NoError(t, err)
		require.NoError(t, tx.QueryRowContext(t.Context(), `WITH first AS (SELECT pid FROM pg_stat_activity WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid)))
			SELECT count(*) FROM pg_stat_activity WHERE pid IN (TABLE first) OR pg_blocking_pids(pid) && ARRAY(TABLE first)`).Scan(&n))
		return n
	}, func(n int) bool { return n >= 2 })
}

func TestReplayJob(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p, "-schedule", "10ms", "-jitter", "0", "-horizon", "20ms")
		c, other := s.customer("c"), s.customer("other")
		bad := newEndpoint(t)
		bad.answers(http.StatusServiceUnavailable)
		mine, theirs := s.subscribe(c.token, bad.URL, "order.*"), s.subscribe(other.token, bad.URL, "order.*")
		const n = 12
		for i := range n {
			s.post(operatorToken, "/events", object{"type": "order.paid", "object": object{"type": "order", "id": fmt.Sprint(i)}}).is(http.StatusCreated)
		}
		s.deliveries(c.token, mine, "dead_lettered", n)
		s.deliveries(other.token, theirs, "dead_lettered", n)
		bad.answers(http.StatusOK)
		before := len(bad.received())

		dry := s.finished(c.token, s.submit(c.token, "replay", object{"dry_run": true}))
		require.Equal(t, object{"matched": float64(n), "replayed": 0.0}, dry["result"])
		require.Len(t, bad.received(), before)
		for _, none := range []object{{"event_type": "invoice.*"}, {"error_class": "timeout"}, {"status_code": 500}} {
			require.Equal(t, object{"matched": 0.0, "replayed": 0.0}, s.finished(c.token, s.submit(c.token, "replay", none))["result"], "%v", none)
		}
		one := object{"dry_run": true, "subscriber_id": c.id, "error_class": "status", "status_code": 503}
		for _, token := range []string{c.token, operatorToken} {
			require.Equal(t, dry["result"], s.finished(token, s.submit(token, "replay", one))["result"], "the other's are left out")
		}

		job := s.finished(c.token, s.submit(c.token, "replay", object{"event_type": "order.*"}))
		require.Equal(t, "succeeded", job["status"], "%v", job)
		require.Equal(t, object{"matched": float64(n), "replayed": float64(n)}, job["result"])
		require.Equal(t, object{"done": float64(n), "total": float64(n)}, job["progress"], "of one that ended before anybody looked, too")
		s.deliveries(c.token, mine, "delivered", n)
		require.Len(t, s.get(other.token, "/deliveries?status=dead_lettered").data(), n, "a subscriber replays its own alone")

		// A slow one survives a restart where it was, and can be cancelled.
		slow := s.submit(operatorToken, "replay", object{"rate_per_second": 1})
		eventually(t, "it has begun", func() any { return s.get(operatorToken, "/jobs/"+slow).is(http.StatusOK)["progress"] }, func(p any) bool {
			return p != nil && p.(object)["done"].(float64) > 0
		})
		s.stop()
		require.NoError(t, s.err)
		s = start(t, p, "-schedule", "10ms", "-jitter", "0", "-horizon", "20ms")
		delivered := func() int { return len(s.get(other.token, "/deliveries?status=delivered").data()) }
		at := delivered()
		eventually(t, "it goes on", delivered, func(now int) bool { return now > at })
		s.post(operatorToken, "/jobs/"+slow+"/cancel", nil).is(http.StatusAccepted)
		require.Equal(t, "cancelled", s.finished(operatorToken, slow)["status"])
		require.Less(t, delivered(), n)

		// It ends, too, if it is cancelled while no process runs it.
		slow = s.submit(operatorToken, "replay", object{"status": "delivered", "rate_per_second": 0.01})
		eventually(t, "it has begun", func() any { return s.get(operatorToken, "/jobs/"+slow).is(http.StatusOK)["progress"] }, func(p any) bool { return p != nil })
		s.stop()
		s = start(t, p, "-workers=false")
		require.Equal(t, []string{"1"}, each(t, p.open(t), "SELECT count(*) FROM surehook_replays WHERE status = 'running'"))
		require.Equal(t, "cancelled", s.post(operatorToken, "/jobs/"+slow+"/cancel", nil).is(http.StatusAccepted)["status"])
		require.Equal(t, []string{"0"}, each(t, p.open(t), "SELECT count(*) FROM surehook_replays WHERE status = 'running'"))

		// If that process was lost between the job's end and the replay's, another one ends it.
		s.stop()
		db := p.open(t)
		_, err := db.ExecContext(t.Context(), "UPDATE surehook_replays SET status = 'running' WHERE asked_by = '"+slow+"'")
		require.NoError(t, err)
		s = start(t, p)
		eventually(t, "it is ended", func() []string { return each(t, db, "SELECT status FROM surehook_replays WHERE asked_by = '"+slow+"'") },
			func(status []string) bool { return slices.Equal(status, []string{"cancelled"}) })

		// If a job stood still for so long that its replay is not kept any more, another try finds no more.
		slow = s.submit(operatorToken, "replay", object{"status": "delivered", "rate_per_second": 0.01})
		eventually(t, "it has begun", func() any { return s.get(operatorToken, "/jobs/"+slow).is(http.StatusOK)["progress"] }, func(p any) bool { return p != nil })
		s.stop()
		_, err = db.ExecContext(t.Context(), "DELETE FROM surehook_replays WHERE asked_by = '"+slow+"'")
		require.NoError(t, err)
		failed := start(t, p).finished(operatorToken, slow)
		require.Equal(t, "failed", failed["status"])
		require.Contains(t, failed["error"], "not found: replay")
	})
}

// An export has every event that was committed before it was asked for, and no later one. On
// PostgreSQL none of them is expanded here: this test is the expander meanwhile.
func TestExportBeforeExpansion(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p)
		c := s.customer("c")
		if p.driver == "pgx" {
			tx, err := p.open(t).BeginTx(t.Context(), nil)
			require.NoError(t, err)
			defer func() { _ = tx.Rollback() }()
			_, err = tx.ExecContext(t.Context(), "SELECT FROM surehook_feed_head FOR UPDATE")
			require.NoError(t, err)
		}
		const parts = 2
		var ids []string
		publish := func() { ids = append(ids, s.change(fmt.Sprint(len(ids)))) }
		for len(ids) < (parts-1)*200+20 { // a part has up to 200
			publish()
		}
		job := s.submit(c.token, "export_events", object{"event_type": "order.*"})
		asked := slices.Clone(ids)
		publish()
		var found []string
		for _, e := range s.finished(c.token, job)["result"].([]any) {
			found = append(found, e.(object)["id"].(string))
		}
		require.Equal(t, asked, found)
		require.Empty(t, s.finished(c.token, s.submit(c.token, "export_events", object{"since": "9000-01-01T00:00:00Z"}))["result"])
	})
}

func TestExport(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p)
		c, other := s.customer("c"), s.customer("other")
		big := strings.Repeat("x", 300<<10)
		var ids []string
		for i, data := range []string{"a", "b"} {
			ids = append(ids, s.post(operatorToken, "/events", object{"type": "order.paid", "object": object{"type": "order", "id": fmt.Sprint(i)}, "data": data}).is(http.StatusCreated)["id"].(string))
		}
		s.post(operatorToken, "/events", object{"type": "order.paid", "object": object{"type": "order", "id": "3"}, "subscriber_id": other.id}).is(http.StatusCreated)
		s.pulled(operatorToken, "", 50, 5)

		job := s.finished(c.token, s.submit(c.token, "export_events", object{"event_type": "order.paid"}))
		listed := job["result"].([]any)
		require.Len(t, listed, 2)
		for i, e := range listed {
			require.Equal(t, ids[i], e.(object)["id"])
		}
		require.Equal(t, "a", listed[0].(object)["data"])

		// A list that is too long for a result is behind a link.
		for i := range 3 {
			s.post(operatorToken, "/events", object{"type": "order.big", "object": object{"type": "order", "id": fmt.Sprint(i)}, "data": big}).is(http.StatusCreated)
		}
		s.pulled(operatorToken, "", 50, 8)
		job = s.finished(c.token, s.submit(c.token, "export_events", object{"event_type": "order.*"}))
		link := job["result"].(object)
		require.InDelta(t, 5, link["events"], 0)
		r := s.get(c.token, link["url"].(string))
		require.Equal(t, http.StatusOK, r.status)
		var all []object
		require.NoError(t, json.Unmarshal([]byte(r.text), &all))
		require.Len(t, all, 5)
		require.Equal(t, big, all[4]["data"])
		s.get(other.token, link["url"].(string)).refused(http.StatusNotFound)
		none := s.submit(c.token, "export_events", object{"event_type": "order.none"})
		s.finished(c.token, none)

		// A part of what was found does not pass for all of it, nor does nothing.
		for _, forgotten := range []string{"part = 1", "true"} {
			_, err := p.open(t).ExecContext(t.Context(), "DELETE FROM server_exports WHERE "+forgotten)
			require.NoError(t, err)
			s.get(c.token, link["url"].(string)).refused(http.StatusGone)
		}
		require.Equal(t, "[]", s.get(c.token, "/jobs/"+none+"/events").text)
		require.Len(t, s.finished(operatorToken, s.submit(operatorToken, "export_events", object{"event_type": "order.paid"}))["result"], 3, "the operator's has all")
	})
}
