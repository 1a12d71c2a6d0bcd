//go:build linux

package post

import (
	"os"
	"path/filepath"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/servertest"
	"github.com/surehook/surehook/sender"
)

func apacheRows(m *matrix) {
	s := servertest.New(m.T, "apache2")
	certificate, key := m.authority.Issue()
	s.Write("server.pem", certificate, nil)
	s.Write("server.key", key, nil)
	s.Write("authority.pem", m.authority.PEM, nil)
	require.NoError(m, os.Mkdir(filepath.Join(s.Folder, "documents"), 0o755))
	for _, name := range []string{"ok", "small", "asks"} {
		s.Write("documents/"+name, "{}", nil)
	}
	const keeping = "Header always set Keep-Alive timeout=60" // see keeps; it does keep them that long
	clear, tls12, tls13, short, few := s.Port(), s.Port(), s.Port(), s.Port(), s.Port()
	s.Write("apache.conf", m.file("apache.conf"), map[string]any{
		"Folder": s.Folder, "Modules": "/usr/lib/apache2/modules",
		"Servers": []webServer{
			{clear, "", keeping}, {tls12, "TLSv1.2", keeping}, {tls13, "TLSv1.3", keeping},
			{short, "", "KeepAliveTimeout 1"}, {few, "TLSv1.3", keeping + "\nMaxKeepAliveRequests 3"},
		},
	})
	s.Start("-d", s.Folder, "-f", "apache.conf", "-DFOREGROUND")
	seen := record(func() string { return s.Read("requests.log") })

	for name, base := range map[string]string{
		"clear": loopback("http", clear), "TLS 1.2": loopback("https", tls12), "TLS 1.3": loopback("https", tls13),
	} {
		of := func(what string) string { return what + ", " + name }
		m.exact(
			row{name: of("200"), url: base + "/ok", record: seen, posts: 6, status: 200, connections: 1},
			row{name: of("301"), url: base + "/moved", record: seen, status: 301, class: sender.ClassRedirect, connections: 1},
			row{name: of("200 to 900 KB"), url: base + "/ok", body: 900 << 10, record: seen, posts: 5, status: 200, connections: 1},
			row{name: of("413 to 20 KB"), url: base + "/small", body: 20 << 10, record: seen, status: 413, class: sender.ClassStatus, peerRaces: true},
			row{name: of("413 to 900 KB"), url: base + "/small", body: 900 << 10, record: seen, status: 413, class: sender.ClassStatus, peerRaces: true},
		)
	}
	m.exact(
		row{name: "MaxKeepAliveRequests", url: loopback("https", few) + "/ok", record: seen, posts: 9, status: 200, connections: 3},
		// Go's TLS does neither renegotiate nor authenticate itself after the handshake.
		row{name: "renegotiation for a client certificate", url: loopback("https", tls12) + "/asks", way: way{certificate: true}, class: sender.ClassTLS, text: "asked for a second TLS handshake (renegotiation)"},
		row{name: "a client certificate asked for after the handshake", url: loopback("https", tls13) + "/asks", record: seen, way: way{certificate: true}, status: 403, class: sender.ClassStatus},
	)
	m.races(race{name: "KeepAliveTimeout", url: loopback("http", short) + "/ok", record: seen, callers: 66, posts: 4, pause: around(time.Second, 5*time.Millisecond)})
}
