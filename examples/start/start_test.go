// Package start_test runs the two programs that README shows against each other.
package start_test

import (
	"bufio"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/porttest"
	"github.com/surehook/surehook/sender/postgres/postgrestest"
)

// build compiles a program in which some texts are replaced by others, and returns its file.
func build(t *testing.T, program string, replace ...string) string {
	t.Helper()
	source, err := filepath.Abs(filepath.Join(program, "main.go"))
	require.NoError(t, err)
	text, err := os.ReadFile(source)
	require.NoError(t, err)
	for i := 0; i < len(replace); i += 2 {
		require.Equal(t, 1, strings.Count(string(text), replace[i]), "of what is replaced: %s", replace[i])
	}
	folder := t.TempDir()
	changed, overlay, file := filepath.Join(folder, "main.go"), filepath.Join(folder, "overlay.json"), filepath.Join(folder, program+".exe")
	require.NoError(t, os.WriteFile(changed, []byte(strings.NewReplacer(replace...).Replace(string(text))), 0o600))
	replacement, err := json.Marshal(map[string]any{"Replace": map[string]string{source: changed}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(overlay, replacement, 0o600))
	out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-w", "-overlay", overlay, "-o", file, "./"+program).CombinedOutput()
	require.NoError(t, err, string(out))
	return file
}

// start runs a program in a folder of its own until the test ends, and returns what it logs.
func start(t *testing.T, file string, env ...string) (p *exec.Cmd, log io.Reader) {
	t.Helper()
	p = exec.CommandContext(t.Context(), file)
	p.Dir, p.Env = t.TempDir(), append(os.Environ(), env...)
	log, err := p.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, p.Start())
	t.Cleanup(func() { // the context has ended, and so has the program
		if p.ProcessState == nil {
			_ = p.Wait()
		}
	})
	return p, log
}

// The customer starts its consumer once it has its secret. Its URL is there before, and
// whoever posts to it waits.
func TestProducerAndConsumer(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a program cannot be interrupted on Windows")
	}
	pool := postgrestest.Pool(t)
	dsn := pool.Config().ConnString()
	address := porttest.Reserved(t)
	consumer := build(t, "consumer", `":8080"`, `"`+address+`"`)
	ready := make(chan struct{})
	forward := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: address})
	customer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-ready:
			forward.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(customer.Close)
	producer := build(t, "producer", "https://customer.example", customer.URL,
		"Key: key}, nil)", "Key: key}, &surehook.SenderConfig{Network: sender.Network{AllowPrivateNetworks: true}})")

	requireDatabase(t, producer)
	requireDatabase(t, consumer)
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	beside := another(t, pool, "invoices")
	sending, log := start(t, producer, "DATABASE_URL="+dsn, "SEALING_KEY="+base64.StdEncoding.EncodeToString(key))
	beside()
	lines := bufio.NewScanner(log)
	secret := ""
	for secret == "" {
		require.True(t, lines.Scan(), "the producer has ended without a secret")
		_, secret, _ = strings.Cut(lines.Text(), "the customer's secret: ")
	}
	go func() { _, _ = io.Copy(io.Discard, log) }()

	beside = another(t, pool, "copies")
	_, applied := start(t, consumer, "DATABASE_URL="+dsn, "WEBHOOK_SECRET="+secret)
	go func() { _, _ = io.Copy(io.Discard, applied) }()
	beside()
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}, 2*time.Minute, 10*time.Millisecond)
	close(ready)

	require.Eventually(t, func() bool {
		var state string
		err := pool.QueryRow(t.Context(), "SELECT state FROM copies WHERE state = 'paid'").Scan(&state)
		return err == nil && state == "paid"
	}, 2*time.Minute, 20*time.Millisecond)
	require.NoError(t, sending.Process.Signal(syscall.SIGTERM)) // of systemd and Kubernetes
	require.NoError(t, sending.Wait(), "it drains, and ends")
}

// another is a first process of the same program that is about to make its table. It goes on
// once the function that is returned has seen somebody wait for it.
func another(t *testing.T, pool *pgxpool.Pool, table string) (goOn func()) {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "SELECT pg_advisory_xact_lock(1); CREATE TABLE IF NOT EXISTS "+table+" (id text PRIMARY KEY, state text)")
	require.NoError(t, err)
	return func() {
		t.Helper()
		require.Eventually(t, func() bool {
			var waiting bool
			err := pool.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE $1 = ANY(pg_blocking_pids(pid)))", tx.Conn().PgConn().PID()).Scan(&waiting)
			return err == nil && waiting
		}, 2*time.Minute, 10*time.Millisecond)
		require.NoError(t, tx.Commit(t.Context()))
	}
}

// requireDatabase makes sure that a program asks for a database. There is no server where
// pgx looks without one.
func requireDatabase(t *testing.T, program string) {
	t.Helper()
	p := exec.CommandContext(t.Context(), program)
	p.Env = []string{"PGHOST=" + t.TempDir(), "SEALING_KEY=AAAA", "WEBHOOK_SECRET=whsec_AAAA"}
	out, err := p.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "DATABASE_URL is not set")
}

// README shows what is run here.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	for _, folder := range []string{"producer", "consumer"} {
		text, err := os.ReadFile(filepath.Join(folder, "main.go"))
		require.NoError(t, err)
		_, program, found := strings.Cut(string(text), "\npackage main\n")
		require.True(t, found)
		require.Contains(t, string(readme), "```go\npackage main\n"+program+"```\n")
	}
}
