//go:build linux

package servertest

import (
	"bytes"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"text/template"
	"time"
)

// A server that does not listen after this time will not.
const startingTime = 2 * time.Minute

// Server is a program that runs in a folder of its own.
type Server struct {
	// Folder is where it runs, and has its configuration and its logs. It is removed when
	// the test ends.
	Folder string

	t          testing.TB
	program    string
	credential *syscall.Credential
	ports      []int
	stdin      io.WriteCloser
	keeper     *exec.Cmd
}

// keeper runs a server and stays beside it. Its standard input ends when the test has
// ended or when our process is gone. Then it asks its process group to end, so that a
// server removes its files outside of the folder. It removes the folder, and kills the
// group: the server, the server's children, and itself.
const keeper = `
folder=$1
shift
trap : TERM
end() { cd / && rm -rf "$folder"; kill -KILL 0; }
cd "$folder" || exit 1
{ trap : TERM; "$@" >>log 2>&1 </dev/null; echo ended; } &
server=$!
read -r _
kill -TERM 0
{ sleep 5; end; } &
wait $server
end
`

// New returns a server that is not started yet, see [Find]. The program must stay in the
// foreground.
func New(t testing.TB, program string) *Server {
	t.Helper()
	s := &Server{t: t, program: Find(t, program)}
	var err error
	if s.credential, err = unprivileged(); err != nil {
		t.Fatal(err)
	}
	if s.Folder, err = os.MkdirTemp("", "surehook-"+program+"-"); err != nil { //nolint:usetesting // another user must get there
		t.Fatalf("servertest: %v", err)
	}
	t.Cleanup(s.stop)
	if s.credential != nil {
		if err := os.Chown(s.Folder, int(s.credential.Uid), int(s.credential.Gid)); err != nil {
			t.Fatalf("servertest: %v", err)
		}
	}
	return s
}

// Port returns a port on which the server is to listen. See the function [Port].
func (s *Server) Port() int {
	s.t.Helper()
	port := Port(s.t)
	s.ports = append(s.ports, port)
	return port
}

// Write puts a file into the folder and returns its path: a text/template with data, or
// the text as it is if data is nil.
func (s *Server) Write(name, text string, data any) (path string) {
	s.t.Helper()
	if data != nil {
		parsed, err := template.New(name).Option("missingkey=error").Parse(text)
		if err != nil {
			s.t.Fatalf("servertest: %v", err)
		}
		var out bytes.Buffer
		if err := parsed.Execute(&out, data); err != nil {
			s.t.Fatalf("servertest: %v", err)
		}
		text = out.String()
	}
	path = filepath.Join(s.Folder, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		s.t.Fatalf("servertest: %v", err)
	}
	return path
}

// Run runs another program to its end, in the folder and as the server's user, before the
// server is started: one that makes its data.
func (s *Server) Run(program string, args ...string) {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), Find(s.t, program), args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.credential}
	cmd.Dir, cmd.Env = s.Folder, append(os.Environ(), "LC_ALL=C", "HOME="+s.Folder)
	if said, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("servertest: %s: %v. It said:\n%s", program, err, said)
	}
}

// Start starts the server and returns when it listens on all of its ports.
func (s *Server) Start(args ...string) {
	s.t.Helper()
	s.keeper = exec.Command("/bin/sh", append([]string{"-c", keeper, "sh", s.Folder, s.program}, args...)...) //nolint:noctx // it lives until its standard input ends
	// It has a session of its own: its process group is killed at the end.
	s.keeper.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: s.credential}
	s.keeper.Env = append(os.Environ(), "LC_ALL=C", "HOME="+s.Folder)
	s.keeper.Dir = "/"
	var err error
	if s.stdin, err = s.keeper.StdinPipe(); err != nil {
		s.t.Fatalf("servertest: %v", err)
	}
	said, err := s.keeper.StdoutPipe()
	if err != nil {
		s.t.Fatalf("servertest: %v", err)
	}
	if err := s.keeper.Start(); err != nil {
		s.keeper = nil
		s.t.Fatalf("servertest: starting %s: %v", s.program, err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = said.Read(make([]byte, 1))
	}()
	for _, port := range s.ports {
		s.await(port, ended)
	}
}

// await waits until something listens on a port, which can only be the server.
func (s *Server) await(port int, ended <-chan struct{}) {
	s.t.Helper()
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	deadline := time.After(startingTime)
	for {
		conn, err := net.Dial("tcp", address) //nolint:noctx // on loopback it is there or not
		if err == nil {
			_ = conn.Close()
			return
		}
		select { // poll
		case <-ended:
			s.t.Fatalf("servertest: %s has ended. It said:\n%s", s.program, s.Log())
		case <-deadline:
			s.t.Fatalf("servertest: %s does not listen on %s after %s. It said:\n%s", s.program, address, startingTime, s.Log())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// Process returns the id of a process that the server writes to a file of the folder.
func (s *Server) Process(file string) int {
	s.t.Helper()
	for deadline := time.Now().Add(startingTime); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) { // poll
		if pid, err := strconv.Atoi(strings.TrimSpace(s.Read(file))); err == nil {
			return pid
		}
	}
	s.t.Fatalf("servertest: %s has written no process's id to %s after %s. It said:\n%s", s.program, file, startingTime, s.Log())
	return 0
}

// Log returns what the server wrote to its standard output and error.
func (s *Server) Log() string { return s.Read("log") }

// Read returns a file of the folder; "" if there is none.
func (s *Server) Read(name string) string {
	text, err := os.ReadFile(filepath.Join(s.Folder, name))
	if err != nil && !os.IsNotExist(err) {
		s.t.Errorf("servertest: %v", err)
	}
	return string(text)
}

func (s *Server) stop() {
	if s.keeper != nil {
		_ = s.stdin.Close()
		_ = s.keeper.Wait() // it kills itself
	}
	if err := os.RemoveAll(s.Folder); err != nil {
		s.t.Errorf("servertest: %v", err)
	}
}
