package sender

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
)

const (
	// rewrapAtOnce is how many subscribers a transaction of Rewrap is about.
	rewrapAtOnce = 50
	// maxUnopened bounds how many errors Rewrap reports in full.
	maxUnopened = 10
)

// Rewrap seals with the current sealing key all that is sealed with another one, and
// returns how many secrets, client certificates and values of headers it has sealed. An
// older key is not needed any more once no process seals with it and Rewrap finds nothing.
// It works in small transactions: interrupted, it goes on where it was when it is called
// again. It disturbs neither deliveries nor rotations.
//
// A secret that cannot be opened stays as it is, and does not keep it from the rest: the
// error then matches ErrSealed and says what. Settings that cannot be read stay as they are,
// too, and so do those of a subscription whose event types cannot be read. The error says so,
// since they may still need an older key. Any other error ends it.
func (r *Registry[Tx]) Rewrap(ctx context.Context) (rewrapped int, err error) {
	names, err := r.store.SealingKeys(ctx)
	if err != nil {
		return 0, err
	}
	var failed unopened
	for _, name := range names {
		if _, ok := r.keys.byName[name]; name == r.keys.current || !ok && name != "" {
			continue
		}
		n, err := r.rewrapSecrets(ctx, name, &failed)
		rewrapped += n
		if err != nil {
			return rewrapped, err
		}
	}
	n, err := r.rewrapSettings(ctx, &failed)
	rewrapped += n
	if err != nil {
		return rewrapped, err
	}
	return rewrapped, errors.Join(r.keys.missing(names), failed.err())
}

// rewrapSettings does so for what is sealed of subscriptions' settings. It looks at all
// of them: few have any such thing. So it only reads, except where it has found some.
func (r *Registry[Tx]) rewrapSettings(ctx context.Context, failed *unopened) (rewrapped int, err error) {
	for after := ""; ; {
		var page []Subscription
		err := r.inReadTx(ctx, func(tx Tx) (err error) {
			page, err = r.store.SubscriptionsTx(ctx, tx, "", after, rewrapAtOnce)
			return err
		})
		if err != nil || len(page) == 0 {
			return rewrapped, err
		}
		var due []string
		for _, s := range page {
			n, unopened := r.keys.renewSettings(s.ID, &s.Settings)
			failed.add(unopened)
			if n > 0 {
				due = append(due, s.ID)
			}
		}
		n, err := r.rewrapSubscriptions(ctx, due, failed)
		rewrapped += n
		if err != nil {
			return rewrapped, err
		}
		after = page[len(page)-1].ID
	}
}

// rewrapSubscriptions does so for the settings of some subscriptions.
func (r *Registry[Tx]) rewrapSubscriptions(ctx context.Context, ids []string, failed *unopened) (done int, err error) {
	if len(ids) == 0 {
		return 0, nil
	}
	var errs []error
	err = r.store.InTx(ctx, func(tx Tx) error {
		done, errs = 0, nil
		for _, id := range ids {
			n, err := r.rewrapSubscription(ctx, tx, id)
			switch {
			case errors.Is(err, errUnreadTypes):
				errs = append(errs, err)
			case err != nil:
				return err
			}
			done += n
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	failed.add(errs)
	return done, nil
}

// rewrapSubscription does so for one of them, as it is now: others may have changed or
// deleted it since it was listed.
func (r *Registry[Tx]) rewrapSubscription(ctx context.Context, tx Tx, id string) (done int, err error) {
	s, err := r.store.SubscriptionTx(ctx, tx, SubscriptionKey{ID: id, ToChange: true})
	if errors.Is(err, ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if done, _ = r.keys.renewSettings(id, &s.Settings); done == 0 {
		return 0, nil
	}
	if err := readTypes(s); err != nil { // stored again, they would be none
		return 0, fmt.Errorf("%w, before its settings can be sealed anew", err)
	}
	return done, r.store.UpdateSubscriptionTx(ctx, tx, s)
}

// renewSettings seals what a subscription's settings hold, and returns how much was not
// sealed with the current key, and what cannot be opened.
func (k *Keys) renewSettings(subscription string, s *Settings) (done int, unopened []error) {
	if err := s.Unreadable(); err != nil {
		return 0, []error{fmt.Errorf("%w (subscription %q); what is sealed in them stays as it is", err, subscription)}
	}
	if key, _ := keyOf(s.SealedCertificate); len(s.SealedCertificate) > 0 && key != k.current {
		renewed, err := k.renewFor(certificateOf(subscription), s.SealedCertificate)
		if err != nil {
			unopened = append(unopened, fmt.Errorf("%w (client certificate of subscription %q)", err, subscription))
		} else {
			s.SealedCertificate = renewed
			done++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		renewed, changed, err := k.renewHeader(subscription, name, s.Headers[name])
		if err != nil {
			unopened = append(unopened, fmt.Errorf("%w (the header %q of subscription %q)", err, name, subscription))
		}
		if changed {
			s.Headers[name] = renewed
			done++
		}
	}
	return done, unopened
}

// rewrapSecrets does so for all secrets that are sealed with a key.
func (r *Registry[Tx]) rewrapSecrets(ctx context.Context, key string, failed *unopened) (rewrapped int, err error) {
	for after := ""; ; {
		var done int
		var last string
		var errs []error
		err := r.store.InTx(ctx, func(tx Tx) error {
			done, last, errs = 0, "", nil
			keyrings, err := r.store.KeyringsTx(ctx, tx, key, after, rewrapAtOnce)
			if err != nil {
				return err
			}
			for _, k := range keyrings {
				n, unopened, err := r.rewrapKeyring(ctx, tx, key, k)
				if err != nil {
					return err
				}
				done, last, errs = done+n, k.Subscriber, append(errs, unopened...)
			}
			return nil
		})
		if err != nil {
			return rewrapped, err
		}
		rewrapped += done
		failed.add(errs)
		if last == "" {
			return rewrapped, nil
		}
		after = last
	}
}

func (r *Registry[Tx]) rewrapKeyring(ctx context.Context, tx Tx, key string, k SealedKeyring) (done int, unopened []error, err error) {
	for _, s := range k.Secrets {
		if s.Key != key {
			continue
		}
		sealed, err := r.keys.renewFor(boundTo(k.Subscriber, s.ID), s.Sealed)
		if err != nil {
			unopened = append(unopened, err)
			continue
		}
		ok, err := r.store.RewrapTx(ctx, tx, k.Subscriber, s.Sealed, SealedSecret{ID: s.ID, Sealed: sealed, Key: r.keys.current})
		if err != nil {
			return 0, nil, err
		}
		if ok {
			done++
		}
	}
	return done, unopened, nil
}

// unopened is what could not be opened.
type unopened struct {
	errs []error
	more int
}

func (u *unopened) add(errs []error) {
	room := min(len(errs), maxUnopened-len(u.errs))
	u.errs = append(u.errs, errs[:room]...)
	u.more += len(errs) - room
}

func (u *unopened) err() error {
	err := errors.Join(u.errs...)
	if u.more > 0 {
		err = fmt.Errorf("%w\nand %d more", err, u.more)
	}
	return err
}
