package console_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/replay"
)

// done ends the test unless the browser ends on a page that confirms the action.
func (b *bed) done(p page, to, said string) {
	b.t.Helper()
	require.Equal(b.t, http.StatusOK, p.status, p.text)
	require.Equal(b.t, prefix+to, p.url.Path, "it was led there by GET")
	require.Contains(b.t, p.text, `<p role="status" class="said">`+said)
}

func TestPauseResumeDisable(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	at := "/subscriptions/" + b.good
	b.done(b.post(at+"/pause", nil), at, "Paused")
	require.Equal(t, sender.SubscriptionPaused, b.subscription(b.good).Status)
	require.Contains(t, b.logged(), "action=pause by=grace path=/subscriptions/"+b.good)

	held := func() []sender.Delivery {
		var all []sender.Delivery
		for _, d := range b.deliveries(b.good) {
			if d.Status == sender.StatusHeld {
				all = append(all, d)
			}
		}
		return all
	}
	b.publish("1")
	b.pass(time.Hour)
	b.publish("2")
	b.run()
	require.Len(t, held(), 2)

	// It must be said which ones are sent; none, those since a time, all.
	for _, wrong := range [][]string{
		{}, {"take", "some"}, {"take", "since"}, {"take", "since", "since", "lately"}, {"take", "all", "since", "2026-03-01T12:00"}, {"take", "none", "since", "2026-03-01T12:00"},
	} {
		require.Equal(t, http.StatusUnprocessableEntity, b.post(at+"/resume", form(wrong...)).status, "%v", wrong)
	}
	require.Equal(t, sender.SubscriptionPaused, b.subscription(b.good).Status)
	since := b.clock().Add(-time.Minute).Format("2006-01-02T15:04")
	b.done(b.post(at+"/resume", form("take", "since", "since", since)), at, "Resumed")
	b.run()
	list := b.deliveries(b.good)
	require.Equal(t, []sender.Status{sender.StatusDelivered, sender.StatusCancelled}, []sender.Status{list[0].Status, list[1].Status})

	b.done(b.post(at+"/disable", form("reason", "  it was sold  ")), at, "Disabled")
	require.Equal(t, sender.SubscriptionDisabled, b.subscription(b.good).Status)
	require.Equal(t, "it was sold", b.subscription(b.good).DisabledReason)
	require.Equal(t, http.StatusUnprocessableEntity, b.post(at+"/disable", form("reason", " ")).status)
	require.Equal(t, http.StatusConflict, b.post(at+"/pause", nil).status)
	b.publish("3")
	b.run()
	b.done(b.post(at+"/resume", form("take", "none")), at, "Resumed")
	b.run()
	require.Equal(t, sender.StatusCancelled, b.deliveries(b.good)[0].Status)

	b.done(b.post(at+"/pause", nil), at, "Paused")
	b.publish("4")
	b.run()
	b.done(b.post(at+"/resume", form("take", "all")), at, "Resumed")
	b.run()
	require.Equal(t, sender.StatusDelivered, b.deliveries(b.good)[0].Status)

	// Events older than the receivers' markers are sent only if the form says so.
	b.done(b.post(at+"/pause", nil), at, "Paused")
	b.publish("5")
	b.run()
	b.pass(60 * 24 * time.Hour)
	require.Equal(t, http.StatusConflict, b.post(at+"/resume", form("take", "all")).status)
	b.done(b.post(at+"/resume", form("take", "all", "force", "1")), at, "Resumed")

	require.Equal(t, http.StatusNotFound, b.post("/subscriptions/wsub_never/pause", nil).status)
}

// An endpoint that failed before it was resumed is not called slow.
func TestResumedOneIsOnTrial(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	at := "/subscriptions/" + b.bad
	b.done(b.post(at+"/disable", form("reason", "it fails")), at, "Disabled")
	b.done(b.post(at+"/resume", form("take", "none")), at, "Resumed")
	page := b.get(at).text
	require.Contains(t, page, "On trial</span>")
	require.Contains(t, page, "It was resumed, and has not succeeded since.")
}

func TestSendTest(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.done(b.post("/subscriptions/"+b.good+"/test", nil), "/subscriptions/"+b.good, "A test event was published")
	b.run()
	require.Equal(t, sender.TestEventType, b.deliveries(b.good)[0].Event.Type)
	require.Equal(t, http.StatusConflict, b.post("/subscriptions/"+b.off+"/test", nil).status)
}

func TestRedeliver(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	dead := b.deliveries(b.dead)[1]
	require.Equal(t, sender.StatusDeadLettered, dead.Status)
	at := "/deliveries/" + dead.ID
	b.done(b.post(at+"/redeliver", nil), at, "It is sent again")
	b.run()
	d, err := b.history.Delivery(t.Context(), dead.ID)
	require.NoError(t, err)
	require.Equal(t, 3, d.AttemptCount)

	b.pass(60 * 24 * time.Hour)
	p := b.post("/deliveries/"+b.deliveries(b.good)[0].ID+"/redeliver", nil)
	require.Equal(t, http.StatusConflict, p.status)
	require.Contains(t, p.text, "or force it")
	good := "/deliveries/" + b.deliveries(b.good)[0].ID
	b.done(b.post(good+"/redeliver", form("force", "1")), good, "It is sent again")

	// One whose subscription is paused waits, and the page says so.
	require.NoError(t, b.reg.Pause(t.Context(), b.dead))
	second := "/deliveries/" + b.deliveries(b.dead)[2].ID
	page := b.get(second).text
	require.Contains(t, page, "It is sent as soon as its subscription is resumed.")
	require.NotContains(t, page, "It is sent now")
	b.done(b.post(second+"/redeliver", form("force", "1")), second, "It is sent again as soon as its subscription is resumed.")

	require.NoError(t, b.reg.Unsubscribe(t.Context(), b.dead))
	b.run()
	require.NotContains(t, b.get(at).text, "Redeliver</button>", "its subscription is deleted")
	require.NoError(t, b.reg.Unsubscribe(t.Context(), b.bad))
	b.run()
	gone := "/deliveries/" + b.deliveries(b.bad)[0].ID
	require.NotContains(t, b.get(gone).text, "Redeliver</button>")
	require.Contains(t, b.get(gone).text, b.bad+" (deleted)")
	require.Equal(t, http.StatusConflict, b.post(gone+"/redeliver", nil).status)
}

// Those that are chosen in a list are sent again; the answer says which cannot be.
func TestRedeliverSeveral(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	one, two := b.deliveries(b.dead)[1].ID, b.deliveries(b.dead)[2].ID
	require.Equal(t, http.StatusUnprocessableEntity, b.post("/deliveries/redeliver", nil).status)
	require.Equal(t, http.StatusUnprocessableEntity, b.post("/deliveries/redeliver", url.Values{"id": make([]string, 201)}).status)
	p := b.post("/deliveries/redeliver", url.Values{"id": {one, "dlv_never"}})
	require.Equal(t, http.StatusConflict, p.status)
	require.Contains(t, p.text, "1 of 2 are sent again")
	require.Contains(t, b.logged(), `action="redeliver several" by=grace path=/deliveries/redeliver id="[`+one+` dlv_never]" partly=true`)
	require.Equal(t, http.StatusConflict, b.post("/deliveries/redeliver", url.Values{"id": {"dlv_never"}}).status)
	require.Equal(t, 1, strings.Count(b.logged(), "redeliver several"), "nothing was done")
	b.done(b.post("/deliveries/redeliver", url.Values{"id": {one, two}}), "/deliveries", "They are sent again")
	b.run()
	for _, id := range []string{one, two} {
		d, err := b.history.Delivery(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, 3, d.AttemptCount)
	}
}

func TestCancelJob(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.done(b.post("/jobs/job_1/cancel", nil), "/jobs/job_1", "Cancelled")
	require.Contains(t, b.get("/jobs/job_1").text, "Cancelled")
	require.Equal(t, http.StatusConflict, b.post("/jobs/job_2/cancel", nil).status)
	require.Equal(t, http.StatusNotFound, b.post("/jobs/job_9/cancel", nil).status)
}

func TestReplay(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	preview := b.get("/replays/new?preview=1&status=dead_lettered&type=invoice.*&class=connect")
	require.Contains(t, preview.text, `<dd class="huge">2</dd>`)
	require.Contains(t, b.get("/replays/new?preview=1&status=dead_lettered&class=timeout").text, "Nothing matches")
	list, err := b.replays.List(t.Context(), replay.Query{})
	require.NoError(t, err)
	require.Len(t, list, 1, "a preview creates nothing")

	for _, wrong := range [][]string{{"rate", "fast"}, {"rate", "-1"}, {"status", "held"}, {"since", "x"}} {
		require.Equal(t, http.StatusUnprocessableEntity, b.post("/replays", form(wrong...)).status, "%v", wrong)
	}
	p := b.post("/replays", form("status", "dead_lettered", "type", "invoice.*", "class", "connect", "subscription", b.dead, "subscriber", "sub_ada",
		"since", "2026-03-01T12:00", "until", "2026-03-02T00:00", "rate", "0.5", "reason", "the endpoint is back"))
	require.Equal(t, http.StatusOK, p.status, p.text)
	list, err = b.replays.List(t.Context(), replay.Query{})
	require.NoError(t, err)
	require.Len(t, list, 2)
	r := list[0]
	at := "/replays/" + r.ID
	b.done(p, at, "The replay has begun")
	require.Equal(t, "grace", r.By)
	require.Equal(t, "the endpoint is back", r.Reason)
	require.InDelta(t, 0.5, r.Rate, 0)
	require.Equal(t, replay.Filter{
		Status: sender.StatusDeadLettered, EventType: "invoice.*", ErrorClass: sender.ClassConnect, Subscription: b.dead, Subscriber: "sub_ada",
		Since: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Until: time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC),
	}, r.Filter)
	require.EqualValues(t, 2, r.Matched)

	turn := func(path, said string, status replay.Status) {
		b.done(b.post(at+path, nil), at, said)
		now, err := b.replays.Get(t.Context(), r.ID)
		require.NoError(t, err)
		require.Equal(t, status, now.Status)
	}
	turn("/pause", "Paused", replay.Paused)
	require.Contains(t, b.get(at).text, "Continue</button>")
	turn("/continue", "Continued", replay.Running)
	turn("/cancel", "Cancelled", replay.Cancelled)
	require.Equal(t, http.StatusConflict, b.post(at+"/continue", nil).status)
	require.NotContains(t, b.get(at).text, "Continue</button>")
	require.Contains(t, b.get("/replays").text, "the endpoint is back")
}

// A form that begins a replay begins one if it is sent again. Another page of it begins another
// one, and so do other entries.
func TestReplayTwice(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	once := func() string {
		return regexp.MustCompile(`name="once" value="([^"]+)"`).FindStringSubmatch(b.get("/replays/new?preview=1").text)[1]
	}
	first := once()
	var at []string
	for _, f := range []url.Values{
		form("status", "dead_lettered", "once", first), form("status", "dead_lettered", "once", first),
		form("status", "dead_lettered", "once", first, "rate", "5"), form("status", "dead_lettered", "once", once()), form("status", "dead_lettered"), form("status", "dead_lettered"),
	} {
		p := b.post("/replays", f)
		require.Equal(t, http.StatusOK, p.status, p.text)
		at = append(at, p.url.Path)
	}
	require.Equal(t, at[0], at[1])
	slices.Sort(at)
	require.Len(t, slices.Compact(at), 5)
}

// A notice of a replay that is not kept any more leads nowhere.
func TestNoticeOfAReplayThatIsGone(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.run()
	list, err := b.replays.List(t.Context(), replay.Query{})
	require.NoError(t, err)
	at := "/replays/" + list[0].ID
	require.Equal(t, http.StatusOK, b.get(at).status)
	notice := func() string {
		return regexp.MustCompile(`(?s)<li data-row>.*?</li>`).FindString(b.get("/notices?all=1&kind=replay.finished").text)
	}
	require.Contains(t, notice(), `href="./replays/`+list[0].ID+`"`)
	b.pass(31 * 24 * time.Hour)
	_, err = b.disp.Prune(t.Context())
	require.NoError(t, err)
	require.Equal(t, http.StatusNotFound, b.get(at).status)
	require.Contains(t, notice(), "A replay has finished")
	require.NotContains(t, notice(), list[0].ID)
}

// A notice of a dead letter outlives it. It leads to a page that says what was there, when, and
// where to go on.
func TestNoticeOfADeadLetterThatIsGone(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	at := "/deliveries/" + b.deliveries(b.dead)[2].ID
	require.Contains(t, b.get("/notices?all=1").text, `href=".`+at+`"`)
	require.Equal(t, http.StatusOK, b.get(at).status)
	b.pass(366 * 24 * time.Hour)
	_, err := b.disp.Prune(t.Context())
	require.NoError(t, err)
	require.Contains(t, b.get("/notices?all=1").text, `href=".`+at+`"`)
	for _, p := range []page{b.get(at), b.post(at+"/redeliver", nil)} {
		require.Equal(t, http.StatusNotFound, p.status)
		require.Contains(t, p.text, "There is no delivery "+strings.TrimPrefix(at, "/deliveries/"))
		require.Contains(t, p.text, "a dead letter for longer")
		require.Regexp(t, `Its id was made <time[^>]*>369 d 8 h</time> ago`, p.text)
		require.Regexp(t, `href="[./]+/dead-letters"`, p.text)
	}
}

// The list of superseded deliveries leads to a replay of these.
func TestReplayOfSuperseded(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	_, err := b.reg.Update(t.Context(), b.off, sender.SubscriptionChange{Settings: &sender.Settings{Order: sender.OrderLatest}})
	require.NoError(t, err)
	for range 2 {
		b.publish("inv_7")
		b.run()
	}
	require.Contains(t, b.get("/deliveries?status=superseded").text, "replays/new?status=superseded")
	p := b.get("/replays/new?status=superseded&preview=1")
	require.Contains(t, p.text, `<option value="superseded" selected>`)
	require.Contains(t, p.text, `<dd class="huge">1</dd>`)
	p = b.post("/replays", form("status", "superseded"))
	require.Equal(t, http.StatusOK, p.status, p.text)
	require.Contains(t, p.text, "1 superseded one")
}

// A page of a replay that was not counted whole tells neither a percentage nor what is left.
func TestReplayThatIsNotCountedWhole(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	list := func() string { return b.get("/replays").text }
	percentages := strings.Count(list(), "%")
	r, err := b.store.CreateReplay(t.Context(), replay.Replay{Filter: replay.Filter{Status: sender.StatusDeadLettered}, Rate: 0.001}, replay.Bounds{Look: 1})
	require.NoError(t, err)
	require.True(t, r.More)
	at := "/replays/" + r.ID
	one := func() string { return b.get(at).text }
	require.Contains(t, list(), "at least 1 dead letter")
	require.Contains(t, list(), "0 so far")
	require.Equal(t, percentages, strings.Count(list(), "%"))
	for _, says := range []string{"of at least 1 are under way again", "The others stay as they are", "too large to be counted whole"} {
		require.Contains(t, one(), says)
	}
	for _, not := range []string{"To come", "the rest in about"} {
		require.NotContains(t, one(), not)
	}
	b.done(b.post(at+"/cancel", nil), at, "Cancelled")
	require.Contains(t, one(), "of at least 1 were sent again")
	require.NotContains(t, one(), "Left as it is")
	require.NotContains(t, list(), "so far")
}

func TestAcknowledge(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	open := func() []sender.Notice {
		list, _, err := b.history.Notices(t.Context(), history.NoticeQuery{Unread: true})
		require.NoError(t, err)
		return list
	}
	require.Len(t, open(), 2)
	require.Contains(t, b.get("/notices").text, "2 dead letters at dead.example.com")
	b.done(b.post("/notices/"+open()[0].ID+"/acknowledge", nil), "/notices", "Acknowledged")
	page := b.get("/notices").text
	require.Contains(t, page, "1 dead letter at dead.example.com")
	require.Contains(t, page, `the last one: connect</bdi>. <span class="mute">For `)
	require.NotContains(t, b.get("/notices?kind=subscription.disabled").text, "dead.example.com")

	// A group is acknowledged as it was shown: what came since stays.
	group := html.UnescapeString(regexp.MustCompile(`name="group" value="([^"]+)"`).FindStringSubmatch(page)[1])
	b.publish("later")
	b.run()
	b.pass(80 * time.Hour)
	b.run()
	later := len(open())
	require.Greater(t, later, 1)
	for _, wrong := range []url.Values{nil, {"group": {"a"}}, {"group": {"kind=x&last=2026"}}, {"group": {"last=2026-03-04T20:00:00Z"}}, {"group": make([]string, 201)}} {
		require.Equal(t, http.StatusUnprocessableEntity, b.post("/notices/acknowledge", wrong).status, "%v", wrong)
	}
	require.Len(t, open(), later)
	b.done(b.post("/notices/acknowledge", url.Values{"group": {group}}), "/notices", "Acknowledged")
	require.Len(t, open(), later-1)
	require.Contains(t, b.get("/notices?all=1").text, "acknowledged <time")
	require.Equal(t, http.StatusNotFound, b.post("/notices/ntc_never/acknowledge", nil).status)
}

// Dead letters stand in groups; a replay of some of them sends no others.
func TestReplayOfGroups(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.pass(80 * time.Hour)
	b.run() // bad.example.com's are dead letters, too
	page := b.get("/dead-letters").text
	bad, dead := "status,502,"+b.bad, "connect,0,"+b.dead
	for _, group := range []string{bad, dead} {
		require.Contains(t, page, `name="group" value="`+group+`"`)
	}
	require.NotContains(t, b.get("/dead-letters?subscription="+b.bad).text, dead)
	require.Contains(t, b.get("/deliveries?status=dead_lettered&class=status&code=502").text, "bad.example.com")
	require.Contains(t, b.get("/deliveries?status=dead_lettered&code=503").text, "No delivery matches")

	preview := b.get("/replays/new?preview=1&group=" + url.QueryEscape(bad)).text
	require.Contains(t, preview, `<dd class="huge">1</dd>`)
	require.Contains(t, preview, `name="group" value="`+bad+`" checked`)
	for _, wrong := range []string{"x", "a,b,c", "status,502"} {
		require.Equal(t, http.StatusUnprocessableEntity, b.post("/replays", form("group", wrong)).status, wrong)
	}
	p := b.post("/replays", form("status", "dead_lettered", "group", bad))
	list, err := b.replays.List(t.Context(), replay.Query{})
	require.NoError(t, err)
	b.done(p, "/replays/"+list[0].ID, "The replay has begun")
	require.Equal(t, []replay.Group{{Subscription: b.bad, ErrorClass: sender.ClassStatus, StatusCode: http.StatusBadGateway}}, list[0].Filter.Groups)
	require.EqualValues(t, 1, list[0].Matched)
	require.Contains(t, p.text, "<dt>Group</dt>")
	b.run()
	require.Contains(t, b.get("/replays/"+list[0].ID).text, "of 1 was sent again")
}

// The page of a delivery leads to those of the versions beside it.
func TestNeighbours(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	for range 3 {
		b.publish("again")
	}
	b.run()
	list := b.deliveries(b.good)
	page := b.get("/deliveries/" + list[1].ID).text
	require.Contains(t, page, `href="../deliveries/`+list[2].ID+`" aria-label="v1, before this one"`)
	require.Contains(t, page, `href="../deliveries/`+list[0].ID+`" aria-label="v3, after this one"`)
	require.NotContains(t, b.get("/deliveries/"+list[0].ID).text, "after this one")
}

// A list of all subscriptions begins with those in trouble, which do not come again.
func TestWorstFirst(t *testing.T) {
	t.Parallel()
	b := newEmptyBed(t)
	for i := range 60 {
		b.subscribe(fmt.Sprintf("good%d.example.com", i), "")
	}
	bad, off := b.subscribe("bad.example.com", ""), b.subscribe("off.example.com", "")
	require.NoError(t, b.reg.Disable(t.Context(), off, "for a test"))
	b.publish("1")
	b.run()
	row := regexp.MustCompile(`data-kind="subscription">\s*<td class="main-cell">.*?subscriptions/([^"]+)"`)
	rows := func(page string) (ids []string) {
		for _, m := range row.FindAllStringSubmatch(page, -1) {
			ids = append(ids, m[1])
		}
		return ids
	}
	first := b.get("/subscriptions").text
	require.Equal(t, []string{off, bad}, rows(first)[:2])
	require.Len(t, rows(first), 52)
	next := html.UnescapeString(regexp.MustCompile(`href="([^"]*)" rel="next"`).FindStringSubmatch(first)[1])
	require.Len(t, rows(b.get("/subscriptions"+next).text), 10)
}

// A customer's page leads to its own pages, where the program has them.
func TestCustomersPortal(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	require.Contains(t, b.get("/customers/sub_ada").text, `href="../customers/sub_ada/portal" target="_blank" rel="noopener"`)
	p := b.get("/customers/sub_ada/portal")
	require.Equal(t, http.StatusOK, p.status)
	require.Equal(t, "for=sub_ada&by=grace", p.url.RawQuery)
	require.Contains(t, b.logged(), `action="open a customer's portal" by=grace`)
	require.Equal(t, http.StatusNotFound, b.get("/customers/sub_never/portal").status)
	require.NotContains(t, b.get("/customers/"+sender.Operator).text, "/portal")
}

func TestFailing(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	failing := b.get("/subscriptions?failing=1").text
	require.Contains(t, failing, b.bad)
	require.Contains(t, failing, b.dead)
	require.NotContains(t, failing, b.good)
	paused := b.get("/subscriptions?status=disabled&subscriber=sub_ada").text
	require.Contains(t, paused, b.off)
	require.NotContains(t, paused, b.bad)
	require.NotContains(t, b.get("/subscriptions?subscriber=sub_bob").text, b.bad)
}

// A form that is too large, or none, is refused.
func TestForms(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	require.Equal(t, http.StatusUnprocessableEntity, b.post("/subscriptions/"+b.good+"/disable", form("reason", strings.Repeat("x", 70<<10))).status)
	require.Equal(t, http.StatusUnprocessableEntity, b.post("/subscriptions/"+b.good+"/disable", form("reason", strings.Repeat("x", 1025))).status)
	require.Equal(t, http.StatusUnprocessableEntity, b.post("/subscriptions/"+b.good+"/disable", form("reason", "a\x00b")).status)
	require.Equal(t, http.StatusUnprocessableEntity, b.post("/replays", form("status", "dead_lettered", "reason", "a\x00b")).status)
	for _, path := range []string{"/deliveries?subscriber=a%00b", "/search?q=a%00b", "/subscriptions?q=%ff", "/customers?q=a%00b", "/jobs?kind=a%00"} {
		p := b.get(path)
		require.Equal(t, http.StatusUnprocessableEntity, p.status, path)
		require.Regexp(t, "NUL|UTF-8", p.text)
	}
	require.Equal(t, sender.SubscriptionActive, b.subscription(b.good).Status)
}

// A page shows no confirmation because a link says so.
func TestSaid(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	require.NotContains(t, b.get("/?said=all+is+lost").text, "lost")
	require.NotContains(t, b.get("/?said=all+is+lost").text, `class="said"`)
}
