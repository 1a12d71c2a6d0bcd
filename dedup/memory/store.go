package memory

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/surehook/surehook/dedup"
)

// Store is a [dedup.Store], [dedup.DeadLetters] and [dedup.Reapplies] for its own
// transactions, see [Store.InTx]. It is safe for concurrent use.
type Store struct {
	mu       sync.Mutex
	markers  map[eventKey]marker
	versions map[objectKey]int64
	letters  map[eventKey]dedup.DeadLetter
	requests map[reapplyKey]dedup.Reapply
	asked    int64       // the number of the last request
	locks    map[any]*Tx // by the keys of the rows
}

type marker struct {
	at        int64 // microseconds since 1970
	reapplied int64 // the number of the last request under which it was applied again
}

type eventKey struct{ scope, id string }

type objectKey struct {
	scope string
	obj   dedup.Object
}

// letterKey is the lock of a dead letter, which the event's marker does not share.
type letterKey eventKey

var (
	_ dedup.Store[*Tx]       = (*Store)(nil)
	_ dedup.DeadLetters[*Tx] = (*Store)(nil)
	_ dedup.Reapplies[*Tx]   = (*Store)(nil)
)

// New returns an empty store.
func New() *Store {
	return &Store{
		markers:  map[eventKey]marker{},
		versions: map[objectKey]int64{},
		letters:  map[eventKey]dedup.DeadLetter{},
		requests: map[reapplyKey]dedup.Reapply{},
		locks:    map[any]*Tx{},
	}
}

// Mark implements [dedup.Store].
func (s *Store) Mark(ctx context.Context, tx *Tx, scope, id string, at time.Time) (bool, error) {
	if err := dedup.CheckMark(scope, id, at); err != nil {
		return false, err
	}
	fresh := false
	k := eventKey{scope, id}
	err := s.write(ctx, tx, k, func() bool {
		if _, seen := row(s.markers, tx.markers, k); !seen {
			tx.markers[k] = change[marker]{value: marker{at: at.UnixMicro()}}
			fresh = true
		}
		return fresh
	})
	return fresh, dedup.WrapError(ctx, "marking an event", err)
}

// Advance implements [dedup.Store].
func (s *Store) Advance(ctx context.Context, tx *Tx, scope string, obj dedup.Object, version int64) (bool, error) {
	if err := dedup.CheckVersion(scope, obj, version); err != nil {
		return false, err
	}
	newer := false
	k := objectKey{scope, obj}
	err := s.write(ctx, tx, k, func() bool {
		if newer = version > s.version(tx, k); newer {
			tx.versions[k] = version
		}
		return newer
	})
	return newer, dedup.WrapError(ctx, "advancing a version", err)
}

// Version implements [dedup.Store].
func (s *Store) Version(ctx context.Context, tx *Tx, scope string, obj dedup.Object) (int64, error) {
	if err := dedup.CheckObject(scope, obj); err != nil {
		return 0, err
	}
	if err := s.begin(ctx, tx); err != nil {
		return 0, dedup.WrapError(ctx, "reading a version", err)
	}
	defer s.mu.Unlock()
	return s.version(tx, objectKey{scope, obj}), nil
}

func (s *Store) version(tx *Tx, k objectKey) int64 {
	if v, ok := tx.versions[k]; ok {
		return v
	}
	return s.versions[k]
}

// Prune implements [dedup.Store]. It looks at every marker there is.
func (s *Store) Prune(ctx context.Context, tx *Tx, before time.Time, limit int) (int, error) {
	if err := dedup.CheckLimit(limit); err != nil {
		return 0, err
	}
	if err := s.begin(ctx, tx); err != nil {
		return 0, dedup.WrapError(ctx, "pruning markers", err)
	}
	defer s.mu.Unlock()
	type aged struct {
		at int64
		eventKey
	}
	var old []aged
	for _, k := range keys(s.markers, tx.markers) {
		m, _ := row(s.markers, tx.markers, k)
		if owner := s.locks[k]; m.at < before.UnixMicro() && (owner == nil || owner == tx) {
			old = append(old, aged{m.at, k})
		}
	}
	slices.SortFunc(old, func(a, b aged) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.scope, b.scope), cmp.Compare(a.id, b.id))
	})
	old = old[:min(limit, len(old))]
	for _, m := range old {
		if err := tx.lock(ctx, m.eventKey); err != nil { // free, or its own: never waits
			return 0, dedup.WrapError(ctx, "pruning markers", err)
		}
		tx.markers[m.eventKey] = change[marker]{removed: true}
	}
	if len(old) < limit { // no marker is left that older requests could cover
		s.pruneRequests(tx, before, limit)
	}
	return len(old), nil
}

// write runs fn with the key locked for the transaction. The lock stays with it
// if fn changed something; otherwise what fn saw is committed, or its own, and
// nobody need wait for this transaction.
func (s *Store) write(ctx context.Context, tx *Tx, key any, fn func() (changed bool)) error {
	if err := s.begin(ctx, tx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	held := s.locks[key] == tx
	if err := tx.lock(ctx, key); err != nil {
		return err
	}
	if !fn() && !held {
		delete(s.locks, key)
		tx.held = tx.held[:len(tx.held)-1]
	}
	return nil
}
