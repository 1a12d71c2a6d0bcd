//go:build linux

package post

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/guard"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/signing"
)

// postTo is where a child process posts to, from a machine that lacks something.
const postTo = "SUREHOOK_POST_TO"

// An attempt that fails because this machine lacks something is charged neither to the
// endpoint nor to a proxy.
func TestMachineIsToBlame(t *testing.T) {
	nothing := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	plain, secure := httptest.NewUnstartedServer(nothing), httptest.NewUnstartedServer(nothing)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	if os.Getenv(postTo) == "" { // in a child, a stray connection would use a descriptor, and give it back
		plain.Start()
		secure.StartTLS()
	}
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	for name, c := range map[string]struct {
		to, text string
		class    sender.Class
		proxy    string
		lack     func(t *testing.T)
		env      []string
	}{
		"no descriptors":               {plain.URL, noResources, sender.ClassConnect, "", useDescriptors, nil},
		"no descriptors for a look-up": {strings.Replace(plain.URL, "127.0.0.1", "localhost", 1), noResources, sender.ClassConnect, "", useDescriptors, nil},
		"no descriptors for a proxy":   {plain.URL, noResources, sender.ClassConnect, "eu", useDescriptors, nil},
		"no authorities": {
			secure.URL, noAuthorities, sender.ClassTLS, "", func(*testing.T) {}, []string{"SSL_CERT_FILE=/dev/null", "SSL_CERT_DIR=/dev/null/none"},
		},
		"authorities that cannot be read": {
			secure.URL, noAuthorities, sender.ClassTLS, "", func(*testing.T) {}, []string{"SSL_CERT_FILE=/", "SSL_CERT_DIR=/dev/null/none"},
		},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			to := os.Getenv(postTo)
			if to == "" {
				inChild(t, c.to, c.env...)
				return
			}
			p := newLacking(t, to)
			c.lack(t)
			a := p.post(to, c.proxy)
			require.Equal(t, []any{c.class, c.text, true, false}, []any{a.Class, a.Error, a.Ours, a.ProxyFailed})
		})
	}
}

// Descriptors of connections that are kept for later are there for the next attempt.
func TestIdleConnectionsGiveWay(t *testing.T) {
	if to := os.Getenv(postTo); to != "" {
		kept, wanted, _ := strings.Cut(to, " ")
		p := newLacking(t, wanted)
		require.Equal(t, sender.ClassNone, p.post(kept, "").Class)
		useDescriptors(t)
		a := p.post(wanted, "")
		require.True(t, a.Ours, "%+v", a)
		require.Equal(t, sender.ClassNone, p.post(wanted, "").Class)
		return
	}
	nothing := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Keep-Alive", "timeout=60") })
	one, other := httptest.NewServer(nothing), httptest.NewServer(nothing)
	t.Cleanup(one.Close)
	t.Cleanup(other.Close)
	inChild(t, one.URL+" "+other.URL)
}

// inChild runs the test in a process of its own, and tells it where to post to.
func inChild(t *testing.T, to string, env ...string) {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=60s")
	child.Env = append(append(os.Environ(), postTo+"="+to), env...)
	out, err := child.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "--- PASS: "+t.Name(), "%s", out)
}

// lacking posts from a process that lacks something.
type lacking struct {
	t      *testing.T
	poster *Poster
	key    *signing.Keyring
}

// newLacking returns one with a proxy, "eu".
func newLacking(t *testing.T, proxy string) *lacking {
	t.Helper()
	key, err := signing.NewKeyring(signing.Key{ID: "1", Secret: signing.GenerateSecret()})
	require.NoError(t, err)
	return &lacking{t, New(Config{
		Policy: guard.Policy{AllowPrivateNetworks: true}, Timeout: 20 * time.Second, Places: 16,
		Proxies: map[string]*url.URL{"eu": {Scheme: "http", Host: strings.TrimPrefix(proxy, "http://")}}, Schemes: signing.DefaultSchemes(), Now: time.Now,
	}), key}
}

func (l *lacking) post(to, proxy string) Answer {
	l.t.Helper()
	u, err := url.Parse(to)
	require.NoError(l.t, err)
	x, err := l.poster.Prepare(&Request{URL: u, Event: "evt_1", Attempt: 1, At: time.Now(), Body: []byte(`{}`), Keyring: l.key, Proxy: proxy}, nil)
	require.NoError(l.t, err)
	return x.Send(l.t.Context(), nil)
}

// useDescriptors leaves the process none until the test's end.
func useDescriptors(t *testing.T) {
	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	limit.Cur = 64
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
	for {
		f, err := os.Open(os.DevNull)
		if err != nil {
			require.ErrorIs(t, err, syscall.EMFILE)
			return
		}
		t.Cleanup(func() { _ = f.Close() })
	}
}
