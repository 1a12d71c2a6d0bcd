package bedtest

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// CertServer demands client certificates, and counts its connections.
type CertServer struct {
	*httptest.Server
	Hold chan struct{} // if not nil, answers wait until it is closed

	mu     sync.Mutex
	names  []string
	open   map[net.Conn]bool
	opened int
	closed chan<- struct{}
}

// NewCertServer starts a server at localhost, until the test ends, for the clients that an
// authority has certified.
func NewCertServer(t *testing.T, a *Authority) *CertServer {
	t.Helper()
	s := &CertServer{open: map[net.Conn]bool{}}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.names = append(s.names, r.TLS.PeerCertificates[0].Subject.CommonName)
		s.mu.Unlock()
		if s.Hold != nil {
			<-s.Hold
		}
	}))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{a.Server("localhost")}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: a.Pool}
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

// Count returns how many connections are open, how many have been opened, and whose
// certificates came, in the order of the requests.
func (s *CertServer) Count() (open, opened int, names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open), s.opened, s.names
}

// NotifyClosed sends to a channel for each connection that ends from now on.
func (s *CertServer) NotifyClosed(closed chan<- struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = closed
}
