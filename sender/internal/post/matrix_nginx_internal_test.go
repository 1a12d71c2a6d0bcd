//go:build linux

package post

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/surehook/surehook/internal/servertest"
	"github.com/surehook/surehook/sender"
)

// webServer is a port of a server with what holds for it alone.
type webServer struct {
	Port            int
	Protocols, More string
}

func nginxRows(m *matrix) {
	s := servertest.New(m.T, "nginx")
	certificate, key := m.authority.Issue()
	s.Write("server.pem", certificate, nil)
	s.Write("server.key", key, nil)
	s.Write("authority.pem", m.authority.PEM, nil)
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n, err := io.Copy(io.Discard, r.Body); err != nil || n != r.ContentLength {
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
	m.Cleanup(backend.Close)
	clear, tls12, tls13, short, asks := s.Port(), s.Port(), s.Port(), s.Port(), s.Port()
	s.Write("nginx.conf", m.file("nginx.conf"), map[string]any{
		"Backend": backend.URL,
		"Servers": []webServer{
			{clear, "", ""}, {tls12, "TLSv1.2", ""}, {tls13, "TLSv1.3", ""},
			{short, "", "keepalive_timeout 1s;"}, {asks, "TLSv1.2 TLSv1.3", "ssl_verify_client on;"},
		},
	})
	s.Start("-p", s.Folder, "-c", "nginx.conf", "-e", "error.log", "-g", "daemon off;")
	seen := record(func() string { return s.Read("requests.log") })

	for name, base := range map[string]string{
		"clear": loopback("http", clear), "TLS 1.2": loopback("https", tls12), "TLS 1.3": loopback("https", tls13),
	} {
		of := func(what string) string { return what + ", " + name }
		m.exact(
			row{name: of("200"), url: base + "/ok", record: seen, posts: 6, status: 200, connections: 1},
			row{name: of("200 to 900 KB that nobody reads"), url: base + "/ok", body: 900 << 10, record: seen, posts: 5, status: 200},
			row{name: of("204"), url: base + "/none", record: seen, posts: 6, status: 204, connections: 1},
			row{name: of("301"), url: base + "/moved", record: seen, status: 301, class: sender.ClassRedirect, connections: 1},
			row{name: of("444"), url: base + "/broken", record: seen, class: sender.ClassReset, connections: 3},
			row{name: of("413 to 20 KB"), url: base + "/small", body: 20 << 10, record: seen, status: 413, class: sender.ClassStatus, peerRaces: true},
			row{name: of("413 to 900 KB"), url: base + "/small", body: 900 << 10, record: seen, status: 413, class: sender.ClassStatus, peerRaces: true},
			row{name: of("900 KB proxied"), url: base + "/proxied", body: 900 << 10, record: seen, posts: 5, status: 200, connections: 1},
		)
	}
	m.exact(
		row{name: "a client certificate is asked for and not given", url: loopback("https", asks) + "/ok", record: seen, status: 400, class: sender.ClassStatus},
		row{name: "a client certificate is given", url: loopback("https", asks) + "/ok", record: seen, way: way{certificate: true}, posts: 6, status: 200, connections: 1},
	)
	m.races(race{name: "keepalive_timeout", url: loopback("http", short) + "/ok", record: seen, callers: 66, posts: 4, pause: around(time.Second, 5*time.Millisecond)})
}

// loopback is the URL of a port.
func loopback(scheme string, port int) string { return fmt.Sprintf("%s://127.0.0.1:%d", scheme, port) }

// around draws pauses.
func around(middle, spread time.Duration) func(int) time.Duration {
	return func(n int) time.Duration {
		if n == 0 {
			return 0
		}
		return middle - spread + rand.N(2*spread)
	}
}
