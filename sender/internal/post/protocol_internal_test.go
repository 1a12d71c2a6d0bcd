package post

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/guard"
	"github.com/surehook/surehook/sender/internal/http1"
)

// A server that chooses no protocol speaks HTTP/1.1 if it was asked for HTTP/2, and not if
// it could not be asked.
func TestProtocolIsNotGuessed(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP2(true)
	server.TLS, server.EnableHTTP2 = &tls.Config{NextProtos: []string{"h2"}}, true
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	c := newTransport(newDialer(guard.Policy{AllowPrivateNetworks: true}, 5*time.Second), 4, newOrigins())
	defer c.CloseIdleConnections()
	c.TLS.RootCAs = server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	dial, dials := c.Dial, 0
	c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		if dials++; dials == 2 { // the one that would offer HTTP/2
			return nil, errors.New("no route")
		}
		return dial(ctx, network, address)
	}
	post := func() (*http.Response, error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, http1.NewBody([]byte("{}")))
		require.NoError(t, err)
		r.ContentLength = 2
		return c.RoundTrip(r)
	}
	_, err := post()
	require.Error(t, err)
	answer, err := post()
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, 2, answer.ProtoMajor)
}
