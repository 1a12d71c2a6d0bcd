package storetest

import (
	"slices"
	"sync"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/replay"
)

func replayRules() []rule {
	return slices.Concat([]rule{
		{"dead letters", "A replay makes each dead letter due at once, to start its schedule anew, while the attempt numbers go on.", replayDead},
		{"delivered ones", "A replay gives each delivered one a single attempt with the same bytes, whose failure leaves it delivered.", replayDelivered},
		{"groups", "A replay of groups sends again what belongs to one of them, and nothing else; one by status code, what was last answered with it.", replayGroups},
		{"set of dead letters", "A delivery that becomes a dead letter after a replay was created is not of its set, and neither is one that was redelivered meanwhile, even if it is a dead letter again.", replayDeadSet},
		{"set of delivered ones", "A delivery that is delivered only after a replay was created is not of its set, whether it was pending, in flight, waiting, dead-lettered or sent again then.", replayDeliveredSet},
		{"set of delivered ones, skipped", "A delivery that was delivered before, and that a resume skips while it is sent again, is not of the set.", replayDeliveredSkipped},
		{"filter", "A replay sends what its filter selects, and a preview counts the same.", replayFilter},
		{"of a subscriber", "A replay of a subscriber's deliveries sends those of each of its subscriptions, however they are spread, and nobody else's.", replayOfSubscriber},
		{"no such", "A filter that names what never was, or a subscription of another subscriber than it names, is ErrNotFound; so is a replay that is none.", replayUnknown},
		{"beyond the retention", "A replay with a member whose event was published before NotBefore is refused and not stored; at that time or later it is not.", replayRetention},
		{"grown too old", "A member whose event has become older than NotBefore allows, which rises with the time since the replay was created, is skipped, and counted as too old. A replay without NotBefore has none.", replayGrownOld},
		{"redelivery beyond the retention", "A redelivery of an event published before NotBefore is refused, and changes nothing.", redeliverRetention},
		{"held", "Members of a paused or disabled subscription are held, and due once it is resumed.", replayHeld},
		{"deleted", "Members of a deleted subscription are skipped and keep their status.", replayDeleted},
		{"the same twice", "Of several replays of the same deliveries one sends each, and the others skip it.", replayTwice},
		{"counted", "What a replay has admitted counts as live, or as held, and is due since then, also before it is claimed.", replayCounted},
		{"id", "A replay that is created with an id has it. A second one with it is ErrExists, and not stored, until the first one is pruned.", replayID},
		{"copies", "A store keeps no slice of what a replay was created from, and gives none that it keeps.", replayCopies},
		{"lists", "Replays are listed newest first, in pages, of all or of one subscriber.", replayLists},
	}, replayStepRules(), replayBoundRules())
}

// endNow is a policy that ends each delivery by its first result.
func endNow(_ dispatch.Live, h sender.Health, r dispatch.Result, _ time.Time) dispatch.Decision {
	if r.Class == sender.ClassNone {
		return dispatch.Decision{Status: sender.StatusDelivered, Health: h}
	}
	return dispatch.Decision{Status: sender.StatusDeadLettered, Health: h}
}

// endAll ends all due deliveries with an attempt of a class: delivered if it is
// ClassNone, else dead-lettered.
func (w *world) endAll(class sender.Class) {
	w.Helper()
	decide := w.decide
	w.decide = endNow
	defer func() { w.decide = decide }()
	for claimed := w.claim(200); len(claimed) > 0; claimed = w.claim(200) {
		results := make([]dispatch.Result, len(claimed))
		for i := range claimed {
			results[i] = result(claimed[i], class)
		}
		w.record(results...)
	}
}

// ended makes a subscription with n deliveries that have ended, and returns their
// events.
func (w *world) ended(n int, class sender.Class) (drafts []sender.Draft, sub string) {
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

func (w *world) replay(f replay.Filter) replay.Replay {
	w.Helper()
	return w.createReplay(replay.Replay{Filter: f})
}

func (w *world) createReplay(r replay.Replay) replay.Replay {
	w.Helper()
	if r.Filter.Status == "" {
		r.Filter.Status = sender.StatusDeadLettered
	}
	created, err := w.Store.CreateReplay(w.ctx, r, replay.Bounds{})
	w.noError(err, "creating a replay")
	w.sameReplay(created, w.readReplay(created.ID))
	return created
}

func (w *world) readReplay(id string) replay.Replay {
	w.Helper()
	r, err := w.Store.Replay(w.ctx, id)
	w.noError(err, "reading a replay")
	return r
}

func (w *world) sameReplay(got, want replay.Replay) {
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

func (w *world) step(limit int) dispatch.ReplayStep {
	w.Helper()
	s, err := w.Store.StepReplays(w.ctx, limit, nil)
	w.noError(err, "a step of the replays")
	w.check(s.Admitted <= limit, "a step admitted %d, at most %d were allowed", s.Admitted, limit)
	return s
}

// steps makes steps until dispatch.ReplayStep.More is false, and sums them up.
func (w *world) steps(limit int) (all dispatch.ReplayStep) {
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

// claimedEvents claims all due deliveries, and returns the ids of their events, sorted.
func (w *world) claimedEvents() (claimed []dispatch.Claimed, ids []string) {
	w.Helper()
	ids = []string{}
	claimed = w.claim(plenty)
	for _, c := range claimed {
		ids = append(ids, c.Event.ID)
	}
	slices.Sort(ids)
	return claimed, ids
}

func replayID(w *world) {
	given := replay.Replay{ID: w.name("rpl_"), Filter: replay.Filter{Status: sender.StatusDelivered}}
	first := w.createReplay(given)
	w.equal(first.ID, given.ID, "id of a replay that was created with one")
	before, err := w.Store.Replays(w.ctx, replay.Query{Limit: plenty})
	w.noError(err, "listing replays")
	for _, status := range []sender.Status{sender.StatusDelivered, sender.StatusDeadLettered} {
		given.Filter.Status = status
		_, err := w.Store.CreateReplay(w.ctx, given, replay.Bounds{})
		w.errorIs(err, sender.ErrExists, "creating a second replay with an id")
	}
	after, err := w.Store.Replays(w.ctx, replay.Query{Limit: plenty})
	w.noError(err, "listing replays")
	w.equal(len(after), len(before), "replays after another one was refused")
	w.sameReplay(w.readReplay(given.ID), first)
	w.setReplay(given.ID, replay.Cancelled)
	w.Advance(11 * time.Hour)
	w.prune(all(10 * time.Hour))
	w.noReplay(given.ID)
	w.createReplay(given)
}

func replayUnknown(w *world) {
	_, sub := w.ended(1, sender.ClassStatus)
	for _, f := range []replay.Filter{{Subscription: "wsub_x"}, {Subscriber: "sub_x"}, {Subscription: sub, Subscriber: "sub_x"}, {Subscription: sub, Subscriber: w.subscriber()}} {
		for _, f.Status = range []sender.Status{sender.StatusDeadLettered, sender.StatusDelivered} {
			_, err := w.Store.CreateReplay(w.ctx, replay.Replay{Filter: f}, replay.Bounds{})
			w.errorIs(err, sender.ErrNotFound, "creating a replay of %+v", f)
			_, err = w.Store.PreviewReplay(w.ctx, f, 0)
			w.errorIs(err, sender.ErrNotFound, "previewing a replay of %+v", f)
		}
	}
	r := w.replay(replay.Filter{})
	for _, id := range []string{"", "rpl_x", r.ID + "x", r.ID[:len(r.ID)-1]} {
		_, err := w.Store.Replay(w.ctx, id)
		w.errorIs(err, sender.ErrNotFound, "reading replay %q", id)
		_, err = w.Store.SetReplayStatus(w.ctx, id, replay.Paused)
		w.errorIs(err, sender.ErrNotFound, "pausing replay %q", id)
	}
	_, err := w.Store.Replays(w.ctx, replay.Query{After: "rpl_x", Limit: 1})
	w.errorIs(err, sender.ErrNotFound, "listing after no replay")
	_, err = w.Store.SetReplayStatus(w.ctx, r.ID, replay.Finished)
	w.errorIs(err, sender.ErrInvalid, "finishing a replay by hand")
}

func (w *world) allReplays() []replay.Replay {
	w.Helper()
	all, err := w.Store.Replays(w.ctx, replay.Query{Limit: plenty})
	w.noError(err, "listing replays")
	return all
}

func replayLists(w *world) {
	owners := []string{w.subscriber(), w.subscriber()}
	var ids []string
	for i := range 5 {
		f := replay.Filter{Subscriber: owners[i%2], EventType: "a.*", ErrorClass: sender.ClassTLS}
		if i%2 == 0 {
			f = replay.Filter{Since: w.now().Add(-time.Hour), Until: w.now()}
		}
		ids = append(ids, w.createReplay(replay.Replay{Filter: f, Rate: 2.5, By: "b'y", Reason: "ü"}).ID)
		w.Advance(time.Second)
	}
	slices.Reverse(ids)
	for _, limit := range []int{1, 2, 5, 200} {
		var got []string
		for q := (replay.Query{Limit: limit}); ; q.After = got[len(got)-1] {
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
	page, err := w.Store.Replays(w.ctx, replay.Query{Subscriber: owners[1], Limit: 10})
	w.noError(err, "listing")
	w.equal([]any{len(page), page[0].ID, page[1].ID}, []any{2, ids[1], ids[3]}, "replays of one subscriber")
	page, err = w.Store.Replays(w.ctx, replay.Query{Subscriber: owners[1], After: ids[2], Limit: 1})
	w.noError(err, "listing")
	w.equal(page[0].ID, ids[3], "the next of one subscriber")
}

func (w *world) setReplay(id string, to replay.Status) {
	w.Helper()
	r, err := w.Store.SetReplayStatus(w.ctx, id, to)
	w.noError(err, "making a replay %s", to)
	w.sameReplay(r, w.readReplay(id))
	w.equal(r.Status, to, "status of the replay")
}

func (w *world) pauseReplay(id string) {
	w.Helper()
	w.setReplay(id, replay.Paused)
}

// stepsAtOnce makes steps from several goroutines until dispatch.ReplayStep.More is false.
func (w *world) stepsAtOnce(goroutines, limit int) (admitted int, err error) {
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

func replayCounted(w *world) {
	type by = map[sender.SubscriptionStatus]int64
	_, sub := w.ended(2, sender.ClassStatus)
	w.counted(history.Counts{Subscriptions: by{"active": 1}, DeadLettered: 2}, "before the replay")
	w.replay(replay.Filter{Subscription: sub})
	w.counted(history.Counts{Subscriptions: by{"active": 1}, DeadLettered: 2}, "before the replay has admitted anything")
	w.step(1)
	since := w.now()
	w.Advance(time.Minute)
	w.counted(history.Counts{Subscriptions: by{"active": 1}, Live: 1, DeadLettered: 1, OldestDue: since}, "with one admitted")
	w.step(1)
	w.counted(history.Counts{Subscriptions: by{"active": 1}, Notices: 1, Live: 2, OldestDue: since}, "with two admitted")
	w.pause(sub)
	w.counted(history.Counts{Subscriptions: by{"paused": 1}, Notices: 1, Held: 2}, "with two admitted and held")
	w.resume(sub, takeAll)
	w.counted(history.Counts{Subscriptions: by{"active": 1}, Notices: 1, Live: 2, OldestDue: w.now()}, "with two admitted and resumed")
	w.claim(plenty)
	w.counted(history.Counts{Subscriptions: by{"active": 1}, Notices: 1, Live: 2}, "in flight")
}
