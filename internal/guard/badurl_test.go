package guard_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/guard"
)

// badURL is a URL that must not lead to a private address.
type badURL struct {
	url     string
	problem string   // with https for http and the zero policy; "": accepted, because names are not looked up
	private string   // with AllowPrivateNetworks; "": as problem, unless written is given
	written string   // with AllowPrivateNetworks: it is accepted, and written so
	dials   []string // what net.Dialer makes of it, by the Go resolver or by the C library's, in whatever way
}

var badURLs = []badURL{
	{url: "http://127.0.0.1/", problem: "may not be called", written: "http://127.0.0.1/", dials: []string{"127.0.0.1:80"}},
	{url: "http://127.0.0.1:22/", problem: "may not be called", written: "http://127.0.0.1:22/", dials: []string{"127.0.0.1:22"}},
	{url: "http://127.1/", problem: "ends in a number", dials: []string{"127.0.0.1:80"}},
	{url: "http://127.0.1/", problem: "ends in a number", dials: []string{"127.0.0.1:80"}},
	{url: "http://0177.0.0.1/", problem: "ends in a number", dials: []string{"127.0.0.1:80"}},
	{url: "http://0x7f.0.0.1/", problem: "ends in a number", dials: []string{"127.0.0.1:80"}},
	{url: "http://0x7f000001/", problem: "ends in a number", dials: []string{"127.0.0.1:80"}},
	{url: "http://2130706433/", problem: "ends in a number", dials: []string{"127.0.0.1:80"}},
	{url: "http://017700000001/", problem: "ends in a number", dials: []string{"127.0.0.1:80"}},
	{url: "http://0/", problem: "ends in a number", dials: []string{"0.0.0.0:80"}},
	{url: "http://0.0.0.0/", problem: "may not be called", written: "http://0.0.0.0/", dials: []string{"0.0.0.0:80"}},
	{url: "http://127.0.0.1./", problem: "ends in a full stop", dials: []string{"127.0.0.1:80"}},
	{url: "http://localhost/", problem: "is this machine", written: "http://localhost/", dials: []string{"127.0.0.1:80"}},
	{url: "http://LOCALHOST/", problem: "is this machine", written: "http://localhost/", dials: []string{"127.0.0.1:80"}},
	{url: "http://localhost./", problem: "ends in a full stop", dials: []string{"127.0.0.1:80"}},
	{url: "http://foo.localhost/", problem: "is this machine", written: "http://foo.localhost/", dials: []string{"127.0.0.1:80"}},
	{url: "http://[::1]/", problem: "may not be called", written: "http://[::1]/", dials: []string{"[::1]:80"}},
	{url: "http://[::]/", problem: "may not be called", written: "http://[::]/", dials: []string{"[::]:80", "0.0.0.0:80"}},
	{url: "http://[0:0:0:0:0:0:0:1]/", problem: "may not be called", written: "http://[::1]/", dials: []string{"[::1]:80"}},
	{url: "http://[::ffff:127.0.0.1]/", problem: "may not be called", written: "http://127.0.0.1/", dials: []string{"127.0.0.1:80"}},
	{url: "http://[::ffff:7f00:1]/", problem: "may not be called", written: "http://127.0.0.1/", dials: []string{"127.0.0.1:80"}},
	{url: "http://[::127.0.0.1]/", problem: "may not be called", written: "http://[::7f00:1]/", dials: []string{"[::7f00:1]:80"}},
	{url: "http://[::ffff:0:127.0.0.1]/", problem: "may not be called", written: "http://[::ffff:0:7f00:1]/", dials: []string{"[::ffff:0:7f00:1]:80"}},
	{url: "http://[64:ff9b::7f00:1]/", problem: "may not be called", written: "http://[64:ff9b::7f00:1]/", dials: []string{"[64:ff9b::7f00:1]:80"}},
	{url: "http://[64:ff9b:1::a9fe:a9fe]/", problem: "may not be called", written: "http://[64:ff9b:1::a9fe:a9fe]/", dials: []string{"[64:ff9b:1::a9fe:a9fe]:80"}},
	{url: "http://[2002:7f00:1::]/", problem: "may not be called", written: "http://[2002:7f00:1::]/", dials: []string{"[2002:7f00:1::]:80"}},
	{url: "http://[2001:0:7f00:1::]/", problem: "may not be called", written: "http://[2001:0:7f00:1::]/", dials: []string{"[2001:0:7f00:1::]:80"}},
	{url: "http://[fe80::1%25lo]/", problem: "has a zone", dials: []string{"[fe80::1%lo]:80"}},
	{url: "http://[fe80::1]/", problem: "may not be called", written: "http://[fe80::1]/", dials: []string{"[fe80::1]:80"}},
	{url: "http://[fec0::1]/", problem: "may not be called", written: "http://[fec0::1]/", dials: []string{"[fec0::1]:80"}},
	{url: "http://[fd00:ec2::254]/", problem: "may not be called", written: "http://[fd00:ec2::254]/", dials: []string{"[fd00:ec2::254]:80"}},
	{url: "http://[fc00::1]/", problem: "may not be called", written: "http://[fc00::1]/", dials: []string{"[fc00::1]:80"}},
	{url: "http://[ff02::1]/", problem: "may not be called", written: "http://[ff02::1]/", dials: []string{"[ff02::1]:80"}},
	{url: "http://[100::1]/", problem: "may not be called", written: "http://[100::1]/", dials: []string{"[100::1]:80"}},
	{url: "http://[2001:db8::1]/", problem: "may not be called", written: "http://[2001:db8::1]/", dials: []string{"[2001:db8::1]:80"}},
	{url: "http://[5f00::1]/", problem: "may not be called", written: "http://[5f00::1]/", dials: []string{"[5f00::1]:80"}},
	{url: "http://[::ffff:169.254.169.254%25lo]/", problem: "has a zone", dials: []string{"169.254.169.254%lo:80"}},
	{url: "http://169.254.169.254/latest/meta-data/", problem: "may not be called", written: "http://169.254.169.254/latest/meta-data/", dials: []string{"169.254.169.254:80"}},
	{url: "http://169.254.170.2/", problem: "may not be called", written: "http://169.254.170.2/", dials: []string{"169.254.170.2:80"}},
	{url: "http://100.100.100.200/", problem: "may not be called", written: "http://100.100.100.200/", dials: []string{"100.100.100.200:80"}},
	{url: "http://10.0.0.1/", problem: "may not be called", written: "http://10.0.0.1/", dials: []string{"10.0.0.1:80"}},
	{url: "http://172.16.0.1/", problem: "may not be called", written: "http://172.16.0.1/", dials: []string{"172.16.0.1:80"}},
	{url: "http://172.31.255.255/", problem: "may not be called", written: "http://172.31.255.255/", dials: []string{"172.31.255.255:80"}},
	{url: "http://192.168.0.1/", problem: "may not be called", written: "http://192.168.0.1/", dials: []string{"192.168.0.1:80"}},
	{url: "http://100.64.0.1/", problem: "may not be called", written: "http://100.64.0.1/", dials: []string{"100.64.0.1:80"}},
	{url: "http://192.0.0.192/", problem: "may not be called", written: "http://192.0.0.192/", dials: []string{"192.0.0.192:80"}},
	{url: "http://198.18.0.1/", problem: "may not be called", written: "http://198.18.0.1/", dials: []string{"198.18.0.1:80"}},
	{url: "http://224.0.0.1/", problem: "may not be called", written: "http://224.0.0.1/", dials: []string{"224.0.0.1:80"}},
	{url: "http://240.0.0.1/", problem: "may not be called", written: "http://240.0.0.1/", dials: []string{"240.0.0.1:80"}},
	{url: "http://255.255.255.255/", problem: "may not be called", written: "http://255.255.255.255/", dials: []string{"255.255.255.255:80"}},
	{url: "http://192.0.2.1/", problem: "may not be called", written: "http://192.0.2.1/", dials: []string{"192.0.2.1:80"}},
	{url: "http://user:pass@127.0.0.1/", problem: "user info", dials: []string{"127.0.0.1:80"}},
	{url: "http://example.com@127.0.0.1/", problem: "user info", dials: []string{"127.0.0.1:80"}},
	{url: "http://127.0.0.1#@example.com/", problem: "fragment", dials: []string{"127.0.0.1:80"}},
	{url: `http://127.0.0.1\@example.com/`, problem: "has the character"},
	{url: `http://example.com\@127.0.0.1/`, problem: "has the character"},
	{url: "http://127.0.0.1%00.example.com/", problem: "is not a URL"},
	{url: "http://127.0.0.1%2eexample.com/", problem: "is not a URL"},
	{url: "http://１２７.0.0.1/", problem: "not ASCII", dials: []string{"127.0.0.1:80"}},
	{url: "http://①②⑦.⓪.⓪.①/", problem: "not ASCII", dials: []string{"127.0.0.1:80"}},
	{url: "http://127。0。0。1/", problem: "not ASCII", dials: []string{"127.0.0.1:80"}},
	{url: "http://ⓛocalhost/", problem: "not ASCII", dials: []string{"127.0.0.1:80"}},
	{url: "http://[::1]:0/", problem: "may not be called", private: "the port is \"0\"", dials: []string{"[::1]:0"}},
	{url: "http://127.0.0.1:99999/", problem: "may not be called", private: "the port is \"99999\""},
	{url: "http://127.0.0.1:/", problem: "may not be called", written: "http://127.0.0.1/", dials: []string{"127.0.0.1:80"}},
	{url: "http://127.0.0.1:-1/", problem: "is not a URL"},
	{url: "http:///x", problem: "has no host"},
	{url: "http:127.0.0.1/", problem: "has no host"},
	{url: "//127.0.0.1/", problem: "has no scheme"},
	{url: "file:///etc/passwd", problem: "the scheme is"},
	{url: "gopher://127.0.0.1/", problem: "the scheme is"},
	{url: "unix:///var/run/docker.sock", problem: "the scheme is"},
	{url: "http+unix://%2Fvar%2Frun%2Fdocker.sock/x", problem: "is not a URL"},
	{url: "ftp://127.0.0.1/", problem: "the scheme is"},
	{url: "http://exa mple.com/", problem: "has the character"},
	{url: "http://127.0.0.1\r\nHost: x/", problem: "has the character"},
	{url: "http://[::1", problem: "is not a URL"},
	{url: "http://[127.0.0.1]/", problem: "is not a URL"},
	{url: "http://[example.com]/", problem: "is not a URL"},
	{url: "http://127.0.0.1.nip.io/", written: "http://127.0.0.1.nip.io/", dials: []string{"127.0.0.1:80"}},
	{url: "HTTP://127.0.0.1/", problem: "may not be called", written: "http://127.0.0.1/", dials: []string{"127.0.0.1:80"}},
	{url: "http://0x7f.1/", problem: "ends in a number", dials: []string{"127.0.0.1:80"}},
	{url: "http://1.1/", problem: "ends in a number", dials: []string{"1.0.0.1:80"}},
	{url: "http://169.254.43518/", problem: "ends in a number", dials: []string{"169.254.169.254:80"}},
	{url: "http://[::ffff:a9fe:a9fe]/", problem: "may not be called", written: "http://169.254.169.254/", dials: []string{"169.254.169.254:80"}},
	{url: "http://[2002:a9fe:a9fe::1]/", problem: "may not be called", written: "http://[2002:a9fe:a9fe::1]/", dials: []string{"[2002:a9fe:a9fe::1]:80"}},
	{url: "http://[64:ff9b::a9fe:a9fe]/", problem: "may not be called", written: "http://[64:ff9b::a9fe:a9fe]/", dials: []string{"[64:ff9b::a9fe:a9fe]:80"}},
	{url: "http://[0000:0000:0000:0000:0000:ffff:7f00:0001]/", problem: "may not be called", written: "http://127.0.0.1/", dials: []string{"127.0.0.1:80"}},
}

// public is dialled by a bad URL, which is bad only because resolvers differ.
const public = "1.0.0.1:80"

func TestBadURLs(t *testing.T) {
	t.Parallel()
	require.Len(t, badURLs, 88)
	for _, tt := range badURLs {
		t.Run(tt.url, func(t *testing.T) {
			t.Parallel()
			_, err := guard.Policy{}.CheckURL(tt.url)
			require.Error(t, err, "as it is, with http")

			https := tt.url
			if len(https) > 5 && strings.EqualFold(https[:5], "http:") {
				https = "https" + https[4:]
			}
			u, err := guard.Policy{}.CheckURL(https)
			if tt.problem == "" {
				require.NoError(t, err)
				require.Equal(t, https, u.String())
			} else {
				requireProblem(t, err, tt.problem)
				require.Nil(t, u)
			}

			u, err = guard.Policy{AllowPrivateNetworks: true}.CheckURL(tt.url)
			switch {
			case tt.written != "":
				require.NoError(t, err)
				require.Equal(t, tt.written, u.String())
			case tt.private != "":
				requireProblem(t, err, tt.private)
			default:
				requireProblem(t, err, tt.problem)
			}

			for _, address := range tt.dials {
				for _, network := range []string{"tcp4", "tcp6"} {
					err := guard.Policy{}.Control(t.Context(), network, address, nil)
					if address == public {
						require.NoError(t, err)
					} else {
						require.ErrorIs(t, err, guard.ErrBlocked, address)
					}
				}
			}
		})
	}
}

func requireProblem(t *testing.T, err error, problem string) {
	t.Helper()
	var e *guard.Error
	require.ErrorAs(t, err, &e)
	require.Contains(t, e.Problem, problem)
	require.NotEmpty(t, e.Remedy)
	require.Equal(t, "guard: "+e.Problem+": "+e.Remedy, err.Error())
	require.False(t, errors.Is(err, guard.ErrBlocked), "what is wrong with a URL is no secret")
}
