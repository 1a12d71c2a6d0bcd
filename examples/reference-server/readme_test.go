package main_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/porttest"
)

// The walk-through of the README runs as it is printed, with two exceptions: other ports,
// since these could be taken here, and programs that are built in place of "go run".
func TestReadmeWalkThrough(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	var blocks []string
	for _, m := range regexp.MustCompile("(?s)```sh\n(.*?)\n```").FindAllStringSubmatch(string(text), -1) {
		blocks = append(blocks, m[1])
	}
	require.Len(t, blocks, 7, "the server, five calls, and the consumer between the last two")

	dir := t.TempDir()
	consumer := filepath.Join(dir, "consumer")
	out, err := building(t.Context(), consumer, "../consumer").CombinedOutput()
	require.NoError(t, err, "%s", out)
	// 127.0.0.1:0 will not do: the callback URL is registered before anybody listens.
	ports := strings.NewReplacer("127.0.0.1:8080", porttest.Reserved(t), "127.0.0.1:9090", porttest.Reserved(t),
		"go run ./examples/reference-server", binary+" -addr 127.0.0.1:8080", "go run ./examples/consumer", consumer+" -addr 127.0.0.1:9090 -server http://127.0.0.1:8080")
	shell := func(block string) string {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", ports.Replace(ports.Replace(block)))
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	server := background(t, dir, ports.Replace(ports.Replace(blocks[0])))
	server.says(t, "listening on http://")
	require.Contains(t, shell(blocks[1]), `"id":"wsub_`)
	require.Contains(t, shell(blocks[2]), `"id":"sub_ada"`)
	eventually(t, "a failed attempt", func() string { return shell(blocks[3]) }, func(s string) bool {
		return strings.Contains(s, `"last_error_class":"connect"`)
	})
	eventually(t, "a notice of the dead letter", func() string { return shell(blocks[4]) }, func(s string) bool {
		return strings.Contains(s, `"kind":"delivery.dead_lettered"`)
	})
	listening := background(t, dir, ports.Replace(ports.Replace(blocks[5])))
	listening.says(t, "listening on http://")
	require.Contains(t, shell(blocks[6]), `"kind":"replay"`)
	listening.says(t, "applied subscriber.created sub_ada, version 1")
	eventually(t, "the delivery", func() string { return shell(blocks[3]) }, func(s string) bool { return strings.Contains(s, `"status":"delivered"`) })
}

// terminal is a command that runs until the test ends.
type terminal struct {
	mu  sync.Mutex
	out strings.Builder
}

func background(t *testing.T, dir, command string) *terminal {
	t.Helper()
	cmd := exec.Command("sh", "-c", "exec env "+command)
	cmd.Dir = dir
	r, w, err := os.Pipe()
	require.NoError(t, err)
	cmd.Stdout, cmd.Stderr = w, w
	require.NoError(t, cmd.Start())
	require.NoError(t, w.Close())
	b := &terminal{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		lines := bufio.NewReader(r)
		for {
			line, err := lines.ReadString('\n')
			b.mu.Lock()
			b.out.WriteString(line)
			b.mu.Unlock()
			if err == io.EOF {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		<-done
		if t.Failed() {
			t.Logf("%s\n%s", command, b.text())
		}
	})
	return b
}

func (b *terminal) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.out.String()
}

func (b *terminal) says(t *testing.T, words string) {
	t.Helper()
	eventually(t, words, b.text, func(s string) bool { return strings.Contains(s, words) })
}
