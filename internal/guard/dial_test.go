package guard_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/guard"
	"github.com/surehook/surehook/internal/ssrftest"
)

// errPublic stands for a connection to a public address, which a test does not make.
var errPublic = errors.New("a public address would be dialled")

const host = "hook.example.com"

// recorder is a dialer under a policy that records the addresses that it tries.
type recorder struct {
	net.Dialer
	mu    sync.Mutex
	tried map[string]error
}

func newRecorder(p guard.Policy, z *ssrftest.Zone) *recorder {
	r := &recorder{tried: map[string]error{}}
	r.Resolver = z.Resolver()
	r.Timeout = 10 * time.Second
	r.ControlContext = func(ctx context.Context, network, address string, c syscall.RawConn) error {
		err := p.Control(ctx, network, address, c)
		a := netip.MustParseAddrPort(address).Addr().Unmap()
		r.mu.Lock()
		r.tried[a.String()] = err
		r.mu.Unlock()
		if err == nil && !a.IsLoopback() {
			return errPublic
		}
		return err
	}
	return r
}

// target listens on the loopback of both families, on one port.
type target struct {
	v4, v6 net.Listener
	port   string
}

func newTarget(t *testing.T) *target {
	t.Helper()
	for range 20 {
		v4, err := net.Listen("tcp4", "127.0.0.1:0")
		require.NoError(t, err)
		_, port, _ := net.SplitHostPort(v4.Addr().String())
		v6, err := net.Listen("tcp6", "[::1]:"+port)
		if err == nil || errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT) {
			x := &target{v4: v4, v6: v6, port: port}
			t.Cleanup(x.close)
			return x
		}
		_ = v4.Close() // the port is in use on the other loopback
	}
	require.Fail(t, "no port is free on both loopbacks")
	return nil
}

func (x *target) close() {
	_ = x.v4.Close()
	if x.v6 != nil { // a machine may be without IPv6
		_ = x.v6.Close()
	}
}

// requireUntouched checks that no connection was made to the target before: the first
// that the target accepts is the one made here.
func (x *target) requireUntouched(t *testing.T) {
	t.Helper()
	for _, l := range []net.Listener{x.v4, x.v6} {
		if l == nil {
			continue
		}
		own, err := net.Dial(l.Addr().Network(), l.Addr().String())
		require.NoError(t, err)
		first, err := l.Accept()
		require.NoError(t, err)
		require.Equal(t, own.LocalAddr().String(), first.RemoteAddr().String(), "somebody was here before")
		_ = own.Close()
		_ = first.Close()
	}
}

func TestDialByName(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answers []netip.Addr
		policy  guard.Policy
		blocked []string // tried and refused
		public  []string // tried and let through
	}{
		"A is loopback":         {answers: ssrftest.Addresses("127.0.0.1"), blocked: []string{"127.0.0.1"}},
		"A is unspecified":      {answers: ssrftest.Addresses("0.0.0.0"), blocked: []string{"0.0.0.0"}},
		"A is metadata":         {answers: ssrftest.Addresses("169.254.169.254"), blocked: []string{"169.254.169.254"}},
		"A is Azure's host":     {answers: ssrftest.Addresses("168.63.129.16"), blocked: []string{"168.63.129.16"}},
		"A is private":          {answers: ssrftest.Addresses("10.0.0.1", "192.168.0.1"), blocked: []string{"10.0.0.1", "192.168.0.1"}},
		"AAAA is loopback":      {answers: ssrftest.Addresses("::1"), blocked: []string{"::1"}},
		"AAAA is unspecified":   {answers: ssrftest.Addresses("::"), blocked: []string{"::", "0.0.0.0"}},
		"AAAA is metadata":      {answers: ssrftest.Addresses("fd00:ec2::254"), blocked: []string{"fd00:ec2::254"}},
		"AAAA is NAT64":         {answers: ssrftest.Addresses("64:ff9b::a9fe:a9fe"), blocked: []string{"64:ff9b::a9fe:a9fe"}},
		"AAAA is 6to4":          {answers: ssrftest.Addresses("2002:a9fe:a9fe::1"), blocked: []string{"2002:a9fe:a9fe::1"}},
		"AAAA is Teredo":        {answers: ssrftest.Addresses("2001:0:7f00:1::"), blocked: []string{"2001:0:7f00:1::"}},
		"AAAA is compatible":    {answers: ssrftest.Addresses("::7f00:1"), blocked: []string{"::7f00:1"}},
		"AAAA is mapped":        {answers: ssrftest.Addresses("::ffff:127.0.0.1"), blocked: []string{"127.0.0.1"}},
		"both are loopback":     {answers: ssrftest.Addresses("127.0.0.1", "::1"), blocked: []string{"127.0.0.1", "::1"}},
		"public, then loopback": {answers: ssrftest.Addresses("8.8.8.8", "127.0.0.1"), blocked: []string{"127.0.0.1"}, public: []string{"8.8.8.8"}},
		"loopback, then public": {answers: ssrftest.Addresses("127.0.0.1", "8.8.8.8"), blocked: []string{"127.0.0.1"}, public: []string{"8.8.8.8"}},
		"A public, AAAA loopback": {
			answers: ssrftest.Addresses("8.8.8.8", "::1"), blocked: []string{"::1"}, public: []string{"8.8.8.8"},
		},
		"A loopback, AAAA public": {
			answers: ssrftest.Addresses("127.0.0.1", "2606:4700:4700::1111"), blocked: []string{"127.0.0.1"}, public: []string{"2606:4700:4700::1111"},
		},
		"metadata, where private networks are allowed": {
			answers: ssrftest.Addresses("169.254.169.254", "fd00:ec2::254"), blocked: []string{"169.254.169.254", "fd00:ec2::254"},
			policy: guard.Policy{AllowPrivateNetworks: true},
		},
		"public, but denied by the operator": {
			answers: ssrftest.Addresses("8.8.8.8"), blocked: []string{"8.8.8.8"},
			policy: guard.Policy{AllowPrivateNetworks: true, Deny: []netip.Prefix{prefix("8.8.8.8/32")}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newTarget(t)
			d := newRecorder(tt.policy, &ssrftest.Zone{Answers: map[string][][]netip.Addr{host: {tt.answers}}})
			conn, err := d.DialContext(t.Context(), "tcp", net.JoinHostPort(host, x.port))
			require.Error(t, err)
			require.Nil(t, conn)
			if tt.public == nil {
				require.ErrorIs(t, err, guard.ErrBlocked, "through net.OpError")
			}
			d.mu.Lock()
			defer d.mu.Unlock()
			for _, a := range tt.blocked {
				require.ErrorIs(t, d.tried[a], guard.ErrBlocked, a)
			}
			for _, a := range tt.public {
				require.Contains(t, d.tried, a)
				require.NoError(t, d.tried[a], a)
			}
			require.Len(t, d.tried, len(tt.blocked)+len(tt.public))
			x.requireUntouched(t)
		})
	}
}

// The tests above rely on this: without the guard the same dial arrives.
func TestDialByNameArrivesWherePrivateNetworksAreAllowed(t *testing.T) {
	t.Parallel()
	x := newTarget(t)
	d := newRecorder(guard.Policy{AllowPrivateNetworks: true}, &ssrftest.Zone{Answers: map[string][][]netip.Addr{host: {ssrftest.Addresses("127.0.0.1")}}})
	conn, err := d.DialContext(t.Context(), "tcp", net.JoinHostPort(host, x.port))
	require.NoError(t, err)
	accepted, err := x.v4.Accept()
	require.NoError(t, err)
	require.Equal(t, conn.LocalAddr().String(), accepted.RemoteAddr().String())
	_ = conn.Close()
	_ = accepted.Close()
}

func TestDialAfterRebinding(t *testing.T) {
	t.Parallel()
	x := newTarget(t)
	z := &ssrftest.Zone{Answers: map[string][][]netip.Addr{host: {ssrftest.Addresses("8.8.8.8"), ssrftest.Addresses("127.0.0.1")}}}
	d := newRecorder(guard.Policy{}, z)
	_, err := d.DialContext(t.Context(), "tcp4", net.JoinHostPort(host, x.port))
	require.ErrorIs(t, err, errPublic, "the first answer is harmless")
	_, err = d.DialContext(t.Context(), "tcp4", net.JoinHostPort(host, x.port))
	require.ErrorIs(t, err, guard.ErrBlocked)
	x.requireUntouched(t)
}

func TestDialThroughAnAlias(t *testing.T) {
	t.Parallel()
	x := newTarget(t)
	const metadata = "metadata.google.internal"
	z := &ssrftest.Zone{
		Answers: map[string][][]netip.Addr{metadata: {ssrftest.Addresses("169.254.169.254", "127.0.0.1")}},
		Alias:   map[string]string{host: metadata},
	}
	_, err := newRecorder(guard.Policy{}, z).DialContext(t.Context(), "tcp", net.JoinHostPort(host, x.port))
	require.ErrorIs(t, err, guard.ErrBlocked)
	x.requireUntouched(t)
}

func TestDialManyAnswers(t *testing.T) {
	t.Parallel()
	x := newTarget(t)
	var many []netip.Addr
	for i := range 200 {
		many = append(many, netip.AddrFrom4([4]byte{127, 0, 0, byte(i + 1)}))
	}
	d := newRecorder(guard.Policy{}, &ssrftest.Zone{Answers: map[string][][]netip.Addr{host: {many}}})
	_, err := d.DialContext(t.Context(), "tcp", net.JoinHostPort(host, x.port))
	require.ErrorIs(t, err, guard.ErrBlocked)
	require.Len(t, d.tried, len(many))
	x.requireUntouched(t)
}

// Literal addresses need no resolver, and zones get through the parsers.
func TestDialLiterals(t *testing.T) {
	t.Parallel()
	x := newTarget(t)
	for _, literal := range []string{"127.0.0.1", "::1", "::", "0.0.0.0", "::ffff:127.0.0.1", "::1%lo", "::1%zzz", "::ffff:127.0.0.1%lo"} {
		d := net.Dialer{ControlContext: guard.Policy{}.Control}
		_, err := d.DialContext(t.Context(), "tcp", net.JoinHostPort(literal, x.port))
		require.ErrorIs(t, err, guard.ErrBlocked, literal)
	}
	x.requireUntouched(t)
}

// A transport without a proxy takes none from the environment: that proxy would dial in
// place of the guarded dialer.
func TestProxyEnvironmentDoesNotMatter(t *testing.T) {
	proxy := newTarget(t)
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		t.Setenv(name, "http://"+proxy.v4.Addr().String())
		t.Setenv(strings.ToLower(name), "http://"+proxy.v4.Addr().String())
	}
	t.Setenv("NO_PROXY", "")
	t.Setenv("no_proxy", "")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	defer server.Close()
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	require.NoError(t, err)

	post := func(p guard.Policy, url string) error {
		z := &ssrftest.Zone{Answers: map[string][][]netip.Addr{host: {ssrftest.Addresses("127.0.0.1")}}}
		transport := &http.Transport{Proxy: nil, DialContext: newRecorder(p, z).DialContext}
		defer transport.CloseIdleConnections()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("{}"))
		require.NoError(t, err)
		response, err := (&http.Client{Transport: transport}).Do(request)
		if err != nil {
			return err
		}
		require.Equal(t, http.StatusNoContent, response.StatusCode)
		return response.Body.Close()
	}
	url := "http://" + net.JoinHostPort(host, port) + "/"
	require.NoError(t, post(guard.Policy{AllowPrivateNetworks: true}, url))
	require.ErrorIs(t, post(guard.Policy{}, url), guard.ErrBlocked, "through url.Error")
	require.ErrorIs(t, post(guard.Policy{}, "https://"+net.JoinHostPort(host, port)+"/"), guard.ErrBlocked)
	proxy.requireUntouched(t)
}
