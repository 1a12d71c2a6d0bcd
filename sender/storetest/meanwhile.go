package storetest

import (
	"crypto/sha256"
	"sync"

	"github.com/surehook/surehook/sender"
)

// meanwhile runs second in a transaction of its own while that of first is open, and returns
// what became of it. Where several transactions can write at a time, the second has begun,
// and could have gone past the first one, before that ends.
func (w *world) meanwhile(commit bool, first, second func(tx any) error) error {
	w.Helper()
	tx, end, rollback := w.Begin(w.T)
	if !commit {
		end = rollback
	}
	w.noError(first(tx), "the first of two transactions")
	var once sync.Once
	begun, done := make(chan struct{}), make(chan error, 1)
	begin := func() { once.Do(func() { close(begun) }) }
	go func() {
		err := w.try(func(tx any) error {
			begin()
			return second(tx)
		})
		begin() // also if it could not
		done <- err
	}()
	if w.ConcurrentWriters {
		<-begun
		for range 20 { // as many trips as it would need
			w.now()
		}
	}
	w.noError(end(), "ending the first of two transactions")
	return <-done
}

func publishKeyMeanwhile(w *world) {
	for _, commit := range []bool{true, false} {
		object := sender.Object{Type: "thing", ID: w.name("t")}
		keyed := func() sender.Draft {
			d := w.draftOn("a.b", object)
			d.Key, d.KeyScope, d.KeyHash = object.ID, "scope", sha256.Sum256([]byte("content"))
			return d
		}
		first, second := keyed(), keyed()
		var ref sender.Ref
		err := w.meanwhile(commit,
			func(tx any) error {
				_, err := w.Store.PublishTx(w.ctx, tx, []sender.Draft{first})
				return err
			},
			func(tx any) error {
				refs, err := w.Store.PublishTx(w.ctx, tx, []sender.Draft{second})
				if err == nil {
					ref = refs[0]
				}
				return err
			})
		w.noError(err, "publishing under a key while another transaction has it")
		want := sender.Ref{ID: first.ID, Version: 1, Duplicate: true}
		if !commit {
			want = sender.Ref{ID: second.ID, Version: 1}
		}
		w.equal(ref, want, "Ref of the second publish under a key, after the first one's end with commit=%t", commit)
	}
}

func deleteSubscriberMeanwhile(w *world) {
	create := func(s sender.Subscription) func(tx any) error {
		return func(tx any) error { return w.Store.CreateSubscriptionTx(w.ctx, tx, s) }
	}
	remove := func(owner string) func(tx any) error {
		return func(tx any) error { return w.Store.DeleteSubscriberTx(w.ctx, tx, owner) }
	}
	for _, commit := range []bool{true, false} {
		made := w.subscription(w.subscriber(), "*")
		w.noError(w.meanwhile(commit, create(made), remove(made.Subscriber)), "deleting a subscriber while it gets a subscription")
		if commit {
			w.equal(w.read(made.ID).Status, sender.SubscriptionClosing, "status of a subscription that was made while its subscriber was deleted")
		} else {
			w.gone(made.ID, "that was rolled back")
		}

		late := w.subscription(w.subscriber(), "*")
		err := w.meanwhile(commit, remove(late.Subscriber), create(late))
		if commit {
			w.errorIs(err, sender.ErrNotFound, "making a subscription while its subscriber is deleted")
			w.gone(late.ID, "of a subscriber that was deleted before")
		} else {
			w.noError(err, "making a subscription of a subscriber whose deletion is rolled back")
			w.equal(w.read(late.ID).Status, sender.SubscriptionActive, "status of a subscription whose subscriber was not deleted")
		}
	}
}
