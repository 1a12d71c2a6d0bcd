package docs_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/porttest"
	"github.com/surehook/surehook/sender/postgres/postgrestest"
)

const tutorial = "docs/tutorial.md"

// The tutorial is followed step by step. Its programs differ from what is printed in their
// addresses alone, and what it says they print is what they print.
func TestTutorial(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a program cannot be interrupted on Windows")
	}
	billing, shop := postgrestest.Pool(t), postgrestest.Pool(t)
	addresses := strings.NewReplacer("127.0.0.1:8080", porttest.Reserved(t), "127.0.0.1:8081", porttest.Reserved(t))
	programs := buildPrograms(t, addresses)
	here := addresses.Replace("http://127.0.0.1:8081")

	for _, program := range programs {
		requireDatabase(t, program)
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	produces := []string{"DATABASE_URL=" + billing.Config().ConnString(), "SEALING_KEY=" + base64.StdEncoding.EncodeToString(key)}
	producer := start(t, programs["producer"], produces...)
	secret := producer.says("the secret of acme: ")
	listens(t, addresses.Replace("127.0.0.1:8081"))
	require.Equal(t, "done\n", call(t, http.MethodPost, here+"/invoices/in_1/paid"))
	list := prints(t, here, "failed", addresses)
	id := regexp.MustCompile(`^[a-z0-9_]+`).FindString(list)

	consumer := start(t, programs["consumer"], "DATABASE_URL="+shop.Config().ConnString(), "WEBHOOK_SECRET="+secret)
	listens(t, addresses.Replace("127.0.0.1:8080"))
	require.Equal(t, "done\n", call(t, http.MethodPost, here+"/deliveries/"+id))
	consumer.says("invoice in_1 is paid (version 1)")
	prints(t, here, "delivered", addresses)
	var state string
	require.NoError(t, shop.QueryRow(t.Context(), "SELECT state FROM copies WHERE id = 'in_1'").Scan(&state))
	require.Equal(t, "paid", state)

	require.Equal(t, "done\n", call(t, http.MethodPost, here+"/deliveries/"+id), "once more")
	for !strings.Contains(call(t, http.MethodGet, here+"/deliveries"), "attempts: 3") {
		time.Sleep(20 * time.Millisecond) // the test's own time ends it
	}
	producer.interrupt()
	rest := consumer.interrupt()
	require.NotContains(t, rest, "invoice in_1", "a duplicate has no effect")

	producer = start(t, programs["producer"], produces...)
	require.Equal(t, secret, producer.says("the secret of acme: "), "of a second start")
	listens(t, addresses.Replace("127.0.0.1:8081"))
	producer.interrupt()
}

// requireDatabase makes sure that a program asks for a database. There is no server where
// pgx looks without one.
func requireDatabase(t *testing.T, program string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), program)
	c.Env = []string{"PGHOST=" + t.TempDir(), "SEALING_KEY=AAAA", "WEBHOOK_SECRET=whsec_AAAA"}
	out, err := c.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "DATABASE_URL is not set")
}

// prints waits until the list is as the page prints it. Ids and times differ, and each is
// one word.
func prints(t *testing.T, here, about string, addresses *strings.Replacer) string {
	t.Helper()
	want := regexp.QuoteMeta(addresses.Replace(named(t, tutorial, "prints", about).text))
	want = regexp.MustCompile(`dlv_[0-9a-z_]+`).ReplaceAllString(want, `\S+`)
	want = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:\\.]+Z`).ReplaceAllString(want, `\S+Z`)
	matches := regexp.MustCompile("^" + want + "$")
	got := ""
	for deadline := time.Now().Add(30 * time.Second); !matches.MatchString(got); {
		require.True(t, time.Now().Before(deadline), "the list is\n%s\nand must match\n%s", got, want)
		time.Sleep(20 * time.Millisecond)
		got = call(t, http.MethodGet, here+"/deliveries")
	}
	return got
}

func call(t *testing.T, method, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, answer.StatusCode, string(text))
	return string(text)
}

// buildPrograms compiles the page's files as a reader does, and returns the programs by
// the names of their folders.
func buildPrograms(t *testing.T, replace *strings.Replacer) map[string]string {
	t.Helper()
	files, programs := map[string]string{}, map[string]string{}
	for _, b := range blocks(t) {
		if b.page == tutorial && b.mark == "file" {
			files[b.about] = replace.Replace(b.text)
		}
	}
	folder := readers(t, files)
	for file := range files {
		name := filepath.Dir(file)
		programs[name] = filepath.Join(folder, "programs", name)
	}
	goTool(t, folder, "build", "-ldflags=-s -w", "-o", "programs/", "./...")
	return programs
}

// program is one that runs.
type program struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines chan string
}

func start(t *testing.T, file string, env ...string) *program {
	t.Helper()
	p := &program{t: t, cmd: exec.CommandContext(t.Context(), file), lines: make(chan string, 1000)}
	p.cmd.Dir, p.cmd.Env = t.TempDir(), append(os.Environ(), env...)
	said, err := p.cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	go func() {
		defer close(p.lines)
		for s := bufio.NewScanner(said); s.Scan(); {
			p.lines <- s.Text()
		}
	}()
	t.Cleanup(func() { // the context has ended, and so has the program
		if p.cmd.ProcessState == nil {
			_ = p.cmd.Wait()
		}
	})
	return p
}

// says waits for a line with the text, and returns what comes after it.
func (p *program) says(text string) string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 2*time.Minute)
	defer cancel()
	for {
		select {
		case line, open := <-p.lines:
			require.True(p.t, open, "the program has ended without saying %q", text)
			if _, after, found := strings.Cut(line, text); found {
				return after
			}
			p.t.Log(line)
		case <-ctx.Done():
			require.FailNow(p.t, "the program does not say it", text)
		}
	}
}

// interrupt is Ctrl-C. It returns what the program has said since.
func (p *program) interrupt() (rest string) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(os.Interrupt))
	for line := range p.lines {
		rest += line + "\n"
	}
	require.NoError(p.t, p.cmd.Wait(), rest)
	return rest
}

func listens(t *testing.T, address string) {
	t.Helper()
	require.Eventually(t, func() bool {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}, 2*time.Minute, 10*time.Millisecond)
}
