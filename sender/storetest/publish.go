package storetest

import (
	"errors"

	"github.com/surehook/surehook/sender"
)

func publishRules[Tx any]() []rule[Tx] {
	return []rule[Tx]{
		{"committed event is delivered once", "Once its transaction has committed, an event has one delivery for each matching subscription.", publishCommitted[Tx]},
		{"rolled back leaves nothing", "An event whose transaction rolled back is never expanded or sent, and its version is free again.", publishRolledBack[Tx]},
	}
}

func publishCommitted[Tx any](w *world[Tx]) {
	sub := w.subscribe(w.subscriber(), "*")
	d := w.draft("a.b")
	tx, commit, _ := w.Begin(w.T)
	refs, err := w.Store.PublishTx(w.ctx, tx, []sender.Draft{d})
	w.noError(err, "publishing")
	w.equal(refs, []sender.Ref{{ID: d.ID, Version: 1}}, "Refs")
	w.noError(commit(), "committing")

	w.equal(w.expand(), 1, "deliveries made")
	c := w.claimOne()
	w.equal(c.Event, sender.EventInfo{ID: d.ID, Type: d.Type, Object: d.Object}, "event of the claimed delivery")
	w.equal(c.Target.Subscription, sub, "subscription of the claimed delivery")
	w.sameBody(c.Body, d, 1)
}

func publishRolledBack[Tx any](w *world[Tx]) {
	sub := w.subscribe(w.subscriber(), "*")
	lost, obj := w.draft("a.b"), sender.Object{Type: "thing", ID: "one"}
	lost.Object = obj
	tx, _, rollback := w.Begin(w.T)
	_, err := w.Store.PublishTx(w.ctx, tx, []sender.Draft{lost})
	w.noError(err, "publishing")
	w.noError(rollback(), "rolling back")
	w.equal(w.expand(), 0, "deliveries made of a rolled-back event")

	failed := errors.New("the producer failed")
	err = w.Store.InTx(w.ctx, func(tx Tx) error {
		_, err := w.Store.PublishTx(w.ctx, tx, []sender.Draft{w.draftOn("a.b", obj)})
		return errors.Join(err, failed)
	})
	w.errorIs(err, failed, "InTx whose function failed")
	w.equal(w.expand(), 0, "deliveries made of a rolled-back event")

	kept := w.draftOn("a.b", obj)
	w.equal(w.publish(kept)[0].Version, int64(1), "version after two publishes that rolled back")
	w.expand()
	w.equal(w.events(sub), sorted(kept), "events delivered")
}
