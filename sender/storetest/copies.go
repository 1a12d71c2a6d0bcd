package storetest

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/feed"
	"github.com/surehook/surehook/sender/replay"
)

// spoil changes all bytes that a slice has.
func spoil(b []byte) {
	for i := range b {
		b[i] = '#'
	}
}

func spoilSubscription(s *sender.Subscription) {
	s.EventTypes[0] = "spoilt"
	spoilSettings(&s.Settings)
}

func spoilSettings(s *sender.Settings) {
	s.Headers["X-Tenant"], s.RetryDelays[0] = "spoilt", 1
	spoil(s.SealedCertificate)
}

func spoilSecrets(secrets []sender.SealedSecret) {
	for _, s := range secrets {
		spoil(s.Sealed)
	}
}

// historyCopies changes all that it has given to the store, and all that the store has
// answered, and then reads it again.
func historyCopies(w *world) {
	owner, secrets := w.name("sub_"), func() []sender.SealedSecret { return []sender.SealedSecret{sealed("sec_1", "first", "k1")} }
	given := secrets()
	w.inTx(func(tx any) error {
		return w.Store.CreateSubscriberTx(w.ctx, tx, sender.Subscriber{ID: owner, CreatedAt: createdAt}, given)
	})
	spoilSecrets(given)
	w.sameSecrets(w.keyring(owner), secrets()...)

	made := w.subscription(owner)
	want := func() sender.Subscription {
		s := made
		s.EventTypes, s.Settings = []string{"a.b", "c.*"}, customSettings()
		return s
	}
	s := want()
	w.inTx(func(tx any) error { return w.Store.CreateSubscriptionTx(w.ctx, tx, s) })
	spoilSubscription(&s)
	w.sameSubscription(w.read(made.ID), want())
	s = want()
	w.update(s)
	spoilSubscription(&s)
	w.sameSubscription(w.read(made.ID), want())

	d := w.draft("a.b")
	body := d.Body(1)
	w.publish(d)
	spoil(d.BodyHead)
	spoil(d.BodyTail)
	w.expand()
	c := w.claimOne()
	w.check(bytes.Equal(c.Body, body), "body of an event whose draft was changed after it was published: %q", c.Body)
	kept := []byte("kept")
	_, err := w.Store.KeepBodies(w.ctx, []dispatch.KeptBody{{Key: c.Key, Token: c.Token, Body: kept}})
	w.noError(err, "keeping a body")
	spoil(kept)
	r := result(c, sender.ClassStatus)
	r.Snippet = []byte("a snippet")
	w.decide = func(_ dispatch.Live, h sender.Health, _ dispatch.Result, _ time.Time) dispatch.Decision {
		return dispatch.Decision{Status: sender.StatusDeadLettered, Health: h}
	}
	w.record(r)
	spoil(r.Snippet)
	got := w.delivery(d.ID, made.ID)
	w.equal([]string{string(got.Body), string(got.Attempts[0].Snippet)}, []string{"kept", "a snippet"}, "body and snippet of a delivery")

	for _, answer := range w.copied(owner, made.ID, c, got.ID) {
		text := func() (string, func()) {
			got, spoil, err := answer.read()
			w.noError(err, "%s", answer.of)
			text, err := json.Marshal(got)
			w.noError(err, "writing the answer of %s", answer.of)
			return string(text), spoil
		}
		first, spoil := text()
		spoil()
		second, _ := text()
		w.equal(second, first, "answer of %s, after an earlier one was changed", answer.of)
	}
}

// copied is an answer of the store, and what changes it.
type copied struct {
	of   string
	read func() (answer any, spoil func(), err error)
}

// copied are the answers about a subscriber, its subscription, and a claimed delivery with
// an id.
func (w *world) copied(owner, subscription string, c dispatch.Claimed, delivery string) []copied {
	return []copied{
		{"SubscriptionTx", func() (any, func(), error) {
			s := w.read(subscription)
			return s, func() { spoilSubscription(&s) }, nil
		}},
		{"Subscriptions", func() (any, func(), error) {
			page, _, err := w.Store.Subscriptions(w.ctx, sender.SubscriptionQuery{})
			return page, func() { spoilSubscription(&page[0]) }, err
		}},
		{"SubscriberKeyringTx", func() (any, func(), error) {
			k := w.keyring(owner)
			return k, func() { spoilSecrets(k.Secrets) }, nil
		}},
		{"Keyrings", func() (any, func(), error) {
			k, err := w.keyringOf(c.Target.SubscriberNumber)
			return k, func() { spoilSecrets(k.Secrets) }, err
		}},
		{"Delivery", func() (any, func(), error) {
			d, err := w.Store.Delivery(w.ctx, delivery, whole)
			return d, func() {
				spoil(d.Body)
				spoil(d.Attempts[0].Snippet)
				d.Attempts[0].Error = "spoilt"
			}, err
		}},
		{"Facts", func() (any, func(), error) {
			f, err := w.Store.Facts(w.ctx, delivery)
			return []any{f.Delivery, f.Settings}, func() {
				spoil(f.Delivery.Attempts[0].Snippet)
				spoilSettings(&f.Settings)
			}, err
		}},
		{"Event", func() (any, func(), error) {
			e, err := w.Store.Event(w.ctx, c.Event.ID)
			return e, func() { spoil(e.Body) }, err
		}},
		{"Feed", func() (any, func(), error) {
			p, err := w.Store.Feed(w.ctx, feed.StoreQuery{Viewer: owner, Limit: 1})
			return p, func() { spoil(p.Events[0].Body) }, err
		}},
		{"Payloads", func() (any, func(), error) {
			p, err := w.Store.Payloads(w.ctx, []int64{c.Key.Event})
			return p, func() { spoil(p[c.Key.Event].Body) }, err
		}},
		{"KeepBodies", func() (any, func(), error) {
			all, err := w.Store.KeepBodies(w.ctx, []dispatch.KeptBody{{Key: c.Key, Token: c.Token}})
			return all[c.Key], func() { spoil(all[c.Key]) }, err
		}},
		{"Rollups", func() (any, func(), error) {
			all, err := w.Store.Rollups(w.ctx, c.At.Add(-time.Hour), c.At.Add(time.Hour))
			return all, func() {
				for class := range all[0].Failures {
					all[0].Failures[class]++
				}
			}, err
		}},
	}
}

func replayCopies(w *world) {
	sub := w.subscribe(w.subscriber(), "*")
	groups := func() []replay.Group {
		return []replay.Group{{Subscription: sub, ErrorClass: sender.ClassStatus, StatusCode: 500}}
	}
	given := replay.Replay{Filter: replay.Filter{Status: sender.StatusDeadLettered, Groups: groups()}}
	r, err := w.Store.CreateReplay(w.ctx, given, replay.Bounds{})
	w.noError(err, "creating a replay")
	spoil := func(what string, some replay.Replay, err error) {
		w.noError(err, "%s", what)
		w.equal(some.Filter.Groups, groups(), "groups of %s", what)
		some.Filter.Groups[0].Subscription = "spoilt"
		w.equal(w.readReplay(r.ID).Filter.Groups, groups(), "groups of a replay after those of %s were changed", what)
	}
	spoil("CreateReplay", r, nil)
	given.Filter.Groups[0].Subscription = "spoilt"
	w.equal(w.readReplay(r.ID).Filter.Groups, groups(), "groups of a replay after those that it was created from were changed")
	got, err := w.Store.Replay(w.ctx, r.ID)
	spoil("Replay", got, err)
	page, err := w.Store.Replays(w.ctx, replay.Query{Limit: 1})
	spoil("Replays", page[0], err)
	got, err = w.Store.SetReplayStatus(w.ctx, r.ID, replay.Running)
	spoil("SetReplayStatus", got, err)
	spoil("StepReplays", w.step(plenty).Finished[0], nil)
}
