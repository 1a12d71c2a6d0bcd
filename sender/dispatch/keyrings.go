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

// errKeyringUnread: the database did not answer. Nothing is known to be wrong with the
// secrets.
var errKeyringUnread = errors.New("sender: the secrets could not be read")

const (
	// maxKeyrings bounds how many opened keyrings are kept in memory: those that were used
	// last.
	maxKeyrings = 10_000
	// keyringLoads is how many loads may run at a time. What is wanted meanwhile waits,
	// and is read together: a thousand new subscribers must not take all of the
	// database's connections from the dispatcher. With a second one, a load that hangs
	// holds up nobody else.
	keyringLoads = 2
)

// keyrings opens subscribers' secrets and keeps them by the version that a claim
// names, so that a rotation holds from the next claim on.
type keyrings struct {
	store   Store
	keys    *sender.Keys
	now     func() time.Time
	timeout time.Duration // of a load; 0: none
	loads   chan struct{} // one for each that runs

	mu      sync.Mutex
	opened  *lru.Map[int64, openKeyring] // by the subscriber's number
	wanted  map[int64]*wantedKeyring     // of which no load has begun,
	loading map[int64]*wantedKeyring     // and those of which the last one has, and not ended
}

// openKeyring is a keyring, or why it could not be opened.
type openKeyring struct {
	version int64
	keyring *signing.Keyring
	err     error
	again   time.Time // when to look at it again, if it could not be opened
}

// wantedKeyring is one that some wait for.
type wantedKeyring struct {
	least int64         // the newest version that a claim named before the load
	done  chan struct{} // closed once the others are set
	openKeyring
	unread error // why it was not loaded
}

func newKeyrings(store Store, keys *sender.Keys, now func() time.Time, timeout time.Duration) *keyrings {
	return &keyrings{
		store: store, keys: keys, now: now, timeout: timeout, loads: make(chan struct{}, keyringLoads),
		opened: lru.New[int64, openKeyring](maxKeyrings), wanted: map[int64]*wantedKeyring{}, loading: map[int64]*wantedKeyring{},
	}
}

// of returns the keyring of a target: of the version that the claim named, or a
// newer one. It is an older one never.
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
	case <-w.done: // by this load, or by one that has begun before
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

// want joins those who wait for a subscriber's keyring. A load that has begun is only
// joined if it began for a claim of that version: it may have read what was there
// before a rotation.
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

// load reads and opens all that is wanted, in time: those who wait for it hold slots and
// leases, and a connection on which nobody answers must not hold them for as long as the
// dispatcher runs.
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
		return // others were quicker
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

// keep remembers what was loaded, unless something better is there: loads do not
// end in the order of their beginnings.
func (k *keyrings) keep(subscriber int64, o openKeyring) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if have, ok := k.opened.Get(subscriber); ok && (have.version > o.version || have.version == o.version && have.err == nil) {
		return
	}
	k.opened.Put(subscriber, o)
}
