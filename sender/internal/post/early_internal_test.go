package post

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/signing"
)

// A server may answer before it has read the event, and with more than is read of an answer.
// A body that it has promised to take is sent to its end all the same.
func TestLongAnswerBeforeTheEventIsRead(t *testing.T) {
	keyring, err := signing.NewKeyring(signing.Key{ID: "1", Secret: signing.GenerateSecret()})
	require.NoError(t, err)
	const length = 200 << 10
	reads := func(_ net.Conn, r *http.Request) (n int64) {
		n, _ = io.Copy(io.Discard, r.Body)
		return n
	}
	for name, c := range map[string]struct {
		then  func(net.Conn, *http.Request) (took int64) // after the answer
		class sender.Class
		took  int64
		says  string // the answer's Content-Length
	}{
		"and is read then":  {reads, sender.ClassNone, length, "65536"},
		"and is read late":  {func(conn net.Conn, r *http.Request) int64 { time.Sleep(5 * time.Second); return reads(conn, r) }, sender.ClassNone, length, "65536"},
		"and is not wanted": {func(conn net.Conn, _ *http.Request) int64 { _ = conn.Close(); return 0 }, sender.ClassNone, 0, "65536"},
		"and is never read, with an answer without an end": {func(conn net.Conn, _ *http.Request) int64 {
			some, total := make([]byte, 32<<10), 0
			for err, n := error(nil), 0; err == nil && total < 8<<20; total += n {
				n, err = conn.Write(some)
			}
			return int64(max(0, total-2<<20))
		}, sender.ClassTimeout, 0, "1099511627776"},
		"and is never read": {func(conn net.Conn, _ *http.Request) int64 { time.Sleep(20 * time.Second); return 0 }, sender.ClassTimeout, 0, "65536"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := New(Config{Timeout: 10 * time.Second, Places: 4, Schemes: signing.DefaultSchemes(), Now: time.Now})
				defer p.CloseIdle()
				took := make(chan int64, 1)
				p.Connect("", func(context.Context, string, string) (net.Conn, error) {
					here, there := net.Pipe()
					go func() {
						defer there.Close()
						r, err := http.ReadRequest(bufio.NewReader(there))
						if err != nil {
							t.Error(err)
						}
						_, _ = io.WriteString(there, "HTTP/1.1 200 OK\r\nContent-Length: "+c.says+"\r\n\r\n"+strings.Repeat("x", 64<<10))
						took <- c.then(there, r)
					}()
					return here, nil
				})
				x, err := p.Prepare(&Request{URL: &url.URL{Scheme: "http", Host: "endpoint"}, Event: "evt_1", Attempt: 1, At: time.Now(), Body: make([]byte, length), Keyring: keyring}, nil)
				require.NoError(t, err)
				answer := x.Send(t.Context(), nil)
				require.Equal(t, c.class, answer.Class, answer.Error)
				require.Equal(t, http.StatusOK, answer.StatusCode)
				require.Equal(t, c.took, <-took)
			})
		})
	}
}
