//go:build linux

package post

import (
	"encoding/json"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/servertest"
	"github.com/surehook/surehook/sender"
)

// script starts a server of testdata, with a configuration and a certificate.
func (m *matrix) script(s *servertest.Server, name string, config map[string]int) record {
	m.Helper()
	certificate, key := m.authority.Issue()
	s.Write("server.pem", certificate, nil)
	s.Write("server.key", key, nil)
	text, err := json.Marshal(config)
	require.NoError(m, err)
	s.Write("config.json", string(text), nil)
	s.Start(s.Write(name, m.file(name), nil))
	return func() string { return s.Read("requests.log") }
}

func nodeRows(m *matrix) {
	s := servertest.New(m.T, "node")
	clear, secure, short, both, alone, h2c := s.Port(), s.Port(), s.Port(), s.Port(), s.Port(), s.Port()
	const keepAlive = time.Second
	seen := m.script(s, "server.js", map[string]int{
		"http": clear, "https": secure, "short": short, "both": both, "http2": alone, "h2c": h2c, "keepAliveTimeout": int(keepAlive.Milliseconds()),
	})
	for name, base := range map[string]string{
		"http": loopback("http", clear), "https": loopback("https", secure), "http2 with allowHTTP1": loopback("https", both),
	} {
		of := func(what string) string { return what + ", " + name }
		m.exact(
			row{name: of("Content-Length"), url: base + "/length", record: seen, posts: 6, status: 200, connections: 1},
			row{name: of("no Content-Length"), url: base + "/chunked", record: seen, posts: 6, status: 200, connections: 1},
			row{name: of("204"), url: base + "/none", record: seen, posts: 6, status: 204, connections: 1},
			row{name: of("200 to 900 KB"), url: base + "/length", body: 900 << 10, record: seen, posts: 5, status: 200, connections: 1},
			row{name: of("early 200 to 900 KB"), url: base + "/early200", body: 900 << 10, record: seen, posts: 5, status: 200},
			row{name: of("early 413 to 900 KB"), url: base + "/early413", body: 900 << 10, record: seen, posts: 5, status: 413, class: sender.ClassStatus},
			row{name: of("broken off"), url: base + "/broken", record: seen, class: sender.ClassReset},
		)
		if base == loopback("https", both) {
			continue // net/http's speaks HTTP/2 to it, which knows nothing of the following
		}
		m.exact(
			row{name: of("102 and 103 before"), url: base + "/interim", record: seen, posts: 6, status: 200, connections: 1},
			row{name: of("a header of 70,000 bytes"), url: base + "/largeheader", record: seen, class: sender.ClassProtocol, text: "header"},
			row{name: of("trailers"), url: base + "/trailers", record: seen, posts: 6, status: 200, connections: 1},
			row{name: of("until it is closed"), url: base + "/untilclosed", record: seen, status: 200, connections: 3},
		)
	}
	base := loopback("https", alone)
	m.exact(
		row{name: "200, http2 alone", url: base + "/length", record: seen, posts: 6, status: 200},
		row{name: "204, http2 alone", url: base + "/none", record: seen, posts: 6, status: 204},
		row{name: "200 to 900 KB, http2 alone", url: base + "/length", body: 900 << 10, record: seen, status: 200},
		row{name: "early 200 to 900 KB, http2 alone", url: base + "/early200", body: 900 << 10, record: seen, posts: 5, status: 200, peerRaces: true},
		row{name: "early 413 to 900 KB, http2 alone", url: base + "/early413", body: 900 << 10, record: seen, status: 413, class: sender.ClassStatus, peerRaces: true},
	)
	m.exact(row{name: "http2 in clear", url: loopback("http", h2c) + "/length", record: seen, untouched: true, class: sender.ClassProtocol})
	// It says keepAliveTimeout and means a second more.
	m.races(race{name: "keepAliveTimeout", url: loopback("http", short) + "/length", record: seen, callers: 75, posts: 4, pause: around(keepAlive+time.Second, 10*time.Millisecond)})
}
