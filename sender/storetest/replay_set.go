package storetest

import (
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/replay"
)

func replayDeadSet(w *world) {
	drafts, sub := w.ended(4, sender.ClassStatus)
	r := w.replay(replay.Filter{})
	w.ended(1, sender.ClassStatus)
	// Three are redelivered before the replay reaches them: one succeeds, one is a
	// dead letter again, and one is still live.
	for i, class := range []sender.Class{sender.ClassNone, sender.ClassStatus} {
		w.redeliver(w.delivery(drafts[i].ID, sub).ID)
		w.endAll(class)
	}
	w.redeliver(w.delivery(drafts[2].ID, sub).ID)
	w.equal(w.claimOne().Event.ID, drafts[2].ID, "event that is in flight")
	step := w.steps(10)
	w.equal([]int{step.Admitted, step.Skipped}, []int{1, 3}, "admitted and skipped")
	_, ids := w.claimedEvents()
	w.equal(ids, sorted(drafts[3]), "events claimed")
	w.equal(w.delivery(drafts[1].ID, sub).Status, sender.StatusDeadLettered, "status of what is a dead letter again")
	r = w.readReplay(r.ID)
	w.equal([]any{r.Status, r.Matched, r.Admitted, r.Skipped}, []any{replay.Finished, int64(4), int64(1), int64(3)}, "replay at its end")

	next := w.replay(replay.Filter{})
	w.equal(next.Matched, int64(2), "Matched of a replay that is created later")
}

func replayDeliveredSet(w *world) {
	owner := w.subscriber()
	sub := w.subscribe(owner, "only.addressed")
	made := map[string]string{} // how they stand when the replay is created → event
	add := func(how string) {
		d := w.addressed(owner, sub)
		w.publish(d)
		w.expand()
		made[how] = d.ID
	}
	id := func(how string) string { return w.delivery(made[how], sub).ID }
	for _, how := range []string{"delivered", "delivered, sent again later", "delivered, in flight again", "delivered, due again"} {
		add(how)
	}
	w.endAll(sender.ClassNone)
	add("dead-lettered")
	w.endAll(sender.ClassStatus)
	w.redeliver(id("delivered, in flight again"))
	again := w.claimOne()
	add("in flight")
	inFlight := w.claimOne()
	add("awaiting a retry")
	w.record(result(w.claimOne(), sender.ClassStatus))
	w.redeliver(id("delivered, due again"))
	add("pending")

	r := w.replay(replay.Filter{Status: sender.StatusDelivered})
	w.equal(r.Matched, int64(2), "Matched")
	w.pauseReplay(r.ID) // so that it keeps its set while it does nothing
	w.record(result(inFlight, sender.ClassNone), result(again, sender.ClassStatus))
	w.redeliver(id("dead-lettered"))
	w.redeliver(id("delivered, sent again later"))
	w.Advance(retryDelay(1))
	w.endAll(sender.ClassNone)
	add("published later")
	w.endAll(sender.ClassNone)
	w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusDelivered: len(made)}, "statuses")

	w.setReplay(r.ID, replay.Running)
	w.equal(w.steps(1).Admitted, 1, "admitted")
	_, ids := w.claimedEvents()
	w.equal(ids, []string{made["delivered"]}, "events claimed")
	w.equal(w.readReplay(r.ID).Status, replay.Finished, "status of the replay")
	next := w.replay(replay.Filter{Status: sender.StatusDelivered})
	w.equal(next.Matched, int64(len(made)-1), "Matched of a replay that is created later")
}

func replayDeliveredSkipped(w *world) {
	drafts, sub := w.ended(3, sender.ClassNone)
	for _, d := range drafts[1:] {
		w.redeliver(w.delivery(d.ID, sub).ID)
	}
	c := w.claim(1)[0]
	r := w.replay(replay.Filter{Status: sender.StatusDelivered})
	w.equal(r.Matched, int64(1), "Matched")
	w.pause(sub)
	w.resume(sub, takeNone)
	w.noError(w.Store.Release(w.ctx, []dispatch.Release{{Key: c.Key, Token: c.Token}}), "releasing")
	w.sweep(100)
	w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusDelivered: 3}, "statuses")
	w.equal(w.steps(10).Admitted, 1, "admitted")
	_, ids := w.claimedEvents()
	w.equal(ids, sorted(drafts[0]), "events claimed")
}

func replayFilter(w *world) {
	for _, status := range []sender.Status{sender.StatusDeadLettered, sender.StatusDelivered} {
		w.filters(status)
	}
}

func (w *world) filters(status sender.Status) {
	w.Helper()
	type one struct {
		event, sub, owner, eventType string
		class                        sender.Class
		published                    time.Time
	}
	var all []one
	owners := []string{w.subscriber(), w.subscriber()}
	subs := []string{w.subscribe(owners[0], "x"), w.subscribe(owners[0], "x"), w.subscribe(owners[1], "x")}
	for i, of := range []int{0, 0, 0, 1, 1, 2} {
		d := w.draft([]string{"a.b", "a.b.c", "b"}[i%3])
		o := one{event: d.ID, sub: subs[of], owner: owners[of/2], eventType: d.Type, class: sender.ClassTimeout, published: w.now()}
		if i%2 == 1 {
			o.class = sender.ClassDNS
		}
		d.Subscriber, d.Subscription = o.owner, o.sub
		w.publish(d)
		w.expand()
		if status == sender.StatusDelivered {
			w.endAll(sender.ClassNone)
			w.redeliver(w.delivery(d.ID, o.sub).ID)
			w.record(result(w.claimOne(), o.class))
		} else {
			w.endAll(o.class)
		}
		all = append(all, o)
		w.Advance(time.Hour)
	}
	at := func(i int) time.Time { return all[i].published }
	for _, f := range []replay.Filter{
		{}, {Subscription: subs[0]}, {Subscription: subs[2]}, {Subscriber: owners[0]}, {Subscriber: owners[0], Subscription: subs[1]},
		{EventType: "*"}, {EventType: "a.*"}, {EventType: "a.b"}, {EventType: "a.b.*"}, {EventType: "c"},
		{Since: at(2)}, {Since: at(2).Add(time.Microsecond)}, {Until: at(2)}, {Until: at(2).Add(time.Microsecond)}, {Since: at(1), Until: at(4)},
		{Since: at(5).Add(time.Hour)}, {Until: at(0)},
		{ErrorClass: sender.ClassTimeout}, {ErrorClass: sender.ClassDNS, Subscriber: owners[0], EventType: "a.*", Since: at(1)}, {ErrorClass: sender.ClassTLS},
	} {
		f.Status = status
		var want []string
		var preview replay.Preview
		shares := map[string]int64{}
		for _, o := range all {
			if !f.Selects(replay.Candidate{Subscription: o.sub, Subscriber: o.owner, EventType: o.eventType, Published: o.published, ErrorClass: o.class}) {
				continue
			}
			want = append(want, o.event)
			if preview.Count == 0 {
				preview.Oldest = o.published
			}
			preview.Count, preview.Newest = preview.Count+1, o.published
			shares[o.sub]++
		}
		slices.Sort(want)
		got, err := w.Store.PreviewReplay(w.ctx, f, 0)
		w.noError(err, "previewing")
		w.equal(got.Count, preview.Count, "Count of the preview of %+v", f)
		w.sameTime(got.Oldest, preview.Oldest, "Oldest of the preview of %+v", f)
		w.sameTime(got.Newest, preview.Newest, "Newest of the preview of %+v", f)
		w.equal(len(got.Subscriptions), len(shares), "subscriptions of the preview of %+v", f)
		for i, s := range got.Subscriptions {
			w.equal(s.Count, shares[s.Subscription], "share of %s in the preview of %+v", s.Subscription, f)
			w.check(i == 0 || s.Count <= got.Subscriptions[i-1].Count, "the shares in the preview of %+v are not in order", f)
		}

		r := w.replay(f)
		w.equal(r.Matched, preview.Count, "Matched by %+v", f)
		w.equal(w.steps(4).Admitted, len(want), "admitted by %+v", f)
		claimed, ids := w.claimedEvents()
		w.equal(ids, append([]string{}, want...), "events replayed by %+v", f)
		for _, c := range claimed { // as they were before
			at := slices.IndexFunc(all, func(o one) bool { return o.event == c.Event.ID })
			decide := w.decide
			w.decide = func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
				return dispatch.Decision{Status: status, Health: h}
			}
			w.record(result(c, all[at].class))
			w.decide = decide
		}
	}
}

func replayOfSubscriber(w *world) {
	const many = 600 // more than a store reads of one in one go
	owner := w.subscriber()
	often, seldom := w.subscribe(owner, "*"), w.subscribe(owner, "a.b")
	w.subscribe(owner, "nothing")
	w.subscribe(w.subscriber(), "*")
	var drafts []sender.Draft
	for i := range many {
		d := w.draft("c")
		if i%100 == 50 || i == many-1 {
			d = w.draft("a.b")
		}
		drafts = append(drafts, d)
	}
	w.publish(drafts...)
	w.expand()
	w.endAll(sender.ClassReset)
	for _, status := range []sender.Status{sender.StatusDeadLettered, sender.StatusDelivered} { // which they are then
		f := replay.Filter{Status: status, Subscriber: owner}
		some, err := w.Store.PreviewReplay(w.ctx, f, many)
		w.noError(err, "previewing some")
		w.check(some.More && some.Count > 0 && some.Count <= many, "a preview of up to %d that are %s has %d, and tells of more: %v", many, status, some.Count, some.More)
		some, err = w.Store.PreviewReplay(w.ctx, f, 10*many)
		w.noError(err, "previewing more than there are")
		w.check(!some.More && some.Count == many+7, "a preview of all that are %s has %d, and tells of more: %v", status, some.Count, some.More)
		w.equal(w.replay(f).Matched, int64(many+7), "matched, of those that are %s", status)
		sent := map[string]int{}
		for over := false; !over; {
			s := w.steps(100)
			over = len(s.Finished) > 0
			claimed := w.claim(plenty)
			w.check(over || len(claimed) > 0, "the replay of what is %s does not get on", status)
			for _, c := range claimed {
				sent[c.Target.Subscription]++
				w.record(result(c, sender.ClassNone))
			}
			w.Advance(10 * time.Second)
		}
		w.equal(sent, map[string]int{often: many, seldom: 7}, "what was sent again, of what was %s", status)
	}
}
