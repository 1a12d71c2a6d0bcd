package main_test

import (
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The operator gets a link to a subscriber's portal, which shows that subscriber's things
// to whoever has it.
func TestPortal(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p, "-workers=false")
		c, other := s.customer("c"), s.customer("d")
		s.subscribe(c.token, "https://hooks.example.com/c")
		s.subscribe(other.token, "https://hooks.example.com/d")
		require.Equal(t, http.StatusForbidden, s.post(c.token, "/subscribers/"+c.id+"/portal", nil).status)
		require.Equal(t, http.StatusNotFound, s.post(other.token, "/subscribers/"+c.id+"/portal", nil).status)
		require.Equal(t, http.StatusNotFound, s.post(operatorToken, "/subscribers/sub_never/portal", nil).status)
		require.Equal(t, http.StatusConflict, s.post(operatorToken, "/subscribers/sub_operator/portal", nil).status)
		require.Equal(t, http.StatusUnprocessableEntity, s.post(operatorToken, "/subscribers/"+c.id+"/portal", object{"ttl_seconds": 3601}).status)
		got := s.post(operatorToken, "/subscribers/"+c.id+"/portal", object{"ttl_seconds": 60, "by": "ada"}).is(http.StatusOK)
		require.Equal(t, "/portal/#"+got["token"].(string), got["path"])

		jar, err := cookiejar.New(nil)
		require.NoError(t, err)
		v := &visitor{t, s.base, &http.Client{Jar: insecure{jar}}}
		res, page := v.ask(http.MethodPost, got["action"].(string), url.Values{"token": {got["token"].(string)}}, "Sec-Fetch-Site", "cross-site")
		require.Equal(t, http.StatusOK, res.StatusCode, page)
		require.Contains(t, page, "hooks.example.com")
		require.Contains(t, page, `<span class="path">/c</span>`)
		require.NotContains(t, page, `<span class="path">/d</span>`)
		require.True(t, strings.HasPrefix(res.Request.URL.Path, "/portal/s/"))
		// An endpoint that a visitor makes for notices is not told of itself, as in the API.
		root := res.Request.URL.Path
		_, page = v.ask(http.MethodGet, root+"endpoints/new", nil)
		form := regexp.MustCompile(`name="form" value="([^"]+)"`).FindStringSubmatch(page)[1]
		add := url.Values{"form": {form}, "url": {"https://hooks.example.com/told"}, "types": {"delivery.dead_lettered"}}
		res, page = v.ask(http.MethodPost, root+"endpoints", add, "Sec-Fetch-Site", "same-origin")
		require.Equal(t, http.StatusOK, res.StatusCode, page)
		at := "/subscriptions/" + path.Base(res.Request.URL.Path)
		made := s.get(c.token, at).is(http.StatusOK)["filter"]
		require.Equal(t, path.Base(at), made.(object)["not"].(object)["data.subscription_id"])
		add.Set("filter", `{"data.n": 1}`)
		res, page = v.ask(http.MethodPost, res.Request.URL.Path, add, "Sec-Fetch-Site", "same-origin")
		require.Equal(t, http.StatusOK, res.StatusCode, page)
		changed := s.get(c.token, at).is(http.StatusOK)["filter"].(object)
		require.Equal(t, made.(object)["not"], changed["not"])
		require.InDelta(t, 1, changed["data.n"], 0)

		res, _ = v.ask(http.MethodGet, "/portal/s/x/", nil)
		require.Equal(t, http.StatusUnauthorized, res.StatusCode)
	})
}

// Visitors of the portal are bound by -max-requests, too: those of each subscriber by themselves.
func TestPortalsLimit(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p, "-workers=false", "-max-requests=4")
		open := func(id string) (*visitor, *http.Response) {
			got := s.post(operatorToken, "/subscribers/"+id+"/portal", nil).is(http.StatusOK)
			jar, err := cookiejar.New(nil)
			require.NoError(t, err)
			v := &visitor{t, s.base, &http.Client{Jar: insecure{jar}}}
			res, _ := v.ask(http.MethodPost, got["action"].(string), url.Values{"token": {got["token"].(string)}}, "Sec-Fetch-Site", "cross-site")
			return v, res
		}
		v, res := open(s.customer("c").id)
		stranger := &visitor{t, s.base, http.DefaultClient}
		for range 20 {
			refused, _ := stranger.ask(http.MethodGet, res.Request.URL.Path, nil)
			require.Equal(t, http.StatusUnauthorized, refused.StatusCode, "a path is no secret: without its session nothing is counted")
		}
		for res.StatusCode == http.StatusOK {
			var page string
			if res, page = v.ask(http.MethodGet, res.Request.URL.Path, nil); res.StatusCode != http.StatusOK {
				require.Contains(t, page, "a subscriber may make 4 requests a second")
			}
		}
		require.Equal(t, http.StatusTooManyRequests, res.StatusCode)
		require.Equal(t, "1", res.Header.Get("Retry-After"))
		_, res = open(s.customer("d").id)
		require.Equal(t, http.StatusOK, res.StatusCode)
	})
}

// insecure keeps cookies for https in a test's http, as browsers do on localhost.
type insecure struct{ http.CookieJar }

func (j insecure) SetCookies(u *url.URL, all []*http.Cookie) {
	j.CookieJar.SetCookies(&url.URL{Scheme: "https", Host: u.Host, Path: u.Path}, all)
}

func (j insecure) Cookies(u *url.URL) []*http.Cookie {
	return j.CookieJar.Cookies(&url.URL{Scheme: "https", Host: u.Host, Path: u.Path})
}
