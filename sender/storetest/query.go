package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
)

func queryRules() []rule {
	return []rule{
		{"deliveries", "A list of deliveries has those, and only those, for which all conditions of the query hold, in the order of the list of all.", queryDeliveries},
		{"many candidates", "Following the cursor finds the one that matches of many that do not, once, though pages before it are short.", queryMany},
		{"events", "A list of events has those for which all conditions hold, newest first, without bodies; following the cursor yields each once.", queryEvents},
		{"events, not expanded", "A list of events has what was committed before its first page was asked for, once, whether it is expanded before, in between or never.", queryUnexpanded},
		{"events with bodies", "A list of events with a bound of bytes has their exact bodies, and a redacted event none; a page ends before the body that makes it larger, but never before its first.", queryBodies},
		{"event", "An event is read with its exact body and whom it is addressed to; an unknown id is ErrNotFound.", queryEvent},
		{"subscriptions", "A list of subscriptions has those that are not deleted, by owner and by status, oldest first; following the cursor yields each once.", querySubscriptions},
		{"malformed cursor", "A cursor that no page came with is ErrInvalid.", queryCursor},
		{"counts", "The counts say how many there are, after every change, and after none that is rolled back.", queryCounts},
		{"rollups", "A rollup has what was committed in its minute, and nothing else: no lost result, and no batch that failed.", queryRollups},
		{"rollups of hours", "The figures of an hour are those of its minutes, whether Sweep has merged them or not.", queryHourRollups},
		{"rollups of subscriptions", "The figures of a subscription and an hour have what was committed then, whether they are written or not; by the order of the ids, then by hour.", querySubscriptionRollups},
		{"counts, given back", "What was given back before its first attempt does not hide that an older delivery of its subscription is due.", queryCountsGivenBack},
		{"counts by lane", "What is live, and since when the oldest is due, is told of each lane.", queryCountsByLane},
		{"recent outcomes", "A subscription remembers the last 32 outcomes of its attempts that tell something of its endpoint.", queryRecent},
		{"dead letters in groups", "The groups say how many dead letters of a subscription ended in which way, and when the first and the last did; those with more come first.", queryDeadLetterGroups},
		{"status code", "A list of deliveries by status code has those whose last attempt was answered with it.", queryStatusCode},
		{"failing subscriptions", "The list of failing subscriptions has the active ones that fail, those that have failed for longest first; one by id or by a part of the URL has what it asks for.", queryFailing},
		{"notices in groups", "The groups of notices have those that nobody has acknowledged; acknowledging one leaves what was made since.", noticeGroups},
		{"kinds", "What an id or an object is that was typed in; an unknown one is nothing.", queryKinds},
		{"facts", "The facts about a delivery say what its next attempt waits for.", queryFacts},
		{"facts, unknown", "An id that is no delivery's is ErrNotFound.", queryFactsUnknown},
	}
}

// variety makes deliveries that differ in all properties that a query can select by. It
// returns the owners, the subscriptions, the events and some times.
func (w *world) variety() (owners, subs []string, drafts []sender.Draft, times []time.Time) {
	w.Helper()
	owners = []string{w.subscriber(), w.subscriber()}
	subs = []string{w.subscribe(owners[0], "*"), w.subscribe(owners[0], "a.*"), w.subscribe(owners[1], "*"), w.subscribe(owners[1], "*")}
	classes := []sender.Class{sender.ClassNone, sender.ClassTimeout, sender.ClassStatus, sender.ClassDNS}
	w.decide = func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
		switch r.Class {
		case sender.ClassNone:
			return dispatch.Decision{Status: sender.StatusDelivered, Health: h}
		case sender.ClassDNS:
			return dispatch.Decision{Status: sender.StatusDeadLettered, Health: h}
		}
		return dispatch.Decision{Status: sender.StatusAwaitingRetry, Due: now.Add(time.Hour), Health: h}
	}
	for i := range 12 {
		times = append(times, w.now())
		d := w.draftOn([]string{"a.b", "a.b.c", "b.c", "ab.c"}[i%4], sender.Object{Type: []string{"thing", "other"}[i%2], ID: []string{"1", "2", "3"}[i%3]})
		if i%5 == 4 {
			d.Subscriber = owners[i%2]
		}
		drafts = append(drafts, d)
		w.publish(d)
		w.expand()
		if i < 10 {
			var results []dispatch.Result
			for j, c := range w.claim(plenty) {
				if j%3 < 2 || i < 4 {
					results = append(results, result(c, classes[(i+j)%4]))
				}
			}
			w.record(results...)
		}
		w.Advance(time.Second)
	}
	w.pause(subs[2])
	w.unsubscribe(subs[3])
	return owners, subs, drafts, times
}

func queryDeliveries(w *world) {
	owners, subs, drafts, times := w.variety()
	all := w.list(history.DeliveryQuery{})
	w.check(len(all) > 30, "deliveries in all: %d", len(all))
	met := 0
	try := func(q history.DeliveryQuery) {
		var want, got []string
		for _, d := range all {
			if asked(&q, d) {
				want = append(want, d.ID)
			}
		}
		met += len(want)
		for _, limit := range []int{0, 3} {
			q.Limit, got = limit, nil
			for _, d := range w.list(q) {
				got = append(got, d.ID)
			}
			w.equal(got, want, "deliveries that %+v selects", q)
		}
	}
	for _, status := range append(slices.Clone(statuses), sender.StatusHeld, "") {
		q := history.DeliveryQuery{Status: status}
		for _, change := range []func(q *history.DeliveryQuery){
			func(*history.DeliveryQuery) {},
			func(q *history.DeliveryQuery) { q.Subscriber = owners[0] },
			func(q *history.DeliveryQuery) { q.Subscriber = owners[1] },
			func(q *history.DeliveryQuery) { q.Subscriber = "sub_unknown" },
			func(q *history.DeliveryQuery) { q.Subscription = subs[2] },
			func(q *history.DeliveryQuery) { q.Subscription, q.Subscriber = subs[0], owners[1] },
			func(q *history.DeliveryQuery) { q.Subscription, q.Subscriber = subs[3], owners[1] },
			func(q *history.DeliveryQuery) { q.EventType = "a.b" },
			func(q *history.DeliveryQuery) { q.EventType = "a.*" },
			func(q *history.DeliveryQuery) { q.EventType = "*" },
			func(q *history.DeliveryQuery) { q.Object = sender.Object{Type: "thing"} },
			func(q *history.DeliveryQuery) { q.Object = sender.Object{Type: "other", ID: "2"} },
			func(q *history.DeliveryQuery) { q.Class = sender.ClassTimeout },
			func(q *history.DeliveryQuery) { q.Class, q.Subscription = sender.ClassDNS, subs[0] },
			func(q *history.DeliveryQuery) { q.Since = times[5] },
			func(q *history.DeliveryQuery) { q.Until = times[5] },
			func(q *history.DeliveryQuery) { q.Since, q.Until = times[2], times[9] },
			func(q *history.DeliveryQuery) { q.Since, q.Subscriber = times[3].Add(1), owners[0] },
			func(q *history.DeliveryQuery) { q.Until, q.EventType = times[7].Add(time.Millisecond), "a.b.c" },
			func(q *history.DeliveryQuery) { q.Event, q.Subscriber = drafts[6].ID, owners[0] },
			func(q *history.DeliveryQuery) { q.Event, q.Until = drafts[6].ID, times[6] },
			func(q *history.DeliveryQuery) { q.Since = w.now() },
			func(q *history.DeliveryQuery) { q.Until = times[0] },
			func(q *history.DeliveryQuery) { q.Until = times[7].Add(1) },
			func(q *history.DeliveryQuery) { q.Since, q.Until = times[2].In(otherZone), times[9].In(otherZone) },
			func(q *history.DeliveryQuery) { q.Since = epoch },
			func(q *history.DeliveryQuery) { q.Until = epoch },
		} {
			q := q
			change(&q)
			try(q)
		}
	}
	w.check(met > 300, "the queries select %d deliveries together", met)
}

// Times that a store might take for others: those of a zone, and one that it might keep as no
// time.
var (
	otherZone = time.FixedZone("", -11*3600)
	epoch     = time.Unix(0, 0)
)

func asked(q *history.DeliveryQuery, d sender.Delivery) bool {
	return (q.Status == "" || q.Status == d.Status) && (q.Class == "" || q.Class == d.LastErrorClass) &&
		(q.Event == "" || q.Event == d.Event.ID) && (q.Subscription == "" || q.Subscription == d.Subscription) &&
		(q.Subscriber == "" || q.Subscriber == d.Subscriber) && q.MatchesEvent(d.Event)
}

func queryMany(w *world) {
	owner := w.subscriber()
	sub := w.subscribe(owner, "only.addressed")
	rare := w.addressed(owner, sub)
	rare.Type = "rare"
	w.publish(rare)
	w.backlog(owner, sub, history.MaxExamined+700)
	d := w.list(history.DeliveryQuery{EventType: "rare", Limit: 1})
	w.check(len(d) == 1 && d[0].Event.ID == rare.ID, "deliveries of the rare type: %d", len(d))
	e := w.listEvents(history.EventQuery{Type: "rare", Limit: 1})
	w.check(len(e) == 1 && e[0].ID == rare.ID, "events of the rare type: %d", len(e))
}

// listEvents follows the cursor to the end.
func (w *world) listEvents(q history.EventQuery) (all []sender.StoredEvent) {
	w.Helper()
	for range plenty {
		page, next, err := w.Store.Events(w.ctx, q)
		w.noError(err, "listing events")
		w.check(q.Limit == 0 || len(page) <= q.Limit, "a page has %d events, at most %d were asked for", len(page), q.Limit)
		all = append(all, page...)
		if next == "" {
			return all
		}
		q.Cursor = next
	}
	w.Fatal("listing events does not come to an end")
	return nil
}

func queryEvents(w *world) {
	owners, _, drafts, times := w.variety()
	for _, q := range []history.EventQuery{
		{}, {Type: "a.b"}, {Type: "a.*"}, {Type: "*"}, {Type: "b"}, {Object: sender.Object{Type: "thing"}}, {Object: sender.Object{Type: "thing", ID: "3"}},
		{Subscriber: owners[0]}, {Subscriber: owners[1]}, {Subscriber: "sub_unknown"},
		{Viewer: owners[0]}, {Viewer: owners[1], Type: "a.*"}, {Viewer: "sub_unknown"}, {Viewer: sender.Operator}, {Viewer: owners[0], Subscriber: owners[1]},
		{Since: times[4]}, {Until: times[4]}, {Since: times[2], Until: times[8]}, {Since: times[2].Add(1), Type: "a.*"}, {Until: times[0]}, {Since: w.now()},
		{Until: times[4].Add(1)}, {Since: times[2].In(otherZone), Until: times[8].In(otherZone)}, {Since: epoch}, {Until: epoch}, {Since: epoch, Until: times[4]},
	} {
		want := []string{}
		for i, d := range slices.Backward(drafts) {
			info := sender.EventInfo{ID: d.ID, Type: d.Type, Object: d.Object, CreatedAt: times[i]}
			if q.Matches(info, d.Subscriber) {
				want = append(want, d.ID)
			}
		}
		for _, limit := range []int{0, 2} {
			q.Limit = limit
			got := []string{}
			for _, e := range w.listEvents(q) {
				got = append(got, e.ID)
				i := slices.IndexFunc(drafts, func(d sender.Draft) bool { return d.ID == e.ID })
				w.sameEvent(e.EventInfo, drafts[i], times[i])
				w.equal([]any{e.Subscriber, e.Subscription, len(e.Body)}, []any{drafts[i].Subscriber, "", 0}, "addressee and bytes of the body of an event in a list")
			}
			w.equal(got, want, "events that %+v selects", q)
		}
	}
}

func queryUnexpanded(w *world) {
	owner := w.subscriber()
	w.subscribe(owner, "*")
	var drafts []sender.Draft
	publish := func(n int) {
		for range n {
			d := w.draft("a.b")
			w.publish(d)
			drafts = append(drafts, d)
		}
	}
	publish(2)
	w.expand()
	tx, commit, _ := w.Begin(w.T)
	late := w.draft("a.b")
	_, err := w.Store.PublishTx(w.ctx, tx, []sender.Draft{late})
	w.noError(err, "publishing")
	if w.ConcurrentWriters { // it is the last to commit, and not the last to be numbered
		publish(1)
	}
	w.noError(commit(), "committing")
	drafts = append(drafts, late)
	publish(2)
	all := sorted(drafts...)
	page, next, err := w.Store.Events(w.ctx, history.EventQuery{Limit: 1})
	for range 2 * len(all) {
		w.noError(err, "listing events")
		if next == "" {
			break
		}
		w.publish(w.draft("a.b")) // since the first page: it may be listed, or not
		w.expand()
		var more []sender.StoredEvent
		more, next, err = w.Store.Events(w.ctx, history.EventQuery{Limit: 1, Cursor: next})
		page = append(page, more...)
	}
	listed := []string{}
	for _, e := range page {
		if slices.Contains(all, e.ID) {
			listed = append(listed, e.ID)
		}
	}
	slices.Sort(listed)
	w.equal(listed, all, "events that were committed before the first page")
}

func queryBodies(w *world) {
	var drafts []sender.Draft
	for i := range 6 {
		d := w.draft("a.b")
		d.BodyTail = fmt.Appendf(nil, `,"data":"%0*d"}`, 1000, i)
		drafts = append(drafts, d)
	}
	w.publish(drafts...)
	slices.Reverse(drafts)
	size := len(drafts[0].Body(1))
	for _, c := range []struct{ bytes, limit, want int }{
		{3 * size, 6, 3}, {3*size - 1, 6, 2}, {1, 6, 1}, {100 * size, 6, 6}, {3 * size, 2, 2},
	} {
		page, _, err := w.Store.Events(w.ctx, history.EventQuery{Limit: c.limit, Bytes: c.bytes})
		w.noError(err, "listing events with bodies")
		w.equal(len(page), c.want, "events of a page of up to %d events and %d bytes of bodies of %d", c.limit, c.bytes, size)
	}
	w.expand()
	w.redact(history.RedactParams{Object: drafts[2].Object})
	for _, bytes := range []int{1, 2 * size, 100 * size} {
		all := w.listEvents(history.EventQuery{Bytes: bytes})
		w.equal(len(all), len(drafts), "events in pages of %d bytes", bytes)
		for i, e := range all {
			w.equal([]any{e.ID, e.Redacted}, []any{drafts[i].ID, i == 2}, "event %d of the list, and whether it is redacted", i)
			if !e.Redacted {
				w.sameBody(e.Body, drafts[i], 1)
			} else {
				w.check(e.Body == nil, "a redacted event is listed with a body")
			}
		}
	}
}

func queryEvent(w *world) {
	owner := w.subscriber()
	d := w.addressed(owner, w.subscribe(owner, "*"))
	d.Version = 12
	at := w.now()
	w.publish(d)
	got, err := w.Store.Event(w.ctx, d.ID)
	w.noError(err, "reading an event")
	w.sameEvent(got.EventInfo, d, at)
	w.sameBody(got.Body, d, 12)
	w.equal([]any{got.Version, got.Subscriber, got.Subscription}, []any{int64(12), d.Subscriber, d.Subscription}, "version and addressee")
	for _, id := range []string{"", "evt_", d.ID + "0", " " + d.ID, "x"} {
		_, err := w.Store.Event(w.ctx, id)
		w.errorIs(err, sender.ErrNotFound, "reading event %q", id)
	}
}

func (w *world) listSubscriptions(q sender.SubscriptionQuery) (ids []string) {
	w.Helper()
	ids = []string{}
	for range plenty {
		page, next, err := w.Store.Subscriptions(w.ctx, q)
		w.noError(err, "listing subscriptions")
		w.check(q.Limit == 0 || len(page) <= q.Limit, "a page has %d subscriptions, at most %d were asked for", len(page), q.Limit)
		for _, s := range page {
			w.sameSubscription(s, w.read(s.ID))
			ids = append(ids, s.ID)
		}
		if next == "" {
			return ids
		}
		q.Cursor = next
	}
	w.Fatal("listing subscriptions does not come to an end")
	return nil
}

func querySubscriptions(w *world) {
	owners := []string{w.subscriber(), w.subscriber()}
	var subs []string
	for i := range 10 {
		subs = append(subs, w.subscribe(owners[i%2], "*"))
	}
	w.pause(subs[1])
	w.disable(subs[2])
	w.disable(subs[7])
	w.close(subs[4])
	w.unsubscribe(subs[5])
	pick := func(at ...int) (ids []string) {
		for _, i := range at {
			ids = append(ids, subs[i])
		}
		return ids
	}
	for _, c := range []struct {
		q    sender.SubscriptionQuery
		want []string
	}{
		{sender.SubscriptionQuery{}, pick(0, 1, 2, 3, 4, 6, 7, 8, 9)},
		{sender.SubscriptionQuery{Subscriber: owners[1]}, pick(1, 3, 7, 9)},
		{sender.SubscriptionQuery{Subscriber: "sub_unknown"}, []string{}},
		{sender.SubscriptionQuery{Status: sender.SubscriptionActive}, pick(0, 3, 6, 8, 9)},
		{sender.SubscriptionQuery{Status: sender.SubscriptionPaused}, pick(1)},
		{sender.SubscriptionQuery{Status: sender.SubscriptionDisabled}, pick(2, 7)},
		{sender.SubscriptionQuery{Status: sender.SubscriptionClosing}, pick(4)},
		{sender.SubscriptionQuery{Status: sender.SubscriptionDisabled, Subscriber: owners[0]}, pick(2)},
	} {
		for _, limit := range []int{0, 1, 2} {
			c.q.Limit = limit
			w.equal(w.listSubscriptions(c.q), c.want, "subscriptions that %+v selects", c.q)
		}
	}
	_, next, err := w.Store.Subscriptions(w.ctx, sender.SubscriptionQuery{Limit: 1})
	w.noError(err, "listing subscriptions")
	page, _, err := w.Store.Subscriptions(w.ctx, sender.SubscriptionQuery{ID: subs[0], Cursor: next})
	w.noError(err, "listing a subscription by its id")
	w.equal(len(page), 0, "subscriptions with the first one's id behind a page that had it")
}

func queryCursor(w *world) {
	w.crowd(3, 3)
	_, real, err := w.Store.Events(w.ctx, history.EventQuery{Limit: 2})
	w.noError(err, "listing")
	w.check(real != "", "no cursor with a page of 2")
	for _, cursor := range []string{"x", " ", "0", "-1", "%", "'", real + "x", real + "=", " " + real, "\x00", "🔑", "null", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"} {
		_, _, err := w.Store.Events(w.ctx, history.EventQuery{Cursor: cursor})
		w.errorIs(err, sender.ErrInvalid, "listing events with cursor %q", cursor)
		_, _, err = w.Store.Subscriptions(w.ctx, sender.SubscriptionQuery{Cursor: cursor})
		w.errorIs(err, sender.ErrInvalid, "listing subscriptions with cursor %q", cursor)
	}
}
