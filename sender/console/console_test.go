package console_test

import (
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/console"
	"github.com/surehook/surehook/sender/history"
)

func TestNewNeedsWhatItShowsAndWhoMaySeeIt(t *testing.T) {
	t.Parallel()
	_, err := console.New(console.Backend{}, nil, &console.Config{Timeout: -1})
	require.Error(t, err)
	for _, what := range []string{"Registry", "History", "Replays", "Authorize", "Timeout"} {
		require.Contains(t, err.Error(), what)
	}
	b := newBed(t)
	backend := console.Backend{Registry: b.reg, History: b.history, Replays: b.replays}
	_, err = console.New(backend, nil, nil)
	require.ErrorContains(t, err, "Authorize")
	_, err = console.New(backend, b.authorize, nil)
	require.NoError(t, err)
}

var (
	links = regexp.MustCompile(`(href|action|src)="([^"]*)"`)
	typed = regexp.MustCompile(`<input [^>]*value="[^"]*"`)
	posts = regexp.MustCompile(`method="post" action="([^"]*)"`)
)

// Every page that can be reached leads somewhere by each of its links, stays within
// the prefix, executes nothing that a stranger wrote and shows no secret.
func TestEveryPage(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	root, err := url.Parse(b.server.URL + prefix + "/")
	require.NoError(t, err)
	seen := map[string]bool{}
	kinds := map[string]bool{}
	todo := []*url.URL{root}
	for len(todo) > 0 {
		at := todo[0]
		todo = todo[1:]
		if seen[at.String()] {
			continue
		}
		seen[at.String()] = true
		p := b.get(strings.TrimPrefix(at.RequestURI(), prefix))
		require.Equal(t, http.StatusOK, p.status, "%s\n%s", at, p.text)
		if strings.HasSuffix(at.Path, "/style.css") {
			require.Contains(t, p.header.Get("Content-Type"), "text/css")
			continue
		}
		kinds[regexp.MustCompile(`/[a-z]+_[^/]*`).ReplaceAllString(strings.TrimPrefix(at.Path, prefix), "/ID")] = true
		require.Equal(t, "text/html; charset=utf-8", p.header.Get("Content-Type"))
		require.Contains(t, p.header.Get("Content-Security-Policy"), "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'")
		require.Equal(t, "no-store", p.header.Get("Cache-Control"))
		require.Equal(t, "nosniff", p.header.Get("X-Content-Type-Options"))
		require.Equal(t, 1, strings.Count(p.text, "<h1>"), "%s", at)
		shown := typed.ReplaceAllString(p.text, "") // a field has what was typed, as it was
		for _, never := range []string{"<script", "<img", "\u202e", "\x1b", headerValue, b.secret, strings.TrimPrefix(b.secret, "whsec_"), "ZgotmplZ", "<no value>", "&lt;no value"} {
			require.NotContains(t, shown, never, "%s", at)
		}
		for _, m := range links.FindAllStringSubmatch(p.text, -1) {
			to, err := at.Parse(html.UnescapeString(m[2]))
			require.NoError(t, err)
			require.True(t, to.Host == root.Host && strings.HasPrefix(to.Path, root.Path), "%s leads to %s", at, to)
			if to.Fragment = ""; m[1] == "href" {
				todo = append(todo, to)
			}
		}
		for _, m := range posts.FindAllStringSubmatch(p.text, -1) {
			to, err := at.Parse(m[1])
			require.NoError(t, err)
			if to.Path != prefix+"/logout" {
				require.Equal(t, http.StatusNotFound, b.get(strings.TrimPrefix(to.Path, prefix)).status, "a GET changes nothing: %s", to)
			}
		}
	}
	for _, kind := range []string{"/", "/subscriptions", "/subscriptions/ID", "/deliveries", "/deliveries/ID", "/events", "/events/ID", "/replays", "/replays/ID", "/replays/new", "/notices"} {
		require.True(t, kinds[kind], "no link leads to %s", kind)
	}
	require.NotContains(t, b.logged(), "level=ERROR")
}

// The pages show what the store has.
func TestPagesTell(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	dead := b.deliveries(b.dead)[1:] // the first one awaits its retry
	failing := b.deliveries(b.bad)[0]
	for path, words := range map[string][]string{
		"/": {
			`<dt>Dead letters</dt><dd><a href="./deliveries?status=dead_lettered">2</a>`, `<dt>Held</dt><dd><a href="./deliveries?status=held">1</a>`,
			"off.example.com", "delivery.dead_lettered", "20.0 %", "2026-03-04 20:00:00", "for <bdi>grace</bdi>",
		},
		"/subscriptions":                                {"good.example.com", "bad.example.com", "dead.example.com", "off.example.com", "invoice.*"},
		"/subscriptions/" + b.bad:                       {"bad.example.com", "X-Api-Key", "1 in a row", "at most 1000 attempts a second", "3.0 s", "awaiting retry", `\u{202e}desrever\u{1b}[31m`, "Send a test event"},
		"/subscriptions/" + b.off:                       {"disabled", "Resume", "&lt;script&gt;hacked=1&lt;/script&gt;"},
		"/deliveries/" + failing.ID:                     {"Attempt 1 failed", "answered 502", "&lt;img src=x onerror=hacked=1&gt;", "Redeliver", `&#34;version&#34;:2`},
		"/deliveries/" + dead[0].ID:                     {"Dead-lettered at", "the connection was refused", "after 2 attempts"},
		"/deliveries?status=dead_lettered":              {"<h1>Dead letters</h1>", dead[0].ID, dead[1].ID, "replays/new?status=dead_lettered"},
		"/events/" + failing.Event.ID:                   {"invoice.paid", "good.example.com", "whoever asks for its type", "&lt;/pre&gt;&lt;script&gt;"},
		"/replays/new?preview=1&subscription=" + b.dead: {"<strong>2</strong> deliveries", "<button>Replay 2</button>"},
		"/notices": {"delivery.dead_lettered", "Acknowledge"},
	} {
		p := b.get(path)
		require.Equal(t, http.StatusOK, p.status, path)
		for _, w := range words {
			require.Contains(t, strings.ToLower(p.text), strings.ToLower(w), path)
		}
	}
	require.Equal(t, http.StatusOK, b.get("").status, "without the slash the program's mux leads there")
}

// A visitor who is not let in gets the style sheet and nothing else.
func TestAuthorize(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.visitor("")
	for _, path := range []string{"/", "/subscriptions/" + b.good, "/nowhere", "/style.css/x"} {
		p := b.get(path)
		require.Equal(t, http.StatusUnauthorized, p.status)
		require.Equal(t, "who are you?\n", p.text)
	}
	require.Equal(t, http.StatusUnauthorized, b.post("/subscriptions/"+b.good+"/pause", nil).status)
	require.Equal(t, sender.SubscriptionActive, b.subscription(b.good).Status)
	require.Equal(t, http.StatusOK, b.get("/style.css").status)
}

// A request that another site makes the visitor's browser send changes nothing.
func TestOtherSites(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	for _, header := range [][2]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}} {
		require.Equal(t, http.StatusForbidden, b.post("/subscriptions/"+b.good+"/pause", nil, header[0], header[1]).status)
	}
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/subscriptions/"+b.good+"/pause", nil)
	req.Header.Set("Origin", "https://elsewhere.example")
	w := httptest.NewRecorder()
	pages, err := console.New(console.Backend{Registry: b.reg, History: b.history, Replays: b.replays}, b.authorize, nil)
	require.NoError(t, err)
	pages.ServeHTTP(w, req)
	require.Equal(t, http.StatusForbidden, w.Code)
	require.Equal(t, sender.SubscriptionActive, b.subscription(b.good).Status)
}

// The prefix may be stripped with its slash or without, or there may be none.
func TestPrefix(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	pages, err := console.New(console.Backend{Registry: b.reg, History: b.history, Replays: b.replays}, b.authorize, nil)
	require.NoError(t, err)
	for asked, strip := range map[string]string{"/a/subscriptions/": "/a/", "/a/": "/a", "/": ""} {
		path := strings.TrimSuffix(asked, "/")
		if strip == "/a" || strip == "" {
			path += "/subscriptions"
		}
		w := httptest.NewRecorder()
		http.StripPrefix(strip, pages).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		require.Equal(t, http.StatusOK, w.Code, path)
		require.Contains(t, w.Body.String(), `href="./style.css"`)
	}
}

// The first page counts what it has no room for, and links to it.
func TestHealthCounts(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	page := b.get("/").text
	require.NotContains(t, page, "that are disabled")
	require.Contains(t, page, "All 2 unread notices")
	for i := range 11 {
		s, err := b.reg.Subscribe(t.Context(), sender.NewSubscription{Subscriber: "sub_ada", URL: "https://off.example.com/", EventTypes: []string{"none.*"}})
		require.NoError(t, err, i)
		require.NoError(t, b.reg.Disable(t.Context(), s.ID, "for a test"))
	}
	require.Contains(t, b.get("/").text, `<a href="./subscriptions?status=disabled">All 12 that are disabled</a>`)
	notices, _, err := b.history.Notices(t.Context(), history.NoticeQuery{})
	require.NoError(t, err)
	for _, n := range notices {
		b.post("/notices/"+n.ID+"/acknowledge", nil)
	}
	require.Contains(t, b.get("/").text, "All have been acknowledged.")
	require.NoError(t, b.reg.Resume(t.Context(), b.off, sender.Resume{}))
	require.NotContains(t, b.get("/").text, "None is disabled.")
}

// An error has a page of its own, with its HTTP status.
func TestProblems(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	for _, path := range []string{
		"/nowhere", "/subscriptions/wsub_never", "/deliveries/dlv_never", "/events/evt_never", "/replays/rpl_never", "/subscriptions/",
		"/replays?after=rpl_never",
	} {
		p := b.get(path)
		require.Equal(t, http.StatusNotFound, p.status, path)
		require.Contains(t, p.text, "There is nothing here", path)
	}
	for path, says := range map[string]string{
		"/deliveries?status=lost": "pending, awaiting_retry", "/deliveries?since=yesterday&until=now": "yesterday", "/deliveries?type=a+b": "prefix.*",
		"/deliveries?object_id=7": "without its type", "/deliveries?cursor=x": "cursor", "/events?type=a+b": "prefix.*", "/subscriptions?status=gone": "active, paused",
		"/replays/new?preview=1&status=held": "dead_lettered or delivered", "/deliveries?class=odd": "error class",
	} {
		p := b.get(path)
		require.Equal(t, http.StatusUnprocessableEntity, p.status, path)
		require.Contains(t, html.UnescapeString(p.text), says, path)
	}
	pages, err := console.New(console.Backend{Registry: b.reg, History: b.history, Replays: b.replays}, b.authorize, nil)
	require.NoError(t, err)
	for _, path := range []string{"//subscriptions", "/x/../subscriptions", "/subscriptions//"} { // which a mux would redirect out of the prefix
		w := httptest.NewRecorder()
		pages.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://h"+path, nil))
		require.Equal(t, http.StatusNotFound, w.Code, path)
	}
	b.locked(func() {
		p := b.get("/")
		require.Equal(t, http.StatusServiceUnavailable, p.status)
		require.Contains(t, p.text, "given up after 1s")
	})
	require.Contains(t, b.logged(), "level=ERROR")
	require.Equal(t, http.StatusOK, b.get("/").status)
}

func TestPaging(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	for range 60 {
		b.publish("many")
	}
	b.run()
	for path, item := range map[string]string{
		"/deliveries?object_type=invoice&object_id=many&subscription=" + b.good: `data-label="Delivery"`, "/events?object_type=invoice&object_id=many": `data-label="Event"`,
	} {
		p := b.get(path)
		require.Equal(t, 50, strings.Count(p.text, item), path)
		next := regexp.MustCompile(`<a href="([^"]*)" rel="next">`).FindStringSubmatch(p.text)
		require.NotNil(t, next, path)
		require.NotContains(t, p.text, "First page")
		base, _, _ := strings.Cut(path, "?")
		second := b.get(base + html.UnescapeString(next[1]))
		require.Equal(t, 10, strings.Count(second.text, item), path)
		require.Contains(t, second.text, "First page")
		require.NotContains(t, second.text, "Next page")
	}
}

func TestTimesOfTheFilter(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	// The dead letters were published at noon of the first of March, the rest 80 hours
	// later.
	for query, n := range map[string]int{
		"since=2026-03-01T12:00": 6, "since=2026-03-01T12:01": 4, "until=2026-03-01T12:00:00": 0, "until=2026-03-01T12:01": 2,
		"since=2026-03-04T20:00:00Z": 4, "since=2026-03-04T22:00:00%2B02:00": 4, "since=2026-03-04T20:00:01": 0,
	} {
		require.Equal(t, n, strings.Count(b.get("/deliveries?"+query).text, `data-label="Delivery"`), query)
	}
	require.Contains(t, b.get("/deliveries?since=2026-03-01T12:00").text, `value="2026-03-01T12:00"`, "the form shows what was asked for")
}
