package sender_test

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// certServer demands client certificates, and counts its connections.
type certServer struct {
	*httptest.Server
	hold chan struct{} // if not nil, requests wait for it

	mu     sync.Mutex
	names  []string // whose certificates came, in order
	open   map[net.Conn]bool
	opened int
	closed chan struct{} // if not nil, each connection that ends is told
}

func newCertServer(t *testing.T, a *authority) *certServer {
	t.Helper()
	s := &certServer{open: map[net.Conn]bool{}}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.names = append(s.names, r.TLS.PeerCertificates[0].Subject.CommonName)
		s.mu.Unlock()
		if s.hold != nil {
			<-s.hold
		}
	}))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{a.server("localhost")}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: a.pool}
	s.Config.ConnState = func(conn net.Conn, state http.ConnState) {
		s.mu.Lock()
		defer s.mu.Unlock()
		switch state {
		case http.StateNew:
			s.open[conn], s.opened = true, s.opened+1
		case http.StateClosed, http.StateHijacked:
			delete(s.open, conn)
			if s.closed != nil {
				s.closed <- struct{}{}
			}
		}
	}
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // it tells of the handshakes that the test makes fail
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func (s *certServer) count() (open, opened int, names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open), s.opened, s.names
}

// until waits for what other goroutines are about to do.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !done(); runtime.Gosched() {
		require.True(t, time.Now().Before(deadline), what)
	}
}
