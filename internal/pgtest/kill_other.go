//go:build !unix

package pgtest

import "errors"

// Kill cannot find the server's processes here.
func (s *Server) Kill() error {
	return errors.New("pgtest: killing a server: its processes are found in /proc, which this system lacks")
}
