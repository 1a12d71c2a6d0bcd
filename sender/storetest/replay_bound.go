package storetest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/replay"
)

func replayBoundRules() []rule {
	return []rule{
		{"unfinished", "A replay of a subscriber that has as many running or paused ones as Unfinished says is ErrStatus and not stored. One that is finished or cancelled makes room, and others' take none.", replayUnfinished},
		{"beyond the bound", "A replay of which not all was looked at has More, and a Matched that is at least what is admitted and skipped; once it is finished Matched is that, and there is no More.", replayBeyond},
		{"dead letters beyond the retention and the bound", replayAgedRule, func(w *world) { w.replayAged(endings[0]) }},
		{"delivered ones beyond the retention and the bound", replayAgedRule, func(w *world) { w.replayAged(endings[1]) }},
		{"others beyond the retention", "What ended otherwise than the replay's members keeps none from being created.", replayEndedOtherwise},
		{"many dead letters beyond the retention", replayManyAgedRule, func(w *world) { w.replayManyAged(endings[0]) }},
		{"many delivered ones beyond the retention", replayManyAgedRule, func(w *world) { w.replayManyAged(endings[1]) }},
	}
}

const (
	replayAgedRule     = "A replay of which not all was looked at is refused if a member's event was published before NotBefore."
	replayManyAgedRule = "If there are more deliveries from before NotBefore than may be looked at, and none of those looked at is a member, a replay is refused, unless its Since leaves them out."
)

type ending struct {
	status sender.Status
	class  sender.Class
}

// endings are the ways in which deliveries end whose replays differ.
var endings = []ending{{sender.StatusDeadLettered, sender.ClassStatus}, {sender.StatusDelivered, sender.ClassNone}}

// createBound creates a replay that looks at up to most deliveries.
func (w *world) createBound(f replay.Filter, notBefore time.Time, most int) (replay.Replay, error) {
	w.Helper()
	r, err := w.Store.CreateReplay(w.ctx, replay.Replay{Filter: f}, replay.Bounds{NotBefore: notBefore, Look: most})
	if err == nil {
		w.sameReplay(r, w.readReplay(r.ID))
	}
	return r, err
}

func replayUnfinished(w *world) {
	_, sub := w.ended(2, sender.ClassStatus)
	owner := w.read(sub).Subscriber
	_, other := w.ended(1, sender.ClassStatus)
	create := func(subscriber string, unfinished int) (replay.Replay, error) {
		return w.Store.CreateReplay(w.ctx, replay.Replay{Filter: replay.Filter{Status: sender.StatusDeadLettered, Subscriber: subscriber}}, replay.Bounds{Unfinished: unfinished})
	}
	full := func(when string) {
		w.Helper()
		_, err := create(owner, 2)
		w.errorIs(err, sender.ErrStatus, "creating a replay %s", when)
		w.equal(fmt.Sprint(err), fmt.Sprint(replay.Bounds{Unfinished: 2}.Room(2)), "the error, which customers read")
		list, err := w.Store.Replays(w.ctx, replay.Query{Subscriber: owner, Limit: 100})
		w.noError(err, "listing replays")
		unfinished := slices.DeleteFunc(list, func(r replay.Replay) bool { return r.Status != replay.Running && r.Status != replay.Paused })
		w.equal(len(unfinished), 2, "replays that are running or paused")
	}
	made := func(subscriber string, unfinished int) string {
		w.Helper()
		r, err := create(subscriber, unfinished)
		w.noError(err, "creating a replay")
		return r.ID
	}
	become := func(id string, to replay.Status) {
		w.Helper()
		_, err := w.Store.SetReplayStatus(w.ctx, id, to)
		w.noError(err, "changing a replay")
	}
	first, second := made(owner, 2), made(owner, 2)
	full("beside two that run")
	become(first, replay.Paused)
	full("beside one that runs and one that is paused")
	become(second, replay.Cancelled)
	third := made(owner, 2)
	full("again")
	for w.readReplay(third).Status == replay.Running {
		w.step(100)
	}
	last := made(owner, 2)
	full("after one is finished")
	made(w.read(other).Subscriber, 2)
	become(made(owner, 0), replay.Cancelled)
	become(last, replay.Cancelled)
	become(first, replay.Cancelled)
}

func replayBeyond(w *world) {
	for _, end := range endings {
		_, sub := w.ended(12, end.class)
		owner := w.read(sub).Subscriber
		other := w.subscribe(owner, "only.addressed")
		var drafts []sender.Draft
		for range 3 {
			drafts = append(drafts, w.addressed(owner, other))
		}
		w.publish(drafts...)
		w.expand()
		w.endAll(end.class)
		const all = 15
		f := replay.Filter{Status: end.status, Subscriber: owner}
		preview, err := w.Store.PreviewReplay(w.ctx, f, 5)
		w.noError(err, "previewing")
		w.check(preview.More && preview.Count > 0 && preview.Count < all, "a preview that looks at 5 of %d that are %s has %d, and tells of more: %v", all, end.status, preview.Count, preview.More)
		for _, most := range []int{0, all + 1} {
			r, err := w.createBound(f, time.Time{}, most)
			w.noError(err, "creating a replay")
			w.equal([]any{r.Matched, r.More}, []any{int64(all), false}, "Matched and More of a replay that may look at %d", most)
			w.setReplay(r.ID, replay.Cancelled)
		}

		r, err := w.createBound(f, time.Time{}, 5)
		w.noError(err, "creating a replay")
		w.check(r.More && r.Matched > 0 && r.Matched < all, "a replay that has looked at 5 of %d that are %s has Matched %d, and More is %v", all, end.status, r.Matched, r.More)
		w.unsubscribe(other)
		for range plenty {
			s := w.step(4)
			r = w.readReplay(r.ID)
			w.check(r.Matched >= r.Admitted+r.Skipped, "Matched is %d, with %d admitted and %d skipped", r.Matched, r.Admitted, r.Skipped)
			if len(s.Finished) > 0 {
				w.sameReplay(s.Finished[0], r)
				break
			}
			w.check(r.More, "More is false while the replay is %s", r.Status)
		}
		w.equal([]any{r.Status, r.Matched, r.Admitted, r.Skipped, r.More}, []any{replay.Finished, int64(all), int64(12), int64(3), false}, "replay at its end")
		w.endAll(sender.ClassNone)
	}
}

// aged ends old deliveries of a type of their own, and an hour later fresh ones of a
// subscription. It returns when both were published, and the filter that selects the fresh
// ones.
func (w *world) aged(old, fresh int, class sender.Class) (sub string, published, later time.Time, f replay.Filter) {
	w.Helper()
	owner := w.subscriber()
	sub = w.subscribe(owner, "only.addressed")
	published = w.now()
	for _, of := range []struct {
		eventType string
		n         int
	}{{"old", old}, {"fresh", fresh}} {
		var drafts []sender.Draft
		for range of.n {
			d := w.draft(of.eventType)
			d.Subscriber, d.Subscription = owner, sub
			drafts = append(drafts, d)
		}
		w.publish(drafts...)
		w.expand()
		w.endAll(class)
		w.Advance(time.Hour)
	}
	return sub, published, w.now().Add(-time.Hour), replay.Filter{EventType: "fresh"}
}

func (w *world) refused(f replay.Filter, notBefore time.Time, most int, what string) *sender.RetentionError {
	w.Helper()
	before := len(w.allReplays())
	_, err := w.createBound(f, notBefore, most)
	var refused *sender.RetentionError
	if !errors.As(err, &refused) {
		w.Fatalf("%s: the error is no *RetentionError: %v", what, err)
	}
	w.sameTime(refused.NotBefore, notBefore, "%s: NotBefore of the error", what)
	w.equal(len(w.allReplays()), before, "%s: replays after one was refused", what)
	return refused
}

func (w *world) replayAged(end ending) {
	w.Helper()
	sub, published, notBefore, _ := w.aged(2, 8, end.class)
	if end.status == sender.StatusDeadLettered { // they become the last ones of the set
		for _, d := range w.list(history.DeliveryQuery{Subscription: sub, EventType: "old"}) {
			w.redeliver(d.ID)
		}
		w.endAll(end.class)
	}
	for what, f := range map[string]replay.Filter{"all": {}, "of a subscription": {Subscription: sub}, "of a subscriber": {Subscriber: w.read(sub).Subscriber}, "until later": {Until: w.now()}} {
		f.Status = end.status
		what += ", " + string(end.status)
		refused := w.refused(f, notBefore, 4, what)
		w.sameTime(refused.Published, published, "%s: Published of the error", what)
		for notBefore, f := range map[time.Time]replay.Filter{
			published: f, {}: f, notBefore: {Status: f.Status, Subscription: f.Subscription, Subscriber: f.Subscriber, Since: notBefore},
			published.Add(time.Microsecond): {Status: f.Status, EventType: "never"},
		} {
			r, err := w.createBound(f, notBefore, 4)
			w.noError(err, "creating a replay, %s, not before %v", what, notBefore)
			w.check(r.More, "%s: More is false", what)
			w.setReplay(r.ID, replay.Cancelled)
		}
	}
}

func (w *world) replayManyAged(end ending) {
	w.Helper()
	const old = 7
	sub, _, published, fresh := w.aged(old, 8, end.class)
	notBefore := published.Add(-time.Minute)
	fresh.Status = end.status
	for i, f := range []replay.Filter{fresh, {Status: end.status, EventType: "fresh", Subscription: sub}} {
		what := fmt.Sprintf("%d, %s", i, end.status)
		refused := w.refused(f, notBefore, old-2, what)
		w.check(refused.Published.IsZero(), "%s: Published is %v, and nothing that is so old was to be sent", what, refused.Published)
		later := f
		later.Since = notBefore
		for name, c := range map[string]struct {
			f         replay.Filter
			notBefore time.Time
			most      int
		}{"all of them looked at": {f, notBefore, old + 1}, "Since": {later, notBefore, old - 2}, "forced": {f, time.Time{}, old - 2}} {
			r, err := w.createBound(c.f, c.notBefore, c.most)
			w.noError(err, "creating a replay, %s: %s", what, name)
			w.check(r.More, "%s: %s: More is false", what, name)
			w.setReplay(r.ID, replay.Cancelled)
		}
	}
}

func replayEndedOtherwise(w *world) {
	owner := w.subscriber()
	sub := w.subscribe(owner, "only.addressed")
	w.publish(w.addressed(owner, sub))
	w.expand()
	w.pause(sub)
	w.resume(sub, takeNone)
	w.endsSwept()
	w.Advance(time.Hour)
	notBefore := w.now().Add(-time.Minute)
	for range 8 {
		w.publish(w.addressed(owner, sub))
	}
	w.expand()
	w.endAll(sender.ClassStatus)
	w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusCancelled: 1, sender.StatusDeadLettered: 8}, "statuses")
	r, err := w.createBound(replay.Filter{Status: sender.StatusDeadLettered, Subscription: sub}, notBefore, 4)
	w.noError(err, "creating a replay")
	w.check(r.More, "More is false")
}
