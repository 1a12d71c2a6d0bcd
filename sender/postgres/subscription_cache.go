package postgres

import (
	"slices"
	"sync"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/internal/lru"
)

// Statuses of a subscription as they are stored. The last two have no public name: both are
// deleted.
const (
	statusActive  = string(sender.SubscriptionActive)
	statusClosing = string(sender.SubscriptionClosing)
	statusDeleted = "deleted" // some of its deliveries may be live
	statusSwept   = "swept"
)

// subscription is all that a claim and a recording need to know about a subscription, as
// callers have left it.
type subscription struct {
	*dispatch.Target // without the lane; nobody changes it
	status           string
	epoch            int64
	skippedTo        int64 // -1: surehook_left has nothing of it
	resumedFrom      int64
	recovered        int64
	skipped          []skipped // read if skippedTo is not -1
}

// skipped is a row of surehook_left: deliveries of events up to this one, from before the
// epoch, are cancelled, and so are those of events that were not expanded, if there are some.
type skipped struct {
	epoch, event int64
	unexpanded   bool
}

// gone tells whether the subscription was deleted.
func (s *subscription) gone() bool { return s.status == statusDeleted || s.status == statusSwept }

// opened tells whether deliveries of the subscription may be claimed.
func (s *subscription) opened() bool { return s.status == statusActive || s.status == statusClosing }

// skips tells whether a resume skipped a delivery of an epoch.
func (s *subscription) skips(epoch, event int64) bool {
	return event <= s.skippedTo && slices.ContainsFunc(s.skipped, func(l skipped) bool { return l.epoch > epoch && l.event >= event })
}

// skipsUnexpanded tells whether a resume after an epoch skipped events that it saw in the outbox.
func (s *subscription) skipsUnexpanded(epoch int64) bool {
	return slices.ContainsFunc(s.skipped, func(l skipped) bool { return l.epoch > epoch && l.unexpanded })
}

// subscriptionCache remembers where deliveries go, by their subscriptions' versions.
type subscriptionCache struct {
	sync.Mutex
	by *lru.Map[int64, *cachedTarget]
}

func newSubscriptionCache() subscriptionCache {
	return subscriptionCache{by: lru.New[int64, *cachedTarget](subscriptionCacheLimit)}
}

type cachedTarget struct {
	dispatch.Target
	version int64
}

// subscriptionCacheLimit bounds what is remembered: those that were used last.
const subscriptionCacheLimit = 100_000

const (
	selectTargets = `SELECT s.no, s.version, s.status, s.epoch, s.left_to, s.resumed_from, s.recovered, s.id, s.url, s.settings, o.no, o.id, o.keyring_version
		FROM surehook_subscriptions s JOIN surehook_subscribers o ON o.no = s.subscriber WHERE s.no = ANY($1)`
	selectSkippedOf = `SELECT subscription, epoch, event, NOT isempty(unexpanded) FROM surehook_left WHERE subscription = ANY($1)`
)

// subscriptions reads subscriptions, with a snapshot taken now, and adds them to all.
func (w *work) subscriptions(nos []int64, all map[int64]*subscription) error {
	if len(nos) == 0 {
		return nil
	}
	err := w.each(func(r rows) (bool, error) { return true, w.scanSubscription(r, all) }, selectTargets, nos)
	if err != nil {
		return err
	}
	return w.skippedOf(all)
}

// scanSubscription adds a subscription to all, without what resumes of it skipped.
func (w *work) scanSubscription(r rows, all map[int64]*subscription) error {
	var sub subscription
	var t cachedTarget
	var settings string
	err := r.Scan(&t.SubscriptionNo, &t.version, &sub.status, &sub.epoch, &sub.skippedTo, &sub.resumedFrom, &sub.recovered,
		&t.Subscription, &t.URL, &settings, &t.SubscriberNumber, &t.Subscriber, &t.KeyringVersion)
	if err == nil {
		sub.Target = w.subscriptionCache.remember(&t, settings)
	}
	all[t.SubscriptionNo] = &sub
	return err
}

// skippedOf reads what resumes of subscriptions skipped.
func (w *work) skippedOf(all map[int64]*subscription) error {
	var some []int64
	for no, sub := range all {
		if sub.skippedTo >= 0 && sub.skipped == nil {
			some = append(some, no)
		}
	}
	if len(some) == 0 {
		return nil
	}
	return w.each(func(r rows) (bool, error) {
		var no int64
		var l skipped
		err := r.Scan(&no, &l.epoch, &l.event, &l.unexpanded)
		all[no].skipped = append(all[no].skipped, l)
		return true, err
	}, selectSkippedOf, some)
}

// remember returns the remembered target, if it has the same version, and otherwise
// remembers this one.
func (ts *subscriptionCache) remember(t *cachedTarget, settings string) *dispatch.Target {
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
