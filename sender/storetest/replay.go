package storetest

import (
	"slices"
	"sync"
	"time"

	"github.com/surehook/surehook/sender"
)

func replayRules[Tx any]() []rule[Tx] {
	return slices.Concat([]rule[Tx]{
		{"dead letters", "A replay makes each dead letter due at once, to start its schedule anew, while the attempt numbers go on.", replayDead[Tx]},
		{"delivered ones", "A replay gives each delivered one a single attempt with the same bytes, whose failure leaves it delivered.", replayDelivered[Tx]},
		{"set of dead letters", "What becomes a dead letter after a replay was created is not of its set, nor what was redelivered meanwhile, even if it is a dead letter again.", replayDeadSet[Tx]},
		{"set of delivered ones", "What becomes delivered after a replay was created is not of its set, whether it was pending, in flight, waiting, dead-lettered or sent again then.", replayDeliveredSet[Tx]},
		{"set of delivered ones, left behind", "What was delivered before and is left behind by a resume while it is sent again is not of the set.", replayDeliveredLeft[Tx]},
		{"filter", "A replay sends what its filter selects, and a preview counts the same.", replayFilter[Tx]},
		{"of a subscriber", "A replay of a subscriber's deliveries sends those of each of its subscriptions, however they are spread, and nobody else's.", replayOfSubscriber[Tx]},
		{"no such", "A filter that names what never was is ErrNotFound; so is a replay that is none.", replayUnknown[Tx]},
		{"beyond the retention", "A replay with a member whose event was published before NotBefore is refused and not stored; at that time or later it is not.", replayRetention[Tx]},
		{"redelivery beyond the retention", "A redelivery of an event published before NotBefore is refused, and changes nothing.", redeliverRetention[Tx]},
		{"held", "What belongs to a paused or disabled subscription is held, and due once it is resumed.", replayHeld[Tx]},
		{"deleted", "What belongs to a deleted subscription is skipped and stays what it is.", replayDeleted[Tx]},
		{"lists", "Replays are listed newest first, in pages, of all or of one subscriber.", replayLists[Tx]},
	}, replayStepRules[Tx]())
}

// endNow is a policy that makes an end of each first result.
func endNow(_ sender.Live, h sender.Health, r sender.Result, _ time.Time) sender.Decision {
	if r.Class == sender.ClassNone {
		return sender.Decision{Status: sender.StatusDelivered, Health: h}
	}
	return sender.Decision{Status: sender.StatusDeadLettered, Health: h}
}

// endAll brings all that is due to its end: delivered, or else dead-lettered by an
// attempt of a class.
func (w *world[Tx]) endAll(class sender.Class) {
	w.Helper()
	decide := w.decide
	w.decide = endNow
	defer func() { w.decide = decide }()
	for claimed := w.claim(200); len(claimed) > 0; claimed = w.claim(200) {
		results := make([]sender.Result, len(claimed))
		for i := range claimed {
			results[i] = result(claimed[i], class)
		}
		w.record(results...)
	}
}

// ended makes a subscription with n deliveries that are at their end, and returns
// their events.
func (w *world[Tx]) ended(n int, class sender.Class) (drafts []sender.Draft, sub string) {
	w.Helper()
	owner := w.subscriber()
	sub = w.subscribe(owner, "only.addressed")
	for range n {
		drafts = append(drafts, w.addressed(owner, sub))
	}
	w.publish(drafts...)
	w.expand()
	w.endAll(class)
	return drafts, sub
}

func (w *world[Tx]) replay(f sender.ReplayFilter) sender.Replay {
	w.Helper()
	return w.createReplay(sender.Replay{Filter: f})
}

func (w *world[Tx]) createReplay(r sender.Replay) sender.Replay {
	w.Helper()
	if r.Filter.Status == "" {
		r.Filter.Status = sender.StatusDeadLettered
	}
	created, err := w.Store.CreateReplay(w.ctx, r, time.Time{})
	w.noError(err, "creating a replay")
	w.sameReplay(created, w.readReplay(created.ID))
	return created
}

func (w *world[Tx]) readReplay(id string) sender.Replay {
	w.Helper()
	r, err := w.Store.Replay(w.ctx, id)
	w.noError(err, "reading a replay")
	return r
}

func (w *world[Tx]) sameReplay(got, want sender.Replay) {
	w.Helper()
	for _, t := range []struct {
		name      string
		got, want *time.Time
	}{{"CreatedAt", &got.CreatedAt, &want.CreatedAt}, {"FinishedAt", &got.FinishedAt, &want.FinishedAt},
		{"Since", &got.Filter.Since, &want.Filter.Since}, {"Until", &got.Filter.Until, &want.Filter.Until}} {
		w.sameTime(*t.got, *t.want, "%s of a replay", t.name)
		*t.got = *t.want
	}
	w.equal(got, want, "replay")
}

func (w *world[Tx]) step(limit int) sender.ReplayStep {
	w.Helper()
	s, err := w.Store.StepReplays(w.ctx, limit, nil)
	w.noError(err, "a step of the replays")
	w.check(s.Admitted <= limit, "a step admitted %d, at most %d were allowed", s.Admitted, limit)
	return s
}

// steps goes on for as long as another step would get on at once.
func (w *world[Tx]) steps(limit int) (all sender.ReplayStep) {
	w.Helper()
	for range plenty {
		s := w.step(limit)
		all.Admitted += s.Admitted
		all.Skipped += s.Skipped
		all.Finished = append(all.Finished, s.Finished...)
		all.Notices = append(all.Notices, s.Notices...)
		all.Next = s.Next
		if !s.More {
			return all
		}
	}
	w.Fatal("stepping does not come to an end: ReplayStep.More stays set")
	return all
}

// claimedEvents claims all that is due, and returns the ids of its events, sorted.
func (w *world[Tx]) claimedEvents() (claimed []sender.Claimed, ids []string) {
	w.Helper()
	ids = []string{}
	claimed = w.claim(plenty)
	for _, c := range claimed {
		ids = append(ids, c.Event.ID)
	}
	slices.Sort(ids)
	return claimed, ids
}

func replayDead[Tx any](w *world[Tx]) {
	drafts, sub := w.ended(3, sender.ClassTimeout)
	w.Advance(time.Hour)
	r := w.createReplay(sender.Replay{Filter: sender.ReplayFilter{ErrorClass: sender.ClassTimeout}, By: "me", Reason: "it was down", Rate: 0})
	w.equal([]any{r.Status, r.Matched, r.Admitted, r.Skipped, r.By, r.Reason}, []any{sender.ReplayRunning, int64(3), int64(0), int64(0), "me", "it was down"}, "replay as it was created")
	w.sameTime(r.CreatedAt, w.now(), "CreatedAt")
	w.claimNothing("before the replay is stepped")
	w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusDeadLettered: 3}, "statuses before the replay is stepped")
	w.equal(w.steps(2).Admitted, 3, "admitted in all")
	r = w.readReplay(r.ID)
	w.equal([]any{r.Status, r.Matched, r.Admitted, r.Skipped}, []any{sender.ReplayFinished, int64(3), int64(3), int64(0)}, "replay at its end")
	w.sameTime(r.FinishedAt, w.now(), "FinishedAt")
	w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusAwaitingRetry: 3}, "statuses")
	w.equal(w.read(sub).DeadLettered, int64(0), "DeadLettered of the subscription")
	w.equal(w.read(sub).Backlog, int64(3), "Backlog of the subscription")

	live := w.watch()
	claimed, ids := w.claimedEvents()
	w.equal(ids, sorted(drafts...), "events claimed")
	for _, c := range claimed {
		w.equal(c.Number, 2, "number of the attempt")
		w.record(result(c, sender.ClassStatus))
		w.equal([]any{live.Number, live.Tries, live.Single, live.Stood}, []any{2, 1, false, time.Duration(0)}, "what is decided by")
		w.sameTime(live.First, c.At, "First of the new schedule")
	}
	w.claimNothing("before the retries are due")
	w.Advance(retryDelay(1))
	w.equal(len(w.claim(plenty)), 3, "retries")
	w.equal(w.steps(10), sender.ReplayStep{}, "step after the end")
}

func replayDelivered[Tx any](w *world[Tx]) {
	drafts, sub := w.ended(2, sender.ClassNone)
	w.ended(1, sender.ClassStatus)
	r := w.replay(sender.ReplayFilter{Status: sender.StatusDelivered})
	w.equal(r.Matched, int64(2), "Matched")
	w.equal(w.steps(10).Admitted, 2, "admitted")
	live := w.watch()
	claimed, ids := w.claimedEvents()
	w.equal(ids, sorted(drafts...), "events claimed")
	for i, c := range claimed {
		at := slices.IndexFunc(drafts, func(d sender.Draft) bool { return d.ID == c.Event.ID })
		w.sameBody(c.Body, drafts[at], 1)
		w.equal(c.Number, 2, "number of the attempt")
		w.record(result(c, []sender.Class{sender.ClassNone, sender.ClassStatus}[i]))
		w.check(live.Single, "Decide was not told that it is a single attempt")
	}
	w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusDelivered: 2}, "statuses")
	w.Advance(1000 * time.Hour)
	w.claimNothing("after the single attempts")
	w.equal(w.readReplay(r.ID).Status, sender.ReplayFinished, "status of the replay")
	again := w.replay(sender.ReplayFilter{Status: sender.StatusDelivered, ErrorClass: sender.ClassStatus})
	w.equal(again.Matched, int64(1), "delivered ones whose last attempt failed")
}

func replayDeadSet[Tx any](w *world[Tx]) {
	drafts, sub := w.ended(4, sender.ClassStatus)
	r := w.replay(sender.ReplayFilter{})
	w.ended(1, sender.ClassStatus)
	// Three are redelivered before they have had their turn: one succeeds, one is a
	// dead letter again, and one is still live.
	for i, class := range []sender.Class{sender.ClassNone, sender.ClassStatus} {
		w.redeliver(w.delivery(drafts[i].ID, sub).ID)
		w.endAll(class)
	}
	w.redeliver(w.delivery(drafts[2].ID, sub).ID)
	w.equal(w.claimOne().Event.ID, drafts[2].ID, "event that is in flight")
	w.equal(w.steps(10).Admitted, 1, "admitted")
	_, ids := w.claimedEvents()
	w.equal(ids, sorted(drafts[3]), "events claimed")
	w.equal(w.delivery(drafts[1].ID, sub).Status, sender.StatusDeadLettered, "status of what is a dead letter again")
	r = w.readReplay(r.ID)
	w.equal([]any{r.Status, r.Matched, r.Admitted, r.Skipped}, []any{sender.ReplayFinished, int64(4), int64(1), int64(3)}, "replay at its end")

	next := w.replay(sender.ReplayFilter{})
	w.equal(next.Matched, int64(2), "Matched of a replay that is created later")
}

func replayDeliveredSet[Tx any](w *world[Tx]) {
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

	r := w.replay(sender.ReplayFilter{Status: sender.StatusDelivered})
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

	w.setReplay(r.ID, sender.ReplayRunning)
	w.equal(w.steps(1).Admitted, 1, "admitted")
	_, ids := w.claimedEvents()
	w.equal(ids, []string{made["delivered"]}, "events claimed")
	w.equal(w.readReplay(r.ID).Status, sender.ReplayFinished, "status of the replay")
	next := w.replay(sender.ReplayFilter{Status: sender.StatusDelivered})
	w.equal(next.Matched, int64(len(made)-1), "Matched of a replay that is created later")
}

func replayDeliveredLeft[Tx any](w *world[Tx]) {
	drafts, sub := w.ended(3, sender.ClassNone)
	for _, d := range drafts[1:] {
		w.redeliver(w.delivery(d.ID, sub).ID)
	}
	c := w.claim(1)[0]
	r := w.replay(sender.ReplayFilter{Status: sender.StatusDelivered})
	w.equal(r.Matched, int64(1), "Matched")
	w.pause(sub)
	w.resume(sub, takeNone)
	w.noError(w.Store.Release(w.ctx, []sender.Release{{Key: c.Key, Token: c.Token}}), "releasing")
	w.sweep(100)
	w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusDelivered: 3}, "statuses")
	w.equal(w.steps(10).Admitted, 1, "admitted")
	_, ids := w.claimedEvents()
	w.equal(ids, sorted(drafts[0]), "events claimed")
}

func replayFilter[Tx any](w *world[Tx]) {
	for _, status := range []sender.Status{sender.StatusDeadLettered, sender.StatusDelivered} {
		w.filters(status)
	}
}

func (w *world[Tx]) filters(status sender.Status) {
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
	for _, f := range []sender.ReplayFilter{
		{}, {Subscription: subs[0]}, {Subscription: subs[2]}, {Subscriber: owners[0]}, {Subscriber: owners[1], Subscription: subs[0]},
		{EventType: "*"}, {EventType: "a.*"}, {EventType: "a.b"}, {EventType: "a.b.*"}, {EventType: "c"},
		{Since: at(2)}, {Since: at(2).Add(time.Microsecond)}, {Until: at(2)}, {Until: at(2).Add(time.Microsecond)}, {Since: at(1), Until: at(4)},
		{Since: at(5).Add(time.Hour)}, {Until: at(0)},
		{ErrorClass: sender.ClassTimeout}, {ErrorClass: sender.ClassDNS, Subscriber: owners[0], EventType: "a.*", Since: at(1)}, {ErrorClass: sender.ClassTLS},
	} {
		f.Status = status
		var want []string
		var preview sender.ReplayPreview
		shares := map[string]int64{}
		for _, o := range all {
			if !f.Selects(sender.ReplayCandidate{Subscription: o.sub, Subscriber: o.owner, EventType: o.eventType, Published: o.published, ErrorClass: o.class}) {
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
		got, err := w.Store.PreviewReplay(w.ctx, f)
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
			w.decide = func(l sender.Live, h sender.Health, r sender.Result, now time.Time) sender.Decision {
				return sender.Decision{Status: status, Health: h}
			}
			w.record(result(c, all[at].class))
			w.decide = decide
		}
	}
}

func replayUnknown[Tx any](w *world[Tx]) {
	_, sub := w.ended(1, sender.ClassStatus)
	for _, f := range []sender.ReplayFilter{{Subscription: "wsub_x"}, {Subscriber: "sub_x"}, {Subscription: sub, Subscriber: "sub_x"}} {
		for _, f.Status = range []sender.Status{sender.StatusDeadLettered, sender.StatusDelivered} {
			_, err := w.Store.CreateReplay(w.ctx, sender.Replay{Filter: f}, time.Time{})
			w.errorIs(err, sender.ErrNotFound, "creating a replay of %+v", f)
			_, err = w.Store.PreviewReplay(w.ctx, f)
			w.errorIs(err, sender.ErrNotFound, "previewing a replay of %+v", f)
		}
	}
	r := w.replay(sender.ReplayFilter{})
	for _, id := range []string{"", "rpl_x", r.ID + "x", r.ID[:len(r.ID)-1]} {
		_, err := w.Store.Replay(w.ctx, id)
		w.errorIs(err, sender.ErrNotFound, "reading replay %q", id)
		_, err = w.Store.SetReplayStatus(w.ctx, id, sender.ReplayPaused)
		w.errorIs(err, sender.ErrNotFound, "pausing replay %q", id)
	}
	_, err := w.Store.Replays(w.ctx, sender.ReplayQuery{After: "rpl_x", Limit: 1})
	w.errorIs(err, sender.ErrNotFound, "listing after no replay")
	_, err = w.Store.SetReplayStatus(w.ctx, r.ID, sender.ReplayFinished)
	w.errorIs(err, sender.ErrInvalid, "finishing a replay by hand")
}

func replayRetention[Tx any](w *world[Tx]) {
	for _, end := range []struct {
		status sender.Status
		class  sender.Class
	}{{sender.StatusDeadLettered, sender.ClassStatus}, {sender.StatusDelivered, sender.ClassNone}} {
		w.ended(1, end.class)
		published := w.now()
		w.Advance(time.Hour)
		w.ended(1, end.class)
		f := sender.ReplayFilter{Status: end.status}
		create := func(notBefore time.Time) (sender.Replay, error) {
			r, err := w.Store.CreateReplay(w.ctx, sender.Replay{Filter: f}, notBefore)
			if err == nil {
				w.setReplay(r.ID, sender.ReplayCancelled)
			}
			return r, err
		}
		before := len(w.allReplays())
		_, err := create(published.Add(time.Microsecond))
		w.errorIs(err, sender.ErrRetention, "a replay of what is too old, %s", end.status)
		w.equal(len(w.allReplays()), before, "replays after one was refused")
		w.step(10)
		w.claimNothing("after a replay was refused")
		_, err = create(published)
		w.noError(err, "a replay of what is just not too old, %s", end.status)
		f.Since = published.Add(time.Microsecond)
		r, err := create(published.Add(time.Microsecond))
		w.noError(err, "a replay without what is too old, %s", end.status)
		w.equal(r.Matched, int64(1), "Matched without what is too old")
	}
}

func (w *world[Tx]) allReplays() []sender.Replay {
	w.Helper()
	all, err := w.Store.Replays(w.ctx, sender.ReplayQuery{Limit: plenty})
	w.noError(err, "listing replays")
	return all
}

func redeliverRetention[Tx any](w *world[Tx]) {
	drafts, sub := w.ended(1, sender.ClassStatus)
	id, published := w.delivery(drafts[0].ID, sub).ID, w.now()
	w.Advance(time.Hour)
	w.errorIs(w.Store.Redeliver(w.ctx, id, published.Add(time.Microsecond)), sender.ErrRetention, "redelivering what is too old")
	w.equal(w.get(id).Status, sender.StatusDeadLettered, "status after that")
	w.claimNothing("after a redelivery was refused")
	w.noError(w.Store.Redeliver(w.ctx, id, published), "redelivering what is just not too old")
	w.claimOne()
}

func replayHeld[Tx any](w *world[Tx]) {
	drafts, sub := w.ended(3, sender.ClassStatus)
	_, other := w.ended(1, sender.ClassStatus)
	w.pause(sub)
	w.disable(other)
	r := w.replay(sender.ReplayFilter{})
	w.equal(w.steps(10).Admitted, 4, "admitted")
	w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusHeld: 3}, "statuses of the paused one's")
	w.equal(w.statuses(other), map[sender.Status]int{sender.StatusHeld: 1}, "statuses of the disabled one's")
	w.claimNothing("while it is held")
	w.equal(w.readReplay(r.ID).Status, sender.ReplayFinished, "status of the replay")
	w.Advance(time.Hour)
	w.resume(sub, sender.Resume{})
	claimed, ids := w.claimedEvents()
	w.equal(ids, sorted(drafts...), "events claimed after the resume")
	w.equal(claimed[0].Number, 2, "number of the attempt")
	w.resume(other, takeNone)
	w.endsSwept()
	w.equal(w.statuses(other), map[sender.Status]int{sender.StatusCancelled: 1}, "statuses of what the resume has not taken")
}

func replayDeleted[Tx any](w *world[Tx]) {
	_, sub := w.ended(2, sender.ClassStatus)
	_, closed := w.ended(1, sender.ClassStatus)
	_, other := w.ended(1, sender.ClassStatus)
	w.close(closed)
	w.sweep(100) // it has nothing left, so that it is deleted
	r := w.replay(sender.ReplayFilter{})
	w.unsubscribe(sub)
	s := w.steps(1)
	w.equal([]int{s.Admitted, s.Skipped}, []int{1, 3}, "admitted and skipped")
	w.equal(w.claimOne().Target.Subscription, other, "subscription of what is claimed")
	for _, gone := range []string{sub, closed} {
		for _, d := range w.list(sender.DeliveryQuery{Subscription: gone}) {
			w.equal(d.Status, sender.StatusDeadLettered, "status of what was skipped")
		}
	}
	r = w.readReplay(r.ID)
	w.equal([]int64{r.Matched, r.Admitted, r.Skipped}, []int64{4, 1, 3}, "figures of the replay")
}

func replayLists[Tx any](w *world[Tx]) {
	owners := []string{w.subscriber(), w.subscriber()}
	var ids []string
	for i := range 5 {
		f := sender.ReplayFilter{Subscriber: owners[i%2], EventType: "a.*", ErrorClass: sender.ClassTLS}
		if i%2 == 0 {
			f = sender.ReplayFilter{Since: w.now().Add(-time.Hour), Until: w.now()}
		}
		ids = append(ids, w.createReplay(sender.Replay{Filter: f, Rate: 2.5, By: "b'y", Reason: "ü"}).ID)
		w.Advance(time.Second)
	}
	slices.Reverse(ids)
	for _, limit := range []int{1, 2, 5, 200} {
		var got []string
		for q := (sender.ReplayQuery{Limit: limit}); ; q.After = got[len(got)-1] {
			page, err := w.Store.Replays(w.ctx, q)
			w.noError(err, "listing")
			w.check(len(page) <= limit, "a page has %d replays, at most %d were asked for", len(page), limit)
			for _, r := range page {
				w.sameReplay(r, w.readReplay(r.ID))
				got = append(got, r.ID)
			}
			if len(page) < limit {
				break
			}
		}
		w.equal(got, ids, "ids in pages of %d", limit)
	}
	page, err := w.Store.Replays(w.ctx, sender.ReplayQuery{Subscriber: owners[1], Limit: 10})
	w.noError(err, "listing")
	w.equal([]any{len(page), page[0].ID, page[1].ID}, []any{2, ids[1], ids[3]}, "replays of one subscriber")
	page, err = w.Store.Replays(w.ctx, sender.ReplayQuery{Subscriber: owners[1], After: ids[2], Limit: 1})
	w.noError(err, "listing")
	w.equal(page[0].ID, ids[3], "the next of one subscriber")
}

func (w *world[Tx]) setReplay(id string, to sender.ReplayStatus) {
	w.Helper()
	r, err := w.Store.SetReplayStatus(w.ctx, id, to)
	w.noError(err, "making a replay %s", to)
	w.sameReplay(r, w.readReplay(id))
	w.equal(r.Status, to, "status of the replay")
}

func (w *world[Tx]) pauseReplay(id string) {
	w.Helper()
	w.setReplay(id, sender.ReplayPaused)
}

// stepsAtOnce steps from several goroutines until nothing is left.
func (w *world[Tx]) stepsAtOnce(goroutines, limit int) (admitted int, err error) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for {
				s, e := w.Store.StepReplays(w.ctx, limit, nil)
				mu.Lock()
				admitted += s.Admitted
				if e != nil {
					err = e
				}
				mu.Unlock()
				if e != nil || !s.More {
					return
				}
			}
		})
	}
	wg.Wait()
	return admitted, err
}

func replayOfSubscriber[Tx any](w *world[Tx]) {
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
		w.equal(w.replay(sender.ReplayFilter{Status: status, Subscriber: owner}).Matched, int64(many+7), "matched, of those that are %s", status)
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
