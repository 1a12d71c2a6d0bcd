package post

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/signing"
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

// An attempt whose time is over before there is a connection has asked nobody for an answer.
func TestTimeoutsSayWhatWasNotReached(t *testing.T) {
	silent := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	for says, c := range map[string]struct {
		dialer  net.Dialer
		address string
	}{
		"the host's name could not be resolved within the attempt's time": {net.Dialer{Resolver: silent, Timeout: 10 * time.Millisecond}, "name.example:80"},
		"no connection could be made within the attempt's time":           {net.Dialer{Deadline: time.Unix(1, 0)}, "127.0.0.1:9"},
	} {
		_, err := bounded(c.dialer.DialContext)(t.Context(), "tcp", c.address)
		class, text := classify(t.Context(), err, false)
		require.Equal(t, says, text, "%v", err)
		require.Equal(t, sender.ClassTimeout, class)
	}
}

// An attempt that ends within the TLS handshake has asked nobody for an answer.
func TestErrorsSayThatTheHandshakeDidNotEnd(t *testing.T) {
	hangs := func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }
	leaves := func(conn net.Conn) { _, _ = conn.Read(make([]byte, 1)) }
	refuses := func(conn net.Conn) { // by the alert no_application_protocol
		_, _ = conn.Read(make([]byte, 16<<10))
		_, _ = conn.Write([]byte{21, 3, 3, 0, 2, 2, 120})
	}
	for name, c := range map[string]struct {
		conns []func(net.Conn) // one after the other
		class sender.Class
		says  string
	}{
		"hangs":            {[]func(net.Conn){hangs}, sender.ClassTimeout, "the TLS handshake was not over within the attempt's time"},
		"leaves":           {[]func(net.Conn){leaves}, sender.ClassReset, "the connection was closed before the TLS handshake was over"},
		"hangs on HTTP/2":  {[]func(net.Conn){refuses, hangs}, sender.ClassTimeout, "the TLS handshake was not over within the attempt's time (over HTTP/2)"},
		"leaves on HTTP/2": {[]func(net.Conn){refuses, leaves}, sender.ClassReset, "the connection was closed before the TLS handshake was over (over HTTP/2)"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				keyring, err := signing.NewKeyring(signing.Key{ID: "1", Secret: signing.GenerateSecret()})
				require.NoError(t, err)
				p := New(Config{Timeout: 10 * time.Second, Places: 4, Schemes: signing.DefaultSchemes(), Now: time.Now})
				p.Connect("", func(context.Context, string, string) (net.Conn, error) {
					here, there := net.Pipe()
					serve := c.conns[0]
					c.conns = c.conns[1:]
					go func() {
						defer there.Close()
						serve(there)
					}()
					return here, nil
				})
				x, err := p.Prepare(&Request{URL: &url.URL{Scheme: "https", Host: "endpoint"}, Event: "evt_1", Attempt: 1, At: time.Now(), Body: []byte("{}"), Keyring: keyring}, nil)
				require.NoError(t, err)
				answer := x.Send(t.Context(), nil)
				require.Equal(t, c.class, answer.Class)
				require.Equal(t, c.says, answer.Error)
			})
		})
	}
}

// A host of which one address could not be tried for want of resources may be well, whatever
// came of its others. An address of IPv6 tells nothing about local ports.
func TestLackIsToldOfAnyAddress(t *testing.T) {
	failed := func(address string, err error) error {
		to, parsed := net.ResolveTCPAddr("tcp", address)
		require.NoError(t, parsed)
		return &net.OpError{Op: "dial", Net: "tcp", Addr: to, Err: os.NewSyscallError("connect", err)}
	}
	refused := failed("192.0.2.1:443", system.refused)
	for name, c := range map[string]struct {
		second error
		lacks  bool
	}{
		"refused":              {failed("192.0.2.2:443", system.refused), false},
		"no descriptor":        {failed("192.0.2.2:443", system.lacks[0]), true},
		"no local port":        {failed("192.0.2.2:443", system.noPort), true},
		"no address over IPv6": {failed("[2001:db8::1]:443", system.noPort), false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := bounded(func(ctx context.Context, _, _ string) (net.Conn, error) {
				trace := httptrace.ContextClientTrace(ctx)
				trace.ConnectDone("tcp", "", refused)
				trace.ConnectDone("tcp", "", c.second)
				return nil, refused
			})(t.Context(), "tcp", "endpoint.example:443")
			require.Equal(t, c.lacks, system.exhausted(err))
			if !c.lacks {
				require.ErrorIs(t, err, system.refused)
			}
		})
	}
}

// Windows has codes of its own: those that package syscall has under the names of Unix are
// returned by none of its calls.
func TestCodes(t *testing.T) {
	to := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 443}
	for name, c := range map[string]struct {
		goos            string
		code            syscall.Errno
		exhausted, away bool
		text            string
	}{
		"WSAECONNREFUSED":    {"windows", 10061, false, false, "the connection was refused"},
		"WSAENETUNREACH":     {"windows", 10051, false, true, "the host cannot be reached"},
		"WSAEHOSTUNREACH":    {"windows", 10065, false, true, "the host cannot be reached"},
		"WSAENETDOWN":        {"windows", 10050, false, true, "no connection could be made"},
		"WSAEMFILE":          {"windows", 10024, true, false, "no connection could be made"},
		"WSAENOBUFS":         {"windows", 10055, true, false, "no connection could be made"},
		"WSAEADDRINUSE":      {"windows", 10048, true, false, "no connection could be made"},
		"WSAEADDRNOTAVAIL":   {"windows", 10049, false, false, "no connection could be made"},
		"a code of Unix":     {"windows", syscall.EHOSTUNREACH, false, false, "no connection could be made"},
		"another one of its": {"windows", syscall.EMFILE, false, false, "no connection could be made"},
		"ECONNREFUSED":       {"linux", syscall.ECONNREFUSED, false, false, "the connection was refused"},
		"ENETUNREACH":        {"linux", syscall.ENETUNREACH, false, true, "the host cannot be reached"},
		"EHOSTUNREACH":       {"linux", syscall.EHOSTUNREACH, false, true, "the host cannot be reached"},
		"ENETDOWN":           {"linux", syscall.ENETDOWN, false, true, "no connection could be made"},
		"EMFILE":             {"linux", syscall.EMFILE, true, false, "no connection could be made"},
		"ENFILE":             {"linux", syscall.ENFILE, true, false, "no connection could be made"},
		"ENOBUFS":            {"linux", syscall.ENOBUFS, true, false, "no connection could be made"},
		"ENOMEM":             {"linux", syscall.ENOMEM, true, false, "no connection could be made"},
		"EADDRNOTAVAIL":      {"linux", syscall.EADDRNOTAVAIL, true, false, "no connection could be made"},
	} {
		t.Run(name, func(t *testing.T) {
			err := &net.OpError{Op: "dial", Net: "tcp", Addr: to, Err: os.NewSyscallError("connectex", c.code)}
			codes := codesOf(c.goos)
			require.Equal(t, []any{c.exhausted, c.away, c.text}, []any{codes.exhausted(err), codes.cutOff(err), codes.text(err)})
		})
	}
	windows := codesOf("windows")
	require.True(t, windows.exhausted(&net.DNSError{Err: "dial udp: " + syscall.Errno(10055).Error()}))
}
