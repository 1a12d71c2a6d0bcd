package bedtest

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// ConnectProxy is an HTTP proxy that makes tunnels and does nothing else.
type ConnectProxy struct {
	server  *httptest.Server
	tunnels sync.WaitGroup

	mu    sync.Mutex
	asked []string
	auth  []string
}

// NewConnectProxy starts a proxy until the test ends. It speaks TLS if it has a
// certificate.
func NewConnectProxy(t *testing.T, certificate *tls.Certificate) *ConnectProxy {
	t.Helper()
	p := &ConnectProxy{}
	p.server = httptest.NewUnstartedServer(http.HandlerFunc(p.serve))
	if certificate != nil {
		p.server.TLS = &tls.Config{Certificates: []tls.Certificate{*certificate}}
		p.server.StartTLS()
	} else {
		p.server.Start()
	}
	t.Cleanup(func() {
		p.server.Close()
		p.tunnels.Wait()
	})
	return p
}

// URL returns the proxy's, with credentials.
func (p *ConnectProxy) URL(t *testing.T) *url.URL {
	t.Helper()
	u, err := url.Parse(p.server.URL)
	require.NoError(t, err)
	u.Host = "localhost:" + u.Port() // the certificate is for this name
	u.User = url.UserPassword("operator", "hunter2")
	return u
}

// Requests returns the method and the target of each request, and its credentials.
func (p *ConnectProxy) Requests() (asked, auth []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked, p.auth
}

func (p *ConnectProxy) serve(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.asked, p.auth = append(p.asked, r.Method+" "+r.Host), append(p.auth, r.Header.Get("Proxy-Authorization"))
	p.mu.Unlock()
	if r.Method != http.MethodConnect {
		http.Error(w, "tunnels only", http.StatusMethodNotAllowed)
		return
	}
	out, err := net.Dial("tcp", r.Host) //nolint:noctx // on loopback it is there or not
	if err != nil {
		http.Error(w, "no", http.StatusBadGateway)
		return
	}
	in, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	p.tunnels.Add(2)
	pipe := func(to, from net.Conn) {
		defer p.tunnels.Done()
		_, _ = io.Copy(to, from)
		to.Close()
		from.Close()
	}
	_, _ = io.WriteString(in, "HTTP/1.1 200 Connection established\r\n\r\n")
	go pipe(out, in)
	go pipe(in, out)
}
