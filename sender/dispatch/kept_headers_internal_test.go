package dispatch

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
)

func TestHeaders(t *testing.T) {
	h := keptHeaders(http.Header{
		"Content-Type": {"application/json"}, "User-Agent": {"surehook"}, "Webhook-Id": {"evt_1"}, "Webhook-Timestamp": {"1700000000"}, "Webhook-Attempt": {"2"},
		"Webhook-Signature": {"v1,AAAAAAAAAAAA v1,BBBBBBBBBBBB"}, "Webhook-Hmac-Sha256": {"t=1,v1=CCCCCCCC"},
		"Authorization": {"Bearer top-secret-token"}, "X-Request-Id": {"own-value-of-it"}, "Accept": {"application/json"}, "X-Env": {"test"},
	}, http.Header{
		"Content-Type": {"application/json"}, "Server": {"nginx"}, "Date": {"test day"}, "Set-Cookie": {"a=1", "b=2"}, "Www-Authenticate": {"Bearer x"},
		"X-Request-Id": {"req-7 for top-secret-token"}, "Via": {"1.1 a, 1.1 v1,BBBBBBBBBBBB"}, "Cf-Ray": {"own-value-of-it"},
		"Location": {"https://example.com/login?token=x#y"},
	})
	require.Equal(t, `Accept: redacted
Authorization: redacted
Content-Type: application/json
User-Agent: surehook
Webhook-Attempt: 2
Webhook-Hmac-Sha256: redacted
Webhook-Id: evt_1
Webhook-Signature: redacted
Webhook-Timestamp: 1700000000
X-Env: redacted
X-Request-Id: redacted

Cf-Ray: redacted
Content-Type: application/json
Date: test day
Location: https://example.com/login?redacted
Server: nginx
Set-Cookie: redacted
Set-Cookie: redacted
Via: redacted
Www-Authenticate: redacted
X-Request-Id: redacted
`, string(h))
	require.Len(t, h.Request(), 11)
	require.Equal(t, sender.Header{Name: "User-Agent", Value: "surehook"}, h.Request()[3])
	require.Equal(t, sender.Header{Name: "Location", Value: "https://example.com/login?redacted"}, h.Answer()[3])
	require.Len(t, h.Answer(), 10)
}

func TestLocations(t *testing.T) {
	for given, want := range map[string]string{
		"/hook/": "/hook/", "https://example.com/a;jsessionid=1/b?c": "https://example.com/a;redacted", "https://user:secret@example.com/": "redacted",
		"https://example.com/#at": "https://example.com/#redacted",
	} {
		got := keptHeaders(nil, http.Header{"Location": {given}}).Answer()
		require.Equal(t, []sender.Header{{Name: "Location", Value: want}}, got)
	}
}

// A value that is cut is searched for secrets as far as it is shown.
func TestSecretsInLongValues(t *testing.T) {
	const secret = "top-secret-token"
	for at, shown := range map[int]bool{0: false, 255: false, 256: true, 60_000: true} {
		value := strings.Repeat("x", at) + secret + strings.Repeat("x", 300)
		got := keptHeaders(http.Header{"Authorization": {"Bearer " + secret}}, http.Header{"Via": {value}}).Answer()
		want := "redacted"
		if shown {
			want = value[:256] + "…"
		}
		require.Equal(t, []sender.Header{{Name: "Via", Value: want}}, got, at)
	}
}

// An answer is searched for the words of a request that are long enough not to stand there by
// chance.
func TestShortWordsAreNoSecrets(t *testing.T) {
	got := keptHeaders(http.Header{"Authorization": {"seven77 eight888"}}, http.Header{"Server": {"a seven77"}, "Via": {"a eight888"}}).Answer()
	require.Equal(t, []sender.Header{{Name: "Server", Value: "a seven77"}, {Name: "Via", Value: "redacted"}}, got)
}

// A value and a side are kept whole up to their bounds. The lines from the first one on that
// has no room are counted.
func TestBoundsOfHeaders(t *testing.T) {
	value := strings.Repeat("x", 256-len("Server: \n")) // eight such lines fill a side
	for _, c := range []struct {
		lines, last int // how many, and by how much the last one is longer
		kept        int
		left        string
	}{{8, 0, 8, ""}, {9, 0, 8, "1 more"}, {8, 1, 7, "1 more"}, {12, 0, 8, "4 more"}} {
		var values []string
		for range c.lines - 1 {
			values = append(values, value)
		}
		values = append(values, value+strings.Repeat("x", c.last))
		got := keptHeaders(nil, http.Header{"Server": values}).Answer()
		if c.left != "" {
			require.Equal(t, sender.Header{Name: "…", Value: c.left}, got[len(got)-1])
			got = got[:len(got)-1]
		}
		require.Len(t, got, c.kept)
	}
	for length, want := range map[int]int{256: 256, 257: 256 + len("…")} {
		got := keptHeaders(nil, http.Header{"Server": {strings.Repeat("x", length)}}).Answer()
		require.Len(t, got[0].Value, want)
	}
}

func TestHeadersWithoutAnAnswer(t *testing.T) {
	require.Empty(t, keptHeaders(http.Header{"User-Agent": {"x"}}, nil).Answer())
	require.Len(t, keptHeaders(http.Header{"User-Agent": {"x"}}, nil).Request(), 1)
}

// The headers of an answer cannot break the form, nor what a database takes, nor the
// bounds.
func TestHeadersOfStrangers(t *testing.T) {
	many := http.Header{"Server": {strings.Repeat("é", 1000)}}
	for i := range 3000 {
		many.Add(fmt.Sprintf("X-%d", i), "a")
	}
	for name, answer := range map[string]http.Header{
		"many":   many,
		"long":   {strings.Repeat("N", 60_000): {"x"}, "Server": {"nginx"}},
		"broken": {"A: b\n\nC": {"x"}, "D\x7fE": {"x"}, "Server": {"a\r\nSet-Cookie: b\x00\xff\u0085"}, "": {""}},
	} {
		t.Run(name, func(t *testing.T) {
			h := keptHeaders(many, answer)
			require.LessOrEqual(t, len(h), MaxHeaders)
			require.True(t, utf8.ValidString(string(h)))
			require.NotContains(t, h, "\x00")
			kept := h.Answer()
			if name == "broken" {
				require.Equal(t, []sender.Header{{Value: "redacted"}, {Name: "A__b__C", Value: "redacted"}, {Name: "D_E", Value: "redacted"}, {Name: "Server", Value: "a  Set-Cookie: b \uFFFD "}}, kept)
				return
			}
			require.Equal(t, "…", kept[len(kept)-1].Name)
			total := 0
			for _, values := range answer {
				total += len(values)
			}
			require.Equal(t, fmt.Sprintf("%d more", total-len(kept)+1), kept[len(kept)-1].Value)
		})
	}
}
