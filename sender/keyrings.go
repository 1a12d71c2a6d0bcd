package sender

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/surehook/surehook/signing"
)

// errKeyringUnread: the database did not answer. Nothing is known to be wrong with the
// secrets.
var errKeyringUnread = errors.New("sender: the secrets could not be read")

// maxKeyrings bounds how many opened keyrings are kept in memory.
const maxKeyrings = 10_000

// keyrings opens subscribers' secrets and keeps them by the version that a claim
// names, so that a rotation holds from the next claim on.
type keyrings struct {
	store  DispatchStore
	keys   *Keys
	now    func() time.Time
	flight singleflight.Group

	mu     sync.RWMutex
	opened map[int64]openKeyring // by the subscriber's number
}

// openKeyring is a keyring, or why it could not be opened.
type openKeyring struct {
	version int64
	keyring *signing.Keyring
	err     error
	again   time.Time // when to look at it again, if it could not be opened
}

// of returns the keyring of a target: of the version that the claim named, or a
// newer one. It is an older one never.
func (k *keyrings) of(ctx context.Context, t *Target) (*signing.Keyring, error) {
	k.mu.RLock()
	o, ok := k.opened[t.SubscriberNumber]
	k.mu.RUnlock()
	if ok && o.version >= t.KeyringVersion && (o.err == nil || k.now().Before(o.again)) {
		return o.keyring, o.err
	}
	// Not by the number alone: a load that began for an earlier claim may have read
	// what was there before a rotation.
	v, err, _ := k.flight.Do(fmt.Sprint(t.SubscriberNumber, " ", t.KeyringVersion), func() (any, error) {
		sealed, err := k.store.Keyring(ctx, t.SubscriberNumber)
		if err != nil && !errors.Is(err, ErrNotFound) {
			err = fmt.Errorf("%w: %w", errKeyringUnread, err)
		}
		if err != nil {
			return nil, err
		}
		if sealed.Version < t.KeyringVersion {
			return nil, fmt.Errorf("sender: the store returned version %d of the keyring of %q, older than the claim's, %d", sealed.Version, sealed.Subscriber, t.KeyringVersion)
		}
		o := openKeyring{version: sealed.Version}
		if o.keyring, o.err = k.keys.keyring(sealed); o.err != nil {
			o.again = k.now().Add(secretPause)
		}
		k.keep(t.SubscriberNumber, o)
		return o.keyring, o.err
	})
	if err != nil {
		return nil, err
	}
	return v.(*signing.Keyring), nil
}

// keep remembers what was loaded, unless something better is there: loads do not
// end in the order of their beginnings.
func (k *keyrings) keep(subscriber int64, o openKeyring) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if have, ok := k.opened[subscriber]; ok && (have.version > o.version || have.version == o.version && have.err == nil) {
		return
	}
	if len(k.opened) >= maxKeyrings {
		clear(k.opened)
	}
	k.opened[subscriber] = o
}
