package storetest

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
)

func pruneBesideRedeliveries[Tx any](w *world[Tx]) {
	const n = 60
	owner := w.subscriber()
	sub := w.subscribe(owner, "only.addressed")
	w.backlog(owner, sub, n)
	for _, c := range w.claim(plenty) {
		w.record(result(c, sender.ClassNone))
	}
	list := w.list(history.DeliveryQuery{Limit: 200})
	w.Advance(100 * time.Hour)
	p := w.pruneParams(all(time.Hour), 3)
	var redelivered []string
	var group sync.WaitGroup
	group.Go(func() {
		for _, d := range slices.Backward(list) { // as the pass goes
			switch err := w.Store.Redeliver(w.ctx, d.ID, time.Time{}); {
			case err == nil:
				redelivered = append(redelivered, d.ID)
			case !errors.Is(err, sender.ErrNotFound):
				w.Errorf("redelivering while it is pruned: %v", err)
			}
		}
	})
	for range 2 {
		group.Go(func() {
			for p := p; ; {
				got, err := w.Store.Prune(w.ctx, p)
				if err != nil {
					w.Errorf("pruning while there are redeliveries: %v", err)
				}
				if err != nil || got.Cursor == "" {
					return
				}
				p.Cursor = got.Cursor
			}
		})
	}
	group.Wait()
	if w.Failed() {
		return
	}
	w.prune(all(time.Hour))
	w.equal(len(w.list(history.DeliveryQuery{Limit: 200})), len(redelivered), "deliveries left, against those that were redelivered")
	claimed := w.claim(plenty)
	w.equal(len(claimed), len(redelivered), "deliveries claimed, against those that were redelivered")
	for _, c := range claimed {
		w.equal(c.Number, 2, "number of the attempt")
		w.check(len(c.Body) > 0, "event %s has no body", c.Event.ID)
		w.record(result(c, sender.ClassNone))
	}
	for _, id := range redelivered {
		w.equal([]any{w.get(id).Status, len(w.get(id).Attempts)}, []any{sender.StatusDelivered, 2}, "status and attempts of one that was redelivered")
	}
	w.Advance(100 * time.Hour)
	w.prune(all(time.Hour))
	w.equal(len(w.list(history.DeliveryQuery{})), 0, "deliveries left in the end")
}

// pruneRandomly mixes pruning with random other operations.
func pruneRandomly[Tx any](w *world[Tx], seed uint64) {
	random := rand.New(rand.NewPCG(seed, 1))
	w.decide = func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
		l.Tries += maxTries - 2 // so that there are dead letters soon
		return decide(l, h, r, now)
	}
	owner := w.subscriber()
	subs := []string{w.subscribe(owner, "*"), w.subscribe(owner, "a.*"), w.subscribe(owner, "a.b")}
	paused := map[string]bool{}
	var claimed []dispatch.Claimed
	stays := func(d sender.Delivery) bool {
		return d.Status != sender.StatusDelivered && d.Status != sender.StatusCancelled
	}
	kept := func(list []sender.Delivery) (ids []string) {
		for _, d := range list {
			if stays(d) {
				ids = append(ids, d.ID)
			}
		}
		return ids
	}
	finish := func() {
		for _, c := range claimed {
			w.tryRecord(result(c, []sender.Class{sender.ClassNone, sender.ClassStatus, sender.ClassTimeout, sender.ClassReset}[random.IntN(4)]))
		}
		claimed = nil
	}
	for range 150 {
		switch random.IntN(9) {
		case 0, 1:
			w.publish(w.draft([]string{"a.b", "a.c", "d"}[random.IntN(3)]))
		case 2:
			_, _, err := w.Store.Step(w.ctx, dispatch.ExpandParams{Events: 1 + random.IntN(3), Deliveries: 1 + random.IntN(4)}, dispatch.Batch{})
			w.noError(err, "expanding")
		case 3:
			claimed = append(claimed, w.claim(1+random.IntN(3))...)
		case 4:
			finish()
		case 5:
			if list := w.list(history.DeliveryQuery{Limit: 200}); len(list) > 0 {
				w.redeliver(list[random.IntN(len(list))].ID)
			}
		case 6:
			w.Advance([]time.Duration{time.Second, 2 * lease, 20 * time.Minute, 3 * time.Hour}[random.IntN(4)])
		case 7:
			if sub := subs[random.IntN(len(subs))]; paused[sub] {
				w.resume(sub, sender.Resume{})
				paused[sub] = false
			} else {
				w.pause(sub)
				paused[sub] = true
			}
		case 8:
			before := kept(w.list(history.DeliveryQuery{Limit: 200}))
			w.pruneBy(w.pruneParams(ages{delivered: time.Hour, events: time.Hour}, 1+random.IntN(5)))
			w.equal(kept(w.list(history.DeliveryQuery{Limit: 200})), before, "what is live, held or dead-lettered after pruning")
			c, err := w.Store.Counts(w.ctx)
			w.noError(err, "counting")
			w.equal(c.Live+c.Held+c.DeadLettered, int64(len(before)), "what Counts says is live, held or dead-lettered after pruning")
			for _, id := range before {
				d := w.get(id)
				w.check(len(d.Body) > 0 && len(d.Attempts) == d.AttemptCount, "%s, which is %s, has lost its body or attempts", id, d.Status)
			}
		}
	}
	for _, sub := range subs {
		w.resume(sub, sender.Resume{})
	}
	w.expand()
	for rounds := 0; ; rounds++ {
		w.check(rounds < 50, "it does not come to an end")
		finish()
		w.Advance(24 * time.Hour)
		if claimed = w.claim(plenty); len(claimed) == 0 {
			break
		}
	}
	w.Advance(24 * time.Hour)
	w.prune(all(time.Hour))
	w.equal(len(w.list(history.DeliveryQuery{})), 0, "deliveries left in the end")
	w.equal(w.prune(all(time.Hour)), dispatch.Pruned{}, "pruned by another pass")
	for _, sub := range subs {
		s := w.read(sub)
		w.equal([]int64{s.Backlog, s.DeadLettered}, []int64{0, 0}, "backlog and dead letters that a subscription counts in the end")
	}
}
