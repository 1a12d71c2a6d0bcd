package memory

import (
	"context"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/rules"
)

// CloseSubscriptionTx implements sender.Store.
func (s *Store) CloseSubscriptionTx(ctx context.Context, tx *Tx, id string) error {
	return s.in(ctx, tx, func() error {
		sub, err := s.find(id)
		if err == nil {
			tx.close(sub)
		}
		return err
	})
}

func (tx *Tx) close(sub *subscription) {
	s := tx.store
	switch rules.Close(sub.Status) {
	case sub.Status: // it is closing already
	case sender.SubscriptionClosing:
		set(tx, &sub.Status, sender.SubscriptionClosing)
		set(tx, &sub.last, s.last)
		set(tx, &s.closing, append(s.closing, sub))
	default:
		tx.remove(sub)
	}
}

// closed tells whether a subscription that is closing has nothing more to get, and no
// attempt in flight. Even one that a resume has skipped counts, since the process that
// makes it may still ask for the keyring.
func (s *Store) closed(sub *subscription) bool {
	for _, e := range s.events[s.expanding:] {
		if e.no <= sub.last && !e.expandedFor(sub) {
			return false
		}
	}
	return !sub.waits() && len(sub.leased) == 0
}

// DeleteSubscriptionTx implements sender.Store.
func (s *Store) DeleteSubscriptionTx(ctx context.Context, tx *Tx, id string) error {
	return s.in(ctx, tx, func() error {
		sub, err := s.find(id)
		if err == nil {
			tx.remove(sub)
		}
		return err
	})
}

// remove ends a subscription. Its live deliveries are ended by Sweep.
func (tx *Tx) remove(sub *subscription) {
	tx.change(sub, func() { set(tx, &sub.deleted, true) })
	if sub.waits() {
		set(tx, &tx.store.deleted, append(tx.store.deleted, sub))
	}
	set(tx, &tx.store.ending, append(tx.store.ending, sub))
	tx.bury(sub.owner)
}

// DeleteSubscriberTx implements sender.Store.
func (s *Store) DeleteSubscriberTx(ctx context.Context, tx *Tx, id string) error {
	return s.in(ctx, tx, func() error {
		sr, err := s.findSubscriber(id)
		if err != nil {
			return err
		}
		set(tx, &sr.deleted, true)
		for _, sub := range sr.subscriptions {
			if !sub.deleted {
				tx.close(sub)
			}
		}
		tx.bury(sr)
		return nil
	})
}

// gone tells whether a subscriber was deleted, and with it the last of its
// subscriptions.
func (sr *subscriber) gone() bool {
	for _, sub := range sr.subscriptions {
		if !sub.deleted {
			return false
		}
	}
	return sr.deleted
}

// bury destroys the secrets of a subscriber that is gone. From then on its keyring has no
// version.
func (tx *Tx) bury(sr *subscriber) {
	if sr.gone() {
		set(tx, &sr.keyring, sender.SealedKeyring{})
	}
}
