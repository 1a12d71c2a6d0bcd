package main_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/pgtest"
)

// run runs the program to its end.
func run(t *testing.T, dir string, env []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, append(os.Environ(), env...), &out, &errs
	_ = cmd.Run()
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

func TestVersionFlag(t *testing.T) {
	t.Parallel()
	code, out, _ := run(t, t.TempDir(), nil, "-version")
	require.Zero(t, code)
	require.Regexp(t, `^\S+\n$`, out)
}

func TestRestoredFlag(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, said := range []string{"above 1000000, the next positions above 1000000000\n", "above 2000000, the next positions above 2000000000\n"} {
		code, out, errs := run(t, dir, nil, "-restored")
		require.Zero(t, code, errs)
		require.Equal(t, "restored: 0 events expanded; the next versions are "+said, out)
	}
}

// With no set-up there is a database, a key that its owner alone may read, and a
// token, made anew at each start.
func TestDefaults(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	begin := func(env ...string) (*process, string) {
		s := launch(t, append(env, "SUREHOOK_ADDR=127.0.0.1:0", "SUREHOOK_DATABASE="+filepath.Join(dir, "surehook.db")))
		token := eventually(t, "the token", s.logged, func(log string) bool { return strings.Contains(log, "operator_token=") })
		return s, regexp.MustCompile(`operator_token=(\S+)`).FindStringSubmatch(token)[1]
	}
	s, token := begin()
	s.get("", "/healthz").is(http.StatusOK)
	made := s.post(token, "/subscribers", object{"name": "x"}).is(http.StatusCreated)
	secret := s.get(token, "/subscribers/sub_operator/secret").is(http.StatusOK)["signing_secret"]
	s.post(token, "/subscriptions", object{"url": "http://127.0.0.1/"}).refused(http.StatusUnprocessableEntity, "body.url")
	s.stop()
	require.NoError(t, s.err)

	info, err := os.Stat(filepath.Join(dir, "surehook.db.key"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	key, err := os.ReadFile(filepath.Join(dir, "surehook.db.key"))
	require.NoError(t, err)

	s, again := begin()
	require.NotEqual(t, token, again)
	s.get(token, "/notices").refused(http.StatusUnauthorized)
	s.get(again, "/subscribers/"+made["id"].(string)).is(http.StatusOK)
	s.get(made["token"].(string), "/subscribers/"+made["id"].(string)).is(http.StatusOK)
	require.Equal(t, secret, s.get(again, "/subscribers/sub_operator/secret").is(http.StatusOK)["signing_secret"])
	require.NotContains(t, s.logged(), strings.TrimSpace(string(key)))
	s.stop()

	// Without the right key, no start.
	require.NoError(t, os.WriteFile(filepath.Join(dir, "surehook.db.key"), []byte(sealingKey), 0o600))
	code, out, errs := run(t, dir, nil, "-addr", "127.0.0.1:0")
	require.Equal(t, 1, code)
	require.Empty(t, out)
	require.Contains(t, errs, "cannot be opened")

	// The command line has the last word over the environment.
	require.NoError(t, os.WriteFile(filepath.Join(dir, "surehook.db.key"), key, 0o600))
	s = launch(t, []string{"SUREHOOK_ADDR=nowhere", "SUREHOOK_OPERATOR_TOKEN=" + operatorToken, "SUREHOOK_ALLOW_PRIVATE_NETWORKS=true"},
		"-addr", "127.0.0.1:0", "-database", filepath.Join(dir, "surehook.db"))
	s.post(operatorToken, "/subscriptions", object{"url": "http://127.0.0.1/"}).is(http.StatusCreated)
	s.stop()
}

// A drain lets the attempt in flight end, claims nothing more, and exits with 0; a
// second signal does not wait. Either way nothing is lost.
func TestDrain(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s, api := start(t, p), start(t, p, "-workers=false")
		c := s.customer("c")
		replay := s.slowReplay(s.customer("other"))
		e := newEndpoint(t)
		begun, free := make(chan struct{}, 10), make(chan struct{})
		e.with(func(w http.ResponseWriter, r *http.Request) {
			begun <- struct{}{}
			select {
			case <-free:
			case <-r.Context().Done():
			}
			w.WriteHeader(http.StatusOK)
		})
		id := s.subscribe(c.token, e.URL)
		s.post(c.token, "/subscriptions/"+id+"/test", nil).is(http.StatusAccepted)
		<-begun // what follows happens within the attempt's timeout
		require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
		eventually(t, "it drains", s.logged, func(log string) bool { return strings.Contains(log, "draining") })
		// A job that waits is given up before the attempt is.
		eventually(t, "the job is queued again", func() any { return api.get(operatorToken, "/jobs/"+replay).is(http.StatusOK)["status"] }, func(status any) bool { return status == "queued" })
		close(free)
		<-s.done
		require.NoError(t, s.err)
		sent := api.get(c.token, "/deliveries?subscription_id="+id).data()[0]
		require.Equal(t, []any{"delivered", 1.0}, []any{sent["status"], sent["attempt_count"]})
		api.stop()

		free = make(chan struct{})
		s = start(t, p)
		s.deliveries(c.token, id, "delivered", 1)
		s.post(c.token, "/subscriptions/"+id+"/test", nil).is(http.StatusAccepted)
		<-begun
		require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
		eventually(t, "it drains", s.logged, func(log string) bool { return strings.Contains(log, "draining") })
		require.NoError(t, s.cmd.Process.Signal(syscall.SIGINT))
		<-s.done
		require.Error(t, s.err, "it did not end by itself")
		close(free)
		s = start(t, p, "-workers=false") // it does not take over
		held := s.get(c.token, "/deliveries?subscription_id="+id).data()
		require.Len(t, held, 2)
		require.Equal(t, "pending", held[0]["status"], "it is due again when its lease ends")
	})
}

// slowReplay is a job of a customer's that sends two deliveries again, the second one after
// an hour.
func (s *process) slowReplay(c customer) string {
	s.t.Helper()
	id := s.subscribe(c.token, newEndpoint(s.t).URL, "order.*")
	for range 2 {
		s.post(operatorToken, "/events", object{"type": "order.paid", "object": object{"type": "order", "id": "1"}, "subscriber_id": c.id}).is(http.StatusCreated)
	}
	s.deliveries(c.token, id, "delivered", 2)
	job := s.submit(c.token, "replay", object{"status": "delivered", "subscription_id": id, "rate_per_second": 1.0 / 3600})
	eventually(s.t, "it has begun", func() any { return s.get(c.token, "/jobs/"+job).is(http.StatusOK)["progress"] }, func(progress any) bool {
		p, begun := progress.(object)
		return begun && p["done"] == 1.0
	})
	return job
}

// A process that is told to end while it still begins ends like any other.
func TestEndsWhileItBegins(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		for range 5 {
			s := start(t, p)
			s.stop()
			require.NoError(t, s.err, "%s", s.logged())
		}
	})
}

// One process serves, another delivers.
func TestRoles(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	db := place{driver: "pgx", url: dsn}.open(t)
	url := pgtest.With(dsn, "search_path", pgtest.Schema(t, db))
	p := place{driver: "pgx", url: url, flag: url}
	api, worker := start(t, p, "-workers=false"), start(t, p)
	c := api.customer("c")
	e := newEndpoint(t)
	id := api.subscribe(c.token, e.URL)
	api.patch(operatorToken, "/subscribers/"+c.id, object{"name": "x"}).is(http.StatusOK)
	e.wait(t, 1)
	api.deliveries(c.token, id, "delivered", 1)
	worker.counts(`surehook_attempts_total{error_class="none",lane="new",outcome="delivered"} 1`)
	require.NotContains(t, api.get(operatorToken, "/metrics").text, `outcome="delivered"`)
	worker.stop()
	api.patch(operatorToken, "/subscribers/"+c.id, object{"name": "y"}).is(http.StatusOK)
	require.Len(t, e.received(), 1, "without a worker it waits")
	start(t, p)
	e.wait(t, 2)
}

// A database that may lose commits is refused before the program says that it listens.
func TestUnfitDatabase(t *testing.T) {
	t.Parallel()
	pgtest.DSN(t) // says aloud if there are no binaries
	server, err := pgtest.Start(pgtest.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Stop() })
	code, out, errs := run(t, t.TempDir(), nil, "-addr", "127.0.0.1:0", "-database", server.DSN(), "-secret-key", sealingKey)
	require.Equal(t, 1, code)
	require.Empty(t, out)
	require.Contains(t, errs, "fsync is off: set it to on")
}

// While the database is away the service says so, and not where it is.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	server, err := pgtest.Start(pgtest.Options{Durable: true})
	require.NoError(t, err)
	where, err := url.Parse(server.DSN())
	require.NoError(t, err)
	stopped := false
	t.Cleanup(func() {
		if !stopped {
			_ = server.Stop()
		}
	})
	s := start(t, place{driver: "pgx", url: server.DSN(), flag: server.DSN()})
	c := s.customer("c")
	v := s.visitor()
	v.signIn("")
	s.get("", "/readyz").is(http.StatusOK)

	// A database that takes no writes answers, and is not ready.
	admin, err := sql.Open("pgx", server.DSN())
	require.NoError(t, err)
	for _, statement := range []string{"ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()"} {
		_, err = admin.ExecContext(t.Context(), statement)
		require.NoError(t, err)
	}
	require.NoError(t, admin.Close())
	eventually(t, "not ready", func() *reply { return s.get("", "/readyz") }, func(r *reply) bool { return r.status == http.StatusServiceUnavailable }).refused(http.StatusServiceUnavailable)
	s.get("", "/healthz").is(http.StatusOK)

	require.NoError(t, server.Stop())
	stopped = true
	for range 50 {
		s.get(operatorToken, "/deliveries").refused(http.StatusServiceUnavailable)
	}
	require.Less(t, strings.Count(s.logged(), "operation=list-deliveries"), 25, "not a line for each request")
	res, page := v.ask(http.MethodGet, "/console/", nil)
	require.Equal(t, http.StatusServiceUnavailable, res.StatusCode)
	require.NotEmpty(t, res.Header.Get("Retry-After"))
	require.Contains(t, page, "the database does not answer")
	for _, r := range []*reply{s.get("", "/healthz"), s.get("", "/readyz"), s.get(operatorToken, "/console/"), s.get(operatorToken, "/subscribers"),
		s.get(operatorToken, "/jobs"), s.get(c.token, "/jobs/job_x"), s.get(operatorToken, "/events"), s.get(operatorToken, "/subscriptions"), s.get(operatorToken, "/events/evt_x"),
		s.post(operatorToken, "/jobs", object{"kind": "export_events", "input": object{}}), s.post(operatorToken, "/redactions", object{"object": object{"type": "order", "id": "1"}}),
		s.post(operatorToken, "/subscribers/"+c.id+"/secret/rotate", nil), s.post(operatorToken, "/subscribers/"+c.id+"/redact", nil), s.post(operatorToken, "/notices/ntc_x/acknowledge", nil),
		s.post(operatorToken, "/events", object{"type": "order.paid", "object": object{"type": "order", "id": "1"}}, "Idempotency-Key", "k"), s.get(operatorToken, "/deliveries"), s.get(c.token, "/notices"), s.post(operatorToken, "/subscribers", object{"name": "x"})} {
		r.refused(http.StatusServiceUnavailable)
		require.NotEmpty(t, r.header.Get("Retry-After"))
		require.NotContains(t, r.text, where.Query().Get("host"))
	}
	require.Contains(t, s.get(operatorToken, "/metrics").text, "surehook_first_attempt_seconds_count", "its own figures are still told")
}

// While requests wait for the database it still answers health checks, and so does the server.
func TestHealthWhileRequestsWait(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p, "-workers=false")
		db := p.open(t)
		hold, err := db.Conn(t.Context())
		require.NoError(t, err)
		begin := map[string]string{"sqlite": "BEGIN IMMEDIATE", "pgx": "BEGIN; LOCK TABLE surehook_events IN EXCLUSIVE MODE"}[p.driver]
		_, err = hold.ExecContext(t.Context(), begin)
		require.NoError(t, err)
		const many = 40
		replies := make(chan *reply, many)
		for i := range many {
			go func() {
				replies <- s.post(operatorToken, "/events", object{"type": "order.paid", "object": object{"type": "order", "id": fmt.Sprint(i)}})
			}()
		}
		s.counts(fmt.Sprintf("surehook_http_requests_in_flight %d", many+1)) // and the one that asks
		health, ready := "/healthz", "/readyz"
		if p.driver == "sqlite" {
			ready = health // nobody can write
		} else {
			eventually(t, "connections that wait", func() (n int) {
				require.NoError(t, db.QueryRowContext(t.Context(), "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'surehook_events'::regclass").Scan(&n))
				return n
			}, func(n int) bool { return n >= 4 }) // as many as a pool has on a small machine
		}
		s.get("", health).is(http.StatusOK)
		s.get("", ready).is(http.StatusOK)

		_, err = hold.ExecContext(t.Context(), "ROLLBACK")
		require.NoError(t, err)
		published := map[string]bool{}
		for range many {
			if r := <-replies; r.status == http.StatusCreated {
				published[r.body["id"].(string)] = true
			} else { // if this took so long that it was told to come again
				r.refused(http.StatusServiceUnavailable)
				require.NotEmpty(t, r.header.Get("Retry-After"))
			}
		}
		s.counts("surehook_http_requests_in_flight 1\n") // a request ends a little after its answer
		for id := range published {
			s.get(operatorToken, "/events/"+id).is(http.StatusOK)
		}
	})
}

// counts waits until the metrics have lines that begin so, and returns them all. They follow
// what they tell of: an attempt is counted after its result is committed, and a request after
// its answer.
func (s *process) counts(lines ...string) (text string) {
	s.t.Helper()
	eventually(s.t, "these metrics", func() (missing []string) {
		text = s.get(operatorToken, "/metrics").text
		for _, line := range lines {
			if !strings.Contains(text, "\n"+line) {
				missing = append(missing, line)
			}
		}
		return missing
	}, func(missing []string) bool { return len(missing) == 0 })
	return text
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p, "-schedule", "10ms", "-jitter", "0", "-horizon", "20ms")
		c := s.customer("c")
		good, bad := newEndpoint(t), newEndpoint(t)
		bad.answers(http.StatusNotFound)
		s.subscribe(c.token, good.URL, "order.paid")
		dead := s.subscribe(c.token, bad.URL, "order.paid")
		held := s.subscribe(c.token, good.URL, "order.paid")
		s.patch(c.token, "/subscriptions/"+held, object{"status": "paused"}).is(http.StatusOK)
		s.post(operatorToken, "/events", object{"type": "order.paid", "object": object{"type": "order", "id": "1"}}).is(http.StatusCreated)
		good.wait(t, 1)
		s.deliveries(c.token, dead, "dead_lettered", 1)
		s.deliveries(c.token, held, "held", 1)
		s.post(operatorToken, "/jobs", object{"kind": "export_events", "input": object{}}).is(http.StatusAccepted)
		s.get("", "/deliveries/"+c.id).refused(http.StatusUnauthorized)
		s.get(operatorToken, "/"+c.id).refused(http.StatusNotFound)
		r := s.get(operatorToken, "/metrics")
		require.Equal(t, http.StatusOK, r.status)
		require.True(t, strings.HasPrefix(r.header.Get("Content-Type"), "text/plain"))
		text := s.counts(
			`surehook_delivered_seconds_count{lane="new"} 1`, `surehook_jobs_finished_total{kind="export_events",status="succeeded"} 1`,
			`surehook_attempts_total{error_class="none",lane="new",outcome="delivered"} 1`,
			`surehook_attempts_total{error_class="status",lane="new",outcome="dead_lettered"} 1`,
			`surehook_published_events_total{result="new"} `, `surehook_first_attempt_seconds_count{lane="new"} 2`, `surehook_backlog_deliveries{lane="new"} 0`, "surehook_held_deliveries 1",
			"surehook_dead_lettered_deliveries 1", `surehook_oldest_due_seconds{lane="new"} 0`, `surehook_subscriptions{status="paused"} 1`, `surehook_subscriptions{status="disabled"} 0`,
			`surehook_http_requests_total{code="201",route="POST /events"} 1`, `surehook_http_requests_total{code="401",route="none"} 1`, `surehook_http_requests_total{code="404",route="none"} 1`,
			`surehook_http_request_seconds_count{route="POST /subscriptions"} 3`, `go_sql_open_connections{db_name="surehook"} `, `go_build_info{`,
		)
		require.NotContains(t, text, c.id, "no label grows with the subscribers")

		api := start(t, p, "-workers=false")
		api.post(operatorToken, "/events", object{"type": "order.sent", "object": object{"type": "order", "id": "2"}}).is(http.StatusCreated)
		api.counts(`surehook_published_events_total{result="new"} 1`) // so does a process that only serves the API
	})
}

// An endpoint that hangs makes its own deliveries late. No figure of the others, by which
// somebody would be woken, tells of it.
func TestSlownessOfAnEndpointIsItsOwn(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p, "-timeout", "1s", "-schedule", "1ms", "-jitter", "0")
		c := s.customer("c")
		good, hanging := newEndpoint(t), newEndpoint(t)
		hanging.with(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		s.subscribe(c.token, good.URL, "order.paid")
		s.subscribe(c.token, hanging.URL, "order.sent")
		for i, typ := range append(slices.Repeat([]string{"order.sent"}, 50), "order.paid") {
			s.post(operatorToken, "/events", object{"type": typ, "object": object{"type": "order", "id": strconv.Itoa(i)}}).is(http.StatusCreated)
		}
		good.wait(t, 1)
		eventually(t, "what waits, waits for the endpoint", func() string {
			return s.get(operatorToken, "/metrics").text
		}, func(text string) bool {
			var waits []string
			for _, line := range regexp.MustCompile(`(?m)^surehook_(oldest_due_seconds|backlog_deliveries){lane="(new|proven|probation)"} (0$|)`).FindAllStringSubmatch(text, -1) {
				if line[3] == "" {
					waits = append(waits, line[2])
				}
			}
			return slices.Equal(waits, []string{"probation", "probation"})
		})
		_, page := s.visitor().signIn("/console/")
		require.Contains(t, page, "Our own side is on time.")
		require.Regexp(t, `<span>Ours</span><b>none</b>`, page)
		require.NotRegexp(t, `<span>Waiting for slow customers</span><b>none</b>`, page)
	})
}

// kill ends the program as a crash would.
func (s *process) kill() {
	_ = s.cmd.Process.Kill()
	<-s.done
}

// command starts the program on a database, as start does.
func command(p place, flags ...string) *exec.Cmd {
	return exec.Command(binary, append([]string{
		"-addr", "127.0.0.1:0", "-database", p.flag, "-operator-token", operatorToken, "-secret-key", sealingKey, "-allow-private-networks", "-max-requests", "0",
	}, flags...)...)
}
