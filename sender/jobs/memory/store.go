package memory

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/surehook/surehook/sender/jobs"
	"github.com/surehook/surehook/sender/memory"
)

// Tx is a transaction of the sender's store.
type Tx = *memory.Tx

// Config adjusts a Store. A nil config and zero fields mean the defaults.
type Config struct {
	// Now is the store's clock. The default is time.Now.
	Now func() time.Time
}

// Store is a jobs.Store in memory. It is safe for concurrent use.
type Store struct {
	under *memory.Store
	clock func() time.Time

	// The fields below belong to the open transaction. Records are never changed,
	// but replaced.

	last int64
	all  map[string]*jobs.Record // by id
	keys map[key]string          // ids
}

type key struct{ scope, key string }

var _ jobs.Store[Tx] = (*Store)(nil)

// New returns an empty store under the transactions of another one.
func New(under *memory.Store, cfg *Config) (*Store, error) {
	if under == nil {
		return nil, errors.New("memory: New needs the sender's store")
	}
	s := &Store{under: under, clock: time.Now, all: map[string]*jobs.Record{}, keys: map[key]string{}}
	if cfg != nil && cfg.Now != nil {
		s.clock = cfg.Now
	}
	return s, nil
}

// now has no monotonic reading and is in UTC, so that equal times are equal values.
func (s *Store) now() time.Time { return s.clock().UTC() }

// Check implements jobs.Store.
func (s *Store) Check(ctx context.Context) error { return s.under.Check(ctx) }

// InTx implements jobs.Store.
func (s *Store) InTx(ctx context.Context, fn func(tx Tx) error) error { return s.under.InTx(ctx, fn) }

// InsertTx implements jobs.Store.
func (s *Store) InsertTx(ctx context.Context, tx Tx, r jobs.Record) (jobs.Record, bool, error) {
	if err := s.under.Join(ctx, tx, nil); err != nil {
		return jobs.Record{}, false, err
	}
	k := key{r.KeyScope, r.IdempotencyKey}
	if id, existed := s.keys[k]; existed {
		return clone(*s.all[id]), true, nil
	}
	if s.all[r.ID] != nil {
		return jobs.Record{}, false, fmt.Errorf("memory: there is a job %q already", r.ID)
	}
	now := s.now()
	n := clone(r)
	s.last++
	n.No, n.Status, n.CreatedAt, n.Due = s.last, jobs.Queued, now, now
	if err := s.set(ctx, tx, n.ID, &n); err != nil {
		return jobs.Record{}, false, err
	}
	if k.key == "" {
		return clone(n), false, nil
	}
	s.keys[k] = n.ID
	return clone(n), false, s.under.Join(ctx, tx, func() { delete(s.keys, k) })
}

// KeyTx implements jobs.Store.
func (s *Store) KeyTx(ctx context.Context, tx Tx, scope, k string) (jobs.Record, bool, error) {
	if err := s.under.Join(ctx, tx, nil); err != nil {
		return jobs.Record{}, false, err
	}
	id, found := s.keys[key{scope, k}]
	if !found {
		return jobs.Record{}, false, nil
	}
	return clone(*s.all[id]), true, nil
}

// set replaces a record, nil for none, until tx is rolled back.
func (s *Store) set(ctx context.Context, tx Tx, id string, r *jobs.Record) error {
	old := s.all[id]
	put := func(r *jobs.Record) {
		if r == nil {
			delete(s.all, id)
		} else {
			s.all[id] = r
		}
	}
	if err := s.under.Join(ctx, tx, func() { put(old) }); err != nil {
		return err
	}
	put(r)
	return nil
}

// DueTx implements jobs.Store.
func (s *Store) DueTx(ctx context.Context, tx Tx, q jobs.DueQuery) (due []jobs.Record, now time.Time, err error) {
	if err := s.under.Join(ctx, tx, nil); err != nil {
		return nil, time.Time{}, err
	}
	now = s.now()
	for _, r := range s.all {
		if r.Kind == q.Kind && !r.Status.Finished() && !r.Due.After(now) && !(q.NoCallbacks && r.CallbackURL != "") && !slices.Contains(q.Except, r.Owner) {
			due = append(due, clone(*r))
		}
	}
	slices.SortFunc(due, func(a, b jobs.Record) int { return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.No, b.No)) })
	return due[:min(q.Limit, len(due))], now, nil
}

// LockTx implements jobs.Store.
func (s *Store) LockTx(ctx context.Context, tx Tx, k jobs.Key) (jobs.Record, time.Time, error) {
	r, err := s.GetTx(ctx, tx, k)
	r.Input = nil
	return r, s.now(), err
}

// UpdateTx implements jobs.Store.
func (s *Store) UpdateTx(ctx context.Context, tx Tx, r jobs.Record) error {
	if err := s.under.Join(ctx, tx, nil); err != nil {
		return err
	}
	old := s.all[r.ID]
	if old == nil {
		return fmt.Errorf("%w: job %q", jobs.ErrNotFound, r.ID)
	}
	n := clone(r)
	n.No, n.Kind, n.Owner, n.Input, n.CallbackURL = old.No, old.Kind, old.Owner, old.Input, old.CallbackURL
	n.CreatedAt, n.IdempotencyKey, n.KeyScope, n.Hash = old.CreatedAt, old.IdempotencyKey, old.KeyScope, old.Hash
	return s.set(ctx, tx, r.ID, &n)
}

// GetTx implements jobs.Store.
func (s *Store) GetTx(ctx context.Context, tx Tx, k jobs.Key) (jobs.Record, error) {
	if err := s.under.Join(ctx, tx, nil); err != nil {
		return jobs.Record{}, err
	}
	r := s.all[k.ID]
	if r == nil || k.Owner != "" && r.Owner != k.Owner {
		return jobs.Record{}, fmt.Errorf("%w: job %q", jobs.ErrNotFound, k.ID)
	}
	return clone(*r), nil
}

// ListTx implements jobs.Store.
func (s *Store) ListTx(ctx context.Context, tx Tx, q jobs.ListQuery) (page []jobs.Record, next int64, err error) {
	if err := s.under.Join(ctx, tx, nil); err != nil {
		return nil, 0, err
	}
	var candidates []*jobs.Record
	unfinished := q.Owner != "" && q.Status != "" && !q.Status.Finished()
	for _, r := range s.all {
		if !(unfinished && r.Status.Finished()) && (q.Owner == "" || r.Owner == q.Owner) && (q.Before == 0 || r.No < q.Before) {
			candidates = append(candidates, r)
		}
	}
	slices.SortFunc(candidates, func(a, b *jobs.Record) int { return cmp.Compare(b.No, a.No) })
	size := 0
	for i, r := range candidates {
		if (q.Kind == "" || r.Kind == q.Kind) && (q.Status == "" || r.Status == q.Status) {
			if q.Bytes > 0 && size > 0 && size+len(r.Result) > q.Bytes {
				return page, page[len(page)-1].No, nil
			}
			size += len(r.Result)
			n := clone(*r)
			n.Input, n.State = nil, nil
			page = append(page, n)
		}
		if i+1 < len(candidates) && (len(page) == q.Limit || i+1 == max(q.Examine, q.Limit)) {
			return page, r.No, nil
		}
	}
	return page, 0, nil
}

// PruneTx implements jobs.Store.
func (s *Store) PruneTx(ctx context.Context, tx Tx, q jobs.PruneQuery) (int, error) {
	if err := s.under.Join(ctx, tx, nil); err != nil {
		return 0, err
	}
	before := s.now().Add(-q.Age)
	var old []*jobs.Record
	for _, r := range s.all {
		if r.Status.Finished() && r.FinishedAt.Before(before) {
			old = append(old, r)
		}
	}
	slices.SortFunc(old, func(a, b *jobs.Record) int {
		return cmp.Or(a.FinishedAt.Compare(b.FinishedAt), cmp.Compare(a.No, b.No))
	})
	old = old[:min(q.Limit, len(old))]
	size := 0
	for i, r := range old {
		if size += len(r.Input) + len(r.Result); q.Bytes > 0 && i > 0 && size > q.Bytes {
			return i, nil
		}
		if err := s.set(ctx, tx, r.ID, nil); err != nil {
			return 0, err
		}
		if k := (key{r.KeyScope, r.IdempotencyKey}); k.key != "" {
			delete(s.keys, k)
			if err := s.under.Join(ctx, tx, func() { s.keys[k] = r.ID }); err != nil {
				return 0, err
			}
		}
	}
	return len(old), nil
}

// clone shares nothing that could be changed.
func clone(r jobs.Record) jobs.Record {
	r.Input, r.Result, r.State = bytes.Clone(r.Input), bytes.Clone(r.Result), bytes.Clone(r.State)
	if r.Progress != nil {
		p := *r.Progress
		r.Progress = &p
	}
	return r
}
