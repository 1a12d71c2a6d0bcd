package storetest

import (
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
)

func noticeRules() []rule {
	return []rule{
		{"stored", "The notices of a decision are stored with it, each with an id of its own, the time, and what it is about: the owner unless the decision names somebody, the subscription and the delivery.", noticeStored},
		{"of a lost attempt", "The decision about a lost attempt has its notices stored too.", noticeLost},
		{"of a late result", "A result that comes too late makes no notice.", noticeLate},
		{"of the batch", "The notices of a batch are stored as they are, besides those of the decisions.", noticeBatch},
		{"announced", "The event that is made of a notice goes to the owner's subscriptions and to the operator's that ask for it, and to nobody else; it is known as a notice's.", noticeAnnounced},
		{"announced, and whom it tells of", "The event of a notice does not go to the subscription that it tells of, unless that asks for exactly its type: neither by a prefix nor by \"*\".", noticeAbout},
		{"announced, or not", "A notice of which no event is made is stored; so is one whose event is for nobody who is registered.", noticeDropped},
		{"announced, what is made of", "The event is made of the notice as it is stored.", noticeGiven},
	}
}

// noticing is the suite's policy; every failure makes a notice, and the dead letter
// another, for the operator.
func noticing(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
	dec := decide(l, h, r, now)
	if r.Class != sender.ClassNone && !l.Notice {
		dec.Notices = append(dec.Notices, sender.Notice{Kind: sender.NoticeFailing, Percent: 75, Detail: "a'b ü"})
	}
	if dec.Status == sender.StatusDeadLettered {
		dec.Notices = append(dec.Notices, sender.Notice{Kind: sender.NoticeDeadLettered, Subscriber: sender.Operator})
	}
	return dec
}

// batch records results under a policy.
func (w *world) batch(b dispatch.Batch) dispatch.Claims {
	w.Helper()
	_, claims, err := w.Store.Step(w.ctx, dispatch.ExpandParams{}, b)
	w.noError(err, "recording and claiming")
	return claims
}

// sameNotice ends the test if two notices differ in more than their ids.
func (w *world) sameNotice(got, want sender.Notice) {
	w.Helper()
	w.check(got.ID != "", "a notice has no id")
	w.sameTime(got.CreatedAt, want.CreatedAt, "CreatedAt of a notice")
	got.ID, got.CreatedAt = want.ID, want.CreatedAt
	w.equal(got, want, "notice")
}

func noticeStored(w *world) {
	d, sub := w.one()
	id, owner := w.delivery(d.ID, sub).ID, w.read(sub).Subscriber
	ids := map[string]bool{}
	for n := 1; n <= maxTries; n++ {
		claims := w.batch(dispatch.Batch{Decide: noticing, Results: []dispatch.Result{result(w.claimOne(), sender.ClassStatus)}})
		want := []sender.Notice{{Kind: sender.NoticeFailing, Subscriber: owner, Percent: 75, Detail: "a'b ü"}}
		if n == maxTries {
			want = append(want, sender.Notice{Kind: sender.NoticeDeadLettered, Subscriber: sender.Operator})
		}
		w.equal(len(claims.Notices), len(want), "notices stored with attempt %d", n)
		for i, got := range claims.Notices {
			want[i].Subscription, want[i].Delivery, want[i].CreatedAt = sub, id, claims.Now
			w.sameNotice(got, want[i])
			w.check(!ids[got.ID], "two notices have the id %s", got.ID)
			ids[got.ID] = true
		}
		w.Advance(retryDelay(maxTries))
	}
	w.equal(w.delivery(d.ID, sub).Status, sender.StatusDeadLettered, "status")
}

func noticeLost(w *world) {
	d, sub := w.one()
	w.claimOne()
	w.Advance(lease + time.Second)
	claims := w.batch(dispatch.Batch{Decide: noticing, Claim: dispatch.ClaimParams{Lease: lease, Token: w.token(), Lanes: lanes(10)}})
	w.equal(len(claims.Notices), 1, "notices stored")
	w.sameNotice(claims.Notices[0], sender.Notice{
		Kind: sender.NoticeFailing, Subscriber: w.read(sub).Subscriber, Subscription: sub, Delivery: w.delivery(d.ID, sub).ID,
		Percent: 75, Detail: "a'b ü", CreatedAt: claims.Now,
	})
}

func noticeLate(w *world) {
	_, sub := w.one()
	r := result(w.claimOne(), sender.ClassStatus)
	w.record(r)
	announced := 0
	claims := w.batch(dispatch.Batch{Decide: noticing, Results: []dispatch.Result{r}, Announce: func(sender.Notice) (sender.Draft, bool) {
		announced++
		return w.addressed(w.read(sub).Subscriber, sub), true
	}})
	w.equal([]int{len(claims.Notices), announced}, []int{0, 0}, "notices stored and announced of a result that came too late")
	w.equal(w.expand(), 0, "deliveries made")
}

func noticeBatch(w *world) {
	w.one()
	own := []sender.Notice{
		{Kind: sender.NoticeNetwork, Subscriber: sender.Operator, Detail: "nobody answers", CreatedAt: createdAt},
		{ID: "ntc_given", Kind: sender.NoticeReplayFinished, Subscriber: sender.Operator, Replay: "rpl_1", CreatedAt: createdAt.Add(time.Second)},
	}
	claims := w.batch(dispatch.Batch{Decide: noticing, Results: []dispatch.Result{result(w.claimOne(), sender.ClassStatus)}, Notices: own})
	w.equal(len(claims.Notices), 3, "notices stored")
	byKind := map[sender.NoticeKind]sender.Notice{}
	for _, n := range claims.Notices {
		byKind[n.Kind] = n
	}
	for _, n := range own {
		w.sameNotice(byKind[n.Kind], n)
	}
	w.equal(byKind[sender.NoticeReplayFinished].ID, "ntc_given", "id of a notice that has one")
	w.equal(len(w.batch(dispatch.Batch{Decide: noticing, Notices: own[:1]}).Notices), 1, "notices stored of a batch without results")
}

// announcing makes the event of each notice, for the notice's subscriber.
func (w *world) announcing() func(sender.Notice) (sender.Draft, bool) {
	return func(n sender.Notice) (sender.Draft, bool) {
		d := w.draft(string(n.Kind))
		d.Subscriber, d.Notice = n.Subscriber, true
		return d, true
	}
}

func noticeAnnounced(w *world) {
	failing := string(sender.NoticeFailing)
	_, sub := w.one()
	owner := w.read(sub).Subscriber
	w.createSubscriber(sender.Operator)
	told := []string{w.subscribe(owner, failing), w.subscribe(owner, "*"), w.subscribe(sender.Operator, "subscription.*")}
	w.subscribe(owner, "other")
	w.subscribe(w.subscriber(), failing, "*")
	w.subscribe(sender.Operator, "other")
	claims := w.batch(dispatch.Batch{Decide: noticing, Announce: w.announcing(), Results: []dispatch.Result{result(w.claimOne(), sender.ClassStatus)}})
	w.equal(len(claims.Notices), 1, "notices stored")
	w.equal(w.expand(), 3, "deliveries made of the notice's event")
	want := map[string]int{}
	for _, id := range told {
		want[id] = 1
	}
	live := w.watch()
	for _, c := range w.claimsOf(want, "of the notice's event") {
		w.equal([]any{c.Event.Type, c.Event.Notice}, []any{failing, true}, "type of the event, and whether it is a notice's")
		w.sameTime(c.Event.CreatedAt, claims.Now, "CreatedAt of the notice's event")
		w.record(result(c, sender.ClassTimeout))
		w.check(live.Notice, "Decide was not told that the event is a notice's")
		w.check(w.delivery(c.Event.ID, c.Target.Subscription).Event.Notice, "the delivery does not read as a notice's")
	}
	w.Advance(retryDelay(1))
	for _, c := range w.claim(plenty) {
		w.record(result(c, sender.ClassTimeout))
		w.equal(live.Notice, c.Target.Subscription != sub, "whether Decide was told that the event is a notice's, at the retry")
	}
}

func noticeAbout(w *world) {
	owner, failing := w.subscriber(), string(sender.NoticeFailing)
	w.createSubscriber(sender.Operator)
	all, byPrefix, byName := w.subscribe(owner, "*"), w.subscribe(owner, "subscription.*"), w.subscribe(owner, "*", failing)
	operators := w.subscribe(sender.Operator, "*")
	subs := []string{all, byPrefix, byName, operators}
	var drafts []sender.Draft
	for _, about := range append(slices.Clone(subs), "") {
		d := w.draft(failing)
		d.Subscriber, d.Notice, d.About = owner, true, about
		drafts = append(drafts, d)
	}
	w.publish(drafts...)
	w.equal(w.expand(), 20-3, "deliveries made of five events to four subscriptions")
	for i, d := range drafts {
		for _, sub := range subs {
			want := 1
			if d.About == sub && sub != byName {
				want = 0
			}
			w.equal(len(w.list(history.DeliveryQuery{Event: d.ID, Subscription: sub})), want, "deliveries of event %d to %s", i, sub)
		}
	}
	// A subscription that asks for the type after the event's commit does not get
	// it.
	d := w.draft(failing)
	d.Subscriber, d.Notice, d.About = owner, true, all
	w.publish(d)
	w.ask(all, "*", failing)
	w.equal(w.expand(), 3, "deliveries made")
}

func noticeDropped(w *world) {
	_, sub := w.one()
	sibling := w.subscribe(w.read(sub).Subscriber, "*")
	for name, announce := range map[string]func(sender.Notice) (sender.Draft, bool){
		"none":         func(sender.Notice) (sender.Draft, bool) { return sender.Draft{}, false },
		"no Announce":  nil,
		"unregistered": func(sender.Notice) (sender.Draft, bool) { return w.addressed(sender.Operator, ""), true },
	} {
		c := w.claimOne()
		claims := w.batch(dispatch.Batch{Decide: noticing, Announce: announce, Results: []dispatch.Result{result(c, sender.ClassStatus)}})
		w.check(!claims.Recorded[0].Lost, "%s: the result reads as lost", name)
		w.equal(len(claims.Notices), 1, "notices stored, %s", name)
		w.equal(w.expand(), 0, "deliveries made, %s", name)
		w.Advance(retryDelay(maxTries))
	}
	w.deleteSubscriber(w.read(sub).Subscriber)
	last := func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
		return dispatch.Decision{Status: sender.StatusDeadLettered, Health: h, Notices: []sender.Notice{{Kind: sender.NoticeDeadLettered}}}
	}
	claims := w.batch(dispatch.Batch{Decide: last, Announce: w.announcing(), Results: []dispatch.Result{result(w.claimOne(), sender.ClassStatus)}})
	w.equal(len(claims.Notices), 1, "notices stored, for a deleted subscriber")
	w.equal(w.expand(), 0, "deliveries made, for a deleted subscriber")
	w.equal(w.read(sibling).Status, sender.SubscriptionClosing, "status of the subscription that asks for all")
}

func noticeGiven(w *world) {
	_, sub := w.one()
	owner := w.read(sub).Subscriber
	var given []sender.Notice
	claims := w.batch(dispatch.Batch{
		Decide: noticing, Results: []dispatch.Result{result(w.claimOne(), sender.ClassStatus)},
		Notices: []sender.Notice{{Kind: sender.NoticeNetwork, Subscriber: sender.Operator, CreatedAt: createdAt}},
		Announce: func(n sender.Notice) (sender.Draft, bool) {
			given = append(given, n)
			return w.addressed(owner, sub), true
		},
	})
	w.equal(len(claims.Notices), 2, "notices stored")
	for _, n := range claims.Notices {
		found := false
		for _, g := range given {
			if g.ID == n.ID {
				w.sameNotice(g, n)
				found = true
			}
		}
		w.check(found, "no event was made of notice %s: Announce was given %+v", n.ID, given)
	}
	w.equal(w.expand(), 2, "deliveries made of the notices' events")
}
