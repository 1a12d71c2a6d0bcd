//go:build linux

package post

import (
	"bytes"
	"embed"
	"fmt"
	"io"
	"log"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/servertest"
	"github.com/surehook/surehook/sender"
)

//go:embed testdata/matrix
var matrixFiles embed.FS

// Servers that we did not write are posted to through our layer and through net/http's.
// A server that answers a POST as it should under net/http does so under ours, no request
// is sent twice, and no attempt is recorded as something that did not happen. Each server
// records the requests that it sees and how it answers them.
func TestMatrix(t *testing.T) {
	before := log.Writer()
	log.SetOutput(withoutUnsolicited{before})
	t.Cleanup(func() { log.SetOutput(before) })
	for _, server := range []struct {
		name string
		rows func(*matrix)
	}{ // those that take longest come first
		{"Node", nodeRows},
		{"Python", pythonRows},
		{"reloads", reloadRows},
		{"Apache", apacheRows},
		{"nginx", nginxRows},
		{"HAProxy", haproxyRows},
		{"squid", squidRows},
		{"HTTP2", http2Rows},
		{"raw", rawRows},
	} {
		t.Run(server.name, func(t *testing.T) {
			t.Parallel()
			server.rows(&matrix{T: t, authority: servertest.NewAuthority(t)})
		})
	}
}

// withoutUnsolicited leaves out what net/http says of each connection on which a server has
// sent too much.
type withoutUnsolicited struct{ io.Writer }

// Write implements io.Writer.
func (w withoutUnsolicited) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("Unsolicited response received on idle HTTP channel")) {
		return len(p), nil
	}
	return w.Writer.Write(p)
}

// matrix is what the rows of one server share.
type matrix struct {
	*testing.T
	authority *servertest.Authority
}

func (m *matrix) file(name string) string {
	m.Helper()
	text, err := matrixFiles.ReadFile("testdata/matrix/" + name)
	require.NoError(m, err)
	return string(text)
}

// row is a server's answer that does not depend on chance.
type row struct {
	name   string
	url    string
	record record        // of the server that is posted to
	body   int           // how long what is posted is; 0: as an event usually is
	posts  int           // of each caller, one after the other; 0: 3
	pause  time.Duration // before each
	way    way

	status int          // 0: no answer
	class  sender.Class // ours
	or     sender.Class // another that ours may have; "": none
	text   string       // part of our Error
	proxy  bool         // our ProxyFailed
	// connections is on how many ours posts, in all; 0: it is not looked at.
	connections int
	// untouched: nothing reaches the server.
	untouched bool
	// peerRaces: net/http, for which it is a race, is not held to it.
	peerRaces bool
}

// handshakes is how many a client may make at most before its first post, only to learn
// which protocol a server speaks that chooses none.
const handshakes = 2

// exact runs rows.
func (m *matrix) exact(rows ...row) {
	for _, r := range rows {
		m.Run(r.name, func(t *testing.T) {
			to, err := url.Parse(r.url)
			require.NoError(t, err)
			if r.posts == 0 {
				r.posts = 3
			}
			ours, peer := newCallers(t, m.authority, r.way)
			results := map[string]Answer{}
			for n := range r.posts {
				time.Sleep(r.pause) // the row's input
				for _, c := range []*caller{ours, peer} {
					id := eventID(t, c, n)
					result := c.attempt(t.Context(), id, to, r.body)
					if c == ours || !r.peerRaces {
						r.check(t, c == ours, result)
						results[id] = result
					}
				}
			}
			if r.connections != 0 {
				require.EqualValues(t, r.connections, ours.used.Load(), "connections")
				require.LessOrEqual(t, int(ours.dials.Load()), r.connections+handshakes, "dials")
			}
			if r.record != nil {
				r.record.check(t, results, r.untouched)
				m.Cleanup(func() { r.record.once(m.T, results) })
			}
		})
	}
}

func (r *row) check(t *testing.T, isOurs bool, got Answer) {
	t.Helper()
	switch {
	case isOurs:
		require.Equal(t, r.status, got.StatusCode, "ours: %s %s", got.Class, got.Error)
		if r.or == "" || got.Class != r.or {
			require.Equal(t, r.class, got.Class, got.Error)
		}
		require.Contains(t, got.Error, r.text)
		require.Equal(t, r.proxy, got.ProxyFailed, "the proxy has failed: %s", got.Error)
	case r.status == 0:
		require.NotEqual(t, sender.ClassNone, got.Class, "net/http's got an answer: %d", got.StatusCode)
	default:
		require.Equal(t, r.status, got.StatusCode, "net/http's: %s %s", got.Class, got.Error)
		require.Equal(t, r.class, got.Class, got.Error)
	}
}

// eventID is that of a caller's n-th post of a test.
func eventID(t *testing.T, c *caller, n int) string {
	clean := func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}
	return fmt.Sprintf("msg_%s_%s_%d", strings.Map(clean, t.Name()), c.name, n)
}
