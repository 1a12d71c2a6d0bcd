//go:build linux

package post

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/servertest"
	"github.com/surehook/surehook/sender"
)

func squidRows(m *matrix) {
	s := servertest.New(m.T, "squid")
	open, closed, asks := s.Port(), s.Port(), s.Port()
	s.Write("passwords", "operator:$apr1$surehook$ysaoksDh/KFxBSXlC5AOj.\n", nil) // hunter2
	s.Write("squid.conf", m.file("squid.conf"), map[string]any{"Folder": s.Folder, "Open": open, "Closed": closed, "Asks": asks})
	// Its shared memory is named after the service.
	s.Start("-N", "-n", fmt.Sprintf("matrix%d", os.Getpid()), "-f", "squid.conf")

	var reached ledger
	target := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		reached.add(r.Header.Get("Webhook-Id"), http.StatusOK)
		keeps(w)
	})
	clear, secure := httptest.NewServer(target), httptest.NewUnstartedServer(target)
	secure.TLS = &tls.Config{Certificates: []tls.Certificate{m.authority.Pair()}}
	secure.StartTLS()
	m.Cleanup(clear.Close)
	m.Cleanup(secure.Close)

	through := func(port int, user *url.Userinfo) way {
		return way{proxy: &url.URL{Scheme: "http", User: user, Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}}
	}
	known := url.UserPassword("operator", "hunter2")
	for name, to := range map[string]string{"to http": clear.URL, "to https": secure.URL} {
		of := func(what string) string { return what + ", " + name }
		m.exact(
			row{name: of("no credentials asked for"), url: to, way: through(open, nil), record: reached.read, posts: 6, status: 200, connections: 1},
			row{name: of("with credentials"), url: to, way: through(asks, known), record: reached.read, posts: 6, status: 200, connections: 1},
			row{name: of("900 KB"), url: to, body: 900 << 10, way: through(open, nil), record: reached.read, status: 200},
		)
	}

	hangs, err := net.Listen("tcp", "127.0.0.1:0") // the system accepts, and nobody reads
	require.NoError(m, err)
	m.Cleanup(func() { _ = hangs.Close() })
	hanging := through(hangs.Addr().(*net.TCPAddr).Port, nil)
	hanging.timeout = 500 * time.Millisecond
	web := httptest.NewServer(http.NotFoundHandler())
	m.Cleanup(web.Close)
	noProxy := through(web.Listener.Addr().(*net.TCPAddr).Port, nil)
	nobody := loopback("https", servertest.Port(m.T))
	m.exact(
		row{name: "no credentials where they are asked for", url: secure.URL, way: through(asks, nil), record: reached.read, untouched: true, class: sender.ClassConnect, text: "the sender's proxy asks for other credentials (407)", proxy: true},
		row{name: "wrong credentials", url: secure.URL, way: through(asks, url.UserPassword("operator", "wrong")), record: reached.read, untouched: true, class: sender.ClassConnect, text: "the sender's proxy asks for other credentials (407)", proxy: true},
		row{name: "the target is not allowed", url: secure.URL, way: through(closed, nil), record: reached.read, untouched: true, class: sender.ClassConnect, text: "it answered 403", proxy: true},
		row{name: "the target refuses", url: nobody, way: through(open, nil), class: sender.ClassConnect, text: "it answered 503"},
		row{name: "a proxy that hangs", url: secure.URL, posts: 1, way: hanging, record: reached.read, untouched: true, class: sender.ClassTimeout, proxy: true},
		row{name: "a proxy that is not there", url: secure.URL, way: through(servertest.Port(m.T), nil), record: reached.read, untouched: true, class: sender.ClassConnect, text: "the sender's proxy cannot be reached", proxy: true},
		row{name: "a web server that is no proxy", url: secure.URL, way: noProxy, record: reached.read, untouched: true, class: sender.ClassConnect, text: "it answered 404", proxy: true},
	)
}
