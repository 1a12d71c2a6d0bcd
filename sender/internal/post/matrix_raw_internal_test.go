//go:build linux

package post

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
)

// rawRows are servers that say what no library says.
func rawRows(m *matrix) {
	for name, version := range map[string]uint16{"clear": 0, "TLS 1.2": tls.VersionTLS12, "TLS 1.3": tls.VersionTLS13} {
		var config *tls.Config
		if version != 0 {
			config = &tls.Config{Certificates: []tls.Certificate{m.authority.Pair()}, MinVersion: version, MaxVersion: version}
		}
		of := func(what string) string { return what + ", " + name }
		for _, status := range []int{200, 500} {
			class := sender.ClassNone
			if status != 200 {
				class = sender.ClassStatus
			}
			for what, pause := range map[string]time.Duration{"": 0, ", with pauses": 20 * time.Millisecond} {
				var reached ledger
				base := serveRaw(m.T, config, func(c net.Conn, r *bufio.Reader) { answerTwice(c, r, status, &reached) })
				m.exact(row{name: of(fmt.Sprintf("%d and an unasked 200%s", status, what)), url: base, record: reached.read, posts: 4, pause: pause,
					way: way{peerTimeout: 2 * time.Second}, status: status, class: class, connections: 4, peerRaces: true})
			}
		}
		m.exact(row{name: of("101"), status: 101, class: sender.ClassStatus, connections: 3, url: serveRaw(m.T, config, func(c net.Conn, r *bufio.Reader) {
			if _, err := readRequest(r); err == nil {
				_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			}
		})})
	}
	for what, r := range map[string]row{
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n": {status: 200, text: "the answer's body is malformed"},
		"220 mail ESMTP\r\n": {text: "the answer is not valid HTTP/1.1"},
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok": {text: "the answer is not valid HTTP/1.1"},
	} {
		r.name, r.class, r.connections = fmt.Sprintf("%q", what), sender.ClassProtocol, 3
		r.url = serveRaw(m.T, nil, func(c net.Conn, r *bufio.Reader) {
			if _, err := readRequest(r); err == nil {
				_, _ = io.WriteString(c, what)
			}
		})
		m.exact(r)
	}
	certificateRows(m)
	familyRows(m)
}

// answerTwice answers the first request of a connection, and at once one that nobody has
// made. It never answers another.
func answerTwice(c net.Conn, r *bufio.Reader, status int, reached *ledger) {
	id, err := readRequest(r)
	if err != nil {
		return
	}
	reached.add(id, status)
	first := fmt.Sprintf("HTTP/1.1 %d Said\r\nContent-Length: 2\r\n\r\n{}", status)
	const unasked = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
	if secure, ok := c.(*tls.Conn); ok {
		one := secure.NetConn().(*segment)
		one.hold()
		_, _ = io.WriteString(c, first)
		_, _ = io.WriteString(c, unasked) // another record
		one.send()
	} else {
		_, _ = io.WriteString(c, first+unasked)
	}
	if id, err = readRequest(r); err == nil {
		reached.add(id, 0)
		_, _ = io.Copy(io.Discard, r)
	}
}

// readRequest returns the Webhook-Id of the next request.
func readRequest(r *bufio.Reader) (id string, err error) {
	request, err := http.ReadRequest(r)
	if err != nil {
		return "", err
	}
	_, err = io.Copy(io.Discard, request.Body)
	return request.Header.Get("Webhook-Id"), err
}

// segment is a connection that can put several writes into one, below TLS.
type segment struct {
	net.Conn
	holding bool
	held    []byte
}

func (s *segment) hold() { s.holding = true }

func (s *segment) send() {
	s.holding = false
	_, _ = s.Conn.Write(s.held)
}

// Write implements io.Writer.
func (s *segment) Write(p []byte) (int, error) {
	if !s.holding {
		return s.Conn.Write(p)
	}
	s.held = append(s.held, p...)
	return len(p), nil
}

// serveRaw serves each connection with a function and closes it then, and returns the
// server's URL.
func serveRaw(t *testing.T, config *tls.Config, serve func(net.Conn, *bufio.Reader)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var (
		mu      sync.Mutex
		open    []net.Conn
		serving sync.WaitGroup
	)
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for _, c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		serving.Wait()
	})
	scheme := "http"
	if config != nil {
		scheme = "https"
	}
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, c)
			mu.Unlock()
			if config != nil {
				c = tls.Server(&segment{Conn: c}, config)
			}
			serving.Go(func() {
				defer c.Close()
				serve(c, bufio.NewReader(c))
			})
		}
	})
	return scheme + "://" + l.Addr().String()
}

// certificateRows ask for a client certificate in the handshake. With TLS 1.3 the client
// has sent its request before it learns that it was refused.
func certificateRows(m *matrix) {
	for name, version := range map[string]uint16{"TLS 1.2": tls.VersionTLS12, "TLS 1.3": tls.VersionTLS13} {
		var reached ledger
		asks := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			reached.add(r.Header.Get("Webhook-Id"), http.StatusOK)
			keeps(w)
		}))
		asks.Config.ErrorLog = log.New(io.Discard, "", 0)
		asks.TLS = &tls.Config{Certificates: []tls.Certificate{m.authority.Pair()}, MinVersion: version, MaxVersion: version,
			ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: m.authority.Pool()}
		asks.StartTLS()
		m.Cleanup(asks.Close)
		for _, body := range []int{0, 30 << 10, 200 << 10} {
			var or sender.Class
			if version == tls.VersionTLS13 && body > 0 {
				or = sender.ClassReset // the server's reset can come before its alert was read
			}
			of := func(what string) string { return fmt.Sprintf("%s, %d bytes, %s", what, body, name) }
			m.exact(
				row{name: of("a client certificate is demanded and not given"), url: asks.URL, body: body, record: reached.read, posts: 10, untouched: true, class: sender.ClassTLS, or: or},
				row{name: of("a client certificate is given"), url: asks.URL, body: body, record: reached.read, way: way{certificate: true}, posts: 6, status: 200, connections: 1},
			)
		}
	}
}

// familyRows have an address of each family, and a name that has both on some machines.
func familyRows(m *matrix) {
	for address, hosts := range map[string][]string{"127.0.0.1:0": {"127.0.0.1", "localhost"}, "[::1]:0": {"[::1]"}} {
		l, err := net.Listen("tcp", address)
		require.NoError(m, err)
		var reached ledger
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			reached.add(r.Header.Get("Webhook-Id"), http.StatusOK)
			keeps(w)
		})}
		go func() { _ = server.Serve(l) }()
		m.Cleanup(func() { _ = server.Close() })
		for _, host := range hosts {
			m.exact(row{name: "at " + host, url: fmt.Sprintf("http://%s:%d", host, l.Addr().(*net.TCPAddr).Port), record: reached.read, posts: 6, status: 200, connections: 1})
		}
	}
}
