package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"

	"github.com/surehook/surehook/sender"
)

// portalRegistry is the registry of the portal: its visitors have the limits and the notices
// that callers of the API have.
type portalRegistry struct {
	*sender.Registry[*sql.Tx]
	service *service
}

// Subscribe counts in the transaction that subscribes, so the challenge goes before it.
func (r portalRegistry) Subscribe(ctx context.Context, n sender.NewSubscription) (made sender.Subscription, err error) {
	s := r.service
	if s.challenger != nil {
		keyring, err := s.registry.Keyring(ctx, n.Subscriber)
		if err != nil {
			return sender.Subscription{}, err
		}
		err = s.challenger.Challenge(ctx, sender.Challenge{Subscriber: n.Subscriber, Subscription: cmp.Or(n.ID, newID("wsub_")), URL: n.URL, Keyring: keyring})
		if err != nil && !errors.Is(err, sender.ErrInvalid) { // the registry says all that is wrong
			return sender.Subscription{}, err
		}
	}
	err = s.db.inTx(ctx, func(tx *sql.Tx) error {
		if err := s.roomForSubscription(ctx, tx, caller{id: n.Subscriber}); err != nil {
			if full, ok := errors.AsType[*Problem](err); ok {
				return &sender.FieldError{Field: "url", Reason: full.Detail}
			}
			return err
		}
		made, err = s.subscribeTx(ctx, tx, n)
		return err
	})
	return made, err
}

// Update keeps a subscription's own notices out. If somebody changes the types at the same
// time in another window, that change has the last word about the filter, too.
func (r portalRegistry) Update(ctx context.Context, id string, c sender.SubscriptionChange) (sender.Subscription, error) {
	was, err := r.Subscription(ctx, id)
	if err != nil {
		return sender.Subscription{}, err
	}
	if c.EventTypes != nil || c.Filter != nil {
		c = changeWithoutOwn(&was, c)
	}
	return r.Registry.Update(ctx, id, c)
}
