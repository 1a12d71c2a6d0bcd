package storetest

import (
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
)

func historyRules() []rule {
	return []rule{
		{"a delivery in full", "A delivery is read with its event, the exact body, and all its attempts, oldest first.", historyDelivery},
		{"some attempts", "Of a delivery's attempts those are read that are asked for: the newest below a number, up to a limit, oldest first.", historyAttempts},
		{"own copies", "A store keeps no slice and no map of a caller's, and gives none away that it keeps: whoever changes what they have given or got changes nothing in the store.", historyCopies},
		{"unknown", "An id that is no delivery's is ErrNotFound.", historyUnknown},
		{"ids", "A delivery's id is dlv_ and letters, digits and underscores, at most 128 characters in all, and belongs to it alone.", historyIDs},
		{"list", "A list has the deliveries that the query selects, those of the newest events first, without bodies and attempts.", historyList},
		{"by status", "A list by status has exactly the deliveries that read so.", historyByStatus},
		{"pages", "Following the cursor while new events arrive yields every delivery that was there once, and none twice.", historyPages},
		{"malformed cursor", "A cursor that no page came with is ErrInvalid.", historyCursor},
		{"default limit", "A limit of zero means fifty.", historyLimit},
	}
}

func historyDelivery(w *world) {
	owner := w.subscriber()
	sub := w.subscribe(owner, "*")
	d := w.draft("a.b")
	d.Version = 42
	before := w.now()
	w.publish(d)
	w.expand()
	read := w.delivery(d.ID, sub)
	w.check(!read.CreatedAt.Before(before.Add(-time.Microsecond)) && !read.CreatedAt.After(w.now().Add(time.Microsecond)), "CreatedAt is %v, and the event was published at %v", read.CreatedAt, before)
	want := sender.Delivery{
		ID: read.ID, Event: read.Event, Version: 42,
		Subscriber: owner, Subscription: sub, URL: "https://example.com/" + sub, Status: sender.StatusPending,
		CreatedAt: read.CreatedAt, NextAttemptAt: read.NextAttemptAt, Body: d.Body(42), Attempts: read.Attempts,
	}
	w.equal(read, want, "delivery")
	w.sameEvent(read.Event, d, read.CreatedAt)
	w.equal(len(read.Attempts), 0, "attempts of a pending delivery")
	w.check(!read.NextAttemptAt.IsZero() && !read.NextAttemptAt.After(w.now()), "NextAttemptAt of a pending delivery is %v", read.NextAttemptAt)
}

func historyAttempts(w *world) {
	d, sub := w.one()
	id := w.delivery(d.ID, sub).ID
	for _, class := range []sender.Class{sender.ClassTimeout, sender.ClassStatus, sender.ClassNone, sender.ClassTimeout, sender.ClassStatus} {
		w.redeliver(id)
		w.record(result(w.claimOne(), class))
	}
	all := w.get(id).Attempts
	w.equal(len(all), 5, "number of attempts")
	for _, c := range []struct {
		q        history.AttemptQuery
		from, to int
	}{
		{history.AttemptQuery{}, 0, 0}, {history.AttemptQuery{Before: 3}, 0, 0},
		{history.AttemptQuery{Limit: 2}, 3, 5}, {history.AttemptQuery{Limit: 5}, 0, 5}, {history.AttemptQuery{Limit: 6}, 0, 5},
		{history.AttemptQuery{Before: 1, Limit: 2}, 0, 0}, {history.AttemptQuery{Before: 4, Limit: 2}, 1, 3}, {history.AttemptQuery{Before: 100, Limit: 1}, 4, 5},
	} {
		got, err := w.Store.Delivery(w.ctx, id, c.q)
		w.noError(err, "reading a delivery with the attempts %+v", c.q)
		w.equal(got.AttemptCount, 5, "AttemptCount, with the attempts %+v", c.q)
		w.equal(len(got.Attempts), c.to-c.from, "number of attempts of %+v", c.q)
		for i, a := range got.Attempts {
			w.equal(a, all[c.from+i], "attempt %d of %+v", i, c.q)
		}
	}
	w.facts(d.ID, sub)
}

func historyUnknown(w *world) {
	d, sub := w.one()
	for _, id := range w.oddIDs(w.delivery(d.ID, sub).ID) {
		_, err := w.Store.Delivery(w.ctx, id, whole)
		w.errorIs(err, sender.ErrNotFound, "reading delivery %q", id)
	}
}

func historyIDs(w *world) {
	owner := w.subscriber()
	for range 40 {
		w.subscribe(owner, "*")
	}
	w.publish(w.draft("a.b"), w.draft("a.b"), w.draft("a.b"))
	w.expand()
	seen := map[string]bool{}
	for _, d := range w.list(history.DeliveryQuery{}) {
		w.check(!seen[d.ID], "two deliveries have the id %s", d.ID)
		seen[d.ID] = true
		w.check(len(d.ID) > 4 && len(d.ID) <= 128 && d.ID[:4] == "dlv_", "delivery id %q", d.ID)
		for _, c := range d.ID {
			w.check(c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z', "delivery id %q has the character %q", d.ID, c)
		}
		full := w.get(d.ID)
		w.equal([]string{full.Event.ID, full.Subscription}, []string{d.Event.ID, d.Subscription}, "event and subscription of %s", d.ID)
	}
	w.equal(len(seen), 120, "deliveries listed")
}

func historyList(w *world) {
	owner := w.subscriber()
	a, b := w.subscribe(owner, "*"), w.subscribe(owner, "*")
	var drafts []sender.Draft
	for range 5 {
		d := w.draft("a.b")
		drafts = append(drafts, d)
		w.publish(d)
		w.Advance(time.Second)
	}
	w.expand()
	all := w.list(history.DeliveryQuery{})
	w.equal(len(all), 10, "deliveries listed")
	for i, d := range all {
		w.equal(d.Event.ID, drafts[4-i/2].ID, "event of delivery %d in the list, newest first", i)
		w.equal([]int{len(d.Body), len(d.Attempts)}, []int{0, 0}, "bytes of the body and attempts in a list")
		full := w.get(d.ID)
		full.Body, full.Attempts = nil, nil
		d.Body, d.Attempts = nil, nil
		w.equal(d, full, "delivery in a list, against the one read alone")
	}
	for _, sub := range []string{a, b} {
		own := w.list(history.DeliveryQuery{Subscription: sub})
		w.equal(len(own), 5, "deliveries of a subscription")
		for i, d := range own {
			w.equal([]string{d.Subscription, d.Event.ID}, []string{sub, drafts[4-i].ID}, "subscription and event of delivery %d", i)
		}
	}
	for _, draft := range drafts {
		w.equal(len(w.list(history.DeliveryQuery{Event: draft.ID})), 2, "deliveries of an event")
		one := w.list(history.DeliveryQuery{Event: draft.ID, Subscription: b})
		w.check(len(one) == 1 && one[0].Event.ID == draft.ID && one[0].Subscription == b, "an event's delivery to a subscription: got %+v", one)
	}
	w.equal(len(w.list(history.DeliveryQuery{Event: "evt_unknown"})), 0, "deliveries of an unknown event")
	w.equal(len(w.list(history.DeliveryQuery{Subscription: "wsub_unknown"})), 0, "deliveries of an unknown subscription")
}

// everyStatus makes n deliveries of each status and returns their ids.
func (w *world) everyStatus(n int) map[sender.Status][]string {
	w.Helper()
	owner := w.subscriber()
	live, closing, swept := w.subscribe(owner, "*"), w.subscribe(owner, "only.addressed"), w.subscribe(owner, "only.addressed")
	held := w.subscribe(owner, "only.addressed")
	w.backlog(owner, live, 4*n)
	w.backlog(owner, held, n)
	w.backlog(owner, closing, n-n/2)
	w.backlog(owner, swept, n/2)
	w.decide = func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
		dec := dispatch.Decision{Status: sender.StatusDelivered, Health: h}
		switch r.Class {
		case sender.ClassTimeout:
			dec.Status, dec.Due = sender.StatusAwaitingRetry, now.Add(time.Hour)
		case sender.ClassStatus:
			dec.Status = sender.StatusDeadLettered
		}
		return dec
	}
	var results []dispatch.Result
	made := 0
	for _, c := range w.claim(plenty) {
		if c.Target.Subscription != live || made%4 == 3 {
			w.noError(w.Store.Release(w.ctx, []dispatch.Release{{Key: c.Key, Token: c.Token}}), "releasing")
		} else {
			results = append(results, result(c, []sender.Class{sender.ClassNone, sender.ClassTimeout, sender.ClassStatus}[made%4]))
		}
		if c.Target.Subscription == live {
			made++
		}
	}
	w.record(results...)
	w.pause(held)
	w.unsubscribe(swept)
	w.sweep(100)
	w.unsubscribe(closing)
	ids := map[sender.Status][]string{}
	for _, d := range w.list(history.DeliveryQuery{}) {
		ids[d.Status] = append(ids[d.Status], d.ID)
	}
	return ids
}

var statuses = []sender.Status{sender.StatusPending, sender.StatusAwaitingRetry, sender.StatusDelivered, sender.StatusDeadLettered, sender.StatusHeld, sender.StatusCancelled}

func historyByStatus(w *world) {
	ids := w.everyStatus(6)
	for _, status := range statuses {
		w.equal(len(ids[status]), 6, "deliveries that are %s", status)
		var got []string
		for _, d := range w.list(history.DeliveryQuery{Status: status}) {
			w.equal(d.Status, status, "status in a list of one")
			w.equal(w.get(d.ID).Status, status, "status of %s read alone", d.ID)
			got = append(got, d.ID)
		}
		w.equal(got, ids[status], "deliveries that are %s, newest first", status)
	}
}

func historyPages(w *world) {
	const n, limit = 14, 3 // five pages
	ids := w.everyStatus(n)
	var all []string
	for _, d := range w.list(history.DeliveryQuery{}) {
		all = append(all, d.ID)
	}
	watcher := w.subscriber()
	sub := w.subscribe(watcher, "only.addressed")
	for _, status := range append(slices.Clone(statuses), "") {
		want := ids[status]
		q := history.DeliveryQuery{Status: status, Limit: limit}
		if status == "" {
			want, q.Limit = all, 10
		}
		old := map[string]int{}
		for _, id := range all {
			old[id] = 0
		}
		var got []string
		for pages := 1; ; pages++ {
			page, next, err := w.Store.Deliveries(w.ctx, q)
			w.noError(err, "listing")
			w.check(len(page) <= q.Limit, "a page has %d deliveries, at most %d were asked for", len(page), q.Limit)
			for _, d := range page {
				if _, was := old[d.ID]; was {
					got = append(got, d.ID)
				}
			}
			w.backlog(watcher, sub, 1) // the newest now
			if next == "" {
				w.check(pages > 3, "%d deliveries came in %d pages of %d", len(want), pages, q.Limit)
				break
			}
			q.Cursor = next
		}
		w.equal(got, want, "deliveries with status %q in pages", status)
		all = nil
		for _, d := range w.list(history.DeliveryQuery{}) {
			all = append(all, d.ID)
		}
		ids[sender.StatusPending] = nil
		for _, d := range w.list(history.DeliveryQuery{Status: sender.StatusPending}) {
			ids[sender.StatusPending] = append(ids[sender.StatusPending], d.ID)
		}
	}
	own := w.list(history.DeliveryQuery{Subscription: sub, Limit: 4})
	w.equal(len(own), len(w.list(history.DeliveryQuery{Subscription: sub, Limit: 200})), "deliveries of one subscription in pages of 4")
	seen := map[string]bool{}
	for _, d := range own {
		w.check(!seen[d.ID], "a delivery is on two pages")
		seen[d.ID] = true
	}
}

func historyCursor(w *world) {
	w.crowd(1, 5)
	_, real, err := w.Store.Deliveries(w.ctx, history.DeliveryQuery{Limit: 2})
	w.noError(err, "listing")
	w.check(real != "", "no cursor with a page of 2 of 5")
	for _, cursor := range []string{"x", " ", "0", "-1", "%", "'", real + "x", real + "=", real + real, " " + real, "\x00", "🔑", "null", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"} {
		for _, status := range append(slices.Clone(statuses), "") {
			_, _, err := w.Store.Deliveries(w.ctx, history.DeliveryQuery{Cursor: cursor, Status: status})
			w.errorIs(err, sender.ErrInvalid, "listing with cursor %q and status %q", cursor, status)
		}
	}
}

func historyLimit(w *world) {
	w.crowd(1, 60)
	page, next, err := w.Store.Deliveries(w.ctx, history.DeliveryQuery{})
	w.noError(err, "listing")
	w.equal(len(page), 50, "deliveries on a page without a limit")
	page, next, err = w.Store.Deliveries(w.ctx, history.DeliveryQuery{Cursor: next, Limit: 200})
	w.noError(err, "listing")
	w.equal([]any{len(page), next}, []any{10, ""}, "deliveries on the last page, and its cursor")
	page, next, err = w.Store.Deliveries(w.ctx, history.DeliveryQuery{Limit: 60})
	w.noError(err, "listing")
	w.equal([]any{len(page), next}, []any{60, ""}, "deliveries on a page that has them all, and its cursor")
}
