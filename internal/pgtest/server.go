package pgtest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/surehook/surehook/internal/porttest"
)

// Options of a server; the zero value is for tests.
type Options struct {
	// Durable keeps the server's defaults for durability: a commit is on the disk.
	// Otherwise the server never waits for the disk, and detects deadlocks soon.
	Durable bool
	// SharedBuffers as the server's configuration has it; default 32MB.
	SharedBuffers string
	// Settings are further settings of the server, by name. Their values are
	// quoted, and they override the fields above.
	Settings map[string]string
	// Folder is for the data, in a new folder that is removed at the end; default
	// os.TempDir(). A user without privileges must be able to enter it.
	Folder string
	from   *Server // the server to copy; nil: a new server
	follow bool    // and to follow, until this server is promoted
	// TCP makes the server listen on a port of 127.0.0.1 as well: see
	// [Server.Address].
	TCP bool
}

// soonDeadlock is the time after which a server looks for a deadlock, where tests would wait
// for the default, a second.
const soonDeadlock = "100ms"

// socketPort is the end of the name of a server's unix socket. The socket is alone in
// its folder.
const socketPort = "5432"

// Server is a PostgreSQL server of this process. It listens on a unix socket, and with
// Options.TCP on a port, and needs no password.
type Server struct {
	folder string
	tcp    *porttest.Held // nil without TCP
	keeper *exec.Cmd
	stdin  io.WriteCloser
	said   *bufio.Scanner // by the keeper
}

// keeper makes the server and stays beside it. After a kill it starts the server again
// for each line of its standard input. When its standard input ends, because Stop
// closed it or because our process is gone, it stops the server and removes its files.
// The server orders text by ICU, which differs from the order of bytes, so that tests
// find a statement that relies on the latter.
const keeper = `
trap "" PIPE # we may be gone before it is ready
bin=$1 dir=$2
cd "$dir" || exit 1
init() { "$bin/initdb" -D data -U postgres -A trust -E UTF8 --locale=C --no-sync "$@" >>log 2>&1; }
if [ "$3" ]; then
	"$bin/pg_basebackup" -D data -d "$3" -X stream -c fast --no-sync $4 >>log 2>&1 || { cat log; exit 1; }
else
	init --locale-provider=icu --icu-locale=en-US || { rm -rf data; init; } || { cat log; exit 1; }
fi
cat settings >>data/postgresql.conf
start() { "$bin/pg_ctl" -D data -w -t 300 -l log start >>log 2>&1 </dev/null && echo ready; }
start || { cat log; exit 1; }
while read -r _; do start || { tail -n 20 log; echo failed; }; done
"$bin/pg_ctl" -D data -w -m immediate stop >>log 2>&1
cd / && rm -rf "$dir"
`

// Start makes and starts a server, which takes a second or two. It ends with
// [Server.Stop], or with the process.
func Start(o Options) (*Server, error) {
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	as, err := unprivileged()
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp(o.Folder, "surehook-pg-")
	if err != nil {
		return nil, fmt.Errorf("pgtest: %w", err)
	}
	s := &Server{folder: folder}
	if err := s.start(o, bin, as); err != nil {
		_ = s.Stop()
		return nil, fmt.Errorf("pgtest: starting a server with %s: %w", bin, err)
	}
	return s, nil
}

func (s *Server) start(o Options, bin string, as *account) (err error) {
	if o.TCP {
		if s.tcp, err = porttest.Reserve(); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(s.folder, "settings"), []byte(s.settings(o)), 0o644); err != nil {
		return err
	}
	if as != nil {
		if err := os.Chown(s.folder, int(as.uid), int(as.gid)); err != nil {
			return err
		}
	}
	from, follow := "", ""
	if o.from != nil {
		from = "host=" + o.from.folder + " port=" + o.from.port() + " user=postgres"
	}
	if o.follow {
		follow = "-R" // pg_basebackup: write what a standby needs
	}
	s.keeper = exec.Command("/bin/sh", "-c", keeper, "sh", bin, s.folder, from, follow) //nolint:noctx // it lives until its standard input ends
	// The keeper has a session of its own: an interrupt from the keyboard must not
	// reach it before it has tidied up.
	s.keeper.SysProcAttr = session(as)
	s.keeper.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PG") }),
		"LC_ALL=C", "HOME="+s.folder)
	s.keeper.Dir = "/"
	if s.stdin, err = s.keeper.StdinPipe(); err != nil {
		return err
	}
	out, err := s.keeper.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.keeper.Start(); err != nil {
		s.keeper = nil
		return err
	}
	s.said = bufio.NewScanner(out)
	return s.ready()
}

// Restart starts a server again that was killed, and returns when it answers.
func (s *Server) Restart() error {
	if _, err := io.WriteString(s.stdin, "start\n"); err != nil {
		return fmt.Errorf("pgtest: restarting a server: %w", err)
	}
	if err := s.ready(); err != nil {
		return fmt.Errorf("pgtest: restarting a server: %w", err)
	}
	return nil
}

// ready waits until the server answers, or its keeper has given up.
func (s *Server) ready() error {
	var said strings.Builder
	for s.said.Scan() && s.said.Text() != "failed" {
		if s.said.Text() == "ready" {
			return nil
		}
		said.WriteString("\n\t" + s.said.Text())
	}
	return errors.New("it said:" + said.String())
}

func (s *Server) settings(o Options) string {
	set := map[string]string{
		"listen_addresses":        "",
		"port":                    s.port(),
		"unix_socket_directories": s.folder,
		"max_connections":         "300",
		"shared_buffers":          "32MB",
	}
	if s.tcp != nil {
		set["listen_addresses"] = "127.0.0.1"
	}
	if !o.Durable {
		set["fsync"], set["synchronous_commit"], set["full_page_writes"] = "off", "off", "off"
		set["deadlock_timeout"] = soonDeadlock
	}
	if o.SharedBuffers != "" {
		set["shared_buffers"] = o.SharedBuffers
	}
	for name, value := range o.Settings {
		set[name] = value
	}
	var text strings.Builder
	for name, value := range set {
		fmt.Fprintf(&text, "%s = '%s'\n", name, strings.ReplaceAll(value, "'", "''"))
	}
	return text.String()
}

// DSN returns the connection string, as a URL, of the unix socket. See [With].
func (s *Server) DSN() string {
	return With("postgres://postgres@/postgres?sslmode=disable&port="+s.port(), "host", s.folder)
}

// Address returns the server's host and port, for a connection that a test leads
// through a proxy; "" without [Options.TCP]. The user and the database are postgres.
// The server keeps the port until Stop, also while it is killed.
func (s *Server) Address() string {
	if s.tcp == nil {
		return ""
	}
	return s.tcp.Address
}

// port names the unix socket, too.
func (s *Server) port() string {
	if s.tcp == nil {
		return socketPort
	}
	_, port, _ := strings.Cut(s.tcp.Address, ":")
	return port
}

// Stop ends the server at once, with all of its connections, and removes its data.
func (s *Server) Stop() (err error) {
	if s.keeper != nil {
		_ = s.stdin.Close()
		if err = s.keeper.Wait(); err != nil {
			err = fmt.Errorf("pgtest: the server's keeper: %w", err)
		}
	}
	if s.tcp != nil {
		err = errors.Join(err, s.tcp.Close())
	}
	return errors.Join(err, os.RemoveAll(s.folder))
}
