package sender_test

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/surehook/surehook/internal/porttest"
)

// connectProxy is an HTTP proxy that makes tunnels.
type connectProxy struct {
	server  *httptest.Server
	tunnels sync.WaitGroup

	mu    sync.Mutex
	asked []string // what CONNECT named
	auth  []string
}

// url is the proxy's, with credentials.
func (p *connectProxy) url(t *testing.T) *url.URL {
	u, err := url.Parse(p.server.URL)
	require.NoError(t, err)
	u.Host = "localhost:" + u.Port() // for which the certificate is
	u.User = url.UserPassword("operator", "hunter2")
	return u
}

func (p *connectProxy) requests() (asked, auth []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked, p.auth
}

func (p *connectProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.asked, p.auth = append(p.asked, r.Method+" "+r.Host), append(p.auth, r.Header.Get("Proxy-Authorization"))
	p.mu.Unlock()
	if r.Method != http.MethodConnect {
		http.Error(w, "tunnels only", http.StatusMethodNotAllowed)
		return
	}
	out, err := net.Dial("tcp", r.Host)
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

func newConnectProxy(t *testing.T, certificate *tls.Certificate) *connectProxy {
	t.Helper()
	p := &connectProxy{}
	p.server = httptest.NewUnstartedServer(p)
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

// atLocalhost is a loopback URL by name, so that it must be resolved.
func atLocalhost(url string) string { return strings.Replace(url, "127.0.0.1", "localhost", 1) }

// listen serves every connection with a function, or refuses all if it is nil.
func listen(t *testing.T, serve func(net.Conn)) (address string, stop func()) {
	t.Helper()
	if serve == nil {
		return porttest.Refusing(t), func() {}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer conn.Close()
				serve(conn)
			})
		}
	})
	return l.Addr().String(), func() {
		_ = l.Close()
		serving.Wait()
	}
}
