package console_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/browsertest"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/console"
	"github.com/surehook/surehook/sender/replay"
)

// Every page can be read on wide and narrow screens, in light and dark colours, and used
// by keyboard. No page runs a stranger's script, breaks its policy, or leaves an error in
// the browser's log.
func TestInABrowser(t *testing.T) {
	t.Parallel()
	t.Run("every page", func(t *testing.T) {
		t.Parallel()
		everyPage(t, browsertest.New(t).Tab(t))
	})
	t.Run("in use", func(t *testing.T) { // it waits more than it computes
		t.Parallel()
		br := browsertest.New(t)
		t.Run("without a script", func(t *testing.T) { withoutAScript(t, br.Tab(t)) })
		t.Run("the script", func(t *testing.T) { theScript(t, br.Tab(t)) })
		t.Run("what changes", func(t *testing.T) { whatChanges(t, br.Tab(t)) })
		t.Run("two clicks", func(t *testing.T) { twoClicks(t, br.Tab(t)) })
	})
}

func everyPage(t *testing.T, tab *browsertest.Tab) {
	b := newBed(t)
	b.crowd()
	list := b.deliveries(b.bad)
	bad, dead := list[1], b.deliveries(b.dead)[len(b.deliveries(b.dead))-1]
	replays, err := b.replays.List(t.Context(), replay.Query{})
	require.NoError(t, err)
	subscription, holds, waits := b.ordered()
	for _, p := range []struct{ name, path string }{
		{"ordered", "/subscriptions/" + subscription}, {"holds-back", "/deliveries/" + holds}, {"held-back", "/deliveries/" + waits},
		{"overview", "/?range=7d"}, {"subscriptions", "/subscriptions"}, {"subscription", "/subscriptions/" + b.bad}, {"disabled", "/subscriptions/" + b.off},
		{"deliveries", "/deliveries?more=1&class=status&type=invoice.*"}, {"dead-letters", "/dead-letters"},
		{"delivery", "/deliveries/" + bad.ID}, {"dead-letter", "/deliveries/" + dead.ID},
		{"events", "/events"}, {"event", "/events/" + bad.Event.ID}, {"replays", "/replays"}, {"replay", "/replays/" + replays[0].ID},
		{"new-replay", "/replays/new?preview=1"}, {"notices", "/notices"}, {"acknowledged", "/notices?all=1"}, {"customers", "/customers"}, {"customer", "/customers/sub_ada"},
		{"jobs", "/jobs"}, {"job", "/jobs/job_1"}, {"search", "/search?q=example"}, {"problem", "/nowhere"},
	} {
		tab.Open(b.server.URL + prefix + p.path)
		tab.Looks(p.name)
		require.Zero(t, browsertest.Eval[int](tab, "[...document.querySelectorAll('td input')].filter(c => !c.offsetParent).length"), "on a phone, too, rows of %s can be chosen", p.name)
	}
	tab.Open(b.server.URL + prefix + "/deliveries/" + holds)
	tab.Do("document.querySelector('#pass').showPopover()")
	tab.Looks("pass-over")
	b.longTexts(tab)
	tab.Open(newEmptyBed(t).server.URL + prefix + "/")
	tab.Looks("empty")
	tab.Open(b.often(signIn))
	tab.Looks("sign-in")
	require.True(t, browsertest.Eval[bool](tab, "innerWidth - 40 < document.querySelector('.card').offsetWidth"), "on a phone it is as wide as the screen")
	wanted := func(complaint string) bool { // about the page that is not there, and a token's form that has no field for a name
		return strings.Contains(complaint, "404") || strings.Contains(complaint, "username fields")
	}
	require.Empty(t, slices.DeleteFunc(tab.Complaints(), wanted))
}

// longTexts looks at what customers name and type, without a blank at which a line could break.
func (b *bed) longTexts(tab *browsertest.Tab) {
	t := b.t
	t.Helper()
	long := strings.Repeat("Donaudampfschiffahrt", 6)
	_, _, err := b.reg.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: "sub_" + long})
	require.NoError(t, err)
	s, err := b.reg.Subscribe(t.Context(), sender.NewSubscription{Subscriber: "sub_" + long, URL: "https://" + strings.Repeat("sub.", 40) + "example.com/" + strings.Repeat("p/", 600), Description: strings.Repeat(long, 8)})
	require.NoError(t, err)
	b.publish(long)
	b.run()
	r, err := b.replays.Create(t.Context(), replay.Request{Filter: replay.Filter{Status: sender.StatusDelivered, Subscription: s.ID}, By: long, Reason: strings.Repeat(long, 8)})
	require.NoError(t, err)
	off, err := b.reg.Subscribe(t.Context(), sender.NewSubscription{Subscriber: "sub_" + long, URL: "https://off.example.com/"})
	require.NoError(t, err)
	require.NoError(t, b.reg.Disable(t.Context(), off.ID, strings.Repeat(long, 8)))
	b.visitor(long + "@example.com")
	defer b.visitor("grace")
	for name, path := range map[string]string{
		"long-disabled": "/subscriptions/" + off.ID, "long-notices": "/notices", "long-notice": "/notices?all=1", "long-overview": "/", "long-replays": "/replays", "long-replay": "/replays/" + r.ID,
		"long-deliveries": "/deliveries?object_type=invoice&object_id=" + long, "long-problem": "/subscriptions/wsub_" + long, "long-subscription": "/subscriptions/" + s.ID, "long-delivery": "/deliveries/" + b.deliveries(s.ID)[0].ID, "long-customer": "/customers/" + s.Subscriber, "long-search": "/search?q=" + long,
	} {
		tab.Open(b.server.URL + prefix + path)
		tab.Looks(name)
		tab.Screen(browsertest.Desk)
		require.True(t, browsertest.Eval[bool](tab, "document.querySelector('.foot form').getBoundingClientRect().right <= document.querySelector('.foot').getBoundingClientRect().right"), "one can sign out, whatever one's name")
	}
}

// signIn has the page for signing in before a console.
func signIn(pages http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			pages.ServeHTTP(w, r)
			return
		}
		_ = console.SignIn{Name: "Test bed", Base: "/", Action: "/login", Label: "The operator's token", Wrong: "That is not the operator's token."}.Write(w, http.StatusOK)
	})
}

// The pages can be used by keyboard, and without any script.
func withoutAScript(t *testing.T, tab *browsertest.Tab) {
	b := newBed(t)
	tab.Screen(browsertest.Desk)
	tab.Call("Emulation.setScriptExecutionDisabled", browsertest.Object{"value": true}, nil)

	// The first stop skips the navigation, and a button is pressed.
	tab.Open(b.server.URL + prefix + "/subscriptions/" + b.good)
	tab.Key("Tab", 9, "")
	focused := func() string { return browsertest.Eval[string](tab, "document.activeElement.textContent") }
	require.Equal(t, "Skip to the content", focused())
	for range 60 {
		if tab.Key("Tab", 9, ""); focused() == "Pause" {
			break
		}
	}
	require.NotEqual(t, "none", browsertest.Eval[string](tab, "getComputedStyle(document.activeElement).outlineStyle"), "it can be seen where one is")
	tab.Loads(func() { tab.Key("Enter", 13, "\r") })
	require.Equal(t, "Paused.", browsertest.Eval[string](tab, "document.querySelector('main [role=status]').textContent"))
	require.Equal(t, "paused", fmt.Sprint(b.subscription(b.good).Status))

	// The filter's form sends what was typed.
	tab.Open(b.server.URL + prefix + "/deliveries")
	tab.Loads(func() {
		tab.Do("document.querySelector('#status').value = 'dead_lettered', document.querySelector('#since').value = '2026-03-01T12:00', document.querySelector('.filter').submit()")
	})
	require.Equal(t, 2, browsertest.Eval[int](tab, "document.querySelectorAll('tbody tr').length"))
	tab.Loads(func() { tab.Do("document.querySelector('a.replay').click()") })
	tab.Loads(func() { tab.Do("document.querySelector('.filter button').click()") })
	require.Equal(t, "Replay 2", browsertest.Eval[string](tab, "document.querySelector('#preview .main-btn').textContent"))
	tab.Loads(func() { tab.Do("document.querySelector('#preview .main-btn').click()") })
	require.Equal(t, "The replay has begun.", browsertest.Eval[string](tab, "document.querySelector('main [role=status]').textContent"))
	require.Contains(t, browsertest.Eval[string](tab, "document.querySelector('.facts').textContent"), "2026-03-01 12:00:00")
}

// The script adds this: buttons that copy are shown, keys go through rows, times tell both
// zones, and parts of a page are exchanged.
func theScript(t *testing.T, tab *browsertest.Tab) {
	b := newBed(t)
	tab.Screen(browsertest.Desk)
	tab.Open(b.server.URL + prefix + "/deliveries")
	require.False(t, browsertest.Eval[bool](tab, "document.querySelector('.copy').hidden"))
	require.Contains(t, browsertest.Eval[string](tab, "document.querySelector('td time').title"), " UTC")
	row := func() int {
		return browsertest.Eval[int](tab, "[...document.querySelectorAll('[data-row]')].findIndex(r => r.contains(document.activeElement))")
	}
	tab.Key("j", 74, "j")
	tab.Key("j", 74, "j")
	require.Equal(t, 1, row())
	tab.Key("k", 75, "k")
	require.Equal(t, 0, row())
	tab.Key("/", 191, "/")
	require.True(t, browsertest.Eval[bool](tab, "document.activeElement.matches('[data-find]')"))

	// A sentence names the zone that its time is in.
	tab.Call("Emulation.setTimezoneOverride", browsertest.Object{"timezoneId": "Asia/Tokyo"}, nil)
	tab.Open(b.server.URL + prefix + "/subscriptions/" + b.bad)
	says := func() string {
		return browsertest.Eval[string](tab, "document.querySelector('#judgement').textContent")
	}
	require.Contains(t, says(), "it is disabled on 2026-03-09 20:00:00 UTC, unless")
	tab.Do("document.querySelector('button[data-zone]').click()")
	require.Contains(t, says(), "it is disabled on 2026-03-10 05:00:00 local time, unless")
	require.Equal(t, "Local time", browsertest.Eval[string](tab, "document.querySelector('button[data-zone]').textContent"))
	tab.Do("document.querySelector('button[data-zone]').click()")
	require.Contains(t, says(), "2026-03-09 20:00:00 UTC")
	require.Empty(t, tab.Complaints())
}

// often is a console of its own, at the root of a server, whose pages load what changes often.
func (b *bed) often(around func(pages http.Handler) http.Handler) (url string) {
	b.t.Helper()
	pages, err := console.New(b.backend(), b.authorize, &console.Config{Now: b.clock, Refresh: time.Second, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(b.t, err)
	server := httptest.NewServer(around(pages))
	b.t.Cleanup(server.Close)
	return server.URL
}

// An open page shows what has changed. It says so when it does not, and leads to the page for
// signing in when the visit is over.
func whatChanges(t *testing.T, tab *browsertest.Tab) {
	b := newBed(t)
	at := b.often(func(pages http.Handler) http.Handler { return pages })
	tab.Screen(browsertest.Desk)
	tab.Open(at + "/subscriptions/" + b.bad)
	says := func(selector, text string) {
		tab.Reaches("document.querySelector('" + selector + "').textContent.includes('" + text + "')")
	}
	says("h1", "Failing")
	says("#judgement", "without a success")
	says("[data-pause]", "Live")
	require.NoError(t, b.reg.Pause(t.Context(), b.bad))
	says("h1", "Paused")
	says("#judgement", "Its deliveries are held.")
	b.fallible.fail(errDown)
	says("[data-pause]", "Not updated")
	tab.Looks("not-updated")
	b.fallible.fail(nil)
	says("[data-pause]", "Live")
	tab.Do("window.was = AbortSignal.timeout, AbortSignal.timeout = () => AbortSignal.abort()") // the answer takes too long
	says("[data-pause]", "Not updated")
	tab.Do("AbortSignal.timeout = window.was")
	says("[data-pause]", "Live")
	// A box that is ticked since the page was made is no choice of the visitor's.
	tab.Open(at + "/subscriptions?implicit=1")
	says("#list", "Paused")
	require.NoError(t, b.reg.Resume(t.Context(), b.bad, sender.Resume{}))
	tab.Reaches("!document.querySelector('#list').textContent.includes('Paused: ')")
	b.visitor("")
	says("body", "who are you?")
}

// Two clicks on a button make one request.
func twoClicks(t *testing.T, tab *browsertest.Tab) {
	b := newBed(t)
	var posts atomic.Int32
	var busy atomic.Bool
	second := make(chan struct{})
	at := b.often(func(pages http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/clicked" {
				busy.Store(r.URL.RawQuery == "true")
				close(second)
				return
			}
			if r.Method == http.MethodPost && posts.Add(1) == 1 {
				<-second
			}
			pages.ServeHTTP(w, r)
		})
	})
	tab.Screen(browsertest.Desk)
	tab.Open(at + "/subscriptions/" + b.good)
	tab.Loads(func() {
		tab.Do(`(click => {
			setTimeout(click);
			setTimeout(() => { click(); fetch("/clicked?" + document.querySelector("form[action$=test]").ariaBusy); }, 300);
		})(() => document.querySelector("form[action$=test] button").click())`)
	})
	require.Contains(t, browsertest.Eval[string](tab, "document.querySelector('.said').textContent"), "A test event was published")
	require.EqualValues(t, 1, posts.Load())
	require.True(t, busy.Load(), "the form shows that it is under way")
	tab.Loads(func() { tab.Do(`document.querySelector("form[action$=test] button").click()`) })
	require.EqualValues(t, 2, posts.Load())
}
