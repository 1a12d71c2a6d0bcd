package portal_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/portal"
	"github.com/surehook/surehook/sender/replay"
)

func TestAddAndChangeAnEndpoint(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	v := b.visit("sub_ada")
	p := v.post("/endpoints", "url", " https://new.example.com/hooks ", "description", "New", "type", "invoice.paid", "types", "payout.*, payout.made")
	require.Equal(t, http.StatusOK, p.status, p.text)
	id := strings.TrimPrefix(p.url.Path, v.root+"/endpoints/")
	v.done(p, "/endpoints/"+id, "The endpoint was added")
	e := b.endpoint(id)
	require.Equal(t, "sub_ada", e.Subscriber)
	require.Equal(t, "https://new.example.com/hooks", e.URL)
	require.Equal(t, []string{"invoice.paid", "payout.*", "payout.made"}, e.EventTypes)
	p.has(t, `value="invoice.paid" checked`, `value="payout.*, payout.made"`, "1 of 50 chosen")

	// Each error stands at its field, the entries stay, and nothing changes.
	before, err := b.reg.Subscriptions(t.Context(), "sub_ada", "", 50)
	require.NoError(t, err)
	for _, at := range []string{"/endpoints", "/endpoints/" + id} {
		p = v.post(at, "url", "http://localhost/x", "description", strings.Repeat("é", 600), "types", "no blanks?")
		require.Equal(t, http.StatusUnprocessableEntity, p.status)
		for field, says := range map[string]string{"url-says": "https", "description-says": "1200 bytes", "types-say": `"blanks?"`} {
			at := regexp.MustCompile(`(?s)id="` + field + `">(.*?)</div>`).FindStringSubmatch(p.text)
			require.NotNil(t, at)
			require.Contains(t, at[1], `class="bad small"`)
			page{text: at[1]}.has(t, says)
		}
		require.Contains(t, p.text, `value="http://localhost/x"`)
		require.Contains(t, p.text, `aria-invalid="true"`)
		p = v.post(at, "url", "https://x.example.com/")
		require.Equal(t, http.StatusUnprocessableEntity, p.status)
		p.has(t, "the list is empty")
	}
	after, err := b.reg.Subscriptions(t.Context(), "sub_ada", "", 50)
	require.NoError(t, err)
	require.Equal(t, before, after)

	v.done(v.post("/endpoints/"+id, "url", "https://other.example.com/", "description", "Other", "type", "*", "type", "invoice.paid"), "/endpoints/"+id, "Saved.")
	e = b.endpoint(id)
	require.Equal(t, "https://other.example.com/", e.URL)
	require.Equal(t, []string{"*"}, e.EventTypes)
	v.done(v.post("/endpoints/"+id+"/delete"), "/", "The endpoint was deleted")
	_, err = b.reg.Subscription(t.Context(), id)
	require.ErrorIs(t, err, sender.ErrNotFound)
}

// A form does not undo what was changed after its page was loaded, unless it is sent again.
func TestEndpointChangedMeanwhile(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	v := b.visit("sub_ada")
	at := "/endpoints/" + b.ada.good
	was := func(p page) string {
		return regexp.MustCompile(`name="was" value="([^"]+)"`).FindStringSubmatch(p.text)[1]
	}
	first := was(v.get(at))
	save := func(was string) page {
		return v.post(at, "url", "https://mine.example.com/", "types", "invoice.paid", "description", "Mine", "was", was)
	}
	url := "https://theirs.example.com/"
	_, err := b.reg.Update(t.Context(), b.ada.good, sender.SubscriptionChange{URL: &url})
	require.NoError(t, err)
	theirs := b.endpoint(b.ada.good)
	tried := v.post(at+"/preview", "url", "https://mine.example.com/", "types", "invoice.paid", "filter", `{"data.a": 1}`, "was", first)
	require.Equal(t, first, was(tried), "to try a filter does not make an old page new")
	p := save(first)
	require.Equal(t, http.StatusConflict, p.status)
	p.has(t, "the endpoint has changed since this page was loaded", `value="https://mine.example.com/"`, `value="Mine"`)
	require.Equal(t, theirs, b.endpoint(b.ada.good))
	require.NotContains(t, b.logged(), `action="change an endpoint"`)
	v.done(save(was(p)), at, "Saved.")
	require.Equal(t, "https://mine.example.com/", b.endpoint(b.ada.good).URL)
	v.done(save(was(v.get(at))), at, "Saved.")
}

// While a form is being saved, as during the challenge of its URL, somebody else may save
// another one: what each of them has changed stays.
func TestTwoSaveAtOnce(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	backend := b.backend()
	backend.Registry = beforeUpdate{b.reg, func(id string) error {
		theirs, filter := "Theirs", `{"data.a":1}`
		_, err := b.reg.Update(t.Context(), id, sender.SubscriptionChange{Description: &theirs, Filter: &filter, EventTypes: []string{"invoice.paid", "invoice.sent"}, Settings: &sender.Settings{Rate: 5, Timeout: 3 * time.Second}})
		return err
	}}
	other, err := portal.New(backend, [][]byte{portalKey}, b.config())
	require.NoError(t, err)
	*b.portal = *other
	v := b.visit("sub_ada")
	at := "/endpoints/" + b.ada.good
	e := b.endpoint(b.ada.good)
	v.done(v.post(at, "url", "https://mine.example.com/", "description", e.Description, "types", "payout.settled, invoice.*, payout.settled", "filter", "", "order", "object"), at, "Saved.")
	e = b.endpoint(b.ada.good)
	require.Equal(t, []string{"https://mine.example.com/", "Theirs", `{"data.a":1}`}, []string{e.URL, e.Description, e.Filter.String()})
	require.Equal(t, []string{"invoice.paid", "invoice.sent"}, e.EventTypes)
	require.Equal(t, sender.Settings{Rate: 5, Timeout: 3 * time.Second, Order: sender.OrderObject, PayloadVersion: e.Settings.PayloadVersion}, e.Settings)
}

// beforeUpdate is a registry in which others are faster.
type beforeUpdate struct {
	portal.Registry
	others func(id string) error
}

func (r beforeUpdate) Update(ctx context.Context, id string, c sender.SubscriptionChange) (sender.Subscription, error) {
	if err := r.others(id); err != nil {
		return sender.Subscription{}, err
	}
	return r.Registry.Update(ctx, id, c)
}

// An endpoint of callback URLs keeps its URL and its types.
func TestImplicit(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	c, err := b.reg.Callback(t.Context(), "sub_ada", "https://once.example.com/x")
	require.NoError(t, err)
	v := b.visit("sub_ada")
	require.NotContains(t, v.get("/endpoints/"+c.Subscription).text, `name="types"`)
	v.done(v.post("/endpoints/"+c.Subscription, "description", "Jobs", "url", "https://else.example.com/"), "/endpoints/"+c.Subscription, "Saved.")
	require.Equal(t, "https://once.example.com/", b.endpoint(c.Subscription).URL)
	require.Equal(t, "Jobs", b.endpoint(c.Subscription).Description)
	require.NotContains(t, v.get("/endpoints/"+c.Subscription).text, `name="filter"`)
	v.done(v.post("/endpoints/"+c.Subscription, "description", "Jobs", "order", "latest", "filter", `{"data.a": 1}`), "/endpoints/"+c.Subscription, "Saved.")
	require.Equal(t, sender.OrderLatest, b.endpoint(c.Subscription).Settings.Order)
	require.Nil(t, b.endpoint(c.Subscription).Filter)
	p := v.post("/endpoints/"+c.Subscription+"/preview", "filter", `{"data.a": 1}`)
	require.Equal(t, http.StatusUnprocessableEntity, p.status)
	p.has(t, "it gets what is addressed to it")
}

func TestPauseResumeTest(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	v := b.visit("sub_ada")
	at := "/endpoints/" + b.ada.good
	v.done(v.post(at+"/test"), at, "A test was sent")
	b.run()
	require.Len(t, b.deliveries(b.ada.good, sender.StatusDelivered), 3)
	v.done(v.post(at+"/pause"), at, "Paused")
	require.Contains(t, b.logged(), `action="pause an endpoint" subscriber=sub_ada by=ada@acme.example path=/endpoints/`+b.ada.good)
	require.Equal(t, http.StatusConflict, v.post(at+"/test").status)
	b.publish("sub_ada", "held_1")
	b.pass(time.Hour)
	b.publish("sub_ada", "held_2")
	b.run()
	p := v.get(at)
	p.has(t, "Paused: 2 deliveries held", "Send all 2")
	for _, wrong := range [][]string{{}, {"take", "some"}, {"take", "since"}, {"take", "since", "since", "lately"}} {
		p := v.post(at+"/resume", wrong...)
		require.Equal(t, http.StatusUnprocessableEntity, p.status, "%v", wrong)
	}
	for since, says := range map[string]string{"": "it is empty", "lately": `"lately" is no time`} {
		p := v.get(at + "/resume?since=" + since)
		require.Equal(t, http.StatusUnprocessableEntity, p.status)
		p.has(t, says)
	}
	v.get(at+"/resume?since="+b.clock().Add(-2*time.Hour).Format("2006-01-02T15:04")).has(t, "2 deliveries are sent", "None is cancelled")
	v.get(at+"/resume?since="+b.clock().Add(-time.Minute).Format("2006-01-02T15:04")).has(t, "1 delivery is sent", "1 delivery published before is cancelled", `">`+b.clock().Add(-time.Minute).Format("2006-01-02 15:04")+`:00</time> <span data-zone>UTC</span>`, `name="take" value="since"`)
	v.post(at+"/resume", "take", "since", "since", "lately").has(t, `"lately" is no time`, "2006-01-02T15:04")
	require.Equal(t, sender.SubscriptionPaused, b.endpoint(b.ada.good).Status)
	v.done(v.post(at+"/resume", "take", "since", "since", b.clock().Add(-time.Minute).Format("2006-01-02T15:04")), at, "Resumed")
	b.run()
	require.Len(t, b.deliveries(b.ada.good, sender.StatusDelivered), 4)
	require.Len(t, b.deliveries(b.ada.good, sender.StatusCancelled), 1)
	v.done(v.post("/endpoints/"+b.ada.off+"/resume", "take", "none"), "/endpoints/"+b.ada.off, "Resumed")
	require.Equal(t, sender.SubscriptionActive, b.endpoint(b.ada.off).Status)
	v.get("/endpoints/"+b.ada.off+"/resume?since=").has(t, "Nothing is held: the endpoint is active")

	v.done(v.post(at+"/pause"), at, "Paused")
	b.publish("sub_ada", "old")
	b.run()
	b.pass(40 * 24 * time.Hour)
	v = b.visit("sub_ada")
	p = v.post(at+"/resume", "take", "all")
	require.Equal(t, http.StatusConflict, p.status)
	p.has(t, "may have forgotten", "Take later ones")
	require.NotContains(t, p.text, "force", "that is the operator's")
}

// The page of a failed delivery says what was wrong, and what would be right where that is known.
func TestFailures(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	endpoints := map[string]string{}
	for _, host := range []string{"moved", "same", "unknown"} {
		endpoints[host] = b.subscribe("ada", host, "")
	}
	b.publish("sub_ada", "inv_4")
	b.run()
	v := b.visit("sub_ada")
	page := func(host string) page {
		return v.get("/deliveries/" + b.deliveries(endpoints[host], sender.StatusAwaitingRetry)[0].ID)
	}
	const right = "Change the endpoint's URL to the one that the answer leads to"
	page("moved").has(t, "your endpoint answered with 301, and no redirect is followed. It is tried again.", right, "https://new.example.com/hooks", "What your endpoint answered")
	same := page("same")
	same.has(t, "your endpoint answered with 304. It is tried again.")
	require.NotContains(t, same.text, right)
	unknown := page("unknown")
	unknown.has(t, "the host's name could not be resolved", "<h3>No answer</h3>")
	require.NotContains(t, unknown.text, "What your endpoint answered")
}

func TestRedeliverAndReplay(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	v := b.visit("sub_ada")
	at := "/deliveries/" + b.ada.dead
	v.get(at).has(t, "Not delivered", "We gave up on", "your endpoint answered with 503", "<img src=x onerror", "Attempt 2", "Set-Cookie", "User-Agent", "redacted")
	v.get(at+"?attempt=1").has(t, "Attempt 1 <span")
	v.get("/deliveries/"+b.ada.delivered).has(t, "Your endpoint has it since", "200 OK")
	v.done(v.post(at+"/redeliver"), at, "It is sent again")
	require.NoError(t, b.history.Redeliver(t.Context(), b.ada.delivered))
	b.run()
	v.get(at).has(t, "Trying again", "It is tried again. The next attempt is in")
	v.get("/deliveries?status=delivered&endpoint="+b.ada.good).has(t, `<td class="r p1">2</td>`) // neither has failed

	preview := v.get("/replays/new?preview=1&endpoint=" + b.ada.bad)
	preview.has(t, "1 delivery", "Send 1 again")
	v.get("/replays/new?preview=1&type=none.*").has(t, "Nothing that was not delivered matches")
	for _, wrong := range [][]string{{"rate", "fast"}, {"rate", "-1"}, {"since", "x"}, {"type", "a b"}} {
		require.Equal(t, http.StatusUnprocessableEntity, v.post("/replays", wrong...).status, "%v", wrong)
	}
	p := v.post("/replays", "endpoint", b.ada.bad, "type", "invoice.*", "since", "2026-03-01T11:00", "rate", "0.5")
	require.Equal(t, http.StatusOK, p.status, p.text)
	list, err := b.replays.List(t.Context(), replay.Query{})
	require.NoError(t, err)
	r := list[0]
	at = "/replays/" + r.ID
	v.done(p, at, "They are being sent again")
	require.Equal(t, replay.Filter{Status: sender.StatusDeadLettered, EventType: "invoice.*", Subscription: b.ada.bad, Subscriber: "sub_ada", Since: time.Date(2026, 3, 1, 11, 0, 0, 0, time.UTC)}, r.Filter)
	require.InDelta(t, 0.5, r.Rate, 0)
	require.Equal(t, "ada@acme.example", r.By)
	for _, turn := range []struct {
		path, said string
		status     replay.Status
	}{{"/pause", "Paused", replay.Paused}, {"/continue", "It goes on", replay.Running}, {"/cancel", "Cancelled", replay.Cancelled}} {
		v.done(v.post(at+turn.path), at, turn.said)
		now, err := b.replays.Get(t.Context(), r.ID)
		require.NoError(t, err)
		require.Equal(t, turn.status, now.Status)
	}
	require.Equal(t, http.StatusConflict, v.post(at+"/continue").status)
}

// An endpoint that is being deleted still gets what waits for it.
func TestClosingEndpoint(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	v := b.visit("sub_ada")
	require.NoError(t, b.reg.Close(t.Context(), b.ada.bad))
	p := v.get("/endpoints/" + b.ada.bad)
	p.has(t, "It is being deleted", "</b> waiting</span>")
	require.NotContains(t, p.text, "</b> held</span>")
}

// A delivery that is sent again waits while its endpoint holds deliveries, and the page says so.
// To one that was deleted nothing can be sent.
func TestSendAgainToAnEndpointThatIsNotThere(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	v := b.visit("sub_ada")
	at := "/deliveries/" + b.ada.dead
	v.get(at).has(t, "Send again")
	require.NoError(t, b.reg.Pause(t.Context(), b.ada.bad))
	p := v.get(at)
	p.has(t, "Send again")
	require.NotContains(t, p.text, "It is sent now")
	v.done(v.post(at+"/redeliver"), at, "It is sent again as soon as the endpoint is resumed.")
	v.get(at).has(t, "It is held: the endpoint is paused.")
	require.NoError(t, b.reg.Unsubscribe(t.Context(), b.ada.good))
	b.run()
	require.NotContains(t, v.get("/deliveries/"+b.ada.delivered).text, "Send again")
	require.Equal(t, http.StatusConflict, v.post("/deliveries/"+b.ada.delivered+"/redeliver").status)
}

// A replay that was not counted whole has no bar, and nothing says that it is about all.
func TestReplayThatIsNotCountedWhole(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	v := b.visit("sub_ada")
	r, err := b.store.CreateReplay(t.Context(), replay.Replay{Filter: replay.Filter{Status: sender.StatusDeadLettered, Subscriber: "sub_ada"}}, replay.Bounds{Look: 1})
	require.NoError(t, err)
	require.True(t, r.More)
	v.get("/replays").has(t, "at least 1")
	page := v.get("/replays/" + r.ID)
	page.has(t, "at least 1")
	require.NotContains(t, page.text, "how much of it is done")
	b.run()
	v.get("/replays/"+r.ID).has(t, "how much of it is done")
	require.NotContains(t, v.get("/replays/"+r.ID).text, "at least")
}

// Held deliveries are counted up to a thousand.
func TestManyHeldAreNotCountedToTheEnd(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	for range 1000 {
		b.publish("sub_ada", "held")
	}
	b.run()
	b.visit("sub_ada").get("/endpoints/"+b.ada.held+"/resume?since=2000-01-01T00:00").has(t, "More than 1,000 deliveries are sent", "The others of the 1,002 that are held")
}

func TestLists(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	for range 55 {
		b.publish("sub_ada", "many")
	}
	b.run()
	v := b.visit("sub_ada")
	p := v.get("/deliveries?object=invoice/many&endpoint=" + b.ada.good)
	require.Equal(t, 50, strings.Count(p.text, "<tr data-row"))
	next := regexp.MustCompile(`href="([^"]*)" rel="next"`).FindStringSubmatch(p.text)
	require.NotNil(t, next)
	second := v.get("/deliveries" + strings.ReplaceAll(next[1], "&amp;", "&"))
	require.Equal(t, 5, strings.Count(second.text, "<tr data-row"))
	v.get("/deliveries?status=dead_lettered&endpoint="+b.ada.bad).has(t, "Not delivered: ", "Send these again", "replays/new?endpoint="+b.ada.bad)
	v.get("/deliveries?object=invoice/nothing").has(t, "There is nothing.")
	for query, says := range map[string]string{"status=lost": "lost", "since=yesterday": `"yesterday" is no time`, "type=a+b": "prefix.*", "cursor=x": "ursor", "object=%00": "UTF-8 without NUL", "type=%ff": "UTF-8 without NUL"} {
		p := v.get("/deliveries?" + query)
		require.Equal(t, http.StatusUnprocessableEntity, p.status, query)
		p.has(t, says)
	}
	for range 30 {
		require.NoError(t, b.history.Redeliver(t.Context(), b.ada.delivered))
		b.run()
	}
	p = v.get("/deliveries/" + b.ada.delivered)
	require.Equal(t, 25, strings.Count(p.text, "<b>Attempt "))
	p.has(t, "1 to 25 of 31", "Attempt 31 <span")
	next = regexp.MustCompile(`href="([^"]*)" rel="next"`).FindStringSubmatch(p.text)
	p = v.get("/deliveries/" + b.ada.delivered + next[1])
	require.Equal(t, 6, strings.Count(p.text, "<b>Attempt "))
	p.has(t, "26 to 31 of 31", "Attempt 6 <span", "First")
	for range 25 {
		_, err := b.reg.Subscribe(t.Context(), sender.NewSubscription{Subscriber: "sub_ada", URL: "https://more.example.com/"})
		require.NoError(t, err)
	}
	p = v.get("/")
	require.Equal(t, 20, strings.Count(p.text, `class="card ep"`))
	next = regexp.MustCompile(`href="([^"]*)" rel="next"`).FindStringSubmatch(p.text)
	require.NotNil(t, next)
	require.Equal(t, 9, strings.Count(v.get("/"+next[1]).text, `class="card ep"`))
	replays := func(n int) {
		for range n {
			_, err := b.replays.Create(t.Context(), replay.Request{Filter: replay.Filter{Subscriber: "sub_ada"}})
			require.NoError(t, err)
		}
	}
	replays(19)
	require.NotContains(t, v.get("/replays").text, `rel="next"`, "there is no other than these twenty")
	replays(1)
	next = regexp.MustCompile(`href="([^"]*)" rel="next"`).FindStringSubmatch(v.get("/replays").text)
	require.NotNil(t, next)
	v.get("/replays"+next[1]).has(t, b.ada.replay)
	p = v.get("/event-types?type=invoice.paid")
	p.has(t, "50 types", "data.total.amount", "In cents", "string date-time", "whole state", "29 of your endpoints get it", "4200")
	p.has(t, "2026-11-01", "Money is an object with its currency")
	v.get("/event-types?type=payment.captured").has(t, "It will end. Use payment.succeeded", "<s>payment.captured</s>")
	v.get("/event-types?type=payment.failed").has(t, "Each of these events counts")
	v.get("/endpoints/new").has(t, "It will end. Use payment.succeeded", "The bank has refused.")
	require.Equal(t, http.StatusNotFound, v.get("/event-types?type=nothing").status)
	require.Equal(t, http.StatusUnprocessableEntity, v.post("/endpoints", "description", "a\x00b").status)
	require.Equal(t, http.StatusUnprocessableEntity, v.post("/endpoints", "description", strings.Repeat("x", 70<<10)).status)
}

// The owner of an endpoint moves it to a newer version of the data, and never back.
func TestPayloadVersionOfAnEndpoint(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	v := b.visit("sub_ada")
	old, err := b.reg.Subscribe(t.Context(), sender.NewSubscription{Subscriber: "sub_ada", URL: "https://old.ada.example.com/", Settings: sender.Settings{PayloadVersion: "2025-06-01", MaxInFlight: 3}})
	require.NoError(t, err)
	path := "/endpoints/" + old.ID
	settings := func() sender.Settings { return b.endpoint(old.ID).Settings }
	v.get(path).has(t, `<option value="2026-11-01">2026-11-01</option>`, `<option value="2025-06-01" selected>2025-06-01</option></select>`)
	_, err = b.pub.Publish(t.Context(), sender.Event{
		Type: "invoice.paid", Object: sender.Object{Type: "invoice", ID: "in_1"}, Subscriber: "sub_ada", PayloadVersion: "2026-11-01",
		Data: json.RawMessage(`{"id":"in_one","total":{"amount":4200,"currency":"EUR"},"updated_at":"2026-01-02T15:04:05Z"}`),
	})
	require.NoError(t, err)
	for version, passes := range map[string]int{"": 1, "2025-06-01": 1, "2026-11-01": 0, "newest": 1} {
		v.post(path+"/preview", "types", "invoice.paid", "filter", `{"data.id":"in_one","data.total":4200}`, "payload_version", version).has(t, fmt.Sprintf("it would pass <b>%d</b>.", passes))
	}
	// The page of a type shows each version, and who gets an older one than the newest.
	types := "/event-types?type=invoice.paid"
	v.get(types).has(t, "data.total.amount", ">old.ada.example.com</bdi></a> (as of 2025-03-01)", `<a href="?type=invoice.paid&version=2025-03-01">2025-03-01</a>`)
	shown := v.get(types + "&version=2025-03-01")
	shown.has(t, `>Fields</h2><span class="small mute">as of 2025-03-01</span>`, `"j-s">"2025-03-01"`)
	require.NotContains(t, shown.text, "data.total.amount")
	require.Equal(t, http.StatusNotFound, v.get(types+"&version=2025-06-02").status)
	change := func(version string) page {
		return v.post(path, "url", "https://old.ada.example.com/", "type", "*", "payload_version", version)
	}
	v.done(change("2025-06-01"), path, "Saved.")
	require.Equal(t, "2025-06-01", settings().PayloadVersion)
	v.done(change("2026-11-01"), path, "Saved.")
	require.Equal(t, sender.Settings{PayloadVersion: "2026-11-01", MaxInFlight: 3}, settings())
	require.NotContains(t, v.get(path).text, "payload_version", "there is no newer one")
	p := change("2025-06-01")
	require.Equal(t, http.StatusUnprocessableEntity, p.status)
	p.has(t, "can only rise")
	require.Equal(t, "2026-11-01", settings().PayloadVersion)
	v.post(path, "url", "https://old.ada.example.com/", "type", "*")
	require.Equal(t, "2026-11-01", settings().PayloadVersion)
}

// Without a catalogue there is no page of it, and types are typed in.
func TestWithoutACatalogue(t *testing.T) {
	t.Parallel()
	b := newBed(t, func(c *portal.Config) { *c = portal.Config{Now: c.Now, Logger: c.Logger} })
	v := b.visit("sub_ada")
	require.Equal(t, http.StatusNotFound, v.get("/event-types").status)
	require.NotContains(t, v.get("/").text, "event-types")
	v.get("/endpoints/new").has(t, `name="types" value="*"`)
	require.Equal(t, http.StatusOK, v.post("/endpoints", "url", "https://x.example.com/", "types", "*").status)
}

// While the database is away, the answer says so, and tells nothing else.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	b := newBed(t, func(c *portal.Config) { c.Timeout = time.Second })
	v := b.visit("sub_ada")
	tx, err := b.store.Begin(t.Context())
	require.NoError(t, err)
	p := v.get("/")
	require.NoError(t, tx.Rollback())
	require.Equal(t, http.StatusServiceUnavailable, p.status)
	require.Equal(t, "5", p.header.Get("Retry-After"))
	p.has(t, "We cannot answer just now")
	require.NotContains(t, p.text, "context")
	require.Contains(t, b.logged(), "level=ERROR")
	require.Equal(t, http.StatusNotFound, v.get("/nowhere").status)
	require.Equal(t, http.StatusNotFound, v.ask(http.MethodGet, prefix+"/nowhere", nil).status)
	for _, path := range []string{"//s/x/", "/s//x", "/s/x/../y"} { // which a mux would redirect out of the prefix
		w := httptest.NewRecorder()
		b.portal.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://h"+path, nil))
		require.Equal(t, http.StatusNotFound, w.Code, path)
	}
}
