//go:build !unix

package porttest

import (
	"fmt"
	"net"
)

type socket struct{}

func (socket) close() error { return nil }

// hold chooses a port and lets it go.
func hold(bool) (*Held, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it waits for nothing
	if err != nil {
		return nil, fmt.Errorf("porttest: %w", err)
	}
	return &Held{Address: l.Addr().String()}, l.Close()
}
