package storetest

import (
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/replay"
)

func replayDead(w *world) {
	drafts, sub := w.ended(3, sender.ClassTimeout)
	w.Advance(time.Hour)
	r := w.createReplay(replay.Replay{Filter: replay.Filter{ErrorClass: sender.ClassTimeout}, By: "me", Reason: "it was down", Rate: 0})
	w.equal([]any{r.Status, r.Matched, r.Admitted, r.Skipped, r.By, r.Reason}, []any{replay.Running, int64(3), int64(0), int64(0), "me", "it was down"}, "replay as it was created")
	w.sameTime(r.CreatedAt, w.now(), "CreatedAt")
	w.claimNothing("before the replay is stepped")
	w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusDeadLettered: 3}, "statuses before the replay is stepped")
	w.equal(w.steps(2).Admitted, 3, "admitted in all")
	r = w.readReplay(r.ID)
	w.equal([]any{r.Status, r.Matched, r.Admitted, r.Skipped}, []any{replay.Finished, int64(3), int64(3), int64(0)}, "replay at its end")
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
	w.equal(w.steps(10), dispatch.ReplayStep{}, "step after the end")
}

func replayDelivered(w *world) {
	drafts, sub := w.ended(2, sender.ClassNone)
	w.ended(1, sender.ClassStatus)
	r := w.replay(replay.Filter{Status: sender.StatusDelivered})
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
	w.equal(w.readReplay(r.ID).Status, replay.Finished, "status of the replay")
	again := w.replay(replay.Filter{Status: sender.StatusDelivered, ErrorClass: sender.ClassStatus})
	w.equal(again.Matched, int64(1), "delivered ones whose last attempt failed")
}

func replayRetention(w *world) {
	for _, end := range []struct {
		status sender.Status
		class  sender.Class
	}{{sender.StatusDeadLettered, sender.ClassStatus}, {sender.StatusDelivered, sender.ClassNone}} {
		w.ended(1, end.class)
		published := w.now()
		w.Advance(time.Hour)
		w.ended(1, end.class)
		f := replay.Filter{Status: end.status}
		create := func(notBefore time.Time) (replay.Replay, error) {
			r, err := w.Store.CreateReplay(w.ctx, replay.Replay{Filter: f}, replay.Bounds{NotBefore: notBefore})
			if err == nil {
				w.setReplay(r.ID, replay.Cancelled)
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

func replayGrownOld(w *world) {
	for _, end := range endings {
		_, sub := w.ended(3, end.class)
		published := w.now()
		w.Advance(2 * time.Hour)
		fresh := w.addressed(w.read(sub).Subscriber, sub)
		w.publish(fresh)
		w.expand()
		w.endAll(end.class)
		f := replay.Filter{Status: end.status, Subscription: sub}
		r, err := w.createBound(f, published.Add(-time.Hour), 0)
		w.noError(err, "creating a replay of what is %s", end.status)
		w.Advance(time.Hour)
		w.equal(w.step(1).Admitted, 1, "admitted while the first are just not too old, of what is %s", end.status)
		w.pauseReplay(r.ID)
		w.Advance(time.Second)
		w.setReplay(r.ID, replay.Running)
		s := w.steps(10)
		w.equal([]int{s.Admitted, s.Skipped}, []int{1, 2}, "admitted and skipped once they are too old, of what is %s", end.status)
		got := w.readReplay(r.ID)
		w.equal([]any{got.Status, got.Matched, got.Admitted, got.Skipped, got.TooOld}, []any{replay.Finished, int64(4), int64(2), int64(2), int64(2)}, "replay at its end")
		for _, r := range s.Finished {
			w.sameReplay(r, w.readReplay(r.ID))
		}
		claimed, ids := w.claimedEvents()
		w.equal(len(claimed), 2, "deliveries claimed")
		w.check(slices.Contains(ids, fresh.ID), "the one that is not too old was not claimed")
		w.equal(w.statuses(sub)[end.status], 2, "those that are too old, and stay %s", end.status)
		for _, c := range claimed {
			w.record(result(c, sender.ClassNone))
		}

		forced := w.replay(f)
		w.Advance(1000 * time.Hour)
		w.equal(w.steps(10).Admitted, int(forced.Matched), "admitted of a replay of any age")
		w.equal(w.readReplay(forced.ID).TooOld, int64(0), "TooOld of a replay of any age")
		w.endAll(sender.ClassNone)
	}
}

func redeliverRetention(w *world) {
	drafts, sub := w.ended(1, sender.ClassStatus)
	id, published := w.delivery(drafts[0].ID, sub).ID, w.now()
	w.Advance(time.Hour)
	w.errorIs(w.Store.Redeliver(w.ctx, id, published.Add(time.Microsecond)), sender.ErrRetention, "redelivering what is too old")
	w.equal(w.get(id).Status, sender.StatusDeadLettered, "status after that")
	w.claimNothing("after a redelivery was refused")
	w.noError(w.Store.Redeliver(w.ctx, id, published), "redelivering what is just not too old")
	w.claimOne()
}

func replayHeld(w *world) {
	drafts, sub := w.ended(3, sender.ClassStatus)
	_, other := w.ended(1, sender.ClassStatus)
	w.pause(sub)
	w.disable(other)
	r := w.replay(replay.Filter{})
	w.equal(w.steps(10).Admitted, 4, "admitted")
	w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusHeld: 3}, "statuses of the paused one's")
	w.equal(w.statuses(other), map[sender.Status]int{sender.StatusHeld: 1}, "statuses of the disabled one's")
	w.claimNothing("while it is held")
	w.equal(w.readReplay(r.ID).Status, replay.Finished, "status of the replay")
	w.Advance(time.Hour)
	w.resume(sub, sender.Resume{})
	claimed, ids := w.claimedEvents()
	w.equal(ids, sorted(drafts...), "events claimed after the resume")
	w.equal(claimed[0].Number, 2, "number of the attempt")
	w.resume(other, takeNone)
	w.endsSwept()
	w.equal(w.statuses(other), map[sender.Status]int{sender.StatusCancelled: 1}, "statuses of what the resume has not taken")
}

func replayDeleted(w *world) {
	_, sub := w.ended(2, sender.ClassStatus)
	_, closed := w.ended(1, sender.ClassStatus)
	_, other := w.ended(1, sender.ClassStatus)
	w.close(closed)
	w.sweep(100) // it has nothing left, so that it is deleted
	r := w.replay(replay.Filter{})
	w.unsubscribe(sub)
	s := w.steps(1)
	w.equal([]int{s.Admitted, s.Skipped}, []int{1, 3}, "admitted and skipped")
	w.equal(w.claimOne().Target.Subscription, other, "subscription of what is claimed")
	for _, gone := range []string{sub, closed} {
		for _, d := range w.list(history.DeliveryQuery{Subscription: gone}) {
			w.equal(d.Status, sender.StatusDeadLettered, "status of what was skipped")
		}
	}
	r = w.readReplay(r.ID)
	w.equal([]int64{r.Matched, r.Admitted, r.Skipped}, []int64{4, 1, 3}, "figures of the replay")
}

func replayTwice(w *world) {
	const members = 60
	for _, end := range endings {
		drafts, sub := w.ended(members, end.class)
		var ids []string
		for range 3 {
			ids = append(ids, w.replay(replay.Filter{Status: end.status, Subscription: sub}).ID)
		}
		admitted, err := w.stepsAtOnce(4, 7)
		w.noError(err, "stepping from several goroutines")
		admitted += w.steps(7).Admitted
		w.equal(admitted, members, "admitted of what is %s", end.status)
		claimed, events := w.claimedEvents()
		w.equal(events, sorted(drafts...), "events claimed of what was %s", end.status)
		for _, c := range claimed {
			w.record(result(c, sender.ClassNone))
		}
		total := int64(0)
		for _, id := range ids {
			r := w.readReplay(id)
			w.equal([]any{r.Status, r.Matched, r.Skipped}, []any{replay.Finished, int64(members), members - r.Admitted}, "a replay of what others have sent")
			total += r.Admitted
		}
		w.equal(total, int64(members), "Admitted of all of them")
	}
}
