package console_test

import (
	"fmt"
	"html"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/console"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/signing"
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
	ours  = regexp.MustCompile(`<script src="[./]*app\.js" defer></script>`)
	links = regexp.MustCompile(`(href|action|src)="([^"]*)"`)
	typed = regexp.MustCompile(`<input [^>]*value="[^"]*"`)
	ids   = regexp.MustCompile(`/[a-z]+_[^/]*`)
	posts = regexp.MustCompile(`method="post" action="([^"]*)"`)
)

// policy lets a page load this server's style sheet, script and data, and nothing else.
const policy = "default-src 'none'; style-src 'self'; img-src 'self' data:; script-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// Every page that can be reached leads somewhere by each of its links, stays within
// the prefix, executes nothing that a stranger wrote and shows no secret.
func TestEveryPage(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	root, err := url.Parse(b.server.URL + prefix + "/")
	require.NoError(t, err)
	seen := map[string]bool{}
	kinds, visited := map[string]bool{}, map[string]int{}
	todo := []*url.URL{root}
	for len(todo) > 0 {
		at := todo[0]
		todo = todo[1:]
		// Some are enough where pages differ by the values of their parameters alone.
		alike := ids.ReplaceAllString(at.Path, "/ID") + "?" + strings.Join(slices.Sorted(maps.Keys(at.Query())), "&")
		if seen[at.String()] || visited[alike] >= 4 {
			continue
		}
		seen[at.String()] = true
		visited[alike]++
		p := b.get(strings.TrimPrefix(at.RequestURI(), prefix))
		require.Equal(t, http.StatusOK, p.status, "%s\n%s", at, p.text)
		at = p.url // where the program has led it
		if strings.HasSuffix(at.Path, "/style.css") || strings.HasSuffix(at.Path, "/icon.svg") {
			require.Regexp(t, "text/css|image/svg", p.header.Get("Content-Type"))
			continue
		}
		kinds[ids.ReplaceAllString(strings.TrimPrefix(at.Path, prefix), "/ID")] = true
		require.Equal(t, "text/html; charset=utf-8", p.header.Get("Content-Type"))
		require.Contains(t, p.header.Get("Content-Security-Policy"), policy)
		require.Equal(t, "no-store", p.header.Get("Cache-Control"))
		require.Equal(t, "nosniff", p.header.Get("X-Content-Type-Options"))
		require.Equal(t, 1, strings.Count(p.text, "<h1"), "%s", at)
		shown := ours.ReplaceAllString(typed.ReplaceAllString(p.text, ""), "") // a field has what was typed, as it was
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
			if to.Path != prefix+"/logout" && to.Path != prefix+"/replays" { // which is a list, too
				require.Equal(t, http.StatusNotFound, b.get(strings.TrimPrefix(to.Path, prefix)).status, "a GET changes nothing: %s", to)
			}
		}
	}
	for _, kind := range []string{"/", "/subscriptions", "/subscriptions/ID", "/deliveries", "/deliveries/ID", "/events", "/events/ID", "/replays", "/replays/ID", "/replays/new", "/notices", "/dead-letters", "/customers", "/customers/ID", "/jobs", "/jobs/ID"} {
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
	secret, err := signing.ParseSecret(b.secret)
	require.NoError(t, err)
	for path, words := range map[string][]string{
		"/": {
			`<dt>Dead letters</dt><dd class="big"><a href="./dead-letters">2</a>`, `<a href="./deliveries?status=held">1 held</a>`, `<dt>Backlog</dt><dd class="big"><a href="./deliveries?status=pending">`,
			"off.example.com", "2 dead letters at dead.example.com", `<dd class="big">33.3<small>%</small></dd>`, `data-now="2026-03-04t20:00:00z"`, `<bdi class="clip">grace</bdi>`,
		},
		"/subscriptions":                                {"good.example.com", "bad.example.com", "dead.example.com", "off.example.com", "invoice.*"},
		"/subscriptions/" + b.bad:                       {"bad.example.com", "X-Api-Key", "1 attempt in a row", "at most 1000 attempts a second", "3.0 s", "awaiting retry", `\u{202e}desrever\u{1b}[31m`, "Send a test"},
		"/subscriptions/" + b.off:                       {"disabled", "Resume", "&lt;script&gt;hacked=1&lt;/script&gt;"},
		"/deliveries/" + failing.ID:                     {"Attempt 1 failed", "502", "&lt;img src=x onerror=hacked=1&gt;", "Redeliver", `<dt>Set-Cookie</dt><dd title="redacted">`, `<dt>X-Api-Key</dt><dd title="redacted">`, `<dt>User-Agent</dt>`, `<dt>Server</dt><dd title="&lt;script&gt;`, `<span class="j-k">&#34;version&#34;</span><span class="j-p">:</span> <span class="j-n">2</span>`},
		"/deliveries/" + dead[0].ID:                     {"Dead-lettered at", "the connection was refused", "after 2 attempts"},
		"/dead-letters":                                 {"dead.example.com", `<span class="tag bad">connect</span>`, "<strong>2</strong>", "replays/new?preview=1&amp;group=connect%2c0%2c" + b.dead, "deliveries?class=connect&amp;status=dead_lettered&amp;subscription=" + b.dead},
		"/deliveries":                                   {`<span class="tag bad">502</span>`, `<span class="tag ok">200</span>`},
		"/deliveries?status=dead_lettered":              {"<h1>Dead letters</h1>", dead[0].ID, dead[1].ID, "replays/new?status=dead_lettered"},
		"/events/" + failing.Event.ID:                   {"invoice.paid", "good.example.com", "whoever asks for its type", "&lt;/pre&gt;&lt;script&gt;"},
		"/replays/new?preview=1&subscription=" + b.dead: {`<dd class="huge">2</dd>`, "Replay 2</button>", "2 are for endpoints that fail"},
		"/notices":                                      {"2 dead letters at dead.example.com", "Acknowledge all of these"},
		"/customers/sub_ada":                            {"<h1>Ada &amp; Sons", "in trouble", "In use", ">" + secret.Fingerprint() + "<", "&lt;script&gt;"},
		"/customers":                                    {"Ada &amp; Sons", "/customers/sub_ada"},
		"/jobs":                                         {"export", "<bdi>Ada &amp; Sons", "3 of 4"},
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
	require.Equal(t, http.StatusOK, b.get("/app.js").status)
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
func TestOverviewCounts(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	page := b.get("/").text
	require.Contains(t, page, "Our own side is on time. 1 subscription is disabled. 2 dead letters wait for somebody.")
	require.Contains(t, page, "All 4 subscriptions")
	require.Contains(t, page, "All 2</a>")
	for i := range 11 {
		s, err := b.reg.Subscribe(t.Context(), sender.NewSubscription{Subscriber: "sub_ada", URL: "https://off.example.com/", EventTypes: []string{"none.*"}})
		require.NoError(t, err, i)
		require.NoError(t, b.reg.Disable(t.Context(), s.ID, "for a test"))
	}
	page = b.get("/").text
	require.Contains(t, page, "12 subscriptions are disabled")
	require.Equal(t, 8, strings.Count(page, `data-kind="subscription"`), "the list is bounded")
	notices, _, err := b.history.Notices(t.Context(), history.NoticeQuery{})
	require.NoError(t, err)
	for _, n := range notices {
		b.post("/notices/"+n.ID+"/acknowledge", nil)
	}
	require.Contains(t, b.get("/").text, "All have been acknowledged.")
}

// A sender that has sent nothing yet shows what to do first, until it has.
func TestFirstSteps(t *testing.T) {
	t.Parallel()
	b := newEmptyBed(t)
	page := b.get("/").text
	require.Contains(t, page, "Welcome to Test bed")
	require.Contains(t, page, "register an endpoint with this")
	require.Contains(t, page, "publisher.PublishTx(ctx", "what the program does not say is said in Go")
	b.subscribe("good.example.com", "")
	page = b.get("/").text
	require.NotContains(t, page, "register an endpoint with this", "it is done")
	require.Contains(t, page, `<li class="now"><span class="num"></span><div class="body"><h2>Publish an event</h2>`)
	b.publish("1")
	require.Contains(t, b.get("/").text, "<h1>Overview</h1>")
}

// An error has a page of its own, with its HTTP status.
func TestProblems(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	for _, path := range []string{
		"/nowhere", "/subscriptions/", "/replays?after=rpl_never",
	} {
		p := b.get(path)
		require.Equal(t, http.StatusNotFound, p.status, path)
		require.Contains(t, p.text, "There is nothing here", path)
	}
	for path, way := range map[string]string{
		"subscriptions/wsub_never": "subscriptions", "deliveries/dlv_never": "dead-letters", "events/evt_never": "events", "replays/rpl_never": "replays", "customers/sub_never": "deliveries", "jobs/job_never": "jobs",
	} {
		p := b.get("/" + path)
		require.Equal(t, http.StatusNotFound, p.status, path)
		id := strings.Split(path, "/")[1]
		require.Regexp(t, `There is no [a-z]+ `+id+`: it was never there, or it is not kept any more`, p.text)
		require.Contains(t, p.text, `href="../`+way+`"`, path)
		require.NotContains(t, p.text, "Its id was made")
	}
	for path, says := range map[string]string{
		"/deliveries?status=lost": "pending, awaiting_retry", "/deliveries?since=yesterday&until=now": "yesterday", "/deliveries?type=a+b": "prefix.*",
		"/deliveries?object_id=7": "without its type", "/deliveries?cursor=x": "cursor", "/events?type=a+b": "prefix.*", "/subscriptions?status=gone": "active, paused",
		"/replays/new?preview=1&status=held": "dead_lettered, delivered or superseded", "/deliveries?class=odd": "error class",
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
	hasty, err := console.New(b.backend(), b.authorize, &console.Config{Timeout: time.Second, Logger: slog.New(slog.NewTextHandler(b, nil))})
	require.NoError(t, err)
	b.locked(func() {
		w := httptest.NewRecorder()
		hasty.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://h/", nil))
		require.Equal(t, http.StatusServiceUnavailable, w.Code)
		require.Contains(t, w.Body.String(), "given up after 1s")
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
		"/deliveries?object_type=invoice&object_id=many&subscription=" + b.good: `data-kind="delivery"`, "/events?object_type=invoice&object_id=many": `data-kind="event"`,
	} {
		p := b.get(path)
		require.Equal(t, 50, strings.Count(p.text, item), path)
		next := regexp.MustCompile(`href="([^"]*)" rel="next">`).FindStringSubmatch(p.text)
		require.NotNil(t, next, path)
		require.NotContains(t, p.text, `First</a>`)
		base, _, _ := strings.Cut(path, "?")
		second := b.get(base + html.UnescapeString(next[1]))
		require.Equal(t, 10, strings.Count(second.text, item), path)
		require.Contains(t, second.text, `First</a>`)
		require.NotContains(t, second.text, `rel="next"`)
	}
}

// The attempts of a delivery are listed page by page, each with the one that is chosen.
func TestPagesOfAttempts(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	id := b.deliveries(b.good)[0].ID
	for range 59 {
		require.NoError(t, b.history.Redeliver(t.Context(), id))
		b.run()
	}
	for query, want := range map[string]struct {
		listed, chosen int
		of, next       string
	}{
		"":            {25, 60, "1 to 25 of 60", "?attempt=35"},
		"?attempt=35": {25, 35, "26 to 50 of 60", "?attempt=10"},
		"?attempt=10": {10, 10, "51 to 60 of 60", ""},
		"?attempt=5":  {10, 5, "51 to 60 of 60", ""},
		"?attempt=x":  {25, 60, "1 to 25 of 60", "?attempt=35"},
	} {
		p := b.get("/deliveries/" + id + query)
		require.Equal(t, want.listed, strings.Count(p.text, "<b>Attempt "), query)
		require.Equal(t, want.listed, strings.Count(p.text, "<title>Attempt "), "on the strip, %s", query)
		require.Contains(t, p.text, `<span>`+want.of+`</span>`, query)
		require.Contains(t, p.text, fmt.Sprintf(`id="d2">Attempt %d `, want.chosen), query)
		require.Equal(t, want.next != "", strings.Contains(p.text, `href="`+want.next+`" rel="next"`), query)
		require.Equal(t, want.next == "", strings.Contains(p.text, "<b>Published</b>"), query)
		require.Equal(t, query != "" && query != "?attempt=x", strings.Contains(p.text, "First</a>"), query)
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
		require.Equal(t, n, strings.Count(b.get("/deliveries?"+query).text, `data-kind="delivery"`), query)
	}
	require.Contains(t, b.get("/deliveries?since=2026-03-01T12:00").text, `value="2026-03-01T12:00"`, "the form shows what was asked for")
}
