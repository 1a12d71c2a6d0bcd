package post

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/guard"
	"github.com/surehook/surehook/internal/porttest"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/signing"
)

// A thousand failing attempts of each kind leave neither goroutines nor descriptors
// behind.
func TestFailingAttemptsLeaveNothing(t *testing.T) {
	fails := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch r.URL.Path {
		case "/status":
			w.WriteHeader(http.StatusInternalServerError)
		case "/redirect":
			w.WriteHeader(http.StatusMovedPermanently)
		case "/hangs":
			<-r.Context().Done()
		case "/crawls":
			_, _ = io.WriteString(w, "some")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		case "/headers":
			w.Header().Set("X", strings.Repeat("x", 70_000))
		default:
			panic(http.ErrAbortHandler)
		}
	})
	quiet := log.New(io.Discard, "", 0)
	plain := httptest.NewServer(fails)
	plain.Config.ErrorLog = quiet
	defer plain.Close()
	second := httptest.NewUnstartedServer(fails)
	second.Config.Protocols = new(http.Protocols)
	second.Config.Protocols.SetHTTP2(true)
	second.TLS, second.Config.ErrorLog, second.EnableHTTP2 = &tls.Config{NextProtos: []string{"h2"}}, quiet, true
	second.StartTLS()
	defer second.Close()
	garbage := serveEach(t, func(c net.Conn) { _, _ = io.WriteString(c, "220 smtp.example\r\n") })
	silent := serveEach(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	refuses := serveEach(t, func(c net.Conn) {
		_, _ = http.ReadRequest(bufio.NewReader(c))
		_, _ = io.WriteString(c, "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
	})
	refused := porttest.Refusing(t)
	https := func(address string) string { return "https" + strings.TrimPrefix(address, "http") }

	for name, c := range map[string]struct {
		url     string
		class   sender.Class
		timeout time.Duration // 0: it does not come to that
		trusts  *httptest.Server
		proxy   string
		public  bool // private networks may not be called
		unnamed bool // names are not resolved
	}{
		"status":             {url: plain.URL + "/status", class: sender.ClassStatus},
		"redirect":           {url: plain.URL + "/redirect", class: sender.ClassRedirect},
		"breaks off":         {url: plain.URL + "/", class: sender.ClassReset},
		"hangs":              {url: plain.URL + "/hangs", class: sender.ClassTimeout, timeout: 20 * time.Millisecond},
		"crawls":             {url: plain.URL + "/crawls", class: sender.ClassTimeout, timeout: 20 * time.Millisecond},
		"headers":            {url: plain.URL + "/headers", class: sender.ClassProtocol},
		"no HTTP":            {url: "http://" + garbage, class: sender.ClassProtocol},
		"no TLS":             {url: https(plain.URL), class: sender.ClassTLS},
		"handshake hangs":    {url: "https://" + silent, class: sender.ClassTimeout, timeout: 20 * time.Millisecond},
		"untrusted":          {url: second.URL, class: sender.ClassTLS},
		"refuses":            {url: "http://" + refused, class: sender.ClassConnect},
		"no name":            {url: "http://endpoint.example/", class: sender.ClassDNS, unnamed: true},
		"blocked":            {url: plain.URL, class: sender.ClassBlocked, public: true},
		"HTTP/2, status":     {url: second.URL + "/status", class: sender.ClassStatus, trusts: second},
		"HTTP/2, breaks off": {url: second.URL + "/", class: sender.ClassReset, trusts: second},
		"HTTP/2, hangs":      {url: second.URL + "/hangs", class: sender.ClassTimeout, timeout: 50 * time.Millisecond, trusts: second},
		"no proxy there":     {url: plain.URL, class: sender.ClassConnect, proxy: refused},
		"proxy refuses":      {url: plain.URL, class: sender.ClassConnect, proxy: refuses},
		"proxy hangs":        {url: plain.URL, class: sender.ClassTimeout, timeout: 20 * time.Millisecond, proxy: silent},
	} {
		t.Run(name, func(t *testing.T) {
			keyring, err := signing.NewKeyring(signing.Key{ID: "1", Secret: signing.GenerateSecret()})
			require.NoError(t, err)
			to, err := url.Parse(c.url)
			require.NoError(t, err)
			timeout := c.timeout
			if timeout == 0 {
				timeout = 20 * time.Second
			}
			config := Config{Policy: guard.Policy{AllowPrivateNetworks: !c.public}, Timeout: timeout, Places: 16, Schemes: signing.DefaultSchemes(), Now: time.Now}
			through := ""
			if c.proxy != "" {
				through = "eu"
				config.Proxies = map[string]*url.URL{"eu": {Scheme: "http", Host: c.proxy}}
			}
			p := New(config)
			ts := p.transports
			if c.unnamed {
				p.Watch(&net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
					return nil, errors.New("there is no name server")
				}}, func(string) error { return nil })
			}
			if c.trusts != nil {
				ts.plain.(*client).TLS.RootCAs = c.trusts.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
			}
			post := func() string {
				x, err := p.Prepare(&Request{URL: to, Event: "evt_1", Attempt: 1, At: time.Now(), Body: []byte(`{}`), Keyring: keyring, Proxy: through}, nil)
				if errors.Is(err, ErrProbed) {
					return "" // it is failing, and few at a time go through it
				}
				if err != nil {
					return err.Error()
				}
				if r := x.Send(t.Context(), nil); r.Class != c.class {
					return fmt.Sprintf("%s %d: %s", r.Class, r.StatusCode, r.Error)
				}
				return ""
			}
			require.Empty(t, post()) // what is made once, is made
			p.CloseIdle()
			goroutines, descriptors := runtime.NumGoroutine(), openFiles()

			var wg sync.WaitGroup
			for range 50 {
				wg.Go(func() {
					for range 4 {
						if text := post(); text != "" {
							t.Error(text)
							return
						}
					}
				})
			}
			wg.Wait()
			p.CloseIdle()
			// The servers take a moment to end their connections, too.
			g, d := runtime.NumGoroutine(), openFiles()
			for deadline := time.Now().Add(time.Minute); (g > goroutines || d > descriptors) && time.Now().Before(deadline); runtime.Gosched() {
				g, d = runtime.NumGoroutine(), openFiles()
			}
			require.LessOrEqual(t, g, goroutines, "goroutines")
			require.LessOrEqual(t, d, descriptors, "descriptors")
		})
	}
}

// serveEach does the same on each connection, and returns its address.
func serveEach(t *testing.T, with func(net.Conn)) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				with(c)
			}()
		}
	}()
	return l.Addr().String()
}

// openFiles is how many descriptors there are, or 0 where that cannot be seen.
func openFiles() int {
	all, _ := os.ReadDir("/proc/self/fd")
	return len(all)
}
