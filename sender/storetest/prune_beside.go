package storetest

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
)

func pruneBesideRedeliveries(w *world) {
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
