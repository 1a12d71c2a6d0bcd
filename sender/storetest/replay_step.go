package storetest

import (
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/replay"
)

func replayStepRules() []rule {
	return []rule{
		{"below fresh work", "Within a subscription, what a replay has admitted is claimed after all else that is due, until it was claimed once.", replayRank},
		{"in steps", "A step admits no more than it is allowed to, each member once, whoever steps.", replaySteps},
		{"turns", "Replays take turns.", replayTurns},
		{"rate", "No more of a replay is admitted a second than its Rate, after a burst, and Next tells when more may be.", replayRate},
		{"ahead", "No more than about 1,000 of a replay are admitted that are not claimed and not held, and it goes on when they are; a step looks at no more than about 1,000.", replayAhead},
		{"worked through at once", "RunOnce works a replay through as far as its rate allows, and leaves none of it behind what it has claimed itself.", replayOnce},
		{"paused, continued, cancelled", "A paused replay admits nothing until it is continued, a cancelled one nothing ever; what was admitted goes on.", replayPaused},
		{"at its end", "A replay at its end can be made nothing else, but for what it is.", replayEnded},
		{"finished", "A replay that has nothing left is finished, with a notice for who its filter names, or the operator, and its event, in the same transaction.", replayFinished},
		{"empty", "A replay without members is finished by the first step.", replayEmpty},
		{"idle", "Without a replay that is running a step does nothing.", replayIdle},
	}
}

func replayRank(w *world) {
	drafts, sub := w.ended(2, sender.ClassStatus)
	owner := w.read(sub).Subscriber
	w.replay(replay.Filter{})
	w.equal(w.steps(10).Admitted, 2, "admitted")
	w.Advance(time.Second)
	fresh := w.addressed(owner, sub)
	w.publish(fresh)
	w.expand()
	failed := w.claim(1)[0]
	w.equal(failed.Event.ID, fresh.ID, "event claimed first")
	w.Advance(time.Second)
	w.record(result(failed, sender.ClassStatus))
	w.Advance(retryDelay(1))
	retry := w.claim(1)[0]
	w.equal(retry.Event.ID, fresh.ID, "event claimed next: the retry of what is not of the replay")
	w.record(result(retry, sender.ClassNone))
	replayed := w.claim(1)[0]
	w.check(slices.Contains(sorted(drafts...), replayed.Event.ID), "the replay's own were not claimed after the others")

	// Once claimed, it is like any other delivery.
	w.record(result(replayed, sender.ClassStatus))
	w.Advance(retryDelay(1))
	w.equal(w.claim(1)[0].Event.ID, replayed.Event.ID, "event claimed next: the retry of what was of the replay")
	w.check(w.claimOne().Event.ID != replayed.Event.ID, "one was claimed twice")
}

func replaySteps(w *world) {
	for _, end := range []struct {
		status sender.Status
		class  sender.Class
	}{{sender.StatusDeadLettered, sender.ClassStatus}, {sender.StatusDelivered, sender.ClassNone}} {
		drafts, sub := w.ended(40, end.class)
		r := w.replay(replay.Filter{Status: end.status, Subscription: sub})
		w.equal(w.step(7).Admitted, 7, "admitted in one step")
		w.equal(w.readReplay(r.ID).Admitted, int64(7), "Admitted after one step")
		first, firstIDs := w.claimedEvents()
		w.equal(len(first), 7, "deliveries claimed after one step")
		admitted, err := w.stepsAtOnce(4, 3)
		w.noError(err, "stepping from several goroutines")
		w.equal(admitted, 33, "admitted by the others")
		_, ids := w.claimedEvents()
		ids = append(ids, firstIDs...)
		slices.Sort(ids)
		w.equal(ids, sorted(drafts...), "events claimed")
		w.equal(w.readReplay(r.ID).Admitted, int64(40), "Admitted")
	}
}

func replayTurns(w *world) {
	var ids []string
	for range 3 {
		_, sub := w.ended(30, sender.ClassStatus)
		ids = append(ids, w.replay(replay.Filter{Subscription: sub}).ID)
	}
	for step := 1; step <= 9; step++ {
		w.equal(w.step(5).Admitted, 5, "admitted in a step")
		least, most := int64(plenty), int64(0)
		for _, id := range ids {
			n := w.readReplay(id).Admitted
			least, most = min(least, n), max(most, n)
		}
		w.check(most-least <= 5, "after %d steps of 5 one replay has admitted %d, another %d", step, most, least)
	}
}

func replayRate(w *world) {
	_, sub := w.ended(40, sender.ClassStatus)
	r := w.createReplay(replay.Replay{Filter: replay.Filter{Subscription: sub}, Rate: 0.5})
	w.equal(r.Rate, 0.5, "Rate")
	start := w.now()
	for n := 1; n <= 5; n++ {
		s := w.step(plenty)
		w.equal(s.Admitted, 1, "admitted in step %d", n)
		again := w.step(plenty)
		w.equal([]any{again.Admitted, again.More}, []any{0, false}, "admitted at once after that, and More")
		w.sameTime(again.Next, start.Add(time.Duration(n)*2*time.Second), "Next after step %d", n)
		w.sameTime(s.Next, again.Next, "Next of the step itself")
		w.Advance(2 * time.Second)
	}
	w.equal(w.readReplay(r.ID).Admitted, int64(5), "Admitted")

	_, other := w.ended(3, sender.ClassStatus)
	w.replay(replay.Filter{Subscription: other})
	w.equal(w.steps(plenty).Admitted, 4, "admitted when another replay, without a rate, is there")

	_, fast := w.ended(20, sender.ClassStatus)
	w.createReplay(replay.Replay{Filter: replay.Filter{Subscription: fast}, Rate: 100})
	w.setReplay(r.ID, replay.Cancelled)
	start = w.now()
	s := w.steps(plenty)
	w.equal(s.Admitted, 10, "admitted at once of a fast replay")
	w.sameTime(s.Next, start.Add(50*time.Millisecond), "Next of a fast replay, when half of its burst is granted")
	w.Advance(50 * time.Millisecond)
	w.equal(w.step(plenty).Admitted, 5, "admitted of a fast replay at Next")
}

// replayPause bounds how long a store may leave a replay alone that has admitted
// enough.
const replayPause = 5 * time.Second

func replayAhead(w *world) {
	const members = 2600
	drafts, sub := w.ended(members, sender.ClassStatus)
	_, other := w.ended(1, sender.ClassStatus)

	// Deliveries that the replay does not select are looked at in several steps,
	// too.
	none := w.replay(replay.Filter{ErrorClass: sender.ClassBlocked})
	w.equal(none.Matched, int64(0), "Matched by a filter that selects nothing")
	if s := w.step(plenty); s.More {
		w.equal(len(s.Finished), 0, "replays finished by a step that has not looked at all")
		for range 5 {
			s = w.step(plenty)
		}
	}
	w.equal(w.readReplay(none.ID).Status, replay.Finished, "status after six steps that select nothing")

	r := w.replay(replay.Filter{Subscription: sub})
	s := w.steps(plenty)
	w.check(s.Admitted >= 500 && s.Admitted <= 1200, "%d were admitted without being claimed", s.Admitted)
	w.check(!s.Next.IsZero() && !s.Next.After(w.now().Add(replayPause)), "Next is %v, later than %v from now, although it is what is claimed that it waits for", s.Next, replayPause)

	// Another replay does not wait for this one.
	w.replay(replay.Filter{Subscription: other})
	w.equal(w.steps(plenty).Admitted, 1, "admitted of another replay")

	claimed := w.claim(100)
	w.Advance(replayPause)
	s = w.steps(plenty)
	w.check(s.Admitted >= 1 && s.Admitted <= 200, "%d were admitted after %d were claimed", s.Admitted, len(claimed))

	// Held deliveries do not keep it back.
	w.pause(sub)
	for range 10 {
		w.Advance(replayPause)
		s = w.steps(plenty)
	}
	w.equal(w.readReplay(r.ID).Admitted, int64(members), "Admitted while the subscription is paused")
	w.equal(len(s.Finished), 0, "finished twice")
	w.resume(sub, sender.Resume{})
	_, ids := w.claimedEvents()
	for _, c := range claimed {
		if c.Target.Subscription == sub {
			ids = append(ids, c.Event.ID)
		}
	}
	ids = slices.DeleteFunc(ids, func(id string) bool {
		return !slices.ContainsFunc(drafts, func(d sender.Draft) bool { return d.ID == id })
	})
	slices.Sort(ids)
	w.equal(len(slices.Compact(ids)), members, "events claimed")
}

func replayPaused(w *world) {
	_, sub := w.ended(10, sender.ClassStatus)
	r := w.replay(replay.Filter{})
	w.equal(w.step(3).Admitted, 3, "admitted")
	w.pauseReplay(r.ID)
	w.equal(w.steps(10), dispatch.ReplayStep{}, "step while it is paused")
	w.equal(len(w.claim(plenty)), 3, "what was admitted before the pause and is claimed")
	w.pauseReplay(r.ID)
	w.setReplay(r.ID, replay.Running)
	w.equal(w.step(3).Admitted, 3, "admitted after it was continued")
	w.setReplay(r.ID, replay.Cancelled)
	w.equal(w.steps(10), dispatch.ReplayStep{}, "step after it was cancelled")
	w.equal(len(w.claim(plenty)), 3, "what was admitted before the cancellation and is claimed")
	w.equal(w.statuses(sub)[sender.StatusDeadLettered], 4, "dead letters that stay so")
	r = w.readReplay(r.ID)
	w.equal([]any{r.Status, r.Admitted, r.FinishedAt.IsZero()}, []any{replay.Cancelled, int64(6), true}, "replay after it was cancelled")
	next := w.replay(replay.Filter{})
	w.equal(next.Matched, int64(4), "Matched by a later one")
}

func replayEnded(w *world) {
	finished, cancelled := w.replay(replay.Filter{}), w.replay(replay.Filter{Status: sender.StatusDelivered})
	w.setReplay(cancelled.ID, replay.Cancelled)
	w.setReplay(cancelled.ID, replay.Cancelled)
	w.equal(len(w.steps(1).Finished), 1, "replays finished")
	for _, id := range []string{finished.ID, cancelled.ID} {
		before := w.readReplay(id)
		for _, to := range []replay.Status{replay.Running, replay.Paused, replay.Cancelled} {
			if to == before.Status {
				continue
			}
			_, err := w.Store.SetReplayStatus(w.ctx, id, to)
			w.errorIs(err, sender.ErrStatus, "making a %s replay %s", before.Status, to)
		}
		w.sameReplay(w.readReplay(id), before)
	}
}

func replayFinished(w *world) {
	w.createSubscriber(sender.Operator)
	drafts, sub := w.ended(1, sender.ClassStatus)
	owner := w.read(sub).Subscriber
	told := w.subscribe(owner, "replay.finished")
	tellOperator := w.subscribe(sender.Operator, "replay.finished")
	for _, c := range []struct {
		filter replay.Filter
		tell   string
		told   []string
	}{
		{replay.Filter{Subscriber: owner}, owner, []string{told, tellOperator}},
		{replay.Filter{}, sender.Operator, []string{tellOperator}},
	} {
		r := w.replay(c.filter)
		var announced []sender.Notice
		announce := w.announcing()
		s, err := w.Store.StepReplays(w.ctx, 10, func(n sender.Notice) (sender.Draft, bool) {
			announced = append(announced, n)
			return announce(n)
		})
		w.noError(err, "stepping")
		w.equal([]int{s.Admitted, len(s.Finished), len(s.Notices), len(announced)}, []int{1, 1, 1, 1}, "admitted, finished, notices and announced")
		w.sameReplay(s.Finished[0], w.readReplay(r.ID))
		want := s.Finished[0].FinishedNotice()
		want.CreatedAt = w.now()
		w.sameNotice(s.Notices[0], want)
		w.equal(announced[0], s.Notices[0], "notice that is announced")
		w.equal([]string{want.Subscriber, want.Replay}, []string{c.tell, r.ID}, "whom the notice is for, and what it is about")
		w.equal(w.expand(), len(c.told), "deliveries of the notice's event")
		to := []string{}
		for _, c := range w.claim(plenty) {
			if c.Event.ID == drafts[0].ID {
				w.decide = endNow
				w.record(result(c, sender.ClassStatus))
				continue
			}
			w.check(c.Event.Notice, "the event is not known as a notice's")
			to = append(to, c.Target.Subscription)
		}
		slices.Sort(to)
		slices.Sort(c.told)
		w.equal(to, c.told, "subscriptions that are told")
	}
	w.claimNothing("after all")
}

func replayEmpty(w *world) {
	w.ended(3, sender.ClassNone)
	r := w.replay(replay.Filter{})
	w.equal(r.Matched, int64(0), "Matched")
	s := w.step(1)
	w.equal([]any{s.Admitted, s.Skipped, len(s.Finished), s.More, s.Next.IsZero()}, []any{0, 0, 1, false, true}, "step")
	w.equal(w.readReplay(r.ID).Status, replay.Finished, "status")
}

func replayIdle(w *world) {
	w.ended(3, sender.ClassStatus)
	w.equal(w.step(10), dispatch.ReplayStep{}, "step without a replay")
	r := w.replay(replay.Filter{})
	w.equal(w.step(0), dispatch.ReplayStep{}, "step that may admit nothing")
	w.equal(w.readReplay(r.ID).Admitted, int64(0), "Admitted")
	w.claimNothing("after steps that do nothing")
}
