package main_test

import (
	"encoding/base64"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// visitor is a browser at the console, as far as HTTP goes.
type visitor struct {
	t      *testing.T
	base   string
	client *http.Client
}

func (s *process) visitor() *visitor {
	s.t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(s.t, err)
	return &visitor{s.t, s.base, &http.Client{Jar: jar}}
}

// ask returns the page that the browser ends at.
func (v *visitor) ask(method, path string, form url.Values, headers ...string) (*http.Response, string) {
	v.t.Helper()
	req, err := http.NewRequestWithContext(v.t.Context(), method, v.base+path, strings.NewReader(form.Encode()))
	require.NoError(v.t, err)
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := v.client.Do(req)
	require.NoError(v.t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(v.t, err)
	return res, string(text)
}

func (v *visitor) signIn(to string) (*http.Response, string) {
	v.t.Helper()
	return v.ask(http.MethodPost, "/console/login", url.Values{"token": {operatorToken}, "to": {to}})
}

// The console is the operator's alone, and signing in leads to where one wanted to go.
func TestConsoleIsTheOperators(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p, "-workers=false")
		c := s.customer("c")
		id := s.subscribe(c.token, "https://hooks.example.com/")
		v := s.visitor()
		for _, path := range []string{"/console/", "/console/subscriptions/" + id, "/console/nowhere"} {
			res, page := v.ask(http.MethodGet, path, nil)
			require.Equal(t, http.StatusUnauthorized, res.StatusCode)
			require.Contains(t, res.Header.Get("WWW-Authenticate"), "Bearer")
			require.Contains(t, res.Header.Get("Content-Security-Policy"), "default-src 'none'")
			require.Contains(t, page, `name="to" value="`+path+`"`)
			require.NotContains(t, page, "hooks.example.com")
		}
		res, _ := v.ask(http.MethodPost, "/console/subscriptions/"+id+"/pause", nil)
		require.Equal(t, http.StatusUnauthorized, res.StatusCode)
		res, page := v.ask(http.MethodPost, "/console/login", url.Values{"token": {c.token}})
		require.Equal(t, http.StatusUnauthorized, res.StatusCode)
		require.Contains(t, page, "That is not the operator")
		require.NotContains(t, page, c.token)
		res, _ = v.ask(http.MethodPost, "/console/login", url.Values{"token": {operatorToken}}, "Sec-Fetch-Site", "cross-site")
		require.Equal(t, http.StatusForbidden, res.StatusCode)
		// A cookie that nobody has signed, or that was signed for another time.
		for _, forged := range []string{"9999999999.", "9999999999." + strings.Repeat("0", 64), "x", "."} {
			res, _ := v.ask(http.MethodGet, "/console/", nil, "Cookie", "surehook_console="+forged)
			require.Equal(t, http.StatusUnauthorized, res.StatusCode)
		}

		// The root leads everybody here, whatever the request accepts: a person with curl, too.
		for _, accepted := range []string{"text/html,*/*;q=0.8", "*/*"} {
			res, page = v.ask(http.MethodGet, "/", nil, "Accept", accepted)
			require.Equal(t, "/console/", res.Request.URL.Path)
			require.Contains(t, page, "Sign in")
		}
		s.post("", "/", nil).refused(http.StatusUnauthorized)

		// Programs use their tokens, as everywhere.
		s.get(c.token, "/console/").refused(http.StatusForbidden)
		s.get("wrong", "/console/").refused(http.StatusUnauthorized)
		require.Equal(t, http.StatusOK, s.get(operatorToken, "/console/").status)

		v.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		for to, leads := range map[string]string{
			"/console/subscriptions/" + id: "/console/subscriptions/" + id, "https://elsewhere.example/": "/console/", "//elsewhere.example/": "/console/", "": "/console/",
		} {
			res, _ := v.signIn(to)
			require.Equal(t, http.StatusSeeOther, res.StatusCode)
			require.Equal(t, leads, res.Header.Get("Location"))
			cookie := res.Header.Get("Set-Cookie")
			for _, attribute := range []string{"HttpOnly", "SameSite=Strict", "Path=/console/", "Max-Age=7200"} {
				require.Contains(t, cookie, attribute)
			}
			require.NotContains(t, cookie, operatorToken)
		}
		res, _ = v.ask(http.MethodPost, "/console/login", url.Values{"token": {operatorToken}}, "X-Forwarded-Proto", "https")
		require.Contains(t, res.Header.Get("Set-Cookie"), "; Secure")
		v = s.visitor()
		v.signIn("")
		res, page = v.ask(http.MethodGet, "/console", nil)
		require.Equal(t, http.StatusOK, res.StatusCode)
		require.Contains(t, page, `aria-label="Console"`)

		// Signing out ends it, and so does a start with another operator token.
		session := v.client.Jar.Cookies(res.Request.URL)
		require.Len(t, session, 1)
		v.ask(http.MethodPost, "/console/logout", nil)
		res, _ = v.ask(http.MethodGet, "/console/", nil)
		require.Equal(t, http.StatusUnauthorized, res.StatusCode)
		res, _ = s.visitor().ask(http.MethodGet, "/console/", nil, "Cookie", session[0].String())
		require.Equal(t, http.StatusUnauthorized, res.StatusCode, "a copy of the cookie is of no use")
		v.signIn("")
		session = v.client.Jar.Cookies(res.Request.URL)
		s.stop()
		again := start(t, p, "-workers=false")
		res, _ = again.visitor().ask(http.MethodGet, "/console/", nil, "Cookie", session[0].String())
		require.Equal(t, http.StatusOK, res.StatusCode, "it survives a restart")
		proxys := "Basic " + base64.StdEncoding.EncodeToString([]byte("the:proxy's"))
		res, _ = again.visitor().ask(http.MethodGet, "/console/", nil, "Cookie", session[0].String(), "Authorization", proxys)
		require.Equal(t, http.StatusOK, res.StatusCode, "a proxy's own password is not the console's")
		res, page = again.visitor().ask(http.MethodGet, "/console/", nil, "Authorization", proxys)
		require.Equal(t, http.StatusUnauthorized, res.StatusCode)
		require.Contains(t, page, "Sign in")
		again.stop()
		res, _ = start(t, p, "-workers=false", "-operator-token", "another-operator-token").visitor().ask(http.MethodGet, "/console/", nil, "Cookie", session[0].String())
		require.Equal(t, http.StatusUnauthorized, res.StatusCode)
	})
}

// Every page of the console answers on each database, by each of its links, without
// a secret; and what it does is done.
func TestConsole(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p, "-schedule", "10ms", "-jitter", "0", "-horizon", "20ms")
		c := s.customer("c")
		bad, good := newEndpoint(t), newEndpoint(t)
		bad.answers(http.StatusServiceUnavailable)
		dead, fine := s.subscribe(c.token, bad.URL, "order.*"), s.subscribe(c.token, good.URL, "order.*")
		for i := range 3 {
			s.post(operatorToken, "/events", object{"type": "order.paid", "object": object{"type": "order", "id": fmt.Sprint(i)}}).is(http.StatusCreated)
		}
		s.deliveries(c.token, dead, "dead_lettered", 3)
		s.deliveries(c.token, fine, "delivered", 3)
		s.finished(c.token, s.submit(c.token, "export_events", object{}, "callback_url", good.URL))

		v := s.visitor()
		v.signIn("")
		secret := s.get(operatorToken, "/subscribers/sub_operator/secret").is(http.StatusOK)["signing_secret"].(string)
		seen := map[string]bool{}
		todo := []string{"/console/", "/console/replays/new?preview=1"}
		links := regexp.MustCompile(`href="([^"]*)"`)
		for len(todo) > 0 {
			at, err := url.Parse(todo[0])
			require.NoError(t, err)
			todo = todo[1:]
			if seen[at.String()] {
				continue
			}
			seen[at.String()] = true
			res, page := v.ask(http.MethodGet, at.String(), nil)
			require.Equal(t, http.StatusOK, res.StatusCode, "%s\n%s", at, page)
			if at.Path == "/console/customers/"+c.id+"/portal" {
				require.Equal(t, "/portal/", res.Request.URL.Path)
				require.NotEmpty(t, res.Request.URL.Fragment, "the token")
				continue
			}
			for _, never := range []string{c.token, c.secret, secret, operatorToken, strings.TrimPrefix(c.secret, "whsec_")} {
				require.NotContains(t, page, never, at)
			}
			for _, m := range links.FindAllStringSubmatch(page, -1) {
				to, err := at.Parse(html.UnescapeString(m[1]))
				require.NoError(t, err)
				to.Fragment = ""
				todo = append(todo, to.String())
			}
		}
		require.Greater(t, len(seen), 20)
		require.True(t, seen["/console/customers/"+c.id+"/portal"])

		_, page := v.ask(http.MethodPost, "/console/subscriptions/"+fine+"/pause", nil)
		require.Contains(t, page, "Paused.")
		require.Equal(t, "paused", s.get(c.token, "/subscriptions/"+fine).is(http.StatusOK)["status"])
		bad.answers(http.StatusOK)
		_, page = v.ask(http.MethodPost, "/console/replays", url.Values{"status": {"dead_lettered"}, "subscription": {dead}})
		require.Contains(t, page, "The replay has begun.")
		s.deliveries(c.token, dead, "delivered", 3)
		require.Contains(t, s.logged(), `by="the operator"`)
		for _, never := range []string{c.token, c.secret, secret, operatorToken} {
			require.NotContains(t, s.logged(), never)
		}
	})
}
