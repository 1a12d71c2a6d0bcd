package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
)

func registryRules() []rule {
	return []rule{
		{"subscriber", "A subscriber is read back as it was created; its id is never used twice, and the transaction in which that is refused goes on.", registrySubscriber},
		{"keyring", "A subscriber's sealed secrets are read back as they were created, by id and by number.", registryKeyring},
		{"subscription", "A subscription is read back as it was created, with its subscriber registered, until it is deleted; its id is never used twice.", registrySubscription},
		{"id in use", "A subscription whose id is in use, also by one that another transaction is making, is refused with ErrExists, whoever its subscriber is. The one that has the id stays as it is, and the transaction goes on, and can read it.", registryIDInUse},
		{"changed by several at a time", "Of transactions that read a subscription to change it, and store it again, none undoes what another has changed.", registryToChange},
		{"list", "Subscriptions are listed oldest first, page by page, deleted ones left out.", registryList},
		{"rolled back", "A transaction that rolls back registers nothing and deletes nothing.", registryRolledBack},
		{"odd strings", "Texts are kept byte for byte, and ids are compared byte for byte.", registryOddStrings},
		{"no text", "A text that is not UTF-8, or has a NUL, is no id: it is not found, and the caller's transaction goes on.", registryNoText},
	}
}

func registrySubscriber(w *world) {
	w.createSubscriber("sub_a")
	w.inTx(func(tx any) error {
		got, err := w.Store.SubscriberTx(w.ctx, tx, "sub_a")
		w.noError(err, "reading a subscriber")
		w.equal(got.ID, "sub_a", "id")
		w.sameTime(got.CreatedAt, createdAt, "CreatedAt")
		_, err = w.Store.SubscriberTx(w.ctx, tx, "sub_b")
		w.errorIs(err, sender.ErrNotFound, "reading an unknown subscriber")
		_, err = w.Store.SubscriberKeyringTx(w.ctx, tx, "sub_b")
		w.errorIs(err, sender.ErrNotFound, "reading an unknown subscriber's keyring")
		return nil
	})
	w.inTx(func(tx any) error {
		err := w.Store.CreateSubscriberTx(w.ctx, tx, sender.Subscriber{ID: "sub_a"}, []sender.SealedSecret{{ID: "sec_other", Sealed: []byte("other")}})
		w.errorIs(err, sender.ErrExists, "creating a subscriber again")
		err = w.Store.CreateSubscriberTx(w.ctx, tx, sender.Subscriber{ID: "sub_c"}, []sender.SealedSecret{{ID: "sec_c", Sealed: []byte("c")}})
		w.noError(err, "creating another one in the transaction of a refused creation")
		return nil
	})
	w.inTx(func(tx any) error {
		_, err := w.Store.SubscriberTx(w.ctx, tx, "sub_c")
		w.noError(err, "reading what was created after a refused creation")
		k, err := w.Store.SubscriberKeyringTx(w.ctx, tx, "sub_a")
		w.noError(err, "reading a keyring")
		w.equal(k.Secrets[0].ID, "sec_sub_a", "id of the secret after a refused creation")
		return nil
	})
}

func registryKeyring(w *world) {
	from, to := createdAt.Add(time.Hour), createdAt.Add(48*time.Hour)
	want := []sender.SealedSecret{
		{ID: "sec_1", Sealed: []byte("\x00\x01'\xff sealed"), NotBefore: from, NotAfter: to},
		{ID: "sec_2", Sealed: []byte("unbounded")},
	}
	w.inTx(func(tx any) error {
		return w.Store.CreateSubscriberTx(w.ctx, tx, sender.Subscriber{ID: "sub_a", CreatedAt: createdAt}, want)
	})
	same := func(k sender.SealedKeyring) {
		w.equal(k.Subscriber, "sub_a", "subscriber of the keyring")
		w.equal(len(k.Secrets), len(want), "number of secrets")
		slices.SortFunc(k.Secrets, func(a, b sender.SealedSecret) int { return strings.Compare(a.ID, b.ID) })
		for i, got := range k.Secrets {
			w.equal(got.ID, want[i].ID, "id of the secret")
			w.equal(got.Sealed, want[i].Sealed, "sealed secret")
			w.sameTime(got.NotBefore, want[i].NotBefore, "NotBefore")
			w.sameTime(got.NotAfter, want[i].NotAfter, "NotAfter")
		}
	}
	var k sender.SealedKeyring
	w.inTx(func(tx any) (err error) {
		k, err = w.Store.SubscriberKeyringTx(w.ctx, tx, "sub_a")
		return err
	})
	same(k)

	w.subscribe(w.subscriber(), "other")
	w.subscribe("sub_a", "*")
	w.publish(w.draft("a.b"))
	w.expand()
	target := w.claimOne().Target
	byNumber, err := w.keyringOf(target.SubscriberNumber)
	w.noError(err, "reading the keyring of subscriber number %d", target.SubscriberNumber)
	same(byNumber)
	w.equal(byNumber.Version, k.Version, "version of the keyring by number")
	w.equal(target.KeyringVersion, k.Version, "version of the keyring in the Target")
	_, err = w.keyringOf(target.SubscriberNumber + 1000)
	w.errorIs(err, sender.ErrNotFound, "reading the keyring of an unknown number")
}

func registrySubscription(w *world) {
	owner := w.subscriber()
	s := w.subscription(owner, "a.b", "c.*")
	create := func(s sender.Subscription) error {
		return w.Store.InTx(w.ctx, func(tx any) error { return w.Store.CreateSubscriptionTx(w.ctx, tx, s) })
	}
	read := func(id string) (got sender.Subscription, err error) {
		err = w.Store.InTx(w.ctx, func(tx any) error {
			got, err = w.Store.SubscriptionTx(w.ctx, tx, sender.SubscriptionKey{ID: id})
			return err
		})
		return got, err
	}
	remove := func(id string) error {
		return w.Store.InTx(w.ctx, func(tx any) error { return w.Store.DeleteSubscriptionTx(w.ctx, tx, id) })
	}
	w.noError(create(s), "creating a subscription")
	got, err := read(s.ID)
	w.noError(err, "reading a subscription")
	w.sameSubscription(got, s)

	w.errorIs(create(s), sender.ErrExists, "creating a subscription again")
	w.errorIs(create(w.subscription("sub_unknown", "*")), sender.ErrNotFound, "creating a subscription of an unknown subscriber")
	_, err = read("wsub_unknown")
	w.errorIs(err, sender.ErrNotFound, "reading an unknown subscription")
	w.errorIs(remove("wsub_unknown"), sender.ErrNotFound, "deleting an unknown subscription")

	none := w.subscription(owner)
	none.EventTypes = nil
	w.noError(create(none), "creating a subscription that asks for no type")
	got, err = read(none.ID)
	w.noError(err, "reading a subscription that asks for no type")
	w.equal(len(got.EventTypes), 0, "number of types that are asked for")
	w.noError(remove(none.ID), "deleting a subscription that asks for no type")

	w.noError(remove(s.ID), "deleting a subscription")
	_, err = read(s.ID)
	w.errorIs(err, sender.ErrNotFound, "reading a deleted subscription")
	w.errorIs(remove(s.ID), sender.ErrNotFound, "deleting a deleted subscription")
	w.errorIs(create(s), sender.ErrExists, "creating a subscription with a deleted one's id")
}

func registryIDInUse(w *world) {
	for _, commit := range []bool{true, false} {
		for _, same := range []bool{true, false} {
			first := w.subscription(w.subscriber(), "a.b")
			second := w.subscription(first.Subscriber, "c.d")
			if !same {
				second.Subscriber = w.subscriber()
			}
			second.ID = first.ID
			var created error
			var got sender.Subscription
			err := w.meanwhile(commit,
				func(tx any) error { return w.Store.CreateSubscriptionTx(w.ctx, tx, first) },
				func(tx any) (err error) {
					created = w.Store.CreateSubscriptionTx(w.ctx, tx, second)
					if created != nil && !errors.Is(created, sender.ErrExists) {
						return created
					}
					got, err = w.Store.SubscriptionTx(w.ctx, tx, sender.SubscriptionKey{ID: first.ID})
					return err
				})
			w.noError(err, "making a subscription with an id that another transaction uses, which ends with commit=%t", commit)
			if commit {
				w.errorIs(created, sender.ErrExists, "making a subscription with an id that is in use")
				w.sameSubscription(got, first)
			} else {
				w.noError(created, "making a subscription with an id whose use was rolled back")
				w.sameSubscription(got, second)
			}
		}
	}
}

func registryToChange(w *world) {
	sub := w.subscribe(w.subscriber(), "a.b")
	errs := make([]error, 4)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			errs[i] = w.Store.InTx(w.ctx, func(tx any) error {
				s, err := w.Store.SubscriptionTx(w.ctx, tx, sender.SubscriptionKey{ID: sub, ToChange: true})
				if err != nil {
					return err
				}
				s.EventTypes = append(s.EventTypes, fmt.Sprintf("type.%d", i))
				return w.Store.UpdateSubscriptionTx(w.ctx, tx, s)
			})
		})
	}
	all.Wait()
	w.noError(errors.Join(errs...), "changing a subscription at a time with others")
	w.inTx(func(tx any) error {
		s, err := w.Store.SubscriptionTx(w.ctx, tx, sender.SubscriptionKey{ID: sub})
		slices.Sort(s.EventTypes)
		w.equal(s.EventTypes, []string{"a.b", "type.0", "type.1", "type.2", "type.3"}, "types after four changes")
		return err
	})
}

func registryList(w *world) {
	a, b, none := w.subscriber(), w.subscriber(), w.subscriber()
	var all, ofA []string
	for i := range 11 {
		owner := a
		if i%3 == 2 {
			owner = b
		}
		id := w.subscribe(owner, "*")
		all = append(all, id)
		if owner == a {
			ofA = append(ofA, id)
		}
	}
	list := func(owner, after string, limit int) (ids []string) {
		w.inTx(func(tx any) error {
			page, err := w.Store.SubscriptionsTx(w.ctx, tx, owner, after, limit)
			w.noError(err, "listing subscriptions of %q after %q", owner, after)
			w.check(len(page) <= limit, "a page has %d subscriptions, at most %d were asked for", len(page), limit)
			ids = []string{}
			for _, s := range page {
				ids = append(ids, s.ID)
			}
			return nil
		})
		return ids
	}
	pages := func(owner string, limit int) (ids []string) {
		after := ""
		for {
			page := list(owner, after, limit)
			if len(page) == 0 {
				return ids
			}
			ids, after = append(ids, page...), page[len(page)-1]
		}
	}
	for _, limit := range []int{1, 2, 11, 200} {
		w.equal(pages("", limit), all, "all subscriptions in pages of %d", limit)
		w.equal(pages(a, limit), ofA, "one subscriber's subscriptions in pages of %d", limit)
	}
	w.equal(list(none, "", 10), []string{}, "subscriptions of a subscriber without any")
	w.equal(list("sub_unknown", "", 10), []string{}, "subscriptions of an unknown subscriber")

	w.unsubscribe(all[4])
	w.equal(list("", all[4], 3), all[5:8], "page after a subscription that was deleted meanwhile")
	w.equal(list("", all[3], 3), all[5:8], "page in front of a deleted subscription")
	w.equal(pages("", 3), slices.Delete(slices.Clone(all), 4, 5), "all subscriptions that are not deleted")
}

func registryRolledBack(w *world) {
	owner := w.subscriber()
	kept, dropped := w.subscribe(owner, "*"), w.subscription(owner, "*")
	failed := errors.New("the caller failed")
	w.publish(w.draft("a.b"))
	w.expand()
	err := w.Store.InTx(w.ctx, func(tx any) error {
		w.noError(w.Store.CreateSubscriberTx(w.ctx, tx, sender.Subscriber{ID: "sub_dropped"}, nil), "creating a subscriber")
		w.noError(w.Store.CreateSubscriptionTx(w.ctx, tx, dropped), "creating a subscription")
		w.noError(w.Store.DeleteSubscriptionTx(w.ctx, tx, kept), "deleting a subscription")
		_, err := w.Store.SubscriptionTx(w.ctx, tx, sender.SubscriptionKey{ID: dropped.ID})
		w.noError(err, "reading a subscription in the transaction that created it")
		_, err = w.Store.SubscriptionTx(w.ctx, tx, sender.SubscriptionKey{ID: kept})
		w.errorIs(err, sender.ErrNotFound, "reading a subscription in the transaction that deleted it")
		return failed
	})
	w.errorIs(err, failed, "InTx whose function failed")
	w.inTx(func(tx any) error {
		_, err := w.Store.SubscriberTx(w.ctx, tx, "sub_dropped")
		w.errorIs(err, sender.ErrNotFound, "reading a subscriber whose creation was rolled back")
		_, err = w.Store.SubscriptionTx(w.ctx, tx, sender.SubscriptionKey{ID: dropped.ID})
		w.errorIs(err, sender.ErrNotFound, "reading a subscription whose creation was rolled back")
		_, err = w.Store.SubscriptionTx(w.ctx, tx, sender.SubscriptionKey{ID: kept})
		w.noError(err, "reading a subscription whose deletion was rolled back")
		w.noError(w.Store.CreateSubscriberTx(w.ctx, tx, sender.Subscriber{ID: "sub_dropped"}, nil), "creating a subscriber under an id whose use was rolled back")
		w.noError(w.Store.CreateSubscriptionTx(w.ctx, tx, dropped), "creating a subscription under an id whose use was rolled back")
		return nil
	})
	w.equal(w.claimOne().Target.Subscription, kept, "subscription of the claimed delivery")
}

func registryOddStrings(w *world) {
	for _, id := range []string{"sub_1", "subX1", "SUB_1", "sub-1", "1", "01", "sub_1_", "null"} {
		w.createSubscriber(id)
		s := w.subscription(id, "a_b.c-d", "A.b", "a.*")
		s.URL = "https://example.com/'\"%25_?a=b&c=%00;--#ü"
		s.Description = "a'b\"c\\d%_*?$1 ключ 🔑\n\u2028\u00a0e\u0301"
		w.inTx(func(tx any) error { return w.Store.CreateSubscriptionTx(w.ctx, tx, s) })
		w.inTx(func(tx any) error {
			got, err := w.Store.SubscriptionTx(w.ctx, tx, sender.SubscriptionKey{ID: s.ID})
			w.noError(err, "reading a subscription")
			w.sameSubscription(got, s)
			own, err := w.Store.SubscriptionsTx(w.ctx, tx, id, "", 100)
			w.noError(err, "listing subscriptions")
			w.equal(len(own), 1, "number of subscriptions of %s", id)
			w.sameSubscription(own[0], s)
			return nil
		})
	}
}

func registryNoText(w *world) {
	w.createSubscriber("sub_a")
	for _, id := range []string{"a\x00b", "\xff"} {
		w.inTx(func(tx any) error {
			_, err := w.Store.SubscriberTx(w.ctx, tx, id)
			w.errorIs(err, sender.ErrNotFound, "reading a subscriber %q", id)
			_, err = w.Store.SubscriptionTx(w.ctx, tx, sender.SubscriptionKey{ID: id})
			w.errorIs(err, sender.ErrNotFound, "reading a subscription %q", id)
			w.errorIs(w.Store.CloseSubscriptionTx(w.ctx, tx, id), sender.ErrNotFound, "closing a subscription %q", id)
			_, err = w.Store.SubscriberTx(w.ctx, tx, "sub_a")
			w.noError(err, "reading on")
			return nil
		})
		_, err := w.Store.Delivery(w.ctx, id, whole)
		w.errorIs(err, sender.ErrNotFound, "reading a delivery %q", id)
		_, err = w.Store.Event(w.ctx, id)
		w.errorIs(err, sender.ErrNotFound, "reading an event %q", id)
		_, err = w.Store.Replay(w.ctx, id)
		w.errorIs(err, sender.ErrNotFound, "reading a replay %q", id)
		_, err = w.Store.AcknowledgeNotice(w.ctx, id, "")
		w.errorIs(err, sender.ErrNotFound, "acknowledging a notice %q", id)
		_, err = w.Store.Redact(w.ctx, history.RedactParams{Subscriber: id, Limit: 1})
		w.errorIs(err, sender.ErrNotFound, "redacting what is addressed to %q", id)
	}
}
