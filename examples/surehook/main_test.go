// Package main_test runs the built program, against the reference server and against
// databases, as its users do.
package main_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
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
)

// The programs, as their users build them.
var surehook, referenceServer string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "surehook-")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		build := exec.CommandContext(context.Background(), "go", "build", "-ldflags=-w", "-o", dir+string(filepath.Separator), ".", "../reference-server")
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			panic(err)
		}
		surehook, referenceServer = filepath.Join(dir, "surehook"), filepath.Join(dir, "reference-server")
		return m.Run()
	}())
}

const (
	operatorToken = "the-operators-own-token"
	sealingKey    = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=" // of tests alone
	secret        = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"       // likewise
)

// place is a database of a test's own.
type place struct{ driver, url, flag string }

// onEach runs a test on each database.
func onEach(t *testing.T, test func(t *testing.T, p place)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "test.db")
		test(t, place{"sqlite", "file:" + path + "?_pragma=busy_timeout(5000)", path})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		dsn := pgtest.DSN(t)
		db, err := sql.Open("pgx", dsn)
		require.NoError(t, err)
		t.Cleanup(func() { _ = db.Close() })
		url := pgtest.With(dsn, "search_path", pgtest.Schema(t, db))
		test(t, place{"pgx", url, url})
	})
}

func (p place) open(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open(p.driver, p.url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// user is somebody at a shell: a folder, and what is set there.
type user struct {
	t   *testing.T
	dir string
	env []string
}

func newUser(t *testing.T, env ...string) *user {
	t.Helper()
	return &user{t, t.TempDir(), env}
}

// answer is how a command has ended.
type answer struct {
	code      int
	out, errs string
}

func (u *user) command(args ...string) *exec.Cmd {
	cmd := exec.Command(surehook, args...)
	cmd.Dir = u.dir
	for _, one := range os.Environ() {
		if !strings.HasPrefix(one, "SUREHOOK_") && !strings.HasPrefix(one, "WEBHOOK_") {
			cmd.Env = append(cmd.Env, one)
		}
	}
	cmd.Env = append(cmd.Env, u.env...)
	return cmd
}

// run runs a command to its end. None prints a secret that it was given.
func (u *user) run(args ...string) answer {
	u.t.Helper()
	cmd := u.command(args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run() // the code says it
	a := answer{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
	for _, s := range []string{operatorToken, sealingKey, secret, "pass-word"} {
		require.NotContains(u.t, a.out+a.errs, s, "%v", args)
	}
	return a
}

// does ends the test unless the command ends with 0.
func (u *user) does(args ...string) string {
	u.t.Helper()
	a := u.run(args...)
	require.Zero(u.t, a.code, "%v: %s%s", args, a.out, a.errs)
	return a.out
}

// reads is does with -json, of which the output is one document.
func (u *user) reads(into any, args ...string) {
	u.t.Helper()
	require.NoError(u.t, json.Unmarshal([]byte(u.does(append(args, "-json")...)), into))
}

func (u *user) write(name, text string) string {
	u.t.Helper()
	path := filepath.Join(u.dir, name)
	require.NoError(u.t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// process is a program that runs until the test ends.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
	mu   sync.Mutex
	said bytes.Buffer // both outputs
}

// Write implements io.Writer.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said.Write(b)
}

func (p *process) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said.String()
}

func launch(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{cmd: cmd, done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p, p
	require.NoError(t, cmd.Start())
	go func() {
		defer close(p.done)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-p.done
		if t.Failed() {
			t.Logf("%v:\n%s", cmd.Args, p.text())
		}
	})
	return p
}

// says waits until the program has said it, and returns all that it has said.
func (p *process) says(t *testing.T, words string) string {
	t.Helper()
	return eventually(t, words, p.text, func(text string) bool { return strings.Contains(text, words) })
}

// interrupt ends the program as Ctrl-C does, and returns what it has said and its code.
func (p *process) interrupt(t *testing.T) (said string, code int) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGINT))
	<-p.done
	return p.text(), p.cmd.ProcessState.ExitCode()
}

// serve starts a reference server on a database, and returns its URL.
func serve(t *testing.T, p place, flags ...string) string {
	t.Helper()
	s := launch(t, exec.Command(referenceServer, append([]string{
		"-addr", "127.0.0.1:0", "-database", p.flag, "-operator-token", operatorToken, "-secret-key", sealingKey, "-allow-private-networks",
		"-schedule", "10ms", "-horizon", "20ms", "-jitter", "0", "-log-level", "error",
	}, flags...)...))
	_, base, _ := strings.Cut(strings.TrimSpace(s.says(t, "\n")), "listening on ")
	require.NotEmpty(t, base, s.text())
	return base
}

// operator is a user with a server of their own.
func operator(t *testing.T, p place, flags ...string) *user {
	t.Helper()
	return newUser(t, "SUREHOOK_SERVER="+serve(t, p, flags...), "SUREHOOK_TOKEN="+operatorToken)
}

// subscribe registers a callback URL of the operator's.
func (u *user) subscribe(url, eventType string) {
	u.t.Helper()
	u.posts("/subscriptions", http.StatusCreated, map[string]any{"url": url, "event_types": []string{eventType}})
}

// submit begins a job of the operator's, and returns its id.
func (u *user) submit(kind string, input any) string {
	u.t.Helper()
	return u.posts("/jobs", http.StatusAccepted, map[string]any{"kind": kind, "input": input})["id"].(string)
}

// posts makes a call of the server's API.
func (u *user) posts(path string, status int, body any) map[string]any {
	u.t.Helper()
	text, err := json.Marshal(body)
	require.NoError(u.t, err)
	return u.calls(http.MethodPost, path, status, text)
}

func (u *user) gets(path string) map[string]any {
	u.t.Helper()
	return u.calls(http.MethodGet, path, http.StatusOK, nil)
}

func (u *user) calls(method, path string, status int, body []byte) (answer map[string]any) {
	u.t.Helper()
	req, err := http.NewRequestWithContext(u.t.Context(), method, strings.TrimPrefix(u.env[0], "SUREHOOK_SERVER=")+path, bytes.NewReader(body))
	require.NoError(u.t, err)
	req.Header.Set("Authorization", "Bearer "+operatorToken)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	require.NoError(u.t, err)
	defer res.Body.Close()
	require.Equal(u.t, status, res.StatusCode)
	require.NoError(u.t, json.NewDecoder(res.Body).Decode(&answer))
	return answer
}

// endpoint answers with the statuses in turn, and then with 200.
type endpoint struct {
	*httptest.Server
	mu       sync.Mutex
	statuses []int
	always   int // after them; 0: 200
	got      []received
}

type received struct {
	header http.Header
	body   []byte
}

func newEndpoint(t *testing.T, statuses ...int) *endpoint {
	t.Helper()
	e := &endpoint{statuses: statuses}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		e.mu.Lock()
		defer e.mu.Unlock()
		e.got = append(e.got, received{r.Header, body})
		if len(e.statuses) > 0 {
			w.WriteHeader(e.statuses[0])
			e.statuses = e.statuses[1:]
		} else if e.always != 0 {
			w.WriteHeader(e.always)
		}
	}))
	t.Cleanup(e.Close)
	return e
}

// answers has it answer with a status from now on.
func (e *endpoint) answers(status int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.always = status
}

func (e *endpoint) received() []received {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]received(nil), e.got...)
}

// eventually asks again and again until what comes back is right.
func eventually[T any](t *testing.T, what string, ask func() T, right func(T) bool) T {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); ; {
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

// answering is a server that gives these answers in turn, and the last of them for ever, and
// the user of it.
func answering(t *testing.T, answers ...string) *user {
	t.Helper()
	var mu sync.Mutex
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		status, body, _ := strings.Cut(answers[0], " ")
		if len(answers) > 1 {
			answers = answers[1:]
		}
		code, err := strconv.Atoi(status)
		if err != nil {
			panic(err)
		}
		if code == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", "1")
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return newUser(t, "SUREHOOK_SERVER="+s.URL, "SUREHOOK_TOKEN="+operatorToken)
}

// A server that is busy, or away for a moment, has not said no.
func TestBusyServer(t *testing.T) {
	t.Parallel()
	const away = `503 {"title":"Service Unavailable","detail":"the database does not answer just now: try again"}`
	a := answering(t, away).run("deliveries")
	require.Equal(t, 2, a.code)
	require.Contains(t, a.errs, "the server answered 503: the database does not answer just now")
	a = answering(t, away).run("redeliver", "dlv_1", "dlv_2")
	require.Equal(t, 2, a.code)
	require.Contains(t, a.errs, "dlv_1 is not sent again: the server answered 503")
	a = answering(t, away).run("listen", "-to", "http://localhost/")
	require.Equal(t, 2, a.code)
	a = answering(t, "429", `200 {"data":[]}`).run("deliveries")
	require.Equal(t, answer{0, "there are none\n", ""}, a)
	require.Equal(t, "warn", answering(t, away).doctor().of("token"), "nothing is known of it")
	a = answering(t, away).run("replay", "-follow", "job_1")
	require.Equal(t, 2, a.code)
	require.Contains(t, a.errs, "surehook replay -follow job_1 looks on")

	const job = `200 {"id":"job_1","kind":"replay",`
	a = answering(t, job+`"status":"running"}`, away, job+`"status":"succeeded","result":{"matched":3,"replayed":3}}`).run("replay", "-follow", "job_1")
	require.Equal(t, answer{0, "finished: 3 of 3 sent again, 0 skipped\n", a.errs}, a)
	require.Contains(t, a.errs, "try again): again in 1s\n")
}
