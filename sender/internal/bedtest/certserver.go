package bedtest

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
type CertServer struct {
	*httptest.Server
	Hold chan struct{} // if not nil, requests wait for it

	Mu     sync.Mutex
	Names  []string // whose certificates came, in order
	Open   map[net.Conn]bool
	Opened int
	Closed chan struct{} // if not nil, each connection that ends is told
}

func NewCertServer(t *testing.T, a *Authority) *CertServer {
	t.Helper()
	s := &CertServer{Open: map[net.Conn]bool{}}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		s.Mu.Lock()
		s.Names = append(s.Names, r.TLS.PeerCertificates[0].Subject.CommonName)
		s.Mu.Unlock()
		if s.Hold != nil {
			<-s.Hold
		}
	}))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{a.Server("localhost")}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: a.Pool}
	s.Config.ConnState = func(conn net.Conn, state http.ConnState) {
		s.Mu.Lock()
		defer s.Mu.Unlock()
		switch state {
		case http.StateNew:
			s.Open[conn], s.Opened = true, s.Opened+1
		case http.StateClosed, http.StateHijacked:
			delete(s.Open, conn)
			if s.Closed != nil {
				s.Closed <- struct{}{}
			}
		}
	}
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // it tells of the handshakes that the test makes fail
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func (s *CertServer) Count() (open, opened int, names []string) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return len(s.Open), s.Opened, s.Names
}

// until waits for what other goroutines are about to do.
func Until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !done(); runtime.Gosched() {
		require.True(t, time.Now().Before(deadline), what)
	}
}
