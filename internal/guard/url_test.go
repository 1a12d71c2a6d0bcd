package guard_test

import (
	"cmp"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/guard"
	"github.com/surehook/surehook/internal/ssrftest"
)

var label63 = strings.Repeat("a", 63)

func TestGoodURLs(t *testing.T) {
	t.Parallel()
	name253 := strings.Repeat(label63+".", 3) + strings.Repeat("b", 61)
	long := "https://example.com/"
	long += strings.Repeat("p", 2048-len(long))
	for raw, want := range map[string]string{
		"https://example.com":                             "",
		"https://example.com/":                            "",
		"https://example.com?":                            "",
		"https://example.com/hooks/a%2Fb;c=d!?e=f&g=%20":  "",
		"HTTPS://Hooks.EXAMPLE.com/Path":                  "https://hooks.example.com/Path",
		"https://example.com:443/":                        "",
		"https://example.com:0443/":                       "https://example.com:443/",
		"https://example.com:1/":                          "",
		"https://example.com:65535/":                      "",
		"https://example.com:/x":                          "https://example.com/x",
		"https://xn--bcher-kva.example/":                  "",
		"https://a_b.example.com/":                        "",
		"https://_hook.example.com/":                      "",
		"https://a--b.example.com/":                       "",
		"https://3com.example/":                           "",
		"https://example.0xyz/":                           "",
		"https://example.a1/":                             "",
		"https://1.2.3.example/":                          "",
		"https://localhost.example.com/":                  "",
		"https://notlocalhost.com/":                       "",
		"https://" + name253 + "/":                        "",
		long:                                              "",
		"https://8.8.8.8/":                                "",
		"https://8.8.8.8:8443/x":                          "",
		"https://[2606:4700:4700::1111]/":                 "",
		"https://[2606:4700:4700:0:0:0:0:1111]:8443/":     "https://[2606:4700:4700::1111]:8443/",
		"https://[::ffff:8.8.8.8]/":                       "https://8.8.8.8/",
		"https://[64:ff9b::8.8.8.8]/":                     "https://[64:ff9b::808:808]/",
		"https://[2002:808:808::1]/":                      "",
		"https://example.com//a/../b":                     "",
		"https://example.com/a|b":                         "https://example.com/a%7Cb",
		"https://example.com/a%2Fb|c%7c\"<>^`{}?d|":       "https://example.com/a%2Fb%7Cc%7c%22%3C%3E%5E%60%7B%7D?d|",
		"https://example.com/" + strings.Repeat("|", 676): "https://example.com/" + strings.Repeat("%7C", 676),
		"https://example.com/?u=http://127.0.0.1/&t=@x\"": "",
	} {
		if want == "" {
			want = raw
		}
		u, err := guard.Policy{}.CheckURL(raw)
		require.NoError(t, err, raw)
		require.Equal(t, want, u.String())
		require.Nil(t, u.User)
		require.Empty(t, u.Opaque)
	}
}

func TestMoreBadURLs(t *testing.T) {
	t.Parallel()
	zero, private := guard.Policy{}, guard.Policy{AllowPrivateNetworks: true}
	for _, tt := range []struct {
		policy       guard.Policy
		raw, problem string
	}{
		{zero, "", "has no scheme"},
		{zero, "example.com", "has no scheme"},
		{zero, "example.com:443", "the scheme is \"example.com\""},
		{zero, "https:", "has no host"},
		{zero, "https://", "has no host"},
		{zero, "https://:443/", "has no host"},
		{zero, "https://?x", "has no host"},
		{zero, "https:example.com/", "has no host"},
		{zero, "https://@example.com/", "user info"},
		{zero, "https://:@example.com/", "user info"},
		{zero, "https://a@b@example.com/", "user info"},
		{zero, "https://example.com/#", "fragment"},
		{zero, "https://example.com/?a#b", "fragment"},
		{zero, "javascript:alert(1)", "the scheme is \"javascript\""},
		{zero, "wss://example.com/", "the scheme is \"wss\""},
		{zero, "http://example.com/", "the scheme is http"},
		{zero, "https://example.com:0/", "the port is \"0\""},
		{zero, "https://example.com:00/", "the port is \"00\""},
		{zero, "https://example.com:65536/", "the port is \"65536\""},
		{zero, "https://example.com:18446744073709551617/", "the port is"},
		{zero, "https://example.com:+80/", "is not a URL"},
		{zero, "https://example.com:http/", "is not a URL"},
		{zero, "https://example.com:80:80/", "is not a URL"},
		{zero, "https://example.com/%zz", `"%zz" is no percent-encoding there`},
		{zero, "https://example.com/100%", `"%" is no percent-encoding there`},
		{zero, "https://exa%6dple.com/", `"%6d" is no percent-encoding there`},
		{zero, "https://db/", "is a single label"},
		{zero, "https://_/", "is a single label"},
		{zero, "https://example.com./", "ends in a full stop"},
		{zero, "https://./", "ends in a full stop"},
		{zero, "https://a..example.com/", "an empty label"},
		{zero, "https://.example.com/", "an empty label"},
		{zero, "https://-a.example.com/", "a hyphen at the edge"},
		{zero, "https://a-.example.com/", "a hyphen at the edge"},
		{zero, "https://a.example.com-/", "a hyphen at the edge"},
		{zero, "https://" + label63 + "a.example.com/", "a label of 64 bytes"},
		{zero, "https://" + strings.Repeat(label63+".", 3) + strings.Repeat("b", 62) + "/", "the host has 254 bytes"},
		{zero, "https://example.com/" + strings.Repeat("p", 2029), "the URL has 2049 bytes"},
		{zero, "https://example.com/" + "p" + strings.Repeat("|", 676), "does not stay the same"},
		{zero, "https://example.com/\x00", "has the character"},
		{zero, "https://example.com/\x7f", "has the character"},
		{zero, "https://example.com/a b", "has the character"},
		{zero, "https://example.com/?a b", "has the character"},
		{zero, "https://example.com/?a\tb", "has the character"},
		{zero, " https://example.com/", "has the character"},
		{zero, "https://example.com/\n", "has the character"},
		{zero, "https://bücher.example/", "not ASCII"},
		{zero, "https://example.com/ü", "not ASCII"},
		{zero, "https://example.com/\x80", "not ASCII"},
		{zero, "https://b%C3%BCcher.example/", "has the byte 0xc3"},
		{zero, "https://%EF%BC%91%EF%BC%92%EF%BC%97.0.0.1/", "has the byte 0xef"},
		{zero, "https://example.com%2F@x/", "user info"},
		{zero, "https://a,b.example.com/", "has the byte 0x2c"},
		{zero, "https://a*b.example.com/", "has the byte 0x2a"},
		{zero, "https://127.0.0.1,8.8.8.8/", "has the byte 0x2c"},
		{zero, "https://1.2.3.4.5/", "ends in a number"},
		{zero, "https://127.0123456789/", "ends in a number"},
		{zero, "https://08.8.8.8/", "ends in a number"},
		{zero, "https://8.8.8.256/", "ends in a number"},
		{zero, "https://example.0x0123456789abcdef/", "ends in a number"},
		{zero, "https://example.0X/", "ends in a number"},
		{zero, "https://[::]:443:1/", "is not a URL"},
		{zero, "https://[2606:4700:4700::1111%25eth0]/", "has a zone"},
		{zero, "https://[]/", "is not a URL"},
		{zero, "https://[8.8.8.8]/", "is not a URL"},
		{zero, "https://[example.com]/", "is not a URL"},
		{private, "ftp://localhost/", "the scheme is \"ftp\""},
		{private, "http://user@localhost/", "user info"},
		{private, "http://localhost./", "ends in a full stop"},
		{private, "http://127.1/", "ends in a number"},
		{private, "http://[fe80::1%25eth0]/", "has a zone"},
		{private, "http://localhost:0/", "the port is \"0\""},
		{private, "http://-/", "a hyphen at the edge"},
		{guard.Policy{Deny: []netip.Prefix{netip.MustParsePrefix("8.8.8.0/24")}}, "https://8.8.8.8/", "may not be called"},
		{guard.Policy{AllowPrivateNetworks: true, Deny: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}, "http://10.1.2.3/", "may not be called"},
	} {
		u, err := tt.policy.CheckURL(tt.raw)
		require.Nil(t, u, tt.raw)
		requireProblem(t, err, tt.problem)
	}
}

// An application can have url.Parse take an IPv6 address without brackets.
func TestAddressWithoutBrackets(t *testing.T) {
	t.Setenv("GODEBUG", "urlstrictcolons=0")
	_, err := guard.Policy{}.CheckURL("https://2606:4700:4700::1111:443/")
	requireProblem(t, err, "has the byte 0x3a")
}

func TestPrivateNetworksAndAllow(t *testing.T) {
	t.Parallel()
	private := guard.Policy{AllowPrivateNetworks: true}
	for _, raw := range []string{
		"http://localhost:8080/hook", "http://db/", "http://my_service:9000/", "http://127.0.0.1:1/",
		"http://[::1]:8080/", "https://10.0.0.1/", "http://example.com/",
	} {
		u, err := private.CheckURL(raw)
		require.NoError(t, err, raw)
		require.Equal(t, raw, u.String())
	}
	_, err := private.CheckURL("http://169.254.169.254/")
	require.ErrorContains(t, err, "give one that is not denied, and no metadata service")
	allow := guard.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}}
	_, err = allow.CheckURL("https://10.1.2.3/")
	require.NoError(t, err)
	_, err = allow.CheckURL("https://10.2.0.1/")
	requireProblem(t, err, "the address 10.2.0.1 may not be called")
	_, err = allow.CheckURL("http://10.1.2.3/")
	requireProblem(t, err, "the scheme is http")
}

func TestErrorsKeepSecrets(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		"https://user:hunter2@10.0.0.1/", "https://example.com/hunter2#x", "http://example.com/?token=hunter2",
		"https://example.com:x/hunter2", "https://example.com/%zz?hunter2", "https://10.0.0.1/hunter2",
		"https://example.com/hunter2 ", "https://u:hunter2@[::1%25lo]/", "hunter2",
	} {
		_, err := guard.Policy{}.CheckURL(raw)
		require.Error(t, err, raw)
		require.NotContains(t, err.Error(), "hunter2")
	}
}

func FuzzCheckURL(f *testing.F) {
	for _, tt := range ssrftest.URLs {
		f.Add(tt.URL)
		f.Add(strings.Replace(tt.URL, "http:", "https:", 1))
	}
	for _, seed := range []string{
		"https://example.com/a?b=c", "https://[2606:4700:4700::1111]:8443/", "https://8.8.8.8/", "https://[::ffff:8.8.8.8]/",
		"https://[64:ff9b::808:808]/", "https://[2002:808:808::1]/", "https://example.com//%2f?#", "https://example.com/%2f|",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		for _, p := range []guard.Policy{{}, {AllowPrivateNetworks: true}} {
			u, err := p.CheckURL(raw)
			if err != nil {
				require.Nil(t, u)
				var e *guard.Error
				require.ErrorAs(t, err, &e)
				continue
			}
			// The URL that is stored is the one that will be called.
			text := u.String()
			again, err := url.Parse(text)
			require.NoError(t, err)
			require.Equal(t, u.Host, again.Host)
			require.Equal(t, u, again)
			twice, err := p.CheckURL(text)
			require.NoError(t, err)
			require.Equal(t, text, twice.String())
			// The written URL means the same as the given one, to another
			// parser too. A slash that is encoded separates nothing.
			given, err := url.Parse(raw)
			require.NoError(t, err)
			require.Equal(t, segments(t, cmp.Or(given.RawPath, given.EscapedPath())), segments(t, u.EscapedPath()))
			require.Equal(t, given.RawQuery, u.RawQuery)
			require.Nil(t, given.User)

			a, err := netip.ParseAddr(u.Hostname())
			if err != nil || p.AllowPrivateNetworks {
				continue
			}
			require.Equal(t, "https", u.Scheme)
			require.True(t, a.IsGlobalUnicast() && !a.IsPrivate() && !a.Is4In6() && a.Zone() == "", text)
			require.NoError(t, p.CheckAddr(a))
		}
	})
}

// segments are the decoded parts of a path as it is written.
func segments(t *testing.T, path string) (all []string) {
	for part := range strings.SplitSeq(path, "/") {
		decoded, err := url.PathUnescape(part)
		require.NoError(t, err)
		all = append(all, decoded)
	}
	return all
}
