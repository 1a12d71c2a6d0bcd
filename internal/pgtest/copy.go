package pgtest

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
)

// Copy makes a server from a base backup of s: a copy that was restored to the moment
// of the call. It is independent from then on.
func (s *Server) Copy(o Options) (*Server, error) {
	o.from = s
	return Start(o)
}

// Standby makes a server that follows s until it is promoted (SELECT pg_promote()). For
// s to wait for it, synchronous_standby_names of s must have its name, walreceiver.
func (s *Server) Standby(o Options) (*Server, error) {
	o.from, o.follow = s, true
	return Start(o)
}

// Dump copies s's database into the empty one of another server, with pg_dump and
// pg_restore.
func (s *Server) Dump(ctx context.Context, to *Server) error {
	bin, err := binaries()
	if err != nil {
		return err
	}
	command := `set -e; "$0/pg_dump" -Fc -d "$1" | "$0/pg_restore" --exit-on-error -d "$2"`
	out, err := exec.CommandContext(ctx, "/bin/sh", "-c", command, filepath.Clean(bin), s.DSN(), to.DSN()).CombinedOutput()
	if err != nil {
		return fmt.Errorf("pgtest: copying a database by a dump: %w: %s", err, out)
	}
	return nil
}
