//go:build linux

package post

import (
	"time"

	"github.com/surehook/surehook/internal/servertest"
	"github.com/surehook/surehook/sender"
)

func pythonRows(m *matrix) {
	s := servertest.New(m.T, "python3")
	http10, http11, https10, https11 := s.Port(), s.Port(), s.Port(), s.Port()
	seen := m.script(s, "server.py", map[string]int{"http10": http10, "http11": http11, "https10": https10, "https11": https11})
	// With TLS 1.0 ends without a close_notify.
	for name, c := range map[string]struct {
		base        string
		connections int // for six posts
	}{
		"HTTP/1.0": {loopback("http", http10), 6}, "HTTP/1.0 with TLS": {loopback("https", https10), 6},
		"HTTP/1.1": {loopback("http", http11), 1}, "HTTP/1.1 with TLS": {loopback("https", https11), 1},
	} {
		of := func(what string) string { return what + ", " + name }
		m.exact(
			row{name: of("Content-Length"), url: c.base + "/length", record: seen, posts: 6, status: 200, connections: c.connections},
			row{name: of("no body"), url: c.base + "/empty", record: seen, posts: 6, status: 200, connections: c.connections},
			row{name: of("204"), url: c.base + "/none", record: seen, posts: 6, status: 204, connections: c.connections},
			row{name: of("500"), url: c.base + "/failing", record: seen, posts: 6, status: 500, class: sender.ClassStatus, connections: c.connections},
			row{name: of("until it is closed"), url: c.base + "/untilclosed", record: seen, posts: 6, status: 200, connections: 6},
			row{name: of("200 to 900 KB"), url: c.base + "/length", body: 900 << 10, record: seen, posts: 6, status: 200, connections: c.connections},
		)
		if c.connections > 1 {
			continue
		}
		// The bytes that are too many come with the answer, a moment later, or after the
		// next request has left.
		posts := 50
		if name != "HTTP/1.1" {
			posts = 20 // with TLS each costs a handshake, of which there is one for almost each post
		}
		for _, mistake := range []struct{ name, path string }{{"a body after 204", "/bodyafter204"}, {"Content-Length in characters", "/characters"}} {
			m.races(
				race{name: of(mistake.name), url: c.base + mistake.path, record: seen, callers: 4, posts: posts, pause: around(time.Millisecond, time.Millisecond)},
				race{name: of(mistake.name + ", with pauses"), url: c.base + mistake.path, record: seen, callers: 20, posts: posts / 5, pause: around(25*time.Millisecond, 5*time.Millisecond)},
			)
		}
	}
}
