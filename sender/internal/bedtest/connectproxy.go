package bedtest

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
type ConnectProxy struct {
	Server  *httptest.Server
	Tunnels sync.WaitGroup

	Mu    sync.Mutex
	Asked []string // what CONNECT named
	Auth  []string
}

// url is the proxy's, with credentials.
func (p *ConnectProxy) Url(t *testing.T) *url.URL {
	u, err := url.Parse(p.Server.URL)
	require.NoError(t, err)
	u.Host = "localhost:" + u.Port() // for which the certificate is
	u.User = url.UserPassword("operator", "hunter2")
	return u
}

func (p *ConnectProxy) Requests() (asked, auth []string) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	return p.Asked, p.Auth
}

func (p *ConnectProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.Mu.Lock()
	p.Asked, p.Auth = append(p.Asked, r.Method+" "+r.Host), append(p.Auth, r.Header.Get("Proxy-Authorization"))
	p.Mu.Unlock()
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
	p.Tunnels.Add(2)
	pipe := func(to, from net.Conn) {
		defer p.Tunnels.Done()
		_, _ = io.Copy(to, from)
		to.Close()
		from.Close()
	}
	_, _ = io.WriteString(in, "HTTP/1.1 200 Connection established\r\n\r\n")
	go pipe(out, in)
	go pipe(in, out)
}

func NewConnectProxy(t *testing.T, certificate *tls.Certificate) *ConnectProxy {
	t.Helper()
	p := &ConnectProxy{}
	p.Server = httptest.NewUnstartedServer(p)
	if certificate != nil {
		p.Server.TLS = &tls.Config{Certificates: []tls.Certificate{*certificate}}
		p.Server.StartTLS()
	} else {
		p.Server.Start()
	}
	t.Cleanup(func() {
		p.Server.Close()
		p.Tunnels.Wait()
	})
	return p
}

// atLocalhost is a loopback URL by name, so that it must be resolved.
func AtLocalhost(url string) string { return strings.Replace(url, "127.0.0.1", "localhost", 1) }

// listen serves every connection with a function, or refuses all if it is nil.
func Listen(t *testing.T, serve func(net.Conn)) (address string, stop func()) {
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
