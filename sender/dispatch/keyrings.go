package dispatch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/internal/lru"
	"github.com/surehook/surehook/signing"
)

// errKeyringUnread: the database did not answer. The secrets themselves may be fine.
var errKeyringUnread = errors.New("sender: the secrets could not be read")

const (
	// maxKeyrings bounds how many opened keyrings are kept in memory. The keyrings that
	// were used last are kept.
	maxKeyrings = 10_000
	// keyringLoads is how many loads may run at a time. Keyrings that are wanted meanwhile
	// wait, and are read together, because a thousand new subscribers must not take all of
	// the database's connections from the dispatcher. With a second load at a time, a load
	// that hangs holds up nobody else.
	keyringLoads = 2
)

// keyrings opens subscribers' secrets and keeps them by the version that a claim
// names, so that a rotation holds from the next claim on.
type keyrings struct {
	store   Store
	keys    *sender.Keys
	now     func() time.Time
	timeout time.Duration // the bound of a load; 0: none
	loads   chan struct{} // one element for each load that runs

	mu      sync.Mutex
	opened  *lru.Map[int64, openKeyring] // by the subscriber's number
	wanted  map[int64]*wantedKeyring     // no load of them has begun
	loading map[int64]*wantedKeyring     // their last load has begun, and not ended
}

// openKeyring is a keyring, or the error that kept it from being opened.
type openKeyring struct {
	version int64
	keyring *signing.Keyring
	err     error
	again   time.Time // when to look at it again, if it could not be opened
}

// wantedKeyring is a keyring for which attempts wait.
type wantedKeyring struct {
	least int64         // the newest version that a claim named before the load
	done  chan struct{} // closed once the other fields are set
	openKeyring
	unread error // the error for which it was not loaded
}

func newKeyrings(store Store, keys *sender.Keys, now func() time.Time, timeout time.Duration) *keyrings {
	return &keyrings{
		store: store, keys: keys, now: now, timeout: timeout, loads: make(chan struct{}, keyringLoads),
		opened: lru.New[int64, openKeyring](maxKeyrings), wanted: map[int64]*wantedKeyring{}, loading: map[int64]*wantedKeyring{},
	}
}

// of returns the keyring of a target, in the version that the claim named or a newer one.
// It never returns an older version.
func (k *keyrings) of(ctx context.Context, t *Target) (*signing.Keyring, error) {
	k.mu.Lock()
	o, ok := k.opened.Get(t.SubscriberNumber)
	k.mu.Unlock()
	if ok && o.version >= t.KeyringVersion && (o.err == nil || k.now().Before(o.again)) {
		return o.keyring, o.err
	}
	w := k.want(t)
	select {
	case <-w.done:
	case <-ctx.Done():
	case k.loads <- struct{}{}:
		k.load(ctx)
	}
	select {
	case <-w.done: // by this load, or by an earlier one
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", errKeyringUnread, ctx.Err())
	}
	switch {
	case w.unread != nil:
		return nil, w.unread
	case w.version < t.KeyringVersion:
		return nil, fmt.Errorf("sender: the store returned version %d of the keyring of %q, older than the claim's, %d", w.version, t.Subscriber, t.KeyringVersion)
	}
	return w.keyring, w.err
}

// want returns the wanted keyring of a subscriber, and adds it if there is none. It joins a
// load that has begun only if the load began for a claim of this version or a newer one:
// otherwise the load may have read the secrets from before a rotation.
func (k *keyrings) want(t *Target) *wantedKeyring {
	k.mu.Lock()
	defer k.mu.Unlock()
	if w := k.loading[t.SubscriberNumber]; w != nil && w.least >= t.KeyringVersion {
		return w
	}
	w := k.wanted[t.SubscriberNumber]
	if w == nil {
		w = &wantedKeyring{done: make(chan struct{})}
		k.wanted[t.SubscriberNumber] = w
	}
	w.least = max(w.least, t.KeyringVersion)
	return w
}

// load reads and opens all wanted keyrings within the timeout. The attempts that wait for
// it hold slots and leases, and a connection on which nobody answers must not hold these
// for as long as the dispatcher runs.
func (k *keyrings) load(ctx context.Context) {
	defer func() { <-k.loads }()
	if k.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, k.timeout)
		defer cancel()
	}
	k.mu.Lock()
	batch := k.wanted
	k.wanted = map[int64]*wantedKeyring{}
	maps.Copy(k.loading, batch)
	k.mu.Unlock()
	if len(batch) == 0 {
		return // another load has taken them
	}
	err := errKeyringUnread
	defer func() { // also if the store panics
		k.mu.Lock()
		defer k.mu.Unlock()
		for number, w := range batch {
			if k.loading[number] == w {
				delete(k.loading, number)
			}
			if w.keyring == nil && w.err == nil && w.unread == nil {
				w.unread = err
			}
			close(w.done)
		}
	}()
	found, failed := k.store.Keyrings(ctx, slices.Sorted(maps.Keys(batch)))
	if failed != nil {
		err = fmt.Errorf("%w: %w", errKeyringUnread, failed)
		return
	}
	for number, w := range batch {
		sealed, ok := found[number]
		if !ok {
			w.unread = fmt.Errorf("%w: subscriber number %d", sender.ErrNotFound, number)
			continue
		}
		w.version = sealed.Version
		if w.keyring, w.err = k.keys.Keyring(sealed); w.err != nil {
			w.again = k.now().Add(secretPause)
		}
		k.keep(number, w.openKeyring)
	}
}

// keep remembers a loaded keyring, unless a better one is there: loads do not end in the
// order in which they began.
func (k *keyrings) keep(subscriber int64, o openKeyring) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if have, ok := k.opened.Get(subscriber); ok && (have.version > o.version || have.version == o.version && have.err == nil) {
		return
	}
	k.opened.Put(subscriber, o)
}
