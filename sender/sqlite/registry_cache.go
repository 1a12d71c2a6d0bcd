package sqlite

import (
	"database/sql"
	"errors"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/internal/lru"
	"github.com/surehook/surehook/sender/rules"
)

// registryCache remembers what was read of the registry. It is valid while the registry's
// version, which every change raises, is the one that it was read under.
type registryCache struct {
	version       int64
	subscriptions *lru.Map[int64, *subscription]
	matched       *lru.Map[question, []match]
	size          int     // of matched: the answers and their matches
	operator      int64   // 0: there never was one. A deleted one has subscriptions that are closing
	replays       []int64 // of delivered deliveries, that have not ended
}

// registryCacheLimit bounds what is remembered, in subscriptions and in matches. Those
// that were used last stay.
const registryCacheLimit = 100_000

// subscription has what a claim and a recording must know of a subscription.
type subscription struct {
	dispatch.Target // all except the lane
	status          string
	asked           rules.Asked // of the content of events
}

// gone tells whether it was deleted.
func (s *subscription) gone() bool { return s.status == statusDeleted || s.status == statusSwept }

const (
	selectRegistryVersion = `SELECT version FROM surehook_registry`
	selectLateReplays     = `SELECT no FROM surehook_replays WHERE status_of = 'delivered' AND status IN ('running', 'paused')`
)

// registry returns the cache, emptied if the registry has changed since it was filled.
func (s *Store) registry(w *work) (*registryCache, error) {
	var version int64
	if err := w.row(selectRegistryVersion).Scan(&version); err != nil {
		return nil, err
	}
	k := &s.registryCache
	if k.subscriptions != nil && k.version == version {
		return k, nil
	}
	operator, err := w.everSubscriber(sender.Operator)
	if err != nil && !errors.Is(err, sender.ErrNotFound) {
		return nil, err
	}
	replays, err := w.numbers(selectLateReplays)
	if err != nil {
		return nil, err
	}
	*k = registryCache{version: version, operator: operator, replays: replays,
		subscriptions: lru.New[int64, *subscription](registryCacheLimit), matched: lru.New[question, []match](registryCacheLimit + 1)}
	return k, nil
}

const selectTarget = `SELECT s.id, s.url, s.status, s.filter, s.settings, o.no, o.id, o.keyring_version
	FROM surehook_subscriptions s JOIN surehook_subscribers o ON o.no = s.subscriber WHERE s.no = ? + 0`

// subscription never returns nil without an error.
func (k *registryCache) subscription(w *work, no int64) (*subscription, error) {
	if sub, ok := k.subscriptions.Get(no); ok {
		return sub, nil
	}
	sub := &subscription{Target: dispatch.Target{SubscriptionNo: no, Settings: &sender.Settings{}}}
	var settings []byte
	var expression string
	err := w.row(selectTarget, no).Scan(&sub.Subscription, &sub.URL, &sub.status, &expression, &settings, &sub.SubscriberNumber, &sub.Subscriber, &sub.KeyringVersion)
	if errors.Is(err, sql.ErrNoRows) {
		return w.missingSubscription(no), nil
	}
	if err != nil {
		return nil, err
	}
	*sub.Settings = sender.ReadSettings(settings)
	sub.asked = rules.AskedBy(w.readFilter(no, expression), sub.Settings)
	k.subscriptions.Put(no, sub)
	return sub, nil
}
