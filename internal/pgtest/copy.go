package pgtest

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
)

// Copy makes a server of a base backup of s, as s is when it begins: one that is restored
// to that moment. It goes its own way from there.
func (s *Server) Copy(o Options) (*Server, error) {
	o.from = s
	return Start(o)
}

// Standby makes a server that follows s until it is promoted (SELECT pg_promote()). s must
// know its name in synchronous_standby_names, walreceiver, to wait for it.
func (s *Server) Standby(o Options) (*Server, error) {
	o.from, o.follow = s, true
	return Start(o)
}

// Dump copies what is in s's database into that of another server, which has nothing in
// it, as pg_dump and pg_restore do.
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
