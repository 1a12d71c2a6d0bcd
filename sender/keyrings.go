package sender

import (
	"context"
	"strconv"
	"sync"

	"golang.org/x/sync/singleflight"

	"github.com/surehook/surehook/signing"
)

// maxKeyrings bounds how many opened keyrings are kept in memory.
const maxKeyrings = 10_000

// keyrings opens subscribers' secrets and keeps them by the version that a claim
// names, so that a rotation holds from the next claim on.
type keyrings struct {
	store  DispatchStore
	keys   *Keys
	flight singleflight.Group

	mu     sync.RWMutex
	opened map[int64]openKeyring
}

type openKeyring struct {
	version int64
	keyring *signing.Keyring
}

func (k *keyrings) of(ctx context.Context, t *Target) (*signing.Keyring, error) {
	k.mu.RLock()
	o, ok := k.opened[t.SubscriberNumber]
	k.mu.RUnlock()
	if ok && o.version == t.KeyringVersion {
		return o.keyring, nil
	}
	v, err, _ := k.flight.Do(strconv.FormatInt(t.SubscriberNumber, 10), func() (any, error) {
		sealed, err := k.store.Keyring(ctx, t.SubscriberNumber)
		if err != nil {
			return nil, err
		}
		keyring, err := k.keys.keyring(sealed)
		if err != nil {
			return nil, err
		}
		k.mu.Lock()
		if len(k.opened) >= maxKeyrings {
			clear(k.opened)
		}
		k.opened[t.SubscriberNumber] = openKeyring{sealed.Version, keyring}
		k.mu.Unlock()
		return keyring, nil
	})
	if err != nil {
		return nil, err
	}
	return v.(*signing.Keyring), nil
}
