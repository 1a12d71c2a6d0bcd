//go:build linux

package post

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/surehook/surehook/internal/servertest"
	"github.com/surehook/surehook/sender"
)

func haproxyRows(m *matrix) {
	s := servertest.New(m.T, "haproxy")
	certificate, key := m.authority.Issue()
	s.Write("server.pem", certificate+key, nil)
	var reached ledger
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status := http.StatusOK
		if n, err := io.Copy(io.Discard, r.Body); err != nil || n != r.ContentLength {
			status = http.StatusBadRequest
		}
		reached.add(r.Header.Get("Webhook-Id"), status)
		w.WriteHeader(status)
	}))
	m.Cleanup(backend.Close)
	const keeping = "http-after-response set-header Keep-Alive timeout=60" // see keeps
	clear, tls13, short, second := s.Port(), s.Port(), s.Port(), s.Port()
	s.Write("haproxy.cfg", m.file("haproxy.cfg"), map[string]any{
		"Backend": strings.TrimPrefix(backend.URL, "http://"),
		"Servers": []webServer{{clear, "", keeping}, {tls13, "ssl crt server.pem", keeping}, {second, "ssl crt server.pem alpn h2", keeping}, {short, "", "timeout http-keep-alive 1s"}},
	})
	s.Start("-db", "-f", "haproxy.cfg")
	var answered record = s.Log

	for name, base := range map[string]string{
		"clear": loopback("http", clear), "TLS": loopback("https", tls13), "HTTP/2": loopback("https", second),
	} {
		of := func(what string) string { return what + ", " + name }
		over := ""
		if name == "HTTP/2" {
			over = "(over HTTP/2)"
		}
		m.exact(
			row{name: of("200"), url: base + "/", record: reached.read, posts: 6, status: 200, connections: 1},
			row{name: of("200 to 900 KB"), url: base + "/", body: 900 << 10, record: reached.read, posts: 5, status: 200, connections: 1},
			row{name: of("200 to 900 KB that nobody reads"), url: base + "/unread", body: 900 << 10, record: answered, posts: 5, status: 200, peerRaces: true},
			row{name: of("503 without a server"), url: base + "/none", record: answered, status: 503, class: sender.ClassStatus, text: over},
			row{name: of("503 to 900 KB"), url: base + "/none", body: 900 << 10, record: answered, status: 503, class: sender.ClassStatus, text: over, peerRaces: true},
		)
	}
	m.races(race{name: "timeout http-keep-alive", url: loopback("http", short) + "/", record: reached.read, callers: 66, posts: 4, pause: around(time.Second, 5*time.Millisecond)})
}
