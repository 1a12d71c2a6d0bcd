package portal_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/portal"
	"github.com/surehook/surehook/sender/replay"
)

// forms are the fields with which each POST would do something.
var forms = map[string][]string{
	"POST /endpoints":                 {"url", "https://new.example.com/", "type", "*"},
	"POST /endpoints/{id}":            {"url", "https://new.example.com/", "type", "*"},
	"POST /endpoints/new/preview":     {"type", "*", "filter", `{"data.of": {"exists": true}}`},
	"POST /endpoints/{id}/preview":    {"type", "*", "filter", `{"data.of": {"exists": true}}`},
	"POST /endpoints/{id}/resume":     {"take", "all"},
	"POST /replays":                   {"endpoint", "{id}"},
	"POST /secret/rotate":             {"overlap", "1"},
	"POST /secret/test":               {"endpoint", "{id}"},
	"GET /deliveries":                 nil,
	"POST /deliveries/{id}/redeliver": nil,
	"POST /deliveries/{id}/pass-over": nil,
}

// state is all that a subscriber has, as it is stored.
func (b *bed) state(subscriber string, x things) (all []any) {
	b.t.Helper()
	for _, id := range []string{x.good, x.bad, x.off, x.held} {
		all = append(all, b.endpoint(id))
	}
	for _, id := range []string{x.dead, x.delivered} {
		d, err := b.history.Delivery(b.t.Context(), id)
		require.NoError(b.t, err)
		all = append(all, d)
	}
	replays, err := b.replays.List(b.t.Context(), replay.Query{Subscriber: subscriber})
	require.NoError(b.t, err)
	secrets, err := b.reg.Secrets(b.t.Context(), subscriber)
	require.NoError(b.t, err)
	for _, s := range secrets {
		all = append(all, s.ID, s.State, s.ValidUntil)
	}
	list, _, err := b.history.Deliveries(b.t.Context(), history.DeliveryQuery{Subscriber: subscriber, Limit: 200})
	require.NoError(b.t, err)
	subscriptions, _, err := b.history.Subscriptions(b.t.Context(), sender.SubscriptionQuery{Subscriber: subscriber})
	require.NoError(b.t, err)
	return append(all, replays, list, subscriptions)
}

// Every route refuses another subscriber's ids, and whoever has no session of its own: as
// if there were nothing, and nothing changes.
func TestNothingOfAnotherIsReached(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	v := b.visit("sub_ada")
	ada, bob := b.state("sub_ada", b.ada), b.state("sub_bob", b.bob)
	routes := portal.Routes(b.portal)
	require.Greater(t, len(routes), 20)
	for _, route := range routes {
		method, path, _ := strings.Cut(route, " ")
		path = strings.TrimSuffix(path, "{$}")
		if strings.Contains(path, "{id}") {
			for _, id := range []string{b.bob.good, b.bob.held, b.bob.off, b.bob.dead, b.bob.delivered, b.bob.replay, "wsub_never", "x%2Fy", ".."} {
				p := v.ask(method, v.root+strings.ReplaceAll(path, "{id}", id), fields(append(forms[route], "form", v.form)...))
				require.Equal(t, http.StatusNotFound, p.status, "%s with %s\n%s", route, id, p.text)
				require.NotContains(t, p.text, "bob.example.com")
			}
		}
		b.refused(v, method, strings.ReplaceAll(path, "{id}", b.ada.good), forms[route])
	}
	require.Equal(t, bob, b.state("sub_bob", b.bob))

	// Lists that name another's endpoint have nothing of it.
	for _, path := range []string{"/deliveries?endpoint=" + b.bob.bad, "/deliveries?endpoint=" + b.bob.bad + "&status=dead_lettered", "/?after=" + b.bob.good} {
		require.NotContains(t, v.get(path).text, "bob.example.com", path)
	}
	for subscriber, passed := range map[string]string{"sub_ada": "<b>4</b>", "sub_bob": "<b>0</b>"} {
		v.post("/endpoints/new/preview", "type", "invoice.*", "filter", `{"data.of": "`+subscriber+`"}`).has(t, "Of the last 4 events of these types, it would pass "+passed)
	}
	require.NotContains(t, v.get("/event-types?type=invoice.paid").text, "bob.example.com")
	require.Equal(t, http.StatusNotFound, v.get("/replays/new?preview=1&endpoint="+b.bob.bad).status)
	require.Equal(t, http.StatusNotFound, v.post("/replays", "endpoint", b.bob.bad).status)
	require.Equal(t, ada, b.state("sub_ada", b.ada))
	require.Equal(t, bob, b.state("sub_bob", b.bob))
}

// refused asks for a route in every way that gives no right to it.
func (b *bed) refused(v *visitor, method, path string, body []string) {
	b.t.Helper()
	form := fields(append(body, "form", v.form)...)
	stranger := b.browser()
	p := stranger.ask(method, v.root+path, form)
	require.Equal(b.t, http.StatusUnauthorized, p.status, path)
	require.NotContains(b.t, p.text, "example.com/hooks")
	bob := b.visit("sub_bob")
	require.Equal(b.t, http.StatusUnauthorized, bob.ask(method, v.root+path, form).status, "another's session: %s", path)
	// Bob's own session, at the path of another's.
	at, err := url.Parse(b.server.URL + bob.root + "/")
	require.NoError(b.t, err)
	kept := bob.client.Jar.Cookies(at)
	require.Len(b.t, kept, 1)
	for _, session := range []string{kept[0].Value, "x", "e30.e30", b.token("sub_ada"), strings.TrimPrefix(b.token("sub_ada"), "shport_")} {
		require.Equal(b.t, http.StatusUnauthorized, stranger.ask(method, v.root+path, form, "Surehook-Session", session).status, path)
	}
	if method == http.MethodPost {
		for _, given := range []string{"", "x", bob.form} {
			p := v.ask(method, v.root+path, fields(append(body, "form", given)...))
			require.Equal(b.t, http.StatusForbidden, p.status, "%s without the session's form", path)
		}
		for _, site := range []string{"cross-site", "same-site"} {
			require.Equal(b.t, http.StatusForbidden, v.ask(method, v.root+path, form, "Sec-Fetch-Site", site).status, path)
		}
		require.Contains(b.t, []int{http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusOK}, v.ask(http.MethodGet, v.root+path, nil).status, "a GET changes nothing: %s", path)
	}
}

var (
	links = regexp.MustCompile(`(href|action|src)="([^"]*)"`)
	typed = regexp.MustCompile(`<input [^>]*value="[^"]*"`)
)

// noIcon keeps browsers from asking the service's root for one.
const noIcon = `<link rel="icon" href="data:,">`

// Every page that can be reached leads somewhere by each of its links, stays within the
// session, executes nothing that a stranger wrote, and shows no secret.
func TestEveryPage(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	v := b.visit("sub_ada")
	root, err := url.Parse(b.server.URL + v.root + "/")
	require.NoError(t, err)
	seen, kinds := map[string]bool{}, map[string]bool{}
	todo := []*url.URL{root}
	for len(todo) > 0 {
		at := todo[0]
		todo = todo[1:]
		if seen[at.String()] {
			continue
		}
		seen[at.String()] = true
		p := v.ask(http.MethodGet, at.RequestURI(), nil)
		require.Equal(t, http.StatusOK, p.status, "%s\n%s", at, p.text)
		if !strings.HasPrefix(at.Path, root.Path) {
			require.Contains(t, []string{prefix + "/style.css", prefix + "/brand.css", prefix + "/app.js", prefix + "/portal.js"}, at.Path)
			continue
		}
		kinds[regexp.MustCompile(`/[a-z]+_[^/]*`).ReplaceAllString(strings.TrimPrefix(at.Path, v.root), "/ID")] = true
		b.safe(v, p)
		for _, m := range links.FindAllStringSubmatch(strings.Replace(p.text, noIcon, "", 1), -1) {
			to, err := at.Parse(strings.ReplaceAll(m[2], "&amp;", "&"))
			require.NoError(t, err)
			require.True(t, to.Host == root.Host && strings.HasPrefix(to.Path, prefix), "%s leads to %s", at, to)
			if to.Fragment = ""; m[1] != "action" && to.Path != at.Path {
				todo = append(todo, to)
			}
		}
	}
	for _, kind := range []string{"/", "/endpoints/ID", "/endpoints/new", "/deliveries", "/deliveries/ID", "/replays", "/replays/ID", "/replays/new", "/secret", "/event-types"} {
		require.True(t, kinds[kind], "no link leads to %s", kind)
	}
	require.NotContains(t, b.logged(), "level=ERROR")
}

// safe ends the test unless a page is as every page must be.
func (b *bed) safe(v *visitor, p page) {
	b.t.Helper()
	t := b.t
	require.Equal(t, "text/html; charset=utf-8", p.header.Get("Content-Type"))
	require.Contains(t, p.header.Get("Content-Security-Policy"), "default-src 'none'; style-src 'self'; img-src 'self' data:; script-src 'self'")
	require.Contains(t, p.header.Get("Content-Security-Policy"), "frame-ancestors 'none'")
	require.Equal(t, "DENY", p.header.Get("X-Frame-Options"))
	require.Equal(t, "no-store", p.header.Get("Cache-Control"))
	require.Equal(t, "nosniff", p.header.Get("X-Content-Type-Options"))
	require.Equal(t, "same-origin", p.header.Get("Referrer-Policy"))
	require.Equal(t, 1, strings.Count(p.text, "<h1"), "%s", p.url)
	require.Contains(t, p.text, `<a class="logo" href=`)
	require.Contains(t, p.text, noIcon)
	shown := typed.ReplaceAllString(p.text, "") // a field has what was typed, as it was
	for _, never := range []string{"<script>", "<img", "\u202e", "\x1b", "bob.example.com", "sub_bob", "shport_", "grace", "internal note", "ZgotmplZ", "<no value>", "&lt;no value", " style=", " onerror=\""} {
		require.NotContains(t, shown, never, "%s", p.url)
	}
	for _, secret := range b.secrets {
		require.NotContains(t, html.UnescapeString(p.text), strings.TrimPrefix(secret, "whsec_"), "%s", p.url)
	}
	for _, c := range v.client.Jar.Cookies(p.url) {
		require.NotContains(t, p.text, c.Value, "%s", p.url)
	}
}

// A session ends after its time, with its subscriber, and with its key; a token does, too.
func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	v := b.visit("sub_ada")
	token := b.token("sub_ada")
	b.pass(5*time.Minute - time.Second)
	require.Equal(t, http.StatusOK, b.browser().send(prefix+"/open", fields("token", token)).status)
	b.pass(time.Second)
	require.Equal(t, http.StatusUnauthorized, b.browser().send(prefix+"/open", fields("token", token)).status, "the token's time is over")
	require.Equal(t, http.StatusOK, v.get("/").status, "the session goes on")
	b.pass(2 * time.Hour)
	p := v.get("/")
	require.Equal(t, http.StatusUnauthorized, p.status)
	p.has(t, "Your visit is over", `href="https://app.example.com/webhooks" target="_top"`)
	require.NotContains(t, p.text, "nothing of it was saved")
	p = v.post("/endpoints/" + b.ada.good + "/pause")
	require.Equal(t, http.StatusUnauthorized, p.status)
	p.has(t, "Your visit is over", "nothing of it was saved")
	require.Equal(t, sender.SubscriptionActive, b.endpoint(b.ada.good).Status)

	other, err := portal.New(b.backend(), [][]byte{make([]byte, 32)}, &portal.Config{Now: b.clock})
	require.NoError(t, err)
	forged, err := other.Token(portal.Grant{Subscriber: "sub_ada"})
	require.NoError(t, err)
	for _, wrong := range []string{"", "shport_", "shport_.", forged, forged + "x", strings.TrimPrefix(b.token("sub_ada"), "shport_"), b.token("sub_ada") + "A", "shport_" + strings.Repeat("a", 10_000)} {
		require.Equal(t, http.StatusUnauthorized, b.browser().send(prefix+"/open", fields("token", wrong)).status, wrong)
	}

	v = b.visit("sub_bob")
	require.NoError(t, b.reg.DeleteSubscriber(t.Context(), "sub_bob"))
	require.Equal(t, http.StatusUnauthorized, v.get("/").status, "the subscriber is gone")
}

// A service bounds how often the visitors of one subscriber ask. Others' requests at their paths
// do not count.
func TestAdmit(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	b := newBed(t, func(c *portal.Config) {
		c.Admit = func(w http.ResponseWriter, _ *http.Request, subscriber string) bool {
			asked.Add(1)
			if subscriber == "sub_bob" {
				w.WriteHeader(http.StatusTooManyRequests)
			}
			return subscriber != "sub_bob"
		}
	})
	v := b.visit("sub_ada")
	before := asked.Load()
	require.Equal(t, http.StatusUnauthorized, b.browser().ask(http.MethodGet, v.root+"/", nil).status)
	require.Equal(t, before, asked.Load())
	require.Equal(t, http.StatusOK, v.get("/").status)
	require.Equal(t, before+1, asked.Load())
	require.Equal(t, http.StatusTooManyRequests, b.browser().send(prefix+"/open", fields("token", b.token("sub_bob"))).status)
}

// A key can be replaced while sessions go on.
func TestKeysRotate(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	v := b.visit("sub_ada")
	token := b.token("sub_ada")
	next, err := portal.New(b.backend(), [][]byte{[]byte(strings.Repeat("n", 32)), portalKey}, b.config())
	require.NoError(t, err)
	*b.portal = *next
	require.Equal(t, http.StatusOK, v.get("/").status)
	v.done(v.post("/endpoints/"+b.ada.good+"/pause"), "/endpoints/"+b.ada.good, "Paused")
	require.Equal(t, http.StatusOK, b.browser().send(prefix+"/open", fields("token", token)).status)
}

// While the processes are started again with a new key in front, the two requests that open a
// session can come to two that do not have the same key in front.
func TestOpenedByTwoProcesses(t *testing.T) {
	t.Parallel()
	for _, cookieless := range []bool{false, true} {
		b := newBed(t)
		fresh := []byte(strings.Repeat("n", 32))
		before, err := portal.New(b.backend(), [][]byte{portalKey, fresh}, b.config())
		require.NoError(t, err)
		after, err := portal.New(b.backend(), [][]byte{fresh, portalKey}, b.config())
		require.NoError(t, err)
		*b.portal = *after
		token := b.token("sub_ada")
		v := b.browser()
		v.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		p := v.send(prefix+"/open", fields("token", token))
		require.Equal(t, http.StatusTemporaryRedirect, p.status)
		root := prefix + "/" + strings.TrimSuffix(p.header.Get("Location"), "/open")
		*b.portal = *before
		b.mu.Lock()
		b.cookieless = cookieless
		b.mu.Unlock()
		p = v.send(root+"/open", fields("token", token))
		var headers []string
		if cookieless {
			require.Equal(t, http.StatusOK, p.status)
			headers = []string{"Surehook-Session", regexp.MustCompile(`data-keep="([^"]+)"`).FindStringSubmatch(p.text)[1]}
		} else {
			require.Equal(t, http.StatusSeeOther, p.status)
		}
		for _, process := range []*portal.Portal{before, after} {
			*b.portal = *process
			require.Equal(t, http.StatusOK, v.ask(http.MethodGet, root+"/", nil, headers...).status)
		}
		require.Equal(t, http.StatusUnauthorized, v.send(root+"/open", fields("token", b.token("sub_bob"))).status, "it is not bob's")
	}
}

// Two tabs of a browser, with two customers, are not taken for each other.
func TestTwoSessionsInABrowser(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	v := b.visit("sub_ada")
	p := v.send(prefix+"/open", fields("token", b.token("sub_bob")))
	require.Equal(t, http.StatusOK, p.status)
	require.NotEqual(t, v.root+"/", p.url.Path)
	p.has(t, "good.bob.example.com")
	v.get("/").has(t, "good.ada.example.com")
	v.done(v.post("/endpoints/"+b.ada.good+"/pause"), "/endpoints/"+b.ada.good, "Paused")
	// The same customer's session goes on when it is opened again, with its forms.
	require.Equal(t, http.StatusOK, v.send(prefix+"/open", fields("token", b.token("sub_ada"))).status)
	v.done(v.post("/endpoints/"+b.ada.good+"/resume", "take", "all"), "/endpoints/"+b.ada.good, "Resumed")
}

// Neither the token nor the session stands where servers, proxies and other sites see it.
// A browser that opens the portal for many customers, such as that of the service's own staff,
// keeps the newest sessions, so that its requests do not grow beyond what servers take.
func TestManySessionsInABrowser(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	v := b.browser()
	var opened []string
	for i := range 12 {
		b.pass(time.Second)
		p := v.send(prefix+"/open", url.Values{"token": {b.token(fmt.Sprintf("sub_%d", i))}})
		opened = append(opened, strings.Split(strings.TrimPrefix(p.url.Path, prefix+"/s/"), "/")[0])
	}
	at, err := url.Parse(b.server.URL)
	require.NoError(t, err)
	var kept []string
	for _, c := range v.client.Jar.Cookies(at) {
		kept = append(kept, strings.TrimPrefix(c.Name, "__Host-surehook-portal-"))
	}
	require.ElementsMatch(t, opened[4:], kept)
}

func TestTokenIsInNoLog(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	v := b.browser()
	v.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	token := b.token("sub_ada")
	p := v.send(prefix+"/open", fields("token", token))
	require.Equal(t, http.StatusTemporaryRedirect, p.status)
	require.NotContains(t, p.header.Get("Location"), token[7:20])
	cookie := p.header.Get("Set-Cookie")
	for _, attribute := range []string{"__Host-surehook-portal-", "Path=/;", "HttpOnly", "Secure", "SameSite=None", "Partitioned", "Max-Age=7200"} {
		require.Contains(t, cookie, attribute)
	}
	value := regexp.MustCompile(`=([^;]+);`).FindStringSubmatch(cookie)[1]
	require.NotContains(t, p.header.Get("Location"), value[:20])
	require.NotContains(t, p.text, token)
	require.NotContains(t, b.logged(), token[7:])
	require.NotContains(t, b.logged(), value)
	require.Contains(t, b.logged(), "subscriber=sub_ada by=ada@acme.example")
	link, err := b.portal.Link("https://hooks.example.com/portal/", portal.Grant{Subscriber: "sub_ada"})
	require.NoError(t, err)
	require.Regexp(t, `^https://hooks\.example\.com/portal/#shport_`, link, "a fragment is sent to nobody")
	for _, wrong := range []string{"", "/portal/", "https://hooks.example.com/portal", "https://hooks.example.com/portal/?a=b"} {
		_, err := b.portal.Link(wrong, portal.Grant{Subscriber: "sub_ada"})
		require.Error(t, err, wrong)
	}
}
