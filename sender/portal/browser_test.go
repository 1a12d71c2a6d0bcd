package portal_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/portal"
)

// flaws finds what would hinder people who use a keyboard, a screen reader or a narrow
// screen, or whose eyes are weak.
const flaws = `(() => {
	const found = [], all = s => [...document.querySelectorAll(s)], seen = e => e.getClientRects().length > 0;
	const root = document.documentElement;
	if (root.scrollWidth > root.clientWidth) found.push('it is ' + root.scrollWidth + ' wide, the screen ' + root.clientWidth);
	if (!root.lang || !document.title) found.push('no language, or no title');
	if (all('h1').length !== 1 || all('main').length !== 1) found.push('not one h1 and one main');
	let level = 0;
	for (const h of all('h1,h2,h3,h4')) {
		if (+h.tagName[1] > level + 1) found.push('a heading skips a level: ' + h.textContent);
		level = +h.tagName[1];
	}
	for (const e of all('main *')) {
		const r = e.getBoundingClientRect();
		if (seen(e) && r.width > 1 && !e.closest('.vh,pre,.secret,.tabs,svg,[hidden],.clip,.crumbs,td,th,dd') && (r.left < 0 || r.right > root.clientWidth)) found.push('it hangs over the edge: ' + e.outerHTML.slice(0, 80));
	}
	const ids = all('[id]').map(e => e.id);
	for (const id of new Set(ids.filter((id, i) => ids.indexOf(id) !== i))) found.push('twice the id ' + id);
	for (const e of all('input:not([type=hidden]),select,textarea')) if (seen(e) && !e.ariaLabel && (!e.labels.length || !e.labels[0].textContent.trim())) found.push('no label: ' + e.outerHTML);
	for (const e of all('a,button,summary')) if (!e.textContent.trim() && !e.ariaLabel) found.push('no name: ' + e.outerHTML);
	for (const e of all('[aria-describedby]')) if (!document.getElementById(e.getAttribute('aria-describedby'))) found.push('describes nothing: ' + e.outerHTML);
	for (const t of all('table')) {
		if (!t.querySelector('thead th[scope=col]')) found.push('a table without headings');
		const columns = t.querySelectorAll('thead th').length;
		for (const r of t.querySelectorAll('tbody tr')) if (r.children.length !== columns) found.push('a row of ' + r.children.length + ' cells in a table of ' + columns);
	}
	for (const e of all('script:not([src]),iframe,object,embed,img,[style]')) found.push('not allowed: ' + e.outerHTML.slice(0, 80));
	for (const e of all('*')) for (const a of e.attributes) if (a.name.startsWith('on')) found.push('a handler: ' + e.outerHTML.slice(0, 80));
	for (const e of all('a,button,input:not([type=hidden]),select,summary,pre')) if (e.tabIndex < 0) found.push('no key reaches ' + e.outerHTML.slice(0, 80));
	const channels = c => c.match(/[\d.]+/g).map(Number);
	const light = c => {
		const [r, g, b] = channels(c).map(v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const behind = e => {
		for (; e; e = e.parentElement) {
			const c = getComputedStyle(e).backgroundColor, parts = channels(c);
			if (parts.length < 4 || parts[3] > 0) return c;
		}
		return matchMedia('(prefers-color-scheme: dark)').matches ? 'rgb(18,18,18)' : 'rgb(255,255,255)';
	};
	const pale = new Set();
	for (const e of all('body *')) {
		if (!seen(e) || ![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())) continue;
		const a = light(getComputedStyle(e).color), b = light(behind(e)), ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		if (ratio < 4.5) pale.add('contrast ' + ratio.toFixed(2) + ': ' + e.tagName + '.' + e.className);
	}
	found.push(...pale);
	return found;
})()`

// Every page can be read on a wide and on a narrow screen, in light and dark colours, and
// breaks no policy. With a folder in SUREHOOK_SHOTS a picture of each is kept there.
func TestInABrowser(t *testing.T) {
	t.Parallel()
	br := newBrowser(t)
	b := newBed(t)
	link := func() string {
		link, err := b.portal.Link(b.localhost()+prefix+"/", portal.Grant{Subscriber: "sub_ada", Name: "Acme Logistics"})
		require.NoError(t, err)
		return link
	}
	br.opens(link())
	require.Equal(t, "Endpoints", eval[string](br, "document.querySelector('h1').textContent"))
	require.Empty(t, eval[string](br, "location.hash + location.search"), "the token has left the address")
	require.Empty(t, eval[string](br, "document.cookie"), "no script reads the session")
	root := strings.TrimSuffix(eval[string](br, "location.href"), "/")
	pages := []struct{ name, path string }{
		{"endpoints", "/"}, {"endpoint", "/endpoints/" + b.ada.bad}, {"paused", "/endpoints/" + b.ada.held}, {"disabled", "/endpoints/" + b.ada.off}, {"new-endpoint", "/endpoints/new"},
		{"deliveries", "/deliveries"}, {"not-delivered", "/deliveries/" + b.ada.dead}, {"delivered", "/deliveries/" + b.ada.delivered},
		{"replays", "/replays"}, {"replay", "/replays/" + b.ada.replay}, {"new-replay", "/replays/new?preview=1"},
		{"secret", "/secret"}, {"event-types", "/event-types?type=invoice.paid"}, {"problem", "/nowhere"},
	}
	for _, p := range pages {
		br.open(root + p.path)
		br.looks(p.name)
	}
	// A form that was refused, and a new secret, are answers to POSTs.
	br.open(root + "/endpoints/new")
	br.loads(func() {
		eval[any](br, "document.querySelector('#url').value = 'https://localhost/x', document.querySelector('#types').value = 'no.*.no', document.querySelector('main form').requestSubmit()")
	})
	br.looks("refused-endpoint")
	br.open(root + "/secret")
	br.loads(func() { eval[any](br, "document.querySelector('form[action$=rotate]').requestSubmit()") })
	require.Contains(t, eval[string](br, "document.querySelector('#new').textContent"), "whsec_")
	br.looks("new-secret")
	br.open(root + "/secret")
	br.loads(func() { eval[any](br, "document.querySelector('form[action$=activate]').requestSubmit()") })
	br.looks("secret-step-3")
	b.pass(3 * time.Hour)
	br.open(root + "/")
	br.looks("over")
	wanted := func(c string) bool {
		return strings.Contains(c, "404") || strings.Contains(c, "422") || strings.Contains(c, "401")
	}
	require.Empty(t, slices.DeleteFunc(br.complaints(), wanted))
}

// looks looks at a page on all screens.
func (b *browser) looks(name string) {
	b.t.Helper()
	for _, screen := range []struct {
		name          string
		width, height int
		dark          bool
	}{{"wide", 1440, 900, false}, {"narrow", 390, 844, false}, {"narrow-dark", 390, 844, true}, {"wide-dark", 1440, 900, true}} {
		b.screen(screen.width, screen.height, screen.dark)
		b.shoot(name + "-" + screen.name)
		require.Empty(b.t, eval[[]string](b, flaws), "%s, %s", name, screen.name)
	}
	require.False(b.t, eval[bool](b, "'hacked' in window"), name)
}

// localhost is the server's address by name: of another site than by number.
func (b *bed) localhost() string { return strings.Replace(b.server.URL, "127.0.0.1", "localhost", 1) }

// opens goes to an address whose page goes on to the portal.
func (b *browser) opens(url string) {
	b.t.Helper()
	b.call("Page.navigate", object{"url": url}, nil)
	b.reaches("document.querySelector('nav.tabs')")
}

// reaches waits until an expression is true in the page, which may be exchanged meanwhile.
func (b *browser) reaches(expression string) {
	b.t.Helper()
	for {
		var answer struct {
			Result struct{ Value bool }
		}
		// Between two pages there is none.
		if b.try("Runtime.evaluate", object{"expression": "Boolean(" + expression + ")", "returnByValue": true}, &answer) == "" && answer.Result.Value {
			return
		}
		b.breathes()
	}
}

// breathes lets the page go on for a moment.
func (b *browser) breathes() {
	b.t.Helper()
	_ = b.try("Runtime.evaluate", object{"expression": "new Promise(r => setTimeout(r, 20))", "awaitPromise": true}, nil)
}

// host is a service's own page with the portal in a frame, on another site. The host hands
// the token over by the frame's address, or by a form.
func (b *bed) host(t *testing.T) *httptest.Server {
	t.Helper()
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
}

// The portal works in a frame of another site, in a browser that keeps no third party's
// cookies: with a partitioned cookie, and where no cookie at all is kept, with the script.
func TestInAFrame(t *testing.T) {
	t.Parallel()
	br := newBrowser(t)
	for _, cookieless := range []bool{false, true} {
		b := newBed(t, func(c *portal.Config) { c.FrameAncestors = []string{"http://127.0.0.1:*"} })
		b.cookieless = cookieless
		host := b.host(t)
		t.Cleanup(host.Close)
		for _, way := range []string{"/form", "/link"} {
			br.call("Page.navigate", object{"url": host.URL + way}, nil)
			frame := br.frame(b.localhost())
			frame.reaches("document.querySelector('nav.tabs')")
			require.Empty(t, eval[string](frame, "location.hash + location.search"))
			require.True(t, eval[bool](frame, "document.body.classList.contains('embedded') || "+boolean(cookieless)))
			br.screen(1440, 900, false)
			br.shoot("frame" + strings.ReplaceAll(way, "/", "-") + map[bool]string{true: "-cookieless", false: ""}[cookieless])
			// On to an endpoint, and a form there.
			eval[any](frame, "document.querySelector('a.ep[href*=\""+b.ada.good+"\"]').click()")
			frame.reaches("document.querySelector('form[action$=pause]')")
			eval[any](frame, "document.querySelector('form[action$=pause]').requestSubmit()")
			frame.reaches("document.querySelector('.say.ok')")
			require.Equal(t, sender.SubscriptionPaused, b.endpoint(b.ada.good).Status)
			require.NoError(t, b.reg.Resume(t.Context(), b.ada.good, sender.Resume{}))
			br.open("about:blank") // the frame ends
		}
	}
	// A page that may not show it does not.
	b := newBed(t)
	host := b.host(t)
	t.Cleanup(host.Close)
	br.events = nil
	br.call("Page.navigate", object{"url": host.URL + "/link"}, nil)
	for !slices.ContainsFunc(br.complaints(), func(c string) bool { return strings.Contains(c, "frame-ancestors") }) {
		br.call("Runtime.evaluate", object{"expression": "new Promise(r => setTimeout(r, 20))", "awaitPromise": true}, nil)
	}
}

func boolean(b bool) string { return map[bool]string{true: "true", false: "false"}[b] }

// frame attaches to the frame that shows pages from an address. It has a process of its own.
func (b *browser) frame(address string) *browser {
	b.t.Helper()
	for {
		var all struct {
			TargetInfos []struct{ TargetID, Type, URL string }
		}
		b.call("Target.getTargets", nil, &all)
		for _, info := range all.TargetInfos {
			if info.Type == "iframe" && strings.HasPrefix(info.URL, address) {
				var attached struct{ SessionID string }
				b.call("Target.attachToTarget", object{"targetId": info.TargetID, "flatten": true}, &attached)
				return &browser{t: b.t, to: b.to, from: b.from, last: b.last + 1000, session: attached.SessionID}
			}
		}
		b.breathes()
	}
}
