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
	"slices"
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

// onlyHTTP2 is a listener for TLS that closes the connections of those who do not choose HTTP/2.
type onlyHTTP2 struct{ net.Listener }

func (l onlyHTTP2) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := conn.(*tls.Conn); c.Handshake() == nil && c.ConnectionState().NegotiatedProtocol == "h2" {
			return c, nil
		}
		_ = conn.Close()
	}
}

// A server that chose no protocol, and spoke HTTP/1.1, may come to speak HTTP/2 alone. One
// attempt fails by that, and not all from then on.
func TestProtocolThatChanges(t *testing.T) {
	before := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	before.Config.ErrorLog = log.New(io.Discard, "", 0)
	before.StartTLS() // its certificate is for both
	defer before.Close()
	trusted := before.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	serve := func(address string, protocols ...string) (_ net.Addr, end func()) {
		chosen := &tls.Config{Certificates: before.TLS.Certificates, NextProtos: protocols}
		config := chosen.Clone()
		config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			mine := chosen.Clone()
			if !slices.Contains(hello.SupportedProtos, "h2") {
				mine.NextProtos = nil
			}
			return mine, nil
		}
		listener, err := tls.Listen("tcp", address, config)
		require.NoError(t, err)
		server := &http.Server{Handler: before.Config.Handler, ErrorLog: before.Config.ErrorLog, Protocols: new(http.Protocols), ReadHeaderTimeout: time.Minute}
		served := listener
		if len(protocols) > 0 {
			server.Protocols.SetHTTP2(true)
			served = onlyHTTP2{listener}
		} else {
			server.Protocols.SetHTTP1(true)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = server.Serve(served)
		}()
		return listener.Addr(), func() {
			_ = server.Close()
			<-ended
		}
	}
	c := newTransport(newDialer(guard.Policy{AllowPrivateNetworks: true}, 5*time.Second), 4, newOrigins())
	defer c.CloseIdleConnections()
	c.TLS.RootCAs = trusted
	address, end := serve("127.0.0.1:0")
	post := func() (int, error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+address.String(), http1.NewBody([]byte("{}")))
		require.NoError(t, err)
		r.ContentLength = 2
		answer, err := c.RoundTrip(r)
		if err != nil {
			return 0, err
		}
		return answer.ProtoMajor, answer.Body.Close()
	}
	for range 2 {
		spoke, err := post()
		require.NoError(t, err)
		require.Equal(t, 1, spoke)
	}
	end()
	c.CloseIdleConnections()
	_, end = serve(address.String(), "h2")
	defer end()
	_, err := post()
	require.Error(t, err)
	spoke, err := post()
	require.NoError(t, err)
	require.Equal(t, 2, spoke)
}
