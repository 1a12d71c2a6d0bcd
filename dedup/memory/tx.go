package memory

import (
	"context"
	"errors"
	"fmt"

	"github.com/surehook/surehook/dedup"
)

// Tx is one transaction. It is valid in the function that InTx calls, for one
// goroutine at a time.
type Tx struct {
	store *Store
	done  chan struct{} // closed when it has ended

	// All below are guarded by store.mu.
	ended    bool
	waitsFor *Tx
	held     []any // keys in store.locks

	markers  map[eventKey]change[marker]
	versions map[objectKey]int64
	letters  map[eventKey]change[dedup.DeadLetter]
	requests map[reapplyKey]change[dedup.Reapply]
}

// change is a transaction's change of a row.
type change[T any] struct {
	value   T
	removed bool
}

var errEnded = errors.New("the transaction has ended")

// InTx runs fn in a transaction. It commits if fn returns nil; if fn returns an
// error or panics, or ctx has ended by then, nothing of it remains.
func (s *Store) InTx(ctx context.Context, fn func(*Tx) error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("dedup: beginning: %w", err)
	}
	tx := &Tx{
		store:    s,
		done:     make(chan struct{}),
		markers:  map[eventKey]change[marker]{},
		versions: map[objectKey]int64{},
		letters:  map[eventKey]change[dedup.DeadLetter]{},
		requests: map[reapplyKey]change[dedup.Reapply]{},
	}
	commit := false
	defer func() { tx.end(commit) }() // also when fn panics or ends the goroutine
	if err := fn(tx); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("dedup: committing: %w", err)
	}
	commit = true
	return nil
}

func (tx *Tx) end(commit bool) {
	s := tx.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if commit {
		merge(s.markers, tx.markers)
		merge(s.letters, tx.letters)
		merge(s.requests, tx.requests)
		for k, v := range tx.versions {
			s.versions[k] = v
		}
	}
	for _, k := range tx.held {
		delete(s.locks, k)
	}
	tx.ended = true
	close(tx.done)
}

func merge[K comparable, T any](rows map[K]T, changes map[K]change[T]) {
	for k, c := range changes {
		if c.removed {
			delete(rows, k)
		} else {
			rows[k] = c.value
		}
	}
}

// begin checks the transaction and locks the store's mutex, which the caller
// must unlock if there is no error.
func (s *Store) begin(ctx context.Context, tx *Tx) error {
	if tx == nil || tx.store != s {
		return fmt.Errorf("%w: the transaction is not one of this store: it must be from InTx", dedup.ErrInvalid)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	if tx.ended {
		s.mu.Unlock()
		return errEnded
	}
	return nil
}

// lock makes key the transaction's own until it ends. It waits for the one that
// has it, during which the mutex is free. The caller holds the mutex, also after
// an error.
func (tx *Tx) lock(ctx context.Context, key any) error {
	s := tx.store
	for {
		owner := s.locks[key]
		if owner == tx {
			return nil
		}
		if owner == nil {
			s.locks[key] = tx
			tx.held = append(tx.held, key)
			return nil
		}
		for t := owner; t != nil; t = t.waitsFor {
			if t == tx {
				return dedup.ErrRetryTx
			}
		}
		tx.waitsFor = owner
		s.mu.Unlock()
		var err error
		select {
		case <-owner.done:
		case <-ctx.Done():
			err = ctx.Err()
		}
		s.mu.Lock()
		tx.waitsFor = nil
		if err != nil {
			return err
		}
	}
}

// row returns the row as the transaction sees it: its own change, or else the committed
// one.
func row[K comparable, T any](rows map[K]T, changes map[K]change[T], k K) (value T, ok bool) {
	if c, changed := changes[k]; changed {
		return c.value, !c.removed
	}
	value, ok = rows[k]
	return value, ok
}

// keys of all rows that the transaction sees.
func keys[K comparable, T any](rows map[K]T, changes map[K]change[T]) []K {
	var all []K
	for k := range rows {
		if _, changed := changes[k]; !changed {
			all = append(all, k)
		}
	}
	for k, c := range changes {
		if !c.removed {
			all = append(all, k)
		}
	}
	return all
}
