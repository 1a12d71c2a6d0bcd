// Package main_test checks the HTTP contract from outside: against the built binary,
// over real HTTP, on an SQLite file and on PostgreSQL.
package main_test

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"flag"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite" // the driver

	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/internal/race"
)

// testsAtOnce is how many tests run at a time at least.
const testsAtOnce = 6

// binary is the program, as its users build it.
var binary string

func TestMain(m *testing.M) {
	if slices.ContainsFunc(os.Args, func(arg string) bool { return strings.HasPrefix(arg, "-test.fuzzworker") }) {
		os.Exit(m.Run()) // they need no program, and come in numbers
	}
	// The tests wait for programs and for time to pass more than they compute. The flag
	// -parallel still has the last word: it is read later.
	if err := flag.Set("test.parallel", strconv.Itoa(max(testsAtOnce, runtime.GOMAXPROCS(0)))); err != nil {
		panic(err)
	}
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "reference-server-")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		binary = filepath.Join(dir, "reference-server")
		build := building(context.Background(), binary, ".")
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			panic(err)
		}
		return m.Run()
	}())
}

// building is a go build of a program. To link takes longer with what debuggers read.
func building(ctx context.Context, file, program string) *exec.Cmd {
	args := []string{"build", "-ldflags=-w", "-o", file}
	if race.Enabled { // see start; the flags of .ci/run, with which SQLite is compiled already
		args = append(args, "-race", "-gcflags=modernc.org/sqlite/lib=-race=false", "-gcflags=modernc.org/libc/...=-race=false")
	}
	return exec.CommandContext(ctx, "go", append(args, program)...)
}

const (
	operatorToken = "the-operators-own-token"
	sealingKey    = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=" // of tests alone
)

// place is a database of a test's own.
type place struct {
	driver, url string // as the test opens it
	flag        string // as the program is told of it
}

// onEach runs a test on each database. With the race detector it is PostgreSQL alone, since the
// races do not depend on the database.
func onEach(t *testing.T, test func(t *testing.T, p place)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		if race.Enabled {
			t.Skip("the race detector makes SQLite many times slower: .ci/run runs this without it")
		}
		t.Parallel()
		path := filepath.Join(t.TempDir(), "test.db")
		test(t, place{driver: "sqlite", url: "file:" + path + "?_pragma=busy_timeout(5000)", flag: path})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, onPostgres(t))
	})
}

func onPostgres(t *testing.T) place {
	t.Helper()
	dsn := pgtest.DSN(t)
	db, err := sql.Open("pgx", dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	url := pgtest.With(dsn, "search_path", pgtest.Schema(t, db))
	// The program waits for 5 s by itself, and then answers 503. A machine that is busy
	// with other tests can take longer to make a connection.
	return place{driver: "pgx", url: url, flag: pgtest.With(url, "connect_timeout", "60")}
}

func (p place) open(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open(p.driver, p.url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// process is a running server.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	base   string
	client *http.Client  // nil: the default
	done   chan struct{} // closed when it has ended
	err    error         // of its end

	mu  sync.Mutex
	log bytes.Buffer
}

// start runs the program until the test ends, and waits for its line.
func start(t *testing.T, p place, flags ...string) *process {
	t.Helper()
	args := append([]string{
		"-addr", "127.0.0.1:0", "-database", p.flag, "-operator-token", operatorToken, "-secret-key", sealingKey, "-allow-private-networks", "-max-requests", "0",
	}, flags...)
	s := launch(t, nil, args...)
	t.Cleanup(func() {
		s.stop()
		if strings.Contains(s.logged(), "DATA RACE") {
			t.Error("the race detector has found one")
		}
		if t.Failed() {
			t.Logf("the server's log:\n%s", s.logged())
		}
	})
	return s
}

func launch(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(), env...)
	return launchCommand(t, cmd)
}

func launchCommand(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	s := &process{t: t, cmd: cmd, done: make(chan struct{})}
	stdout, err := s.cmd.StdoutPipe()
	require.NoError(t, err)
	stderr, err := s.cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, s.cmd.Start())
	line := make(chan string, 1)
	var wg sync.WaitGroup
	wg.Go(func() {
		r := bufio.NewReader(stdout)
		first, _ := r.ReadString('\n')
		line <- first
		rest, _ := io.ReadAll(r)
		s.write(rest)
	})
	wg.Go(func() {
		r := bufio.NewReader(stderr)
		for {
			text, err := r.ReadString('\n')
			s.write([]byte(text))
			if err != nil {
				return
			}
		}
	})
	go func() {
		wg.Wait()
		s.err = s.cmd.Wait()
		close(s.done)
	}()
	first := <-line
	base, ok := strings.CutPrefix(strings.TrimSpace(first), "listening on ")
	if !ok {
		<-s.done
		t.Fatalf("the program did not say where it listens, but %q:\n%s", first, s.logged())
	}
	s.base = base
	return s
}

func (s *process) write(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log.Write(b)
}

func (s *process) logged() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

// stop has the program drain, and waits for its end.
func (s *process) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.done:
	case <-time.After(20 * time.Second): // not to be reached
		_ = s.cmd.Process.Kill()
		<-s.done
	}
}

// object is a JSON object.
type object = map[string]any

// reply is what a request was answered with.
type reply struct {
	t      *testing.T
	status int
	header http.Header
	text   string
	body   object
}

// call makes a request with a token. The body is marshalled, unless it is a string
// or nil.
func (s *process) call(token, method, path string, body any, headers ...string) *reply {
	s.t.Helper()
	return s.callIn(s.t.Context(), token, method, path, body, headers...)
}

func (s *process) callIn(ctx context.Context, token, method, path string, body any, headers ...string) *reply {
	s.t.Helper()
	var r io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		r = strings.NewReader(b)
	default:
		text, err := json.Marshal(body)
		require.NoError(s.t, err)
		r = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, s.base+path, r)
	require.NoError(s.t, err)
	if r != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	given := http.Header{}
	for i := 0; i < len(headers); i += 2 {
		given.Add(headers[i], headers[i+1])
	}
	maps.Copy(req.Header, given)
	client := s.client
	if client == nil {
		client = http.DefaultClient
	}
	res, err := client.Do(req)
	require.NoError(s.t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(s.t, err)
	out := &reply{t: s.t, status: res.StatusCode, header: res.Header, text: string(text)}
	if len(text) > 0 && text[0] == '{' && strings.Contains(res.Header.Get("Content-Type"), "json") {
		require.NoError(s.t, json.Unmarshal(text, &out.body), "%s", text)
	}
	return out
}

func (s *process) get(token, path string, headers ...string) *reply {
	s.t.Helper()
	return s.call(token, http.MethodGet, path, nil, headers...)
}

func (s *process) post(token, path string, body any, headers ...string) *reply {
	s.t.Helper()
	return s.call(token, http.MethodPost, path, body, headers...)
}

func (s *process) patch(token, path string, body any, headers ...string) *reply {
	s.t.Helper()
	return s.call(token, http.MethodPatch, path, body, headers...)
}

func (s *process) remove(token, path string, headers ...string) *reply {
	s.t.Helper()
	return s.call(token, http.MethodDelete, path, nil, headers...)
}

// is ends the test unless the status is that one, and returns the body.
func (r *reply) is(status int) object {
	r.t.Helper()
	require.Equal(r.t, status, r.status, "%s", r.text)
	if status >= 400 {
		r.refused(status)
	}
	return r.body
}

// refused ends the test unless the answer is a problem document of that status
// (RFC 9457), with errors at the locations.
func (r *reply) refused(status int, locations ...string) {
	r.t.Helper()
	require.Equal(r.t, status, r.status, "%s", r.text)
	require.Equal(r.t, "application/problem+json", r.header.Get("Content-Type"))
	require.InDelta(r.t, status, r.body["status"], 0)
	for _, field := range []string{"type", "title", "detail"} {
		require.NotEmpty(r.t, r.body[field], "%s of %s", field, r.text)
	}
	var at []string
	if errs, ok := r.body["errors"].([]any); ok {
		for _, e := range errs {
			require.NotEmpty(r.t, e.(object)["message"], "%s", r.text)
			at = append(at, e.(object)["location"].(string))
		}
	}
	for _, l := range locations {
		require.Contains(r.t, at, l, "%s", r.text)
	}
}

// data is the page of a list.
func (r *reply) data() []object {
	r.t.Helper()
	r.is(http.StatusOK)
	require.Contains(r.t, r.body, "next_cursor")
	all := []object{}
	for _, one := range r.body["data"].([]any) {
		all = append(all, one.(object))
	}
	return all
}

// eventually asks again and again until what comes back is right.
func eventually[T any](t *testing.T, what string, ask func() T, right func(T) bool) T {
	t.Helper()
	for deadline := time.Now().Add(90 * time.Second); ; { // a killed process keeps a job for 30 s
		got := ask()
		if right(got) {
			return got
		}
		if time.Now().After(deadline) {
			t.Fatalf("never came about: %s; the last answer: %v", what, got)
		}
		time.Sleep(10 * time.Millisecond) // between two questions; nothing depends on how long
	}
}

// customer is a subscriber of a test.
type customer struct{ id, token, secret string }

func (s *process) customer(name string) customer {
	s.t.Helper()
	b := s.post(operatorToken, "/subscribers", object{"name": name}).is(http.StatusCreated)
	return customer{b["id"].(string), b["token"].(string), b["signing_secret"].(string)}
}

// subscribe registers a callback URL and returns the subscription's id.
func (s *process) subscribe(token, url string, types ...string) string {
	s.t.Helper()
	body := object{"url": url}
	if len(types) > 0 {
		body["event_types"] = types
	}
	return s.post(token, "/subscriptions", body).is(http.StatusCreated)["id"].(string)
}

// deliveries waits until all deliveries of a subscription that there are to be have
// a status, and returns them.
func (s *process) deliveries(token, subscription, status string, n int) []object {
	s.t.Helper()
	return eventually(s.t, "deliveries that are "+status, func() []object {
		return s.get(token, "/deliveries?status="+status+"&subscription_id="+subscription).data()
	}, func(all []object) bool { return len(all) == n })
}
