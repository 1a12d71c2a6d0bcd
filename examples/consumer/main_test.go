// Package main_test checks the consumer from outside: both programs built, over real
// HTTP.
package main_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite" // the driver

	"github.com/surehook/surehook/internal/porttest"
)

const operatorToken = "the-operators-own-token"

// programs are the folder of the two binaries.
var programs string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if programs, err = os.MkdirTemp("", "consumer-"); err != nil {
			panic(err)
		}
		defer os.RemoveAll(programs)
		for name, value := range map[string]string{"SUREHOOK_TOKEN": operatorToken, "SUREHOOK_SECRET": ""} {
			if err := os.Setenv(name, value); err != nil {
				panic(err)
			}
		}
		for _, name := range []string{"consumer", "reference-server"} {
			build := exec.CommandContext(context.Background(), "go", "build", "-ldflags=-w", "-o", filepath.Join(programs, name), "../"+name)
			build.Stderr = os.Stderr
			if err := build.Run(); err != nil {
				panic(err)
			}
		}
		return m.Run()
	}())
}

// program is one that runs until it is stopped.
type program struct {
	t    *testing.T
	cmd  *exec.Cmd
	done chan struct{}
	err  error
	base string // where it listens

	mu  sync.Mutex
	out bytes.Buffer
}

func (p *program) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(b)
}

func (p *program) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

func launch(t *testing.T, name string, args ...string) *program {
	t.Helper()
	p := &program{t: t, cmd: exec.Command(filepath.Join(programs, name), args...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p, p
	require.NoError(t, p.cmd.Start())
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		p.stop()
		if t.Failed() {
			t.Logf("%s said:\n%s", name, p.text())
		}
	})
	address := regexp.MustCompile(`listening on (http://[0-9.:]+)`)
	eventually(t, name+" listens", func() bool { return address.MatchString(p.text()) })
	p.base = address.FindStringSubmatch(p.text())[1]
	return p
}

func (p *program) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	<-p.done
}

// says waits until it has said a line a number of times.
func (p *program) says(line string, times int) {
	p.t.Helper()
	eventually(p.t, fmt.Sprintf("%q, %d times", line, times), func() bool { return strings.Count(p.text(), line) >= times })
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !is(); time.Sleep(10 * time.Millisecond) { // between two questions; nothing depends on how long
		if time.Now().After(deadline) {
			t.Fatalf("never came about: %s", what)
		}
	}
}

type object = map[string]any

// call asks the server for something, as the operator.
func (p *program) call(method, path string, body any) object {
	p.t.Helper()
	text, err := json.Marshal(body)
	require.NoError(p.t, err)
	req, err := http.NewRequestWithContext(p.t.Context(), method, p.base+path, bytes.NewReader(text))
	require.NoError(p.t, err)
	req.Header.Set("Authorization", "Bearer "+operatorToken)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	require.NoError(p.t, err)
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	require.NoError(p.t, err)
	require.Less(p.t, res.StatusCode, 300, "%s", answer)
	var o object
	if len(answer) > 0 {
		require.NoError(p.t, json.Unmarshal(answer, &o))
	}
	return o
}

// pair is a server and a consumer of its events.
type pair struct {
	t        *testing.T
	dir      string
	server   *program
	consumer *program
}

func newPair(t *testing.T, more ...string) *pair {
	t.Helper()
	p := &pair{t: t, dir: t.TempDir()}
	p.server = launch(t, "reference-server", "-addr", "127.0.0.1:0", "-database", filepath.Join(p.dir, "server.db"), "-operator-token", operatorToken,
		"-allow-private-networks", "-schedule", "100ms", "-jitter", "0")
	p.consumer = p.consume(porttest.Reserved(t), more...)
	return p
}

func (p *pair) consume(addr string, more ...string) *program {
	p.t.Helper()
	return launch(p.t, "consumer", append([]string{"-addr", addr, "-database", p.path(), "-server", p.server.base}, more...)...)
}

// again stops the consumer, does something, and starts it where it was.
func (p *pair) again(meanwhile func()) {
	p.t.Helper()
	p.consumer.stop()
	require.NoError(p.t, p.consumer.err, "it ends by itself, with 0")
	meanwhile()
	p.consumer = p.consume(strings.TrimPrefix(p.consumer.base, "http://"))
}

// path has what ends a path in a URI, and what begins an escape.
func (p *pair) path() string { return filepath.Join(p.dir, "consumer #1, 100%23.db") }

// copies are what the consumer has, as "id name attributes version".
func (p *pair) copies() (all []string) {
	p.t.Helper()
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: p.path()}).EscapedPath()+"?_pragma=busy_timeout(5000)")
	require.NoError(p.t, err)
	defer db.Close()
	rows, err := db.QueryContext(p.t.Context(), "SELECT id || ' ' || name || ' ' || attributes || ' ' || version FROM copies ORDER BY id")
	require.NoError(p.t, err)
	defer rows.Close()
	for rows.Next() {
		var line string
		require.NoError(p.t, rows.Scan(&line))
		all = append(all, line)
	}
	require.NoError(p.t, rows.Err())
	return all
}

func (p *pair) redeliver(event string) {
	p.t.Helper()
	var found bool
	for _, one := range p.server.call(http.MethodGet, "/deliveries", nil)["data"].([]any) {
		d := one.(object)
		e := d["event"].(object)
		if fmt.Sprint(e["type"], " ", e["version"]) == event {
			p.server.call(http.MethodPost, "/deliveries/"+d["id"].(string)+"/redeliver", nil)
			found = true
		}
	}
	require.True(p.t, found, event)
}

// The consumer's copy follows the server's state, and an event has one effect however
// often and in whatever order it comes, also across restarts.
func TestFollows(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.server.call(http.MethodPost, "/subscriptions", object{"url": p.consumer.base + "/webhooks"})
	p.server.call(http.MethodPost, "/subscribers", object{"id": "sub_ada", "name": "Ada", "attributes": object{"plan": "pro"}})
	p.consumer.says("applied subscriber.created sub_ada, version 1, attempt 1", 1)
	require.Equal(t, []string{`sub_ada Ada {"plan":"pro"} 1`}, p.copies())
	p.server.call(http.MethodPatch, "/subscribers/sub_ada", object{"name": "Ada L."})
	p.consumer.says("applied subscriber.updated sub_ada, version 2", 1)
	require.Equal(t, []string{`sub_ada Ada L. {"plan":"pro"} 2`}, p.copies())

	p.redeliver("subscriber.created 1")
	p.consumer.says("duplicate subscriber.created sub_ada, version 1, attempt 2", 1)
	require.Equal(t, []string{`sub_ada Ada L. {"plan":"pro"} 2`}, p.copies())

	// If it has missed two changes, the first to come brings the present state, and the
	// other one is stale or has its version.
	p.again(func() {
		p.server.call(http.MethodPatch, "/subscribers/sub_ada", object{"name": "A"})
		p.server.call(http.MethodPatch, "/subscribers/sub_ada", object{"name": "Countess", "attributes": object{}})
	})
	eventually(t, "both have come", func() bool {
		return strings.Count(p.consumer.text(), "subscriber.updated sub_ada, version 3")+strings.Count(p.consumer.text(), "subscriber.updated sub_ada, version 4") >= 2
	})
	require.Equal(t, []string{`sub_ada Countess {} 4`}, p.copies())

	// It knows its markers after a restart.
	p.again(func() {})
	p.redeliver("subscriber.updated 2")
	p.consumer.says("duplicate subscriber.updated sub_ada, version 2", 1)
	require.Equal(t, []string{`sub_ada Countess {} 4`}, p.copies())

	// Types that it has no copy of are acknowledged and ignored; what is gone goes.
	p.server.call(http.MethodPost, "/events", object{"type": "order.paid", "object": object{"type": "order", "id": "1"}})
	p.server.call(http.MethodDelete, "/subscribers/sub_ada", nil)
	p.consumer.says("applied subscriber.deleted sub_ada, version 5", 1)
	require.Empty(t, p.copies())
	eventually(t, "all is delivered", func() bool {
		for _, one := range p.server.call(http.MethodGet, "/deliveries", nil)["data"].([]any) {
			if one.(object)["status"] != "delivered" {
				return false
			}
		}
		return true
	})
}

// The consumer's database is its owner's alone, also where others could read it before.
func TestDatabaseIsItsOwnersAlone(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	alone := func() {
		t.Helper()
		for _, suffix := range []string{"", "-wal", "-shm"} {
			info, err := os.Stat(p.path() + suffix)
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), suffix)
		}
	}
	alone()
	p.again(func() { require.NoError(t, os.Chmod(p.path(), 0o644)) })
	alone()
}

// newest is the id of the delivery that was made last, or "".
func (p *pair) newest() string {
	all := p.server.call(http.MethodGet, "/deliveries", nil)["data"].([]any)
	if len(all) == 0 {
		return ""
	}
	return all[0].(object)["id"].(string)
}

// attempted tells whether an attempt of the newest delivery was answered with a status.
func (p *pair) attempted(status string) bool {
	newest := p.newest()
	if newest == "" {
		return false
	}
	for _, a := range p.server.call(http.MethodGet, "/deliveries/"+newest, nil)["attempts"].([]any) {
		if fmt.Sprint(a.(object)["status_code"]) == status {
			return true
		}
	}
	return false
}

// refuses waits for the consumer's answer to the event of a change, which must be 503. Its
// delivery is made a little after the change.
func (p *pair) refuses(why string, change func()) {
	p.t.Helper()
	before := p.newest()
	change()
	eventually(p.t, "an answer: "+why, func() bool {
		return p.newest() != before && (p.attempted("503") || p.attempted("200"))
	})
	require.False(p.t, p.attempted("200"), why)
}

// operatorSecret is what the operator's events are signed with.
func (p *pair) operatorSecret() string {
	p.t.Helper()
	return p.server.call(http.MethodGet, "/subscribers/sub_operator/secret", nil)["signing_secret"].(string)
}

// restart has the consumer listen where it did, with other flags.
func (p *pair) restart(more ...string) {
	p.t.Helper()
	p.consumer.stop()
	p.consumer = p.consume(strings.TrimPrefix(p.consumer.base, "http://"), more...)
}

// between is before the server. It passes everything on, except what it has answers of its
// own to.
type between struct {
	*httptest.Server
	pass http.Handler
	own  atomic.Pointer[map[string]http.Handler] // by path
}

func newBetween(t *testing.T, base string) *between {
	t.Helper()
	to, err := url.Parse(base)
	require.NoError(t, err)
	b := &between{pass: httputil.NewSingleHostReverseProxy(to)}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if all := b.own.Load(); all != nil {
			if own := (*all)[r.URL.Path]; own != nil {
				own.ServeHTTP(w, r)
				return
			}
		}
		b.pass.ServeHTTP(w, r)
	}))
	t.Cleanup(b.Close)
	return b
}

// While the state cannot be read nothing is marked, so that the event comes again. Nor does
// a 404 say that what it has is gone, unless it is the server's, about the subscriber.
func TestServerAway(t *testing.T) {
	t.Parallel()
	p := newPair(t, "-secret", "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=")
	p.server.call(http.MethodPost, "/subscriptions", object{"url": p.consumer.base + "/webhooks"})
	cases := []struct {
		id, why string
		own     func(b *between) http.Handler
	}{
		{"sub_a", "nobody answers", func(*between) http.Handler {
			return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
		}},
		{"sub_b", "somebody else's 404", func(*between) http.Handler { return http.NotFoundHandler() }},
		{"sub_c", "the server's 404 about a path", func(b *between) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				r.URL.Path = "/api" + r.URL.Path
				b.pass.ServeHTTP(w, r)
			})
		}},
	}
	for _, c := range cases {
		p.server.call(http.MethodPost, "/subscribers", object{"id": c.id, "name": "Ada"})
	}
	// Its secret is not the server's: what does not verify is refused before.
	eventually(t, "an attempt", func() bool { return p.attempted("401") })
	require.Empty(t, p.copies())

	b := newBetween(t, p.server.base)
	p.restart("-server", b.URL)
	own := map[string]http.Handler{}
	for _, c := range cases {
		p.consumer.says(fmt.Sprintf("applied subscriber.created %s, version 1", c.id), 1)
		own["/subscribers/"+c.id] = c.own(b)
	}
	before := p.copies()
	require.Len(t, before, len(cases))
	b.own.Store(&own)
	// Each event comes again some seconds after it was refused: they wait together.
	for _, c := range cases {
		p.refuses(c.why, func() { p.server.call(http.MethodPatch, "/subscribers/"+c.id, object{"name": c.why}) })
		require.Equal(t, before, p.copies(), c.why)
	}
	b.own.Store(nil)
	var after []string
	for _, c := range cases {
		p.consumer.says(fmt.Sprintf("applied subscriber.updated %s, version 2", c.id), 1)
		after = append(after, fmt.Sprintf("%s %s {} 2", c.id, c.why))
	}
	require.Equal(t, after, p.copies())
}

// To a subscriber's token, another one looks as if it were deleted: its copy stays. The event
// of the deletion itself needs no token.
func TestAnothersToken(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.server.call(http.MethodPost, "/subscriptions", object{"url": p.consumer.base + "/webhooks"})
	p.server.call(http.MethodPost, "/subscribers", object{"id": "sub_ada", "name": "Ada"})
	bobs := p.server.call(http.MethodPost, "/subscribers", object{"id": "sub_bob", "name": "Bob"})["token"].(string)
	p.consumer.says("applied subscriber.created sub_ada, version 1", 1)
	p.consumer.says("applied subscriber.created sub_bob, version 1", 1)

	p.restart("-token", bobs, "-secret", p.operatorSecret())
	p.server.call(http.MethodPatch, "/subscribers/sub_bob", object{"name": "Robert"})
	p.consumer.says("applied subscriber.updated sub_bob, version 2", 1)
	p.refuses("another's", func() { p.server.call(http.MethodPatch, "/subscribers/sub_ada", object{"name": "Countess"}) })
	require.Equal(t, []string{"sub_ada Ada {} 1", "sub_bob Robert {} 2"}, p.copies())

	p.server.call(http.MethodDelete, "/subscribers/sub_ada", nil)
	p.consumer.says("applied subscriber.deleted sub_ada, version 3", 1)
	p.server.call(http.MethodDelete, "/subscribers/sub_bob", nil) // and its token
	p.consumer.says("applied subscriber.deleted sub_bob, version 3", 1)
	require.Empty(t, p.copies())
}

// A request that does not come from the server changes nothing.
func TestForged(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	body := `{"id":"evt_1","type":"subscriber.deleted","occurred_at":"2026-01-01T00:00:00Z","object":{"type":"subscriber","id":"sub_ada"},"version":9}`
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		req, err := http.NewRequestWithContext(t.Context(), method, p.consumer.base+"/webhooks", strings.NewReader(body))
		require.NoError(t, err)
		for name, value := range map[string]string{
			"Content-Type": "application/json", "Webhook-Id": "evt_1", "Webhook-Timestamp": fmt.Sprint(time.Now().Unix()), "Webhook-Hmac-Sha256": strings.Repeat("0", 64),
		} {
			req.Header.Set(name, value)
		}
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, map[string]int{http.MethodGet: http.StatusMethodNotAllowed, http.MethodPost: http.StatusUnauthorized}[method], res.StatusCode)
	}
	require.Empty(t, p.copies())
}

// Without a token that the server takes it says what is wrong and does not begin.
func TestCannotBegin(t *testing.T) {
	t.Parallel()
	answers := func(status int, media, body string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", media)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	const problem, plain = "application/problem+json", "application/json"
	for says, args := range map[string][]string{
		"there is no token: set SUREHOOK_TOKEN":       {"-token", ""},
		"trying the server and the token":             {"-server", "http://127.0.0.1:1"},
		"404 Not Found: there is no such path":        {"-server", answers(http.StatusNotFound, problem, `{"detail":"there is no such path"}`)},
		"was answered with 401 Unauthorized: it need": {"-server", answers(http.StatusUnauthorized, problem, `{"detail":"it needs a token"}`)},
		"was answered with 403 Forbidden":             {"-server", answers(http.StatusForbidden, "text/html", "no")},
		"it is no reference server":                   {"-server", answers(http.StatusOK, plain, `{}`)},
		"SUREHOOK_SECRET":                             {"-server", answers(http.StatusForbidden, problem, `{"detail":"for the operator alone"}`)},
		"secret":                                      {"-server", answers(http.StatusOK, plain, `{"data":[]}`), "-secret", "not a secret"},
	} {
		cmd := exec.CommandContext(t.Context(), filepath.Join(programs, "consumer"), append([]string{"-addr", "127.0.0.1:0", "-database", filepath.Join(t.TempDir(), "c.db")}, args...)...)
		if says == "there is no token: set SUREHOOK_TOKEN" {
			cmd.Env = append(os.Environ(), "SUREHOOK_TOKEN=")
		}
		out, err := cmd.CombinedOutput()
		require.Error(t, err, says)
		require.Equal(t, 1, cmd.ProcessState.ExitCode())
		require.Contains(t, string(out), says)
		require.NotContains(t, string(out), "not a secret")
	}
}
