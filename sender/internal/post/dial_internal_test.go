package post

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A transport tells of its dials, whose timeouts look like any others.
func TestDialingIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		dial             dialFunc
		begun, connected bool
	}{
		"a dial that hangs": {func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, true, false},
		"a connection that says nothing": {func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() { // reads and never answers
				buf := make([]byte, 1024)
				for {
					if _, err := theirs.Read(buf); err != nil {
						return
					}
				}
			}()
			return ours, nil
		}, true, true},
		"none": {func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("refused") }, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			transport := &http.Transport{DialContext: reporting(c.dial)}
			defer transport.CloseIdleConnections()
			var d Dialing
			ctx, cancel := context.WithTimeout(WithDialing(t.Context(), &d), 50*time.Millisecond)
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://endpoint/", nil)
			require.NoError(t, err)
			_, err = transport.RoundTrip(req)
			require.Error(t, err)
			require.Equal(t, c.begun, d.Begun.Load())
			require.Equal(t, c.connected, d.Connected.Load())
		})
	}
}
