package storetest

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/surehook/surehook/sender"
)

func secretsRules() []rule {
	return []rule{
		{"replaced", "SetSecretsTx replaces one subscriber's secrets, in their order, and raises its keyring's version; what is claimed after the commit names it.", secretsReplaced},
		{"of several", "Keyrings reads those of several subscribers, each with its own secrets, and leaves out who is not there.", secretsOfSeveral},
		{"changed in between", "SetSecretsTx changes nothing under a version that is not the present one (ErrConflict), or for an unknown subscriber (ErrNotFound).", secretsConflict},
		{"by several at a time", "If several transactions change one version, one succeeds; the others get ErrConflict.", secretsConcurrently},
		{"rolled back", "A transaction that rolls back changes nothing and seals nothing anew.", secretsRolledBack},
		{"sealing keys", "SealingKeys lists each key that anything is sealed with once, by its bytes, \"\" first, and no other.", secretsKeys},
		{"by sealing key", "KeyringsTx lists the keyrings that hold a secret under a key, whole, in the order of the subscribers, page by page.", secretsByKey},
		{"sealed anew", "RewrapTx replaces the sealed bytes and the key of one secret, if the bytes are still those given, and nothing else; the version stays.", secretsRewrap},
	}
}

func rotationRules() []rule {
	return []rule{
		{"rotated by several at a time", "Of Registries that rotate at a time, all of which take the same secret for the newest, one makes a new secret. The others are refused, as is who retires what is before a secret that is not the newest.", secretsRotatedAtOnce},
		{"rotated while events flow", "A Registry's rotations on one store hold for what is dispatched on another: each new secret signs from its time on, without a further write.", secretsRotated},
	}
}

func sealed(id, bytes, key string) sender.SealedSecret {
	return sender.SealedSecret{ID: id, Sealed: []byte(bytes), Key: key}
}

// subscriberWith registers a subscriber with secrets.
func (w *world) subscriberWith(secrets ...sender.SealedSecret) string {
	w.Helper()
	id := w.name("sub_")
	w.inTx(func(tx any) error {
		return w.Store.CreateSubscriberTx(w.ctx, tx, sender.Subscriber{ID: id, CreatedAt: createdAt}, secrets)
	})
	return id
}

func (w *world) keyring(subscriber string) (k sender.SealedKeyring) {
	w.Helper()
	w.inTx(func(tx any) (err error) {
		k, err = w.Store.SubscriberKeyringTx(w.ctx, tx, subscriber)
		return err
	})
	return k
}

// keyringOf reads a keyring by the number of its subscriber, as the dispatcher does.
func (w *world) keyringOf(number int64) (sender.SealedKeyring, error) {
	found, err := w.Store.Keyrings(w.ctx, []int64{number})
	k, ok := found[number]
	if err == nil && !ok {
		err = sender.ErrNotFound
	}
	return k, err
}

func (w *world) setSecrets(subscriber string, version int64, secrets ...sender.SealedSecret) error {
	return w.Store.InTx(w.ctx, func(tx any) error {
		return w.Store.SetSecretsTx(w.ctx, tx, subscriber, version, secrets)
	})
}

func (w *world) rewrap(subscriber, old string, s sender.SealedSecret) (done bool) {
	w.Helper()
	w.inTx(func(tx any) (err error) {
		done, err = w.Store.RewrapTx(w.ctx, tx, subscriber, []byte(old), s)
		return err
	})
	return done
}

// sameSecrets ends the test unless a keyring has these secrets in this order.
func (w *world) sameSecrets(k sender.SealedKeyring, want ...sender.SealedSecret) {
	w.Helper()
	w.equal(len(k.Secrets), len(want), "number of secrets of %s", k.Subscriber)
	for i, got := range k.Secrets {
		w.sameTime(got.NotBefore, want[i].NotBefore, "NotBefore of secret %d of %s", i, k.Subscriber)
		w.sameTime(got.NotAfter, want[i].NotAfter, "NotAfter of secret %d of %s", i, k.Subscriber)
		got.NotBefore, got.NotAfter = want[i].NotBefore, want[i].NotAfter
		w.equal(got, want[i], "secret %d of %s", i, k.Subscriber)
	}
}

func secretsReplaced(w *world) {
	first := sealed("sec_1", "first", "k1")
	owner, other := w.subscriberWith(first), w.subscriberWith(first)
	before := w.keyring(owner)
	w.sameSecrets(before, first)
	sub := w.subscribe(owner, "*")
	w.publish(w.draft("a.b"))
	w.expand()
	target := w.claimOne().Target
	w.equal(target.KeyringVersion, before.Version, "version of the keyring in the Target")

	ended := first
	ended.NotBefore, ended.NotAfter = createdAt, createdAt.Add(time.Hour)
	want := []sender.SealedSecret{sealed("sec_3", "third\x00'", "k2"), ended, sealed("sec_2", "second", "")}
	w.noError(w.setSecrets(owner, before.Version, want...), "replacing secrets")
	after := w.keyring(owner)
	w.sameSecrets(after, want...)
	w.check(after.Version > before.Version, "the version of the keyring was %d and is %d after a change", before.Version, after.Version)
	byNumber, err := w.keyringOf(target.SubscriberNumber)
	w.noError(err, "reading a keyring by number")
	w.equal(byNumber, after, "keyring by number")

	w.publish(w.draft("a.b"))
	w.expand()
	target = w.claimOne().Target
	w.equal(target.Subscription, sub, "subscription of the claimed delivery")
	w.equal(target.KeyringVersion, after.Version, "version of the keyring in the Target of a claim after the change")

	w.noError(w.setSecrets(owner, after.Version, first), "replacing secrets again")
	last := w.keyring(owner)
	w.sameSecrets(last, first)
	w.check(last.Version > after.Version, "the version of the keyring was %d and is %d after a change back", after.Version, last.Version)
	w.sameSecrets(w.keyring(other), first)
	w.equal(w.keyring(other).Version, before.Version, "version of another subscriber's keyring")
}

func secretsOfSeveral(w *world) {
	none, err := w.Store.Keyrings(w.ctx, nil)
	w.noError(err, "reading no keyrings")
	w.equal(len(none), 0, "number of no keyrings")
	want := map[int64]sender.SealedKeyring{}
	var numbers []int64
	for range 5 {
		owner := w.subscriberWith(sealed("sec_1", "one of "+w.name(""), ""), sealed("sec_2", "two", ""))
		w.subscribe(owner, "*")
		d := w.draft("a.b")
		d.Subscriber = owner
		w.publish(d)
		w.expand()
		c := w.claimOne()
		w.record(result(c, sender.ClassNone))
		numbers = append(numbers, c.Target.SubscriberNumber)
		want[c.Target.SubscriberNumber] = w.keyring(owner)
	}
	slices.Reverse(numbers)
	got, err := w.Store.Keyrings(w.ctx, append(numbers, numbers[0]+1000, 0, -1))
	w.noError(err, "reading several keyrings")
	w.equal(got, want, "keyrings of several subscribers by number, of which three are nobody's")
}

func secretsConflict(w *world) {
	first, second := sealed("sec_1", "first", "k1"), sealed("sec_2", "second", "k2")
	owner := w.subscriberWith(first)
	start := w.keyring(owner)
	w.errorIs(w.setSecrets(owner, start.Version-1, second), sender.ErrConflict, "replacing secrets under an earlier version")
	w.errorIs(w.setSecrets(owner, start.Version+1, second), sender.ErrConflict, "replacing secrets under a later version")
	w.equal(w.keyring(owner), start, "keyring after refused changes")
	w.noError(w.setSecrets(owner, start.Version, second), "replacing secrets")
	w.errorIs(w.setSecrets(owner, start.Version, first), sender.ErrConflict, "replacing secrets under the version before")
	w.sameSecrets(w.keyring(owner), second)
	w.errorIs(w.setSecrets("sub_unknown", start.Version, first), sender.ErrNotFound, "replacing an unknown subscriber's secrets")
}

func secretsConcurrently(w *world) {
	owner := w.subscriberWith(sealed("sec_1", "first", "k1"))
	start := w.keyring(owner)
	errs := make([]error, 8)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { errs[i] = w.setSecrets(owner, start.Version, sealed("sec_2", string(rune('a'+i)), "k2")) })
	}
	all.Wait()
	var made []int
	for i, err := range errs {
		if err == nil {
			made = append(made, i)
		} else {
			w.errorIs(err, sender.ErrConflict, "replacing secrets at a time with others")
		}
	}
	w.equal(len(made), 1, "number of changes that were made of one version")
	w.sameSecrets(w.keyring(owner), sealed("sec_2", string(rune('a'+made[0])), "k2"))
}

func secretsRolledBack(w *world) {
	first, second := sealed("sec_1", "first", "k1"), sealed("sec_2", "second", "k2")
	owner, other := w.subscriberWith(first), w.subscriberWith(first)
	w.subscribe(owner, "*")
	start := w.keyring(owner)
	failed := errors.New("the caller failed")
	err := w.Store.InTx(w.ctx, func(tx any) error {
		w.noError(w.Store.SetSecretsTx(w.ctx, tx, owner, start.Version, []sender.SealedSecret{second}), "replacing secrets")
		k, err := w.Store.SubscriberKeyringTx(w.ctx, tx, owner)
		w.noError(err, "reading a keyring in the transaction that changed it")
		w.sameSecrets(k, second)
		done, err := w.Store.RewrapTx(w.ctx, tx, other, first.Sealed, sealed("sec_1", "anew", "k3"))
		w.check(done && err == nil, "sealing anew: got %v, %v", done, err)
		return failed
	})
	w.errorIs(err, failed, "InTx whose function failed")
	w.equal(w.keyring(owner), start, "keyring whose change was rolled back")
	w.sameSecrets(w.keyring(other), first)
	keys, err := w.Store.SealingKeys(w.ctx)
	w.noError(err, "listing sealing keys")
	w.equal(keys, []string{"k1"}, "sealing keys after a roll-back")
	w.publish(w.draft("a.b"))
	w.expand()
	w.equal(w.claimOne().Target.KeyringVersion, start.Version, "version in the Target after a roll-back")
	w.noError(w.setSecrets(owner, start.Version, second), "replacing secrets under the version whose change was rolled back")
}

func secretsKeys(w *world) {
	keys := func(when string, want ...string) {
		w.Helper()
		got, err := w.Store.SealingKeys(w.ctx)
		w.noError(err, "listing sealing keys %s", when)
		w.check(slices.Equal(got, want), "sealing keys %s: got %q, want %q", when, got, want)
	}
	keys("of nobody")
	odd := []string{"K1", "k1", "k10", "k1 ", "k%", "k_", "ключ", "e\u0301", "\u00e9", "2026-11", "\U0001F511", "\uffff"}
	for _, key := range odd {
		w.subscriberWith(sealed("sec_1", "a", key), sealed("sec_2", "b", key))
		w.subscriberWith(sealed("sec_1", "a", key))
	}
	slices.Sort(odd)
	keys("of all", odd...)
	unknown := w.subscriberWith(sealed("sec_1", "a", ""), sealed("sec_2", "b", "z"))
	with := append([]string{"", "z"}, odd...)
	slices.Sort(with)
	keys("with one that is not known", with...)

	// They are gone with the secrets that they sealed.
	w.check(w.rewrap(unknown, "a", sealed("sec_1", "c", odd[0])), "a secret was not sealed anew")
	keys("after that was sealed anew", with[1:]...)
	w.noError(w.setSecrets(unknown, w.keyring(unknown).Version, sealed("sec_1", "c", odd[0])), "replacing secrets")
	keys("after another is not used any more", odd...)
}

func secretsByKey(w *world) {
	var under, all []string
	for i := range 23 {
		var id string
		switch i % 4 {
		case 0:
			id = w.subscriberWith(sealed("sec_1", "a", "k1"))
		case 1:
			id = w.subscriberWith(sealed("sec_1", "a", "k2"))
			under = append(under, id)
		case 2:
			id = w.subscriberWith(sealed("sec_1", "a", "k2"), sealed("sec_2", "b", "k1"), sealed("sec_3", "c", "k2"))
			under = append(under, id)
		case 3:
			id = w.subscriberWith(sealed("sec_1", "a", "K2"), sealed("sec_2", "b", ""))
		}
		all = append(all, id)
	}
	list := func(key, after string, limit int) (ids []string) {
		w.inTx(func(tx any) error {
			page, err := w.Store.KeyringsTx(w.ctx, tx, key, after, limit)
			w.noError(err, "listing keyrings under %q after %q", key, after)
			w.check(len(page) <= limit, "a page has %d keyrings, at most %d were asked for", len(page), limit)
			ids = nil
			for _, k := range page {
				whole, err := w.Store.SubscriberKeyringTx(w.ctx, tx, k.Subscriber)
				w.noError(err, "reading a keyring")
				w.equal(k, whole, "keyring in a list")
				ids = append(ids, k.Subscriber)
			}
			return nil
		})
		return ids
	}
	for _, limit := range []int{1, 3, 100} {
		var got []string
		for after := ""; ; {
			page := list("k2", after, limit)
			if len(page) == 0 {
				break
			}
			got, after = append(got, page...), page[len(page)-1]
		}
		w.check(slices.Equal(got, under), "subscribers under a key in pages of %d: got %s, want %s", limit, strings.Join(got, " "), strings.Join(under, " "))
	}
	w.equal(list("k2", all[0], 2), under[:2], "page after a subscriber that has nothing under the key")
	w.equal(list("", "", 1), all[3:4], "first page of those whose key is not known")
	w.equal(list("K1", "", 10), []string(nil), "keyrings under a key that sealed nothing")

	// A keyring that was sealed anew is not found again, so no cursor is needed to
	// go on.
	w.check(w.rewrap(under[0], "a", sealed("sec_1", "anew", "k1")), "a secret was not sealed anew")
	w.equal(list("k2", "", 2), under[1:3], "first page after the first was sealed anew")
	err := w.Store.InTx(w.ctx, func(tx any) error {
		_, err := w.Store.KeyringsTx(w.ctx, tx, "k2", "sub_unknown", 1)
		return err
	})
	w.errorIs(err, sender.ErrNotFound, "listing keyrings after an unknown subscriber")
}

func secretsRewrap(w *world) {
	one, two := sealed("sec_1", "one", "k1"), sealed("sec_2", "same", "k1")
	one.NotBefore, one.NotAfter = createdAt, createdAt.Add(time.Hour)
	owner := w.subscriberWith(one, two)
	other := w.subscriberWith(two)
	start := w.keyring(owner)
	w.check(w.rewrap(owner, "one", sealed("sec_1", "ONE", "k2")), "a secret was not sealed anew")
	one.Sealed, one.Key = []byte("ONE"), "k2"
	k := w.keyring(owner)
	w.sameSecrets(k, one, two)
	w.equal(k.Version, start.Version, "version of a keyring that was sealed anew")

	for _, c := range []struct{ why, subscriber, old, id string }{
		{"whose bytes are others by now", owner, "one", "sec_1"},
		{"whose bytes are another secret's", owner, "ONE", "sec_2"},
		{"that is not there", owner, "ONE", "sec_3"},
		{"of an unknown subscriber", "sub_unknown", "ONE", "sec_1"},
	} {
		w.check(!w.rewrap(c.subscriber, c.old, sealed(c.id, "late", "k3")), "a secret %s was sealed anew", c.why)
		w.sameSecrets(w.keyring(owner), one, two)
	}
	w.check(w.rewrap(other, "same", sealed("sec_2", "SAME", "k2")), "another subscriber's secret was not sealed anew")
	w.sameSecrets(w.keyring(owner), one, two)
	w.noError(w.setSecrets(owner, start.Version, two), "replacing secrets under the version that sealing anew left")
}
