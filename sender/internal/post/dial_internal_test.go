package post

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// A transport tells of its dials, whose timeouts look like any others.
func TestDialingIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		dial             func(timeOut func()) dialFunc
		begun, connected bool
	}{
		"a dial that hangs": {func(timeOut func()) dialFunc {
			return func(ctx context.Context, _, _ string) (net.Conn, error) {
				timeOut()
				<-ctx.Done()
				return nil, ctx.Err()
			}
		}, true, false},
		"a connection that says nothing": {func(timeOut func()) dialFunc {
			return func(context.Context, string, string) (net.Conn, error) {
				ours, theirs := net.Pipe()
				go func() { // reads and never answers
					buf := make([]byte, 1024)
					for {
						if _, err := theirs.Read(buf); err != nil {
							return
						}
						timeOut()
					}
				}()
				return ours, nil
			}
		}, true, true},
		"none": {func(func()) dialFunc {
			return func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("refused") }
		}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			var d Dialing
			ctx, timeOut := context.WithCancel(WithDialing(t.Context(), &d))
			defer timeOut()
			transport := &http.Transport{DialContext: reporting(c.dial(timeOut))}
			defer transport.CloseIdleConnections()
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://endpoint/", nil)
			require.NoError(t, err)
			_, err = transport.RoundTrip(req)
			require.Error(t, err)
			require.Equal(t, c.begun, d.Begun.Load())
			require.Equal(t, c.connected, d.Connected.Load())
		})
	}
}
