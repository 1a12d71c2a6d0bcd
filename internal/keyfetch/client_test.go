package keyfetch_test

import (
	"context"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/guard"
	"github.com/surehook/surehook/internal/keyfetch"
)

// host is example.com, for which httptest has a certificate. It notes what is dialled.
type host struct {
	mu     sync.Mutex
	dialed []string
}

func (h *host) client(t *testing.T, cfg keyfetch.ClientConfig, answer http.HandlerFunc) *keyfetch.Client {
	t.Helper()
	server := httptest.NewTLSServer(answer)
	t.Cleanup(server.Close)
	cfg.Roots = x509.NewCertPool()
	cfg.Roots.AddCert(server.Certificate())
	cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		h.mu.Lock()
		h.dialed = append(h.dialed, address)
		h.mu.Unlock()
		return new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
	}
	return keyfetch.NewClient([]string{"example.com", "keys.example.com"}, &cfg)
}

func TestClientGetsAndPosts(t *testing.T) {
	var h host
	c := h.client(t, keyfetch.ClientConfig{MaxBytes: 20}, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write([]byte(r.Method + " " + r.URL.String() + " " + string(body)))
	})
	text, err := c.Get(t.Context(), "https://example.com/a?b=c")
	require.NoError(t, err)
	require.Equal(t, "GET /a?b=c ", string(text))
	text, err = c.Post(t.Context(), "https://example.com/", []byte("{}"))
	require.NoError(t, err)
	require.Equal(t, "POST / {}", string(text))
	require.Equal(t, []string{"example.com:443", "example.com:443"}, h.dialed)
}

func TestClientAsksPinnedHostsAlone(t *testing.T) {
	var h host
	c := h.client(t, keyfetch.ClientConfig{}, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	for _, u := range []string{
		"", "example.com", "//example.com/", "http://example.com/", "HTTPS://example.com/", "https://EXAMPLE.com/", "https://example.com./",
		"https://example.com:443/", "https://example.com:8443/", "https://other.example.com/", "https://example.com.evil.example/",
		"https://user@example.com/", "https://example.com@evil.example/", "https://evil.example/", "https://evil.example/?example.com",
		"https://example.com/#x", "https://example.com\\@evil.example/", "https://example.com/ x", "https://127.0.0.1/", "https://example.com/\n",
		"https://example.com%2eevil.example/", "https://exa%6Dple.com/",
	} {
		_, err := c.Get(t.Context(), u)
		require.ErrorIs(t, err, keyfetch.ErrURL, "%q", u)
	}
	require.Empty(t, h.dialed)
	require.NoError(t, c.Check("https://keys.example.com/x"))
}

func TestClientRefusesPrivateAddresses(t *testing.T) {
	for _, name := range []string{"127.0.0.1", "169.254.169.254", "10.0.0.1", "[::1]", "localhost"} {
		_, err := keyfetch.NewClient([]string{name}, nil).Get(t.Context(), "https://"+name+"/")
		require.ErrorIs(t, err, guard.ErrBlocked, name)
	}
}

// A proxy of the environment would dial in place of the guard.
func TestClientUsesNoProxy(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	transport, ok := keyfetch.NewClient([]string{"example.com"}, nil).Transport.(*http.Transport)
	require.True(t, ok)
	require.Nil(t, transport.Proxy)
}

func TestClientRefusesOtherAnswers(t *testing.T) {
	for what, answer := range map[string]http.HandlerFunc{
		"answered 302": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://evil.example/", http.StatusFound)
		},
		"answered 404":       func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) },
		"answered 204":       func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
		"more than 10 bytes": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("12345678901")) },
		"reading the answer": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "5")
			_, _ = w.Write([]byte("1234"))
		},
		"asking the host": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 100_000)) },
		"deadline exceeded": func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte("1"))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		},
	} {
		timeout := time.Minute
		if what == "deadline exceeded" {
			timeout = time.Second // the handshake must be over by then
		}
		var h host
		c := h.client(t, keyfetch.ClientConfig{MaxBytes: 10, Timeout: timeout}, answer)
		_, err := c.Get(t.Context(), "https://example.com/secret")
		require.ErrorContains(t, err, what, what)
		require.NotContains(t, err.Error(), "/secret")
		require.Equal(t, []string{"example.com:443"}, h.dialed)
	}
}

// An impostor of the host has no certificate for it.
func TestClientChecksTheCertificate(t *testing.T) {
	var h host
	c := h.client(t, keyfetch.ClientConfig{}, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	c.Transport.(*http.Transport).TLSClientConfig.RootCAs = x509.NewCertPool()
	_, err := c.Get(t.Context(), "https://example.com/")
	var unknown x509.UnknownAuthorityError
	require.ErrorAs(t, err, &unknown)
}
