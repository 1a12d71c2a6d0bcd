package memory

import (
	"context"
	"errors"
	"fmt"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/internal/inside"
	"github.com/surehook/surehook/sender/rules"
)

// ErrEnded says that the transaction was committed or rolled back before.
var ErrEnded = errors.New("memory: the transaction has ended")

// inTxRuns is how often InTx runs a function at most.
const inTxRuns = 5

// Tx is a transaction of a Store, open until Commit or Rollback. It may be used
// by one goroutine at a time.
type Tx struct {
	store *Store
	no    int64
	undo  []func() // how to take back what was done, oldest first
	wake  bool     // something may be due once it has committed
	ended bool

	superseding rules.Superseding // by newer deliveries
}

// Begin opens a transaction, once the transactions that were asked for before have ended.
// It returns ctx's error if ctx ends first.
func (s *Store) Begin(ctx context.Context) (*Tx, error) {
	if ctx.Err() != nil || !s.open.TryAcquire(1) {
		if s.nested.Called() {
			return nil, inside.ErrInTx
		}
		if err := s.open.Acquire(ctx, 1); err != nil {
			return nil, fmt.Errorf("memory: beginning a transaction: %w", err)
		}
	}
	s.begun++
	return &Tx{store: s, no: s.begun}, nil
}

// Commit ends the transaction and keeps what it did, or returns ErrEnded.
func (tx *Tx) Commit() error {
	if tx.ended {
		return ErrEnded
	}
	tx.ended, tx.undo = true, nil
	tx.store.open.Release(1)
	if tx.wake {
		tx.store.Wake()
	}
	return nil
}

// Rollback ends the transaction and takes back what it did, or returns ErrEnded.
func (tx *Tx) Rollback() error {
	if tx.ended {
		return ErrEnded
	}
	tx.undoTo(0)
	tx.ended = true
	tx.store.open.Release(1)
	return nil
}

// InTx implements sender.Outbox. A function that returns an error that
// matches sender.ErrRetryTx is run up to five times in all. A call inside fn, on its
// goroutine, that does not take tx would wait for itself, and is refused at once.
func (s *Store) InTx(ctx context.Context, fn func(tx *Tx) error) error {
	var err error
	for range inTxRuns {
		if err = s.inTx(ctx, fn); !errors.Is(err, sender.ErrRetryTx) {
			return err
		}
	}
	return err
}

// inTx is InTx without the retries.
func (s *Store) inTx(ctx context.Context, fn func(tx *Tx) error) error {
	tx, err := s.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // unless it was committed; also if fn panics or ends the goroutine
	if err := s.nested.Call(func() error { return fn(tx) }); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("memory: committing: %w", err)
	}
	return tx.Commit()
}

// in runs fn, the work of a method in the caller's transaction. If fn fails, nothing of
// it is done.
func (s *Store) in(ctx context.Context, tx *Tx, fn func() error) error {
	if tx == nil || tx.store != s {
		return fmt.Errorf("%w transaction: it must be one that this store began", sender.ErrInvalid)
	}
	if tx.ended {
		return ErrEnded
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	before := len(tx.undo)
	err := fn()
	if err != nil {
		tx.undoTo(before)
	}
	return err
}

func (tx *Tx) undoTo(n int) {
	for i := len(tx.undo) - 1; i >= n; i-- {
		tx.undo[i]()
	}
	tx.undo = tx.undo[:n]
}

// set assigns to *p until the transaction is rolled back.
func set[T any](tx *Tx, p *T, v T) {
	old := *p
	tx.undo = append(tx.undo, func() { *p = old })
	*p = v
}

// deleteKey removes m[k], which is there, until the transaction is rolled back.
func deleteKey[K comparable, V any](tx *Tx, m map[K]V, k K) {
	old, had := m[k]
	if !had {
		return
	}
	tx.undo = append(tx.undo, func() { m[k] = old })
	delete(m, k)
}

// setKey assigns to m[k] until the transaction is rolled back.
func setKey[K comparable, V any](tx *Tx, m map[K]V, k K, v V) {
	old, had := m[k]
	tx.undo = append(tx.undo, func() {
		if had {
			m[k] = old
		} else {
			delete(m, k)
		}
	})
	m[k] = v
}
