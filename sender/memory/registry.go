package memory

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
)

type subscriber struct {
	sender.Subscriber
	no            int64 // from 1
	keyring       sender.SealedKeyring
	deleted       bool
	subscriptions []*subscription // oldest first, deleted ones too
	heads         [sender.Lanes]head
}

type subscription struct {
	sender.Subscription
	no         int64 // from 1
	owner      *subscriber
	tx         int64 // that created it: it gets the events of this one and later ones
	patterns   patterns
	skipped    []skip
	last       int64 // while it is closing: the number of the last event that it gets
	deleted    bool
	sweptAt    time.Time   // when it was found that it is deleted and has nothing live
	heldSince  time.Time   // when it was paused or disabled last
	deliveries []*delivery // in the order of the events' numbers
	live       queue[*delivery]
	replayed   queue[*delivery] // the live ones that replays have admitted, and that were not claimed since
	leased     map[*delivery]struct{}
	behind     map[*delivery]struct{}        // the live ones that wait for earlier ones about their objects
	lines      map[sender.Object][]*delivery // see rules.Line; in the order of the events' numbers
	process    int64                         // the one that has claimed of it last
	limits
	turn
	in *head // where it stands in line; nil: nothing is to be done for it
}

// CreateSubscriberTx implements sender.Store.
func (s *Store) CreateSubscriberTx(ctx context.Context, tx *Tx, n sender.Subscriber, secrets []sender.SealedSecret) error {
	return s.in(ctx, tx, func() error {
		if s.subscriber[n.ID] != nil {
			return fmt.Errorf("%w: subscriber %q", sender.ErrExists, n.ID)
		}
		sr := &subscriber{
			Subscriber: n, no: int64(len(s.subscribers)) + 1,
			keyring: sender.SealedKeyring{Subscriber: n.ID, Version: 1, Secrets: cloneSecrets(secrets)},
		}
		for lane := range sr.heads {
			sr.heads[lane] = head{owner: sr, lane: sender.Lane(lane)}
		}
		set(tx, &s.subscribers, append(s.subscribers, sr))
		setKey(tx, s.subscriber, n.ID, sr)
		return nil
	})
}

// SubscriberTx implements sender.Store.
func (s *Store) SubscriberTx(ctx context.Context, tx *Tx, id string) (n sender.Subscriber, err error) {
	err = s.in(ctx, tx, func() error {
		sr, err := s.findSubscriber(id)
		if err == nil {
			n = sr.Subscriber
		}
		return err
	})
	return n, err
}

// SubscriberKeyringTx implements sender.Store.
func (s *Store) SubscriberKeyringTx(ctx context.Context, tx *Tx, id string) (k sender.SealedKeyring, err error) {
	err = s.in(ctx, tx, func() error {
		sr, err := s.findSubscriber(id)
		if err == nil {
			k = sr.sealed()
		}
		return err
	})
	return k, err
}

// Keyrings implements dispatch.Store.
func (s *Store) Keyrings(ctx context.Context, subscribers []int64) (found map[int64]sender.SealedKeyring, err error) {
	found = make(map[int64]sender.SealedKeyring, len(subscribers))
	err = s.inTx(ctx, func(*Tx) error {
		for _, no := range subscribers {
			if no >= 1 && no <= int64(len(s.subscribers)) && s.subscribers[no-1].keyring.Version != 0 {
				found[no] = s.subscribers[no-1].sealed()
			}
		}
		return nil
	})
	return found, err
}

// CreateSubscriptionTx implements sender.Store.
func (s *Store) CreateSubscriptionTx(ctx context.Context, tx *Tx, n sender.Subscription) error {
	return s.in(ctx, tx, func() error {
		owner, err := s.findSubscriber(n.Subscriber)
		if err != nil {
			return err
		}
		if s.subscription[n.ID] != nil {
			return fmt.Errorf("%w: subscription %q", sender.ErrExists, n.ID)
		}
		if n.Implicit && owner.implicit(n.URL) != nil {
			return fmt.Errorf("%w: an implicit subscription of %q for %s", sender.ErrExists, n.Subscriber, n.URL)
		}
		sub := &subscription{
			Subscription: sender.Subscription{
				ID: n.ID, Subscriber: n.Subscriber, URL: n.URL, EventTypes: slices.Clone(n.EventTypes), Filter: n.Filter, Description: n.Description,
				Settings: cloneSettings(n.Settings), CreatedAt: n.CreatedAt, Implicit: n.Implicit, Status: sender.SubscriptionActive,
			},
			no: int64(len(s.subscriptions)) + 1, owner: owner, tx: tx.no, leased: map[*delivery]struct{}{},
			behind: map[*delivery]struct{}{}, lines: map[sender.Object][]*delivery{},
		}
		set(tx, &s.subscriptions, append(s.subscriptions, sub))
		set(tx, &owner.subscriptions, append(owner.subscriptions, sub))
		setKey(tx, s.subscription, n.ID, sub)
		return nil
	})
}

// SubscriptionTx implements sender.Store.
func (s *Store) SubscriptionTx(ctx context.Context, tx *Tx, key sender.SubscriptionKey) (n sender.Subscription, err error) {
	err = s.in(ctx, tx, func() error {
		sub, err := s.findByKey(key)
		if err == nil {
			n = sub.shown()
		}
		return err
	})
	return n, err
}

func (s *Store) findByKey(key sender.SubscriptionKey) (*subscription, error) {
	if key.Origin == "" {
		return s.find(key.ID)
	}
	if owner := s.subscriber[key.Subscriber]; owner != nil {
		if sub := owner.implicit(key.Origin); sub != nil {
			return sub, nil
		}
	}
	return nil, fmt.Errorf("%w: an implicit subscription of %q for %s", sender.ErrNotFound, key.Subscriber, key.Origin)
}

// implicit returns the subscriber's implicit subscription of a URL, or nil.
func (sr *subscriber) implicit(url string) *subscription {
	for _, sub := range sr.subscriptions {
		if sub.Implicit && sub.URL == url && !sub.deleted && sub.Status != sender.SubscriptionClosing {
			return sub
		}
	}
	return nil
}

// SubscriptionsTx implements sender.Store. The subscription after may be
// a deleted one; ErrNotFound if there never was one.
func (s *Store) SubscriptionsTx(ctx context.Context, tx *Tx, subscriber, after string, limit int) (list []sender.Subscription, err error) {
	err = s.in(ctx, tx, func() error {
		from := int64(0)
		if after != "" {
			sub := s.subscription[after]
			if sub == nil {
				return fmt.Errorf("%w: subscription %q", sender.ErrNotFound, after)
			}
			from = sub.no
		}
		all := s.subscriptions
		if subscriber != "" {
			all = nil
			if owner := s.subscriber[subscriber]; owner != nil {
				all = owner.subscriptions
			}
		}
		for _, sub := range all {
			if len(list) == limit {
				break
			}
			if sub.no > from && !sub.deleted {
				list = append(list, sub.shown())
			}
		}
		return nil
	})
	return list, err
}

// find returns a subscription that is not deleted.
func (s *Store) find(id string) (*subscription, error) {
	sub := s.subscription[id]
	if sub == nil || sub.deleted {
		return nil, fmt.Errorf("%w: subscription %q", sender.ErrNotFound, id)
	}
	return sub, nil
}

func (s *Store) findSubscriber(id string) (*subscriber, error) {
	sr := s.subscriber[id]
	if sr == nil || sr.deleted {
		return nil, fmt.Errorf("%w: subscriber %q", sender.ErrNotFound, id)
	}
	return sr, nil
}

func (sub *subscription) shown() sender.Subscription {
	n := sub.Subscription
	n.EventTypes, n.Settings = slices.Clone(n.EventTypes), cloneSettings(n.Settings)
	n.Backlog = sub.backlog()
	return n
}

func (sr *subscriber) sealed() sender.SealedKeyring {
	k := sr.keyring
	k.Secrets = cloneSecrets(k.Secrets)
	return k
}

func cloneSettings(set sender.Settings) sender.Settings {
	set.Headers, set.SealedCertificate, set.RetryDelays = maps.Clone(set.Headers), bytes.Clone(set.SealedCertificate), slices.Clone(set.RetryDelays)
	return set
}

func cloneSecrets(secrets []sender.SealedSecret) []sender.SealedSecret {
	secrets = slices.Clone(secrets)
	for i := range secrets {
		secrets[i].Sealed = bytes.Clone(secrets[i].Sealed)
	}
	return secrets
}
