//go:build linux

package post

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/servertest"
)

// reloadRows are servers that read their configuration anew while they are posted to. Each
// answers what it has begun, closes its other connections, and goes on with new processes.
func reloadRows(m *matrix) {
	for name, of := range map[string]struct {
		start func(*matrix) (seen record, reload func(), clear, secure int)
		posts int // fewer to those that take longer to reload, and so are reloaded more often for each post
	}{
		"nginx": {reloadingNginx, 100}, "Apache": {reloadingApache, 25}, "HAProxy": {reloadingHAProxy, 50},
	} {
		m.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &matrix{T: t, authority: m.authority}
			seen, reload, clear, secure := of.start(m)
			for over, r := range map[string]race{
				"clear": {url: loopback("http", clear)}, "TLS": {url: loopback("https", secure)}, "HTTP2": {url: loopback("https", secure), second: true},
			} {
				r.name, r.url, r.record, r.reload = over, r.url+"/ok", seen, reload
				r.callers, r.posts, r.pause = 4, of.posts, around(5*time.Millisecond, 5*time.Millisecond)
				m.races(r)
			}
		})
	}
}

// reloading returns a server that has a certificate.
func (m *matrix) reloading(program string) (s *servertest.Server, clear, secure int) {
	s = servertest.New(m.T, program)
	certificate, key := m.authority.Issue()
	s.Write("server.pem", certificate+key, nil)
	return s, s.Port(), s.Port()
}

func signal(process int, s syscall.Signal) func() {
	return func() { _ = syscall.Kill(process, s) }
}

func reloadingNginx(m *matrix) (seen record, reload func(), clear, secure int) {
	s, clear, secure := m.reloading("nginx")
	s.Write("nginx.conf", m.file("reload-nginx.conf"), map[string]any{"Clear": clear, "Secure": secure})
	s.Start("-p", s.Folder, "-c", "nginx.conf", "-e", "error.log", "-g", "daemon off;")
	return func() string { return s.Read("requests.log") }, signal(s.Process("nginx.pid"), syscall.SIGHUP), clear, secure
}

func reloadingApache(m *matrix) (seen record, reload func(), clear, secure int) {
	s, clear, secure := m.reloading("apache2")
	require.NoError(m, os.Mkdir(filepath.Join(s.Folder, "documents"), 0o755))
	s.Write("documents/ok", "{}", nil)
	s.Write("apache.conf", m.file("reload-apache.conf"), map[string]any{
		"Folder": s.Folder, "Modules": "/usr/lib/apache2/modules", "Clear": clear, "Secure": secure,
	})
	s.Start("-d", s.Folder, "-f", "apache.conf", "-DFOREGROUND")
	return func() string { return s.Read("requests.log") }, signal(s.Process("httpd.pid"), syscall.SIGUSR1), clear, secure
}

func reloadingHAProxy(m *matrix) (seen record, reload func(), clear, secure int) {
	var reached ledger
	backend := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		reached.add(r.Header.Get("Webhook-Id"), http.StatusOK)
	}))
	m.Cleanup(backend.Close)
	s, clear, secure := m.reloading("haproxy")
	s.Write("haproxy.cfg", m.file("reload-haproxy.cfg"), map[string]any{"Backend": strings.TrimPrefix(backend.URL, "http://"), "Clear": clear, "Secure": secure})
	s.Start("-W", "-f", "haproxy.cfg", "-p", "haproxy.pid")
	return reached.read, signal(s.Process("haproxy.pid"), syscall.SIGUSR2), clear, secure
}
