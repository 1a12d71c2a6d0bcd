package storetest

import (
	"context"

	"github.com/surehook/surehook/sender"
)

func publishOpen(w *world) {
	sub := w.subscribe(w.subscriber(), "*")
	early, late := w.draft("a.b"), w.draft("a.b")
	tx, commit, _ := w.Begin(w.T)
	_, err := w.Store.PublishTx(w.ctx, tx, []sender.Draft{early})
	w.noError(err, "publishing")
	if w.ConcurrentWriters {
		w.publish(late)
		w.equal(w.expand(), 1, "deliveries made while one of two events is not committed")
		w.equal(len(w.claim(plenty)), 1, "deliveries claimed while a producer's transaction is open")
	} else {
		ctx, cancel := context.WithCancel(w.ctx)
		done := make(chan error)
		go func() {
			done <- w.Store.InTx(ctx, func(any) error { return nil })
		}()
		cancel()
		w.check(<-done != nil, "a second transaction committed while the first was open, and after its context had ended")
	}
	w.noError(commit(), "committing")
	if !w.ConcurrentWriters {
		w.publish(late)
	}
	w.expand()
	w.equal(w.events(sub), sorted(early, late), "events delivered")
}
