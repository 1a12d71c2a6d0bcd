package portal_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/browsertest"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/portal"
)

func TestInABrowser(t *testing.T) {
	t.Parallel()
	br := browsertest.New(t)
	t.Run("every page", func(t *testing.T) { everyPage(t, br.Tab(t)) })
	t.Run("in a frame", func(t *testing.T) { inAFrame(t, br.Tab(t)) })
}

// Every page can be read on a wide and on a narrow screen, in light and dark colours, and
// breaks no policy.
func everyPage(t *testing.T, tab *browsertest.Tab) {
	b := newBed(t)
	link, err := b.portal.Link(b.localhost()+prefix+"/", portal.Grant{Subscriber: "sub_ada", Name: "Acme Logistics"})
	require.NoError(t, err)
	tab.Go(link)
	tab.Reaches("document.querySelector('nav.tabs')")
	require.Equal(t, "Endpoints", browsertest.Eval[string](tab, "document.querySelector('h1').textContent"))
	require.Empty(t, browsertest.Eval[string](tab, "location.hash + location.search"), "the token has left the address")
	require.Empty(t, browsertest.Eval[string](tab, "document.cookie"), "no script reads the session")
	root := strings.TrimSuffix(browsertest.Eval[string](tab, "location.href"), "/")
	for _, p := range []struct{ name, path string }{
		{"endpoints", "/"}, {"endpoint", "/endpoints/" + b.ada.bad}, {"paused", "/endpoints/" + b.ada.held}, {"disabled", "/endpoints/" + b.ada.off}, {"new-endpoint", "/endpoints/new"},
		{"deliveries", "/deliveries"}, {"not-delivered", "/deliveries/" + b.ada.dead}, {"delivered", "/deliveries/" + b.ada.delivered},
		{"replays", "/replays"}, {"replay", "/replays/" + b.ada.replay}, {"new-replay", "/replays/new?preview=1"},
		{"secret", "/secret"}, {"event-types", "/event-types?type=invoice.paid"}, {"event-types-older", "/event-types?type=invoice.paid&version=2025-03-01"}, {"problem", "/nowhere"},
	} {
		tab.Open(root + p.path)
		tab.Looks(p.name)
	}
	b.longNames(tab)
	// A form that was refused, and a new secret, are answers to POSTs.
	tab.Open(root + "/endpoints/new")
	tab.Loads(func() {
		tab.Do("document.querySelector('#url').value = 'https://localhost/x', document.querySelector('#types').value = 'no.*.no', document.querySelector('main form').requestSubmit()")
	})
	tab.Looks("refused-endpoint")
	b.formsOfAnEndpoint(tab, root)
	b.versionsThatWait(tab, root)
	tab.Open(root + "/endpoints/" + b.ada.held)
	tab.Loads(func() {
		tab.Do("document.querySelector('#since').value = '2026-03-01T12:00', document.querySelector('form[action$=resume][method=get]').requestSubmit()")
	})
	require.Contains(t, browsertest.Eval[string](tab, "document.querySelector('#u1').textContent"), "sent")
	tab.Looks("resume")
	tab.Open(root + "/endpoints/" + b.ada.good + "/resume?since=2026-03-01T12:00")
	tab.Looks("resume-nothing")
	tab.Open(root + "/secret")
	tab.Loads(func() { tab.Do("document.querySelector('form[action$=rotate]').requestSubmit()") })
	require.Contains(t, browsertest.Eval[string](tab, "document.querySelector('#new').textContent"), "whsec_")
	tab.Looks("new-secret")
	b.testsOfASecret(tab, root)
	tab.Open(root + "/secret")
	tab.Loads(func() { tab.Do("document.querySelector('form[action$=activate]').requestSubmit()") })
	tab.Looks("secret-step-3")
	b.pass(3 * time.Hour)
	tab.Open(root + "/")
	tab.Looks("over")
	wanted := func(c string) bool {
		return strings.Contains(c, "404") || strings.Contains(c, "422") || strings.Contains(c, "401")
	}
	require.Empty(t, slices.DeleteFunc(tab.Complaints(), wanted))
}

// longNames looks at the head of a page with names that are longer than a screen.
func (b *bed) longNames(tab *browsertest.Tab) {
	b.t.Helper()
	long := strings.Repeat("Donaudampfschiffahrt", 12)
	other := newBed(b.t, func(c *portal.Config) { c.Name, c.Logo, c.LogoDark = long, "", "" })
	link, err := other.portal.Link(other.localhost()+prefix+"/", portal.Grant{Subscriber: "sub_ada", Name: long})
	require.NoError(b.t, err)
	tab.Go(link)
	tab.Reaches("document.querySelector('nav.tabs')")
	tab.Looks("long-names")
}

// formsOfAnEndpoint looks at the form with a filter that was tried, and one that was refused.
// Enter saves, although another button stands before the one that says so.
func (b *bed) formsOfAnEndpoint(tab *browsertest.Tab, root string) {
	t := b.t
	t.Helper()
	try := func(filter string) {
		tab.Open(root + "/endpoints/" + b.ada.good)
		tab.Do("document.querySelector('#filter').value = '" + filter + "', document.querySelector('[value=object]').checked = true")
		tab.Loads(func() { tab.Do("document.querySelector('button[formaction]').click()") })
	}
	try(`{"or": [{"data.of": "sub_ada"},\n{"data.amount": {"gte": 100}}]}`)
	require.Contains(t, browsertest.Eval[string](tab, "document.querySelector('#filter-says').textContent"), "it would pass 4")
	tab.Do("scrollTo(0, 0)") // a picture of a page that is scrolled is not whole
	tab.Looks("tried-filter")
	try(`{"data.amount": {"above": 100}, "a..b": 1}`)
	tab.Do("scrollTo(0, 0)")
	tab.Looks("refused-filter")
	tab.Open(root + "/endpoints/" + b.ada.good)
	tab.Do("document.querySelector('#description').focus()")
	tab.Loads(func() { tab.Key("Enter", 13, "\r") })
	require.Equal(t, "Saved.", strings.TrimSpace(browsertest.Eval[string](tab, "document.querySelector('.say.ok').textContent")))
}

// versionsThatWait looks at deliveries of endpoints with an order.
func (b *bed) versionsThatWait(tab *browsertest.Tab, root string) {
	t := b.t
	t.Helper()
	b.ordered()
	for name, id := range map[string]string{
		"replaced": b.deliveries(b.ada.held, sender.StatusSuperseded)[0].ID, "held-back": b.deliveries(b.ada.bad, sender.StatusPending)[0].ID,
		"holds-back": b.deliveries(b.ada.bad, sender.StatusDeadLettered)[0].ID,
	} {
		tab.Open(root + "/deliveries/" + id)
		tab.Looks(name)
	}
}

// testsOfASecret sends one to an endpoint that knows the new secret, and one to one that fails.
func (b *bed) testsOfASecret(tab *browsertest.Tab, root string) {
	t := b.t
	t.Helper()
	for _, endpoint := range []string{b.ada.good, b.ada.bad} {
		tab.Open(root + "/secret")
		tab.Do("document.querySelector('form[action$=\"secret/test\"] select').value = '" + endpoint + "'")
		tab.Loads(func() { tab.Do("document.querySelector('form[action$=\"secret/test\"]').requestSubmit()") })
	}
	b.run()
	tab.Open(root + "/secret")
	require.Equal(t, 2, browsertest.Eval[int](tab, "document.querySelectorAll('tr[data-row]').length"))
	tab.Looks("secret-tests")
	tab.Open(root + "/deliveries/" + b.deliveries(b.ada.good, sender.StatusDelivered)[0].ID)
	tab.Looks("secret-test")
}

// localhost is the server's address by name: of another site than by number.
func (b *bed) localhost() string { return strings.Replace(b.server.URL, "127.0.0.1", "localhost", 1) }

// host is a service's own page with the portal in a frame, on another site. The host hands
// the token over by the frame's address, or by a form.
func (b *bed) host(t *testing.T) *httptest.Server {
	t.Helper()
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		page := `<!DOCTYPE html><html lang="en"><title>Host</title><body>`
		if r.URL.Path == "/link" {
			link, err := b.portal.Link(b.localhost()+prefix+"/", portal.Grant{Subscriber: "sub_ada"})
			if err != nil {
				panic(err)
			}
			page += `<iframe name="portal" width="900" height="700" src="` + link + `"></iframe>`
		} else {
			token, err := b.portal.Token(portal.Grant{Subscriber: "sub_ada"})
			if err != nil {
				panic(err)
			}
			page += `<iframe name="portal" width="900" height="700"></iframe><form method="post" target="portal" action="` + b.localhost() + prefix + `/open"><input type="hidden" name="token" value="` + token + `"></form><script>document.querySelector("form").submit()</script>`
		}
		_, _ = w.Write([]byte(page))
	}))
	t.Cleanup(host.Close)
	return host
}

// The portal works in a frame of another site, in a browser that keeps no third party's
// cookies: with a partitioned cookie, and where no cookie at all is kept, with the script.
func inAFrame(t *testing.T, tab *browsertest.Tab) {
	tab.Screen(browsertest.Desk)
	for _, cookieless := range []bool{false, true} {
		b := newBed(t, func(c *portal.Config) { c.FrameAncestors = []string{"http://127.0.0.1:*"} })
		b.cookieless = cookieless
		host := b.host(t)
		for _, way := range []string{"/form", "/link"} {
			tab.Go(host.URL + way)
			frame := tab.Frame(b.localhost())
			frame.Reaches("document.querySelector('nav.tabs')")
			require.Empty(t, browsertest.Eval[string](frame, "location.hash + location.search"))
			require.True(t, browsertest.Eval[bool](frame, "document.body.classList.contains('embedded')") || cookieless)
			tab.Shoot("frame" + strings.ReplaceAll(way, "/", "-") + map[bool]string{true: "-cookieless", false: ""}[cookieless])
			require.Equal(t, http.StatusOK, browsertest.Eval[int](frame, "fetch(location.href).then(r => r.status)"), "what has changed is asked for with the session")
			// On to an endpoint, and a form there.
			frame.Do("document.querySelector('a.ep[href*=\"" + b.ada.good + "\"]').click()")
			frame.Reaches("document.querySelector('form[action$=pause]')")
			frame.Do("document.querySelector('form[action$=pause]').requestSubmit()")
			frame.Reaches("document.querySelector('.say.ok')")
			require.Equal(t, sender.SubscriptionPaused, b.endpoint(b.ada.good).Status)
			require.NoError(t, b.reg.Resume(t.Context(), b.ada.good, sender.Resume{}))
			tab.Open("about:blank") // the frame ends
		}
	}
	// A page that may not show it does not.
	tab.Go(newBed(t).host(t).URL + "/link")
	for !slices.ContainsFunc(tab.Complaints(), func(c string) bool { return strings.Contains(c, "frame-ancestors") }) {
		tab.Breathes()
	}
}
