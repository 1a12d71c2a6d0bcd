//go:build linux

package servertest_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/servertest"
)

// childEnv has the instructions for a process of this test's own binary.
const childEnv = "SUREHOOK_TEST_SERVERTEST"

// family starts a child of its own, as servers do.
const family = "sleep 600 & sleep 600"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		os.Args = append(os.Args, "-test.run=^TestInChild$")
	}
	os.Exit(m.Run())
}

// TestInChild runs in the processes of child.
func TestInChild(t *testing.T) {
	switch os.Getenv(childEnv) {
	case "":
		return // the tests that start the child are those that count
	case "start":
		s := servertest.New(t, "sh")
		s.Start("-c", family)
		fmt.Println(s.Folder)
		select {} // until it is killed
	default:
		servertest.Find(t, os.Getenv(childEnv))
	}
}

func child(t *testing.T, what string, env ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, "-test.v")
	cmd.Env = append(append(os.Environ(), childEnv+"="+what), env...)
	return cmd
}

// A server and its children end with the test, and when the test's process is killed.
func TestServersEnd(t *testing.T) {
	var folder string
	t.Run("a test", func(t *testing.T) {
		s := servertest.New(t, "sh")
		s.Start("-c", family)
		folder = s.Folder
		require.Eventually(t, func() bool { return len(processesIn(t, folder)) >= 3 }, 30*time.Second, time.Millisecond)
	})
	requireGone(t, folder)

	cmd := child(t, "start")
	said, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(said)
	for folder = ""; !strings.HasPrefix(folder, "/"); folder = lines.Text() {
		require.True(t, lines.Scan(), "the child has ended")
	}
	require.Eventually(t, func() bool { return len(processesIn(t, folder)) >= 3 }, 30*time.Second, time.Millisecond)
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	requireGone(t, folder)
}

func requireGone(t *testing.T, folder string) {
	t.Helper()
	require.NotEmpty(t, folder)
	require.Eventually(t, func() bool { // the folder goes last
		_, err := os.Stat(folder)
		return os.IsNotExist(err) && len(processesIn(t, folder)) == 0
	}, 30*time.Second, time.Millisecond)
}

// processesIn returns the processes that run in a folder, which may have been removed.
func processesIn(t *testing.T, folder string) (pids []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cwd")
	require.NoError(t, err)
	for _, link := range all {
		if to, err := os.Readlink(link); err == nil && strings.TrimSuffix(to, " (deleted)") == folder {
			pids = append(pids, link)
		}
	}
	return pids
}

// A port is held until the test ends, and a server that is told of it can listen there.
func TestPort(t *testing.T) {
	seen := map[int]bool{}
	for range 200 {
		port := servertest.Port(t)
		require.False(t, seen[port])
		seen[port] = true
		l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
		require.NoError(t, err)
		require.NoError(t, l.Close())
		_, err = net.Dial("tcp", l.Addr().String())
		require.Error(t, err)
	}
}

// A missing program is reported aloud, and is a failure where it is required.
func TestMissing(t *testing.T) {
	const program = "surehook-no-such-server"
	output, err := child(t, program, "SUREHOOK_REQUIRE=").CombinedOutput()
	require.NoError(t, err, "%s", output)
	require.Contains(t, string(output), "NOT TESTED with "+program)
	require.Contains(t, string(output), "apt-get install "+program)
	output, err = child(t, program, "SUREHOOK_REQUIRE=postgres,"+program).CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(output), "there is no "+program)
}
