package portal_test

import (
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/portal"
)

// Every problem of a configuration is reported, and nothing of it can leave its place in a
// style sheet or a header.
func TestNewRefuses(t *testing.T) {
	t.Parallel()
	_, err := portal.New(portal.Backend{}, nil, nil)
	for _, what := range []string{"Registry", "History", "Replays", "key"} {
		require.ErrorContains(t, err, what)
	}
	b := newBed(t)
	for what, cfg := range map[string]portal.Config{
		"Name":           {Name: "a\nb"},
		"Accent":         {Accent: "red; } body { display: none"},
		"AccentDark":     {AccentDark: "#12345"},
		"Logo":           {Logo: `https://x.example.com/a") } body { background: url("https://y.example.com/`},
		"LogoDark":       {LogoDark: "javascript:alert(1)"},
		"LogoWidth":      {LogoWidth: 9999},
		"FrameAncestors": {FrameAncestors: []string{"https://a.example.com; script-src *"}},
		"Return":         {Return: "javascript:alert(1)"},
		"DisableAfter":   {DisableAfter: -1},
		"Session":        {Session: 25 * time.Hour},
		"Timeout":        {Timeout: -1},
	} {
		_, err := portal.New(b.backend(), [][]byte{portalKey}, &cfg)
		require.ErrorContains(t, err, what)
	}
	for _, logo := range []string{"https://x.example.com/a\\", "https://x;y/a", "http://x.example.com/a.png", "data:text/html,x", "data:image/png;base64,\n", "https://u:p@x.example.com/", "//x.example.com/"} {
		_, err := portal.New(b.backend(), [][]byte{portalKey}, &portal.Config{Logo: logo})
		require.ErrorContains(t, err, "Logo", logo)
	}
	_, err = portal.New(b.backend(), [][]byte{portalKey, []byte("short")}, nil)
	require.ErrorContains(t, err, "key 2: it has 5 bytes")
	for _, g := range []portal.Grant{{}, {Subscriber: sender.Operator}, {Subscriber: "a\x00"}, {Subscriber: "sub_a", TTL: 2 * time.Hour}, {Subscriber: "sub_a", Name: strings.Repeat("n", 256)}, {Subscriber: "sub_a", By: "a\r\nb"}} {
		_, err := b.portal.Token(g)
		require.ErrorContains(t, err, "Grant.", "%v", g)
	}
}

// Printing a Portal, or what holds one, shows nothing of its keys.
func TestNoKeyIsPrinted(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	key, err := hkdf.Expand(sha256.New, portalKey, "surehook portal: token", 32)
	require.NoError(t, err)
	for _, verb := range []string{"%v", "%+v", "%#v", "%d", "%x"} {
		part := strings.Trim(fmt.Sprintf(verb, key[:8]), "[]{}byte")
		for _, what := range []any{b.portal, *b.portal, struct{ p portal.Portal }{*b.portal}} {
			require.NotContains(t, fmt.Sprintf(verb, what), part, verb)
		}
	}
}

func TestBrand(t *testing.T) {
	t.Parallel()
	b := newBed(t, func(c *portal.Config) {
		c.FrameAncestors = []string{"https://app.example.com", "https://*.example.org:8443", "'self'"}
		c.LogoDark = "https://cdn.example.com/logo.svg"
		c.Accent, c.AccentDark = "#ffee00", "#000080" // neither can be read as it is
	})
	v := b.visit("sub_ada")
	p := v.get("/")
	require.Contains(t, p.header.Get("Content-Security-Policy"), "frame-ancestors https://app.example.com https://*.example.org:8443 'self'")
	require.Contains(t, p.header.Get("Content-Security-Policy"), "img-src https://cdn.example.com 'self' data:")
	require.Empty(t, p.header.Get("X-Frame-Options"))
	css := v.ask(http.MethodGet, prefix+"/brand.css", nil)
	require.Equal(t, "text/css; charset=utf-8", css.header.Get("Content-Type"))
	require.Contains(t, css.text, `--logo: url("https://cdn.example.com/logo.svg")`)
	require.Regexp(t, `--logo: url\("data:image/svg\+xml,`, css.text)
	shades := regexp.MustCompile(`--accent: light-dark\((#......), (#......)\)`).FindStringSubmatch(css.text)
	require.NotNil(t, shades, css.text)
	require.GreaterOrEqual(t, portal.Contrast(shades[1], "#ffffff"), 4.5)
	require.GreaterOrEqual(t, portal.Contrast(shades[2], "#15181c"), 4.5)
	on := regexp.MustCompile(`--on-accent: light-dark\((#......), (#......)\)`).FindStringSubmatch(css.text)
	require.GreaterOrEqual(t, portal.Contrast(shades[1], on[1]), 4.5)
	require.GreaterOrEqual(t, portal.Contrast(shades[2], on[2]), 4.5)
}
