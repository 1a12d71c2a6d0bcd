package storetest

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
)

func publishRules() []rule {
	return []rule{
		{"committed is delivered once", "Once its transaction has committed, an event has one delivery for each matching subscription.", publishCommitted},
		{"rolled back leaves nothing", "An event whose transaction rolled back is never expanded or sent, and its version and its idempotency key are free again.", publishRolledBack},
		{"many at once", "PublishTx persists all drafts in their order and returns a Ref for each.", publishMany},
		{"versions rise by one", "A draft without a version gets its object's last version + 1; objects differ by type and by id.", publishVersions},
		{"versions given", "A given version is stored as the object's last; one that does not exceed it is refused with a *VersionError.", publishGivenVersions},
		{"versions of concurrent publishers", "Concurrent publishes on one object get the versions 1 to n, without repeat or gap.", publishConcurrently},
		{"refused version leaves no trace", "After the roll-back that an error asks for, nothing remains of any draft of the call.", publishRefused},
		{"refused version takes no key", "A single draft that is refused with a *VersionError has written nothing, its key neither: a transaction that goes on can publish under it.", publishRefusedKey},
		{"key makes a duplicate", "A draft whose key is stored with the same content changes nothing, the version included, and its Ref is the first one's with Duplicate set.", publishDuplicate},
		{"key with another content", "A draft whose key is stored with another content is refused with ErrIdempotencyKey.", publishKeyReused},
		{"key of two at a time", "A publish under a key that another transaction has taken waits for the end of that one: if it commits, the publish is its duplicate, and if it rolls back, the key is free.", publishKeyMeanwhile},
		{"key belongs to its scope", "The same key in another scope is another key.", publishKeyScope},
		{"unknown addressee", "A subscriber or subscription that is not registered, or is deleted, is refused with ErrNotFound.", publishAddressee},
		{"dropped without its subscriber", "A draft with IfSubscriberExists whose subscriber is not registered, or is deleted, is dropped: its Ref has Dropped set alone, nothing is written of it, its version and its idempotency key neither, and the transaction goes on. The other drafts of the call are persisted.", publishDropped},
		{"dropped only for its subscriber", "IfSubscriberExists changes nothing else: a known key makes a duplicate, and a subscription that is not registered or an old version is refused.", publishDroppedOnlyFor},
		{"body keeps its bytes", "A body is BodyHead, the version in decimal, BodyTail; no byte of it ever changes.", publishBodies},
		{"traceparent is kept", "The Traceparent of a draft is with its event wherever that is read; that of a duplicate changes nothing.", publishTraced},
		{"odd object ids", "Objects' ids are any UTF-8, and are never normalised.", publishOddObjects},
		{"open transactions", "The events of an open transaction are unseen until it commits, and are found even if later ones committed first. On a database with a single writer, the others wait, and give up when their context ends.", publishOpen},
	}
}

func publishCommitted(w *world) {
	sub := w.subscribe(w.subscriber(), "*")
	d := w.draft("a.b")
	tx, commit, _ := w.Begin(w.T)
	refs, err := w.Store.PublishTx(w.ctx, tx, []sender.Draft{d})
	w.noError(err, "publishing")
	w.equal(refs, []sender.Ref{{ID: d.ID, Version: 1}}, "Refs")
	w.noError(commit(), "committing")

	w.equal(w.expand(), 1, "deliveries made")
	c := w.claimOne()
	w.sameEvent(c.Event, d, w.now())
	w.equal(c.Target.Subscription, sub, "subscription of the claimed delivery")
	w.sameBody(c.Body, d, 1)
}

func publishRolledBack(w *world) {
	sub := w.subscribe(w.subscriber(), "*")
	obj := sender.Object{Type: "thing", ID: "one"}
	keyed := func() sender.Draft {
		d := w.draftOn("a.b", obj)
		d.Key, d.KeyScope, d.KeyHash = "k", "scope", sha256.Sum256([]byte("content"))
		return d
	}
	tx, _, rollback := w.Begin(w.T)
	_, err := w.Store.PublishTx(w.ctx, tx, []sender.Draft{keyed()})
	w.noError(err, "publishing")
	w.noError(rollback(), "rolling back")
	w.equal(w.expand(), 0, "deliveries made of a rolled-back event")

	failed := errors.New("the producer failed")
	err = w.Store.InTx(w.ctx, func(tx any) error {
		_, err := w.Store.PublishTx(w.ctx, tx, []sender.Draft{keyed()})
		return errors.Join(err, failed)
	})
	w.errorIs(err, failed, "InTx whose function failed")
	w.equal(w.expand(), 0, "deliveries made of a rolled-back event")

	kept := keyed()
	w.equal(w.publish(kept), []sender.Ref{{ID: kept.ID, Version: 1}}, "Refs after two publishes that rolled back")
	w.expand()
	w.equal(w.events(sub), sorted(kept), "events delivered")
}

func publishMany(w *world) {
	sub := w.subscribe(w.subscriber(), "*")
	one, two := sender.Object{Type: "thing", ID: "1"}, sender.Object{Type: "thing", ID: "2"}
	var drafts []sender.Draft
	var want []sender.Ref
	for i := range 120 {
		obj, version := one, int64(i/2+1)
		if i%2 == 1 {
			obj = two
		}
		d := w.draftOn("a.b", obj)
		drafts, want = append(drafts, d), append(want, sender.Ref{ID: d.ID, Version: version})
	}
	w.equal(w.publish(drafts...), want, "Refs")
	w.inTx(func(tx any) error { // twice in one transaction
		for range 2 {
			drafts = append(drafts, w.draftOn("a.b", one))
			refs, err := w.Store.PublishTx(w.ctx, tx, drafts[len(drafts)-1:])
			if err != nil {
				return err
			}
			want = append(want, refs...)
		}
		return nil
	})
	w.equal([]int64{want[120].Version, want[121].Version}, []int64{61, 62}, "versions of two publishes in one transaction")
	w.equal(w.expand(), len(drafts), "deliveries made")
	w.equal(w.events(sub), sorted(drafts...), "events delivered")
	refs, err := w.tryPublish()
	w.noError(err, "publishing no drafts")
	w.equal(len(refs), 0, "Refs for no drafts")
}

func publishTraced(w *world) {
	const trace, another = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b8-00"
	sub := w.subscribe(w.subscriber(), "*")
	traced, plain := w.draft("a.b"), w.draft("a.b")
	traced.Traceparent, traced.Key, traced.KeyHash = trace, "k", sha256.Sum256([]byte("content"))
	again := w.draft("a.b")
	again.Traceparent, again.Key, again.KeyHash = another, traced.Key, traced.KeyHash
	w.publish(traced, again, plain)
	w.expand()

	want := map[string]string{traced.ID: trace, plain.ID: ""}
	same := func(e sender.EventInfo, where string) {
		w.Helper()
		w.equal(e.Traceparent, want[e.ID], "Traceparent of the event %s", where)
	}
	claimed := w.claim(2)
	w.equal(len(claimed), 2, "deliveries claimed")
	events := make([]int64, len(claimed))
	for i, c := range claimed {
		same(c.Event, "that is claimed")
		events[i] = c.Key.Event
	}
	payloads, err := w.Store.Payloads(w.ctx, events)
	w.noError(err, "reading payloads")
	w.equal(len(payloads), 2, "payloads")
	for _, p := range payloads {
		same(p.Event, "of a payload")
	}
	for id := range want {
		e, err := w.Store.Event(w.ctx, id)
		w.noError(err, "reading an event")
		same(e.EventInfo, "by its id")
		same(w.delivery(id, sub).Event, "of its delivery")
	}
	for _, e := range w.listEvents(history.EventQuery{}) {
		same(e.EventInfo, "in a list")
	}
	w.Advance(lease + time.Second)
	retaken := w.claimBy(dispatch.ClaimParams{Lease: lease, Lanes: lanes(10)})
	w.equal(len(retaken.Interrupted), 2, "interrupted attempts")
	for _, r := range retaken.Interrupted {
		same(r.Event, "of an interrupted attempt")
	}
	w.equal(len(retaken.Claimed), 2, "deliveries claimed again")
	for _, c := range retaken.Claimed {
		same(c.Event, "that is claimed again")
	}
}

func publishVersions(w *world) {
	objects := []sender.Object{{Type: "thing", ID: "1"}, {Type: "thing", ID: "2"}, {Type: "other", ID: "1"}}
	for version := int64(1); version <= 12; version++ {
		for _, obj := range objects {
			w.equal(w.publish(w.draftOn("a.b", obj))[0].Version, version, "version of a publish on %v", obj)
		}
	}
}

func publishGivenVersions(w *world) {
	obj := sender.Object{Type: "thing", ID: "1"}
	give := func(version int64) (sender.Draft, []sender.Ref, error) {
		d := w.draftOn("a.b", obj)
		d.Version = version
		refs, err := w.tryPublish(d)
		return d, refs, err
	}
	for _, step := range []struct{ given, gets, stored int64 }{
		{given: 10, gets: 10}, {given: 0, gets: 11}, {given: 11, stored: 11}, {given: 5, stored: 11},
		{given: 12, gets: 12}, {given: 1 << 52, gets: 1 << 52}, {given: 0, gets: 1<<52 + 1},
	} {
		d, refs, err := give(step.given)
		if step.gets > 0 {
			w.noError(err, "publishing under version %d", step.given)
			w.equal(refs, []sender.Ref{{ID: d.ID, Version: step.gets}}, "Refs of a publish under version %d", step.given)
			continue
		}
		w.errorIs(err, sender.ErrVersion, "publishing version %d after %d", step.given, step.stored)
		var refused *sender.VersionError
		w.check(errors.As(err, &refused), "publishing version %d after %d: the error is no *VersionError: %v", step.given, step.stored, err)
		w.equal(*refused, sender.VersionError{Object: obj, Given: step.given, Stored: step.stored}, "VersionError")
	}
}

func publishConcurrently(w *world) {
	const publishers, each = 16, 10
	obj := sender.Object{Type: "thing", ID: "contended"}
	var (
		wg       sync.WaitGroup
		mu       sync.Mutex
		versions []int64
	)
	for range publishers {
		drafts := make([]sender.Draft, each)
		for i := range drafts {
			drafts[i] = w.draftOn("a.b", obj)
		}
		wg.Go(func() {
			for i := range drafts {
				refs, err := w.tryPublish(drafts[i])
				if err != nil {
					w.Errorf("publishing: %v", err)
					return
				}
				mu.Lock()
				versions = append(versions, refs[0].Version)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	slices.Sort(versions)
	w.equal(len(versions), publishers*each, "number of versions")
	for i, v := range versions {
		w.equal(v, int64(i+1), "version number %d in order", i+1)
	}
}

func publishRefused(w *world) {
	sub := w.subscribe(w.subscriber(), "*")
	one, two := sender.Object{Type: "thing", ID: "1"}, sender.Object{Type: "thing", ID: "2"}
	first := w.draftOn("a.b", two)
	first.Version = 7
	w.publish(first)

	good, bad := w.draftOn("a.b", one), w.draftOn("a.b", two)
	good.Key = "k"
	bad.Version = 7
	_, err := w.tryPublish(good, bad)
	w.errorIs(err, sender.ErrVersion, "publishing a version again")

	again := w.draftOn("a.b", one)
	again.Key = "k"
	w.equal(w.publish(again, w.draftOn("a.b", two))[0], sender.Ref{ID: again.ID, Version: 1}, "Ref after a call that was refused")
	w.equal(w.expand(), 3, "deliveries made")
	w.check(!slices.Contains(w.events(sub), good.ID), "an event of a call that was refused was delivered")
}

func publishRefusedKey(w *world) {
	obj := sender.Object{Type: "thing", ID: "1"}
	first := w.draftOn("a.b", obj)
	first.Version = 7
	w.publish(first)
	keyed := func(version int64) sender.Draft {
		d := w.draftOn("a.b", obj)
		d.Key, d.KeyScope, d.KeyHash = "k", "scope", sha256.Sum256([]byte("content"))
		d.Version = version
		return d
	}
	tx, commit, _ := w.Begin(w.T)
	_, err := w.Store.PublishTx(w.ctx, tx, []sender.Draft{keyed(7)})
	w.errorIs(err, sender.ErrVersion, "publishing a version again, under a key")
	later := keyed(8)
	refs, err := w.Store.PublishTx(w.ctx, tx, []sender.Draft{later})
	w.noError(err, "publishing under the key, in the same transaction")
	w.equal(refs, []sender.Ref{{ID: later.ID, Version: 8}}, "Refs")
	w.noError(commit(), "committing")
	w.equal(w.publish(keyed(9))[0], sender.Ref{ID: later.ID, Version: 8, Duplicate: true}, "Ref under the key that was taken at last")
}

func publishDuplicate(w *world) {
	sub := w.subscribe(w.subscriber(), "*")
	obj := sender.Object{Type: "thing", ID: "1"}
	keyed := func(key string) sender.Draft {
		d := w.draftOn("a.b", obj)
		d.Key, d.KeyScope, d.KeyHash = key, "scope", sha256.Sum256([]byte(key))
		return d
	}
	first := keyed("k")
	ref := w.publish(first)[0]
	w.equal(ref, sender.Ref{ID: first.ID, Version: 1}, "first Ref under a key")
	ref.Duplicate = true
	w.equal(w.publish(keyed("k"))[0], ref, "second Ref under a key")

	given := keyed("k")
	given.Version = 1
	w.equal(w.publish(given)[0], ref, "Ref of a duplicate with a version that would be refused")

	other, unkeyed := keyed("l"), w.draftOn("a.b", obj)
	w.equal(w.publish(keyed("k"), other, keyed("l"), unkeyed), []sender.Ref{
		ref, {ID: other.ID, Version: 2}, {ID: other.ID, Version: 2, Duplicate: true}, {ID: unkeyed.ID, Version: 3},
	}, "Refs of a call with duplicates of an older one and of its own")
	w.expand()
	w.equal(w.events(sub), sorted(first, other, unkeyed), "events delivered")
}

func publishKeyReused(w *world) {
	obj := sender.Object{Type: "thing", ID: "1"}
	d := w.draftOn("a.b", obj)
	d.Key, d.KeyScope, d.KeyHash = "k", "scope", sha256.Sum256([]byte("content"))
	w.publish(d)

	other := w.draftOn("a.b", obj)
	other.Key, other.KeyScope, other.KeyHash = "k", "scope", sha256.Sum256([]byte("another content"))
	_, err := w.tryPublish(other)
	w.errorIs(err, sender.ErrIdempotencyKey, "publishing another content under a key")
	other.Version = 1
	_, err = w.tryPublish(other)
	w.errorIs(err, sender.ErrIdempotencyKey, "publishing another content under a key, and a version that would be refused")
	w.equal(w.publish(w.draftOn("a.b", obj))[0].Version, int64(2), "version after a refused publish")
}

func publishKeyScope(w *world) {
	for _, k := range []struct{ scope, key string }{{"a", "k"}, {"b", "k"}, {"", "k"}, {"k", "a"}, {"ab", "c"}, {"a", "bc"}, {"a", "K"}, {"a", "k "}, {"", "ключ'\"%_"}} {
		d := w.draft("a.b")
		d.Key, d.KeyScope, d.KeyHash = k.key, k.scope, sha256.Sum256([]byte("content"))
		w.equal(w.publish(d)[0], sender.Ref{ID: d.ID, Version: 1}, "first Ref under key %q in scope %q", k.key, k.scope)
		d2 := w.draft("a.b")
		d2.Key, d2.KeyScope, d2.KeyHash = d.Key, d.KeyScope, d.KeyHash
		w.equal(w.publish(d2)[0], sender.Ref{ID: d.ID, Version: 1, Duplicate: true}, "second Ref under key %q in scope %q", k.key, k.scope)
	}
}

func publishAddressee(w *world) {
	owner := w.subscriber()
	gone := w.subscribe(owner, "*")
	w.unsubscribe(gone)
	for name, to := range map[string]struct{ subscriber, subscription string }{
		"unknown subscriber":                {"sub_unknown", ""},
		"unknown subscription":              {owner, "wsub_unknown"},
		"both unknown":                      {"sub_unknown", "wsub_unknown"},
		"subscription deleted":              {owner, gone},
		"subscription's id as subscriber's": {gone, ""},
	} {
		d := w.draft("a.b")
		d.Subscriber, d.Subscription = to.subscriber, to.subscription
		_, err := w.tryPublish(d)
		w.errorIs(err, sender.ErrNotFound, "publishing to %s", name)
	}
	w.equal(w.expand(), 0, "deliveries made")
}

func publishDropped(w *world) {
	owner, deleted := w.subscriber(), w.subscriber()
	sub := w.subscribe(owner, "*")
	w.inTx(func(tx any) error { return w.Store.DeleteSubscriberTx(w.ctx, tx, deleted) })
	obj := sender.Object{Type: "thing", ID: "1"}
	to := func(subscriber string) sender.Draft {
		d := w.draftOn("a.b", obj)
		d.Subscriber, d.IfSubscriberExists = subscriber, true
		return d
	}
	keyed := func(subscriber string) sender.Draft {
		d := to(subscriber)
		d.Key, d.KeyScope, d.KeyHash = "k", "scope", sha256.Sum256([]byte("content"))
		return d
	}
	given := to("sub_unknown")
	given.Version = 99
	addressed := to("sub_unknown")
	addressed.Subscription = sub
	dropped := sender.Ref{Dropped: true}
	for name, d := range map[string]sender.Draft{
		"an unknown one": to("sub_unknown"), "a deleted one": to(deleted), "an unknown one, under a key": keyed("sub_unknown"),
		"an unknown one, with a version": given, "an unknown one's subscription": addressed, "a subscription's id": to(sub),
	} {
		tx, commit, _ := w.Begin(w.T)
		refs, err := w.Store.PublishTx(w.ctx, tx, []sender.Draft{d})
		w.noError(err, "publishing to %s", name)
		w.equal(refs, []sender.Ref{dropped}, "Refs of a publish to %s", name)
		w.noError(commit(), "committing after a publish to %s", name)
		_, err = w.Store.Event(w.ctx, d.ID)
		w.errorIs(err, sender.ErrNotFound, "reading the event of a publish to %s", name)
	}
	w.equal(w.expand(), 0, "deliveries made")

	tx, commit, _ := w.Begin(w.T)
	first, last := keyed(owner), to(owner)
	early := keyed("sub_unknown") // nobody has the key yet
	early.KeyHash = sha256.Sum256([]byte("another content"))
	refs, err := w.Store.PublishTx(w.ctx, tx, []sender.Draft{early, to("sub_unknown"), first, keyed("sub_unknown"), to(deleted), last, to("sub_unknown")})
	w.noError(err, "publishing a batch")
	w.equal(refs[0], dropped, "Ref of a draft that is dropped before another takes its key")
	refs = refs[1:]
	w.equal(refs[:2], []sender.Ref{dropped, {ID: first.ID, Version: 1}}, "Refs of a batch")
	w.equal(refs[3:], []sender.Ref{dropped, {ID: last.ID, Version: 2}, dropped}, "Refs of a batch")
	w.equal(refs[2], sender.Ref{ID: first.ID, Version: 1, Duplicate: true}, "Ref of the second draft under a key")
	later := w.draftOn("a.b", obj)
	refs, err = w.Store.PublishTx(w.ctx, tx, []sender.Draft{later})
	w.noError(err, "publishing later, in the same transaction")
	w.equal(refs, []sender.Ref{{ID: later.ID, Version: 3}}, "Refs of a later publish in the same transaction")
	w.noError(commit(), "committing")
	w.expand()
	w.equal(w.events(sub), sorted(first, last, later), "events delivered")
}

func publishDroppedOnlyFor(w *world) {
	owner := w.subscriber()
	sub := w.subscribe(owner, "*")
	draft := func(key string) sender.Draft {
		d := w.draftOn("a.b", sender.Object{Type: "thing", ID: "1"})
		d.Subscriber, d.IfSubscriberExists = owner, true
		if key != "" {
			d.Key, d.KeyScope, d.KeyHash = key, "scope", sha256.Sum256([]byte("content"))
		}
		return d
	}
	first := draft("k")
	ref := w.publish(first)[0]
	w.equal(ref, sender.Ref{ID: first.ID, Version: 1}, "Ref of a publish to a subscriber that exists")

	unknown, old, other := draft(""), draft(""), draft("k")
	unknown.Subscription = "wsub_unknown"
	_, err := w.tryPublish(unknown)
	w.errorIs(err, sender.ErrNotFound, "publishing to an unknown subscription")
	old.Version = 1
	_, err = w.tryPublish(old)
	w.errorIs(err, sender.ErrVersion, "publishing a version again")
	other.KeyHash = sha256.Sum256([]byte("another content"))
	_, err = w.tryPublish(other)
	w.errorIs(err, sender.ErrIdempotencyKey, "publishing another content under a key")

	w.expand()
	w.equal(w.events(sub), []string{first.ID}, "events delivered")
	w.inTx(func(tx any) error { return w.Store.DeleteSubscriberTx(w.ctx, tx, owner) })
	ref.Duplicate = true
	w.equal(w.publish(draft("k"))[0], ref, "Ref under a known key, when the subscriber is deleted")
}

func publishBodies(w *world) {
	sub := w.subscribe(w.subscriber(), "*")
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	tails := map[string][]byte{}
	for name, tail := range map[string]string{
		"thin":    "}",
		"quotes":  `,"data":"'\"\\` + "`$1 ? :x %s; --" + `"}`,
		"unicode": `,"data":"ключ 鍵 🔑 ` + "\u2028\u00a0e\u0301\u00e9\ufeff" + `"}`,
		"spaces":  ` , "data" : { "b" : 1.0e2 , "a" : [ ] }` + " \r\n\t}\n",
		"numbers": `,"data":[1.0,1e400,-0,12345678901234567890]}`,
		"every":   string(every),
		"large":   `,"data":"` + strings.Repeat("0123456789abcdef", 1<<16) + `"}`,
	} {
		d := w.draftOn("a.b", sender.Object{Type: "thing", ID: name})
		d.Version, d.BodyTail = 1<<53-1, []byte(tail)
		tails[d.ID] = d.Body(d.Version)
		w.publish(d)
	}
	w.expand()
	claimed := w.claim(plenty)
	w.equal(len(claimed), len(tails), "deliveries claimed")
	for _, c := range claimed {
		want := tails[c.Event.ID]
		w.check(bytes.Equal(c.Body, want), "body as claimed: got %.200q, want %.200q", c.Body, want)
		got := w.delivery(c.Event.ID, sub).Body
		w.check(bytes.Equal(got, want), "body in the history: got %.200q, want %.200q", got, want)
		w.record(result(c, sender.ClassTimeout))
	}
	w.Advance(retryDelay(1))
	for _, c := range w.claim(plenty) {
		want := tails[c.Event.ID]
		w.check(bytes.Equal(c.Body, want), "body as claimed again: got %.200q, want %.200q", c.Body, want)
	}
}

func publishOddObjects(w *world) {
	sub := w.subscribe(w.subscriber(), "*")
	ids := []string{
		"a", "A", "a ", " a", "á", "a\u0301", "%", "_", "*", "'", `"`, `\`, "a'; DROP TABLE events; --", "🔑", "鍵",
		"1", "01", "1.0", "null", "NULL", "\u00a0", "\u200b", "ß", "ss", "ı", "i", "İ", strings.Repeat("x", 255),
	}
	var drafts []sender.Draft
	for _, id := range ids {
		drafts = append(drafts, w.draftOn("a.b", sender.Object{Type: "thing", ID: id}))
	}
	for i, ref := range w.publish(drafts...) {
		w.equal(ref.Version, int64(1), "version of object %q", ids[i])
	}
	w.expand()
	for _, d := range drafts {
		w.sameEvent(w.delivery(d.ID, sub).Event, d, w.now())
	}
}
