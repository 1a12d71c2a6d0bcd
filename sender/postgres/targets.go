package postgres

import (
	"fmt"
	"slices"
	"sync"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/internal/lru"
)

// Statuses of a subscription that has been deleted, besides the public ones.
const (
	statusActive  = string(sender.SubscriptionActive)
	statusClosing = string(sender.SubscriptionClosing)
	statusDeleted = "deleted" // some of its deliveries may be live
	statusSwept   = "swept"
)

// subscription is what a claim and a recording need to know of one, as callers have
// left it.
type subscription struct {
	*sender.Target // but for the lane; nobody changes it
	status         string
	epoch          int64
	leftTo         int64
	resumedFrom    int64
	recovered      int64
	left           []left // if leftTo is not 0
}

// left is a row of surehook_left: what was there before the epoch, up to an event,
// is cancelled.
type left struct{ epoch, event int64 }

// gone tells whether it was deleted.
func (s *subscription) gone() bool { return s.status == statusDeleted || s.status == statusSwept }

// opened tells whether anything of it may be claimed.
func (s *subscription) opened() bool { return s.status == statusActive || s.status == statusClosing }

// leaves tells whether a resume has left a delivery behind that was in an epoch.
func (s *subscription) leaves(epoch, event int64) bool {
	return event <= s.leftTo && slices.ContainsFunc(s.left, func(l left) bool { return l.epoch > epoch && l.event >= event })
}

// targets remembers where deliveries go, by their subscriptions' versions.
type targets struct {
	sync.Mutex
	by *lru.Map[int64, *target]
}

func newTargets() targets { return targets{by: lru.New[int64, *target](targetsLimit)} }

type target struct {
	sender.Target
	version int64
}

// targetsLimit bounds what is remembered: those that were used last.
const targetsLimit = 100_000

const (
	selectTargets = `SELECT s.no, s.version, s.status, s.epoch, s.left_to, s.resumed_from, s.recovered, s.id, s.url, s.settings, o.no, o.id, o.keyring_version
		FROM surehook_subscriptions s JOIN surehook_subscribers o ON o.no = s.subscriber WHERE s.no = ANY($1)`
	selectLeftOf = `SELECT subscription, epoch, event FROM surehook_left WHERE subscription = ANY($1)`
)

// subscriptions reads some, with a snapshot taken now. It adds them to all.
func (w *work) subscriptions(nos []int64, all map[int64]*subscription) error {
	if len(nos) == 0 {
		return nil
	}
	err := w.each(func(r rows) (bool, error) { return true, w.scanSubscription(r, all) }, selectTargets, nos)
	if err != nil {
		return err
	}
	return w.leftOf(all)
}

// scanSubscription adds one to all, but for what was left.
func (w *work) scanSubscription(r rows, all map[int64]*subscription) error {
	var sub subscription
	var t target
	var settings string
	err := r.Scan(&t.SubscriptionNo, &t.version, &sub.status, &sub.epoch, &sub.leftTo, &sub.resumedFrom, &sub.recovered,
		&t.Subscription, &t.URL, &settings, &t.SubscriberNumber, &t.Subscriber, &t.KeyringVersion)
	if err == nil {
		sub.Target = w.targets.remember(&t, settings)
	}
	all[t.SubscriptionNo] = &sub
	return err
}

// leftOf reads what resumes of subscriptions have left.
func (w *work) leftOf(all map[int64]*subscription) error {
	var withLeft []int64
	for no, sub := range all {
		if sub.leftTo > 0 && sub.left == nil {
			withLeft = append(withLeft, no)
		}
	}
	if len(withLeft) == 0 {
		return nil
	}
	return w.each(func(r rows) (bool, error) {
		var no int64
		var l left
		err := r.Scan(&no, &l.epoch, &l.event)
		all[no].left = append(all[no].left, l)
		return true, err
	}, selectLeftOf, withLeft)
}

// remember returns what is remembered of a target, if that is of its version.
func (ts *targets) remember(t *target, settings string) *sender.Target {
	ts.Lock()
	defer ts.Unlock()
	if known, ok := ts.by.Get(t.SubscriptionNo); ok && known.version == t.version && known.KeyringVersion == t.KeyringVersion {
		return &known.Target
	}
	read := sender.ReadSettings([]byte(settings))
	t.Settings = &read
	known := *t
	ts.by.Put(t.SubscriptionNo, &known)
	return &known.Target
}

// lock locks the heads of subscriptions, and reads how these are: the statement
// after the lock has a newer snapshot, so nothing is missed that came before it.
func (b *batch) lock(subscriptions []int64) error {
	var missing []int64
	for _, no := range subscriptions {
		if b.heads.by[no] == nil {
			missing = append(missing, no)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	missing = distinct(missing)
	var locked []int64
	err := b.many(b.ctx, []query{b.lockQuery(missing)}, func(_ int, r rows) error {
		h, err := scanHead(r)
		locked = append(locked, h.subscription)
		if err == nil {
			b.heads.put(h)
		}
		return err
	})
	if err == nil {
		err = b.allLocked(missing)
	}
	if err != nil {
		return err
	}
	return b.know(locked)
}

// lockQuery locks the heads of subscriptions, which are given in their order.
func (b *batch) lockQuery(subscriptions []int64) query {
	if b.again {
		return query{b.text(lockHeads), []any{subscriptions}}
	}
	return query{b.text(lockHeadsAt.of(len(subscriptions))), []any{given(subscriptions), given(placesOf(&b.places, b.places.heads, subscriptions))}}
}

// allLocked returns an error if heads are missing that may have moved while they were
// waited for. When the transaction runs again they are found by their keys.
func (b *batch) allLocked(subscriptions []int64) error {
	if b.again {
		return nil
	}
	for _, no := range subscriptions {
		if b.heads.by[no] == nil {
			return fmt.Errorf("%w: the head of subscription number %d was not found where it was", sender.ErrRetryTx, no)
		}
	}
	return nil
}

// know reads the subscriptions of heads that are locked, if they were not read since.
func (b *batch) know(locked []int64) error {
	var unknown []int64
	for _, no := range locked {
		if b.subs[no] == nil {
			unknown = append(unknown, no)
		}
	}
	if err := b.subscriptions(unknown, b.subs); err != nil {
		return err
	}
	if err := b.leftOf(b.subs); err != nil {
		return err
	}
	for _, no := range locked {
		sub := b.subs[no]
		if sub == nil {
			sub = b.missingSubscription(no)
			b.subs[no] = sub
		}
		if b.heads.stored[no].lane == noLane && !b.heads.by[no].missing {
			b.damage.Tell(b.ctx, no, "its lane in surehook_heads is none", "it is taken for a new one")
		}
		b.heads.by[no].meet(sub, b.now)
	}
	return nil
}

// one locks the head of a subscription that must be there.
func (b *batch) one(subscription int64) (*head, *subscription, error) {
	if err := b.lock([]int64{subscription}); err != nil {
		return nil, nil, err
	}
	h := b.heads.by[subscription]
	if h == nil || b.subs[subscription].status == statusMissing {
		return nil, nil, fmt.Errorf("%w: subscription number %d", sender.ErrNotFound, subscription)
	}
	return h, b.subs[subscription], nil
}
