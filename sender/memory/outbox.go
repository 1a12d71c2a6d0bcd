package memory

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/surehook/surehook/internal/ident"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/rules"
)

// event does not change, except for its deliveries and how far it is expanded. Its body
// goes when it is redacted.
type event struct {
	no         int64 // from 1, in the order of the commits
	tx         int64 // that published it
	info       sender.EventInfo
	version    int64
	to         addressee
	about      string // the id of the subscription that it is about
	body       []byte
	redacted   bool
	key        key         // "" in no scope: none
	deliveries []*delivery // in the order of the subscriptions' numbers
	expanded   bool        // whole
	comparedTo int         // index of the first subscription that it was not compared with
}

// addressee is whom an event is for, as sender.Matches takes it.
type addressee struct{ subscriber, subscription string }

// key is an idempotency key in its scope.
type key struct{ scope, key string }

// published is the event that an idempotency key was used for.
type published struct {
	hash [sha256.Size]byte
	ref  sender.Ref
}

// PublishTx implements sender.Outbox. On an error nothing was written.
func (s *Store) PublishTx(ctx context.Context, tx *Tx, drafts []sender.Draft) ([]sender.Ref, error) {
	refs := make([]sender.Ref, len(drafts))
	err := s.in(ctx, tx, func() (err error) {
		for i := range drafts {
			if refs[i], err = s.publish(tx, &drafts[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return refs, nil
}

func (s *Store) publish(tx *Tx, d *sender.Draft) (sender.Ref, error) {
	k := key{d.KeyScope, d.Key}
	if first, found := s.published[k]; found {
		return rules.Duplicate(d, first.ref, first.hash[:])
	}
	to := addressee{d.Subscriber, d.Subscription}
	if _, err := s.findSubscriber(to.subscriber); err != nil && to.subscriber != "" {
		return rules.NoSubscriber(d)
	}
	if err := s.checkSubscription(to); err != nil {
		return sender.Ref{}, err
	}
	if _, used := s.eventByID[d.ID]; used {
		return sender.Ref{}, fmt.Errorf("%w: event %q", sender.ErrExists, d.ID)
	}
	last := s.versions[d.Object]
	version := d.Version
	if version == 0 {
		version = min(max(last, s.floor)+1, ident.MaxVersion)
	}
	if version <= last {
		return sender.Ref{}, &sender.VersionError{Object: d.Object, Given: version, Stored: last}
	}

	ref := sender.Ref{ID: d.ID, Version: version}
	if to.subscription != "" {
		ref.Delivery = deliveryID(d.ID, s.subscription[to.subscription])
	}
	setKey(tx, s.versions, d.Object, version)
	if d.Key != "" {
		setKey(tx, s.published, k, published{hash: d.KeyHash, ref: ref})
	}
	e := &event{
		no: s.last + 1, key: k, tx: tx.no, version: version, to: to, about: d.About, body: d.Body(version),
		info: sender.EventInfo{ID: d.ID, Type: d.Type, Object: d.Object, CreatedAt: s.now(), Notice: d.Notice, URL: d.URL, Traceparent: d.Traceparent},
	}
	set(tx, &s.last, e.no)
	set(tx, &s.events, append(s.events, e))
	setKey(tx, s.eventByID, d.ID, e)
	tx.wake = true
	return ref, nil
}

func (s *Store) checkSubscription(to addressee) error {
	if to.subscription != "" {
		sub, err := s.find(to.subscription)
		if err != nil {
			return err
		}
		if sub.Status == sender.SubscriptionClosing {
			return fmt.Errorf("%w: subscription %q is closing, and gets nothing any more", sender.ErrNotFound, to.subscription)
		}
		if to.subscriber != "" && sub.owner.ID != to.subscriber {
			return fmt.Errorf("%w: subscription %q of subscriber %q", sender.ErrNotFound, to.subscription, to.subscriber)
		}
	}
	return nil
}
