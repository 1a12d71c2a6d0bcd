package dedup

import (
	"context"
	"time"
)

// Adapt turns a store of one transaction type into a store of another. unwrap returns the
// transaction inside: for bun
//
//	store := dedup.Adapt(sqlite.New(), func(tx bun.Tx) *sql.Tx { return tx.Tx })
//
// The result has [DeadLetters] if s has it.
func Adapt[To, From any](s Store[From], unwrap func(To) From) Store[To] {
	a := adapted[To, From]{s, unwrap}
	if letters, ok := s.(DeadLetters[From]); ok {
		return adaptedWithLetters[To, From]{a, letters}
	}
	return a
}

type adapted[To, From any] struct {
	store  Store[From]
	unwrap func(To) From
}

func (a adapted[To, From]) Mark(ctx context.Context, tx To, scope, id string, at time.Time) (bool, error) {
	return a.store.Mark(ctx, a.unwrap(tx), scope, id, at)
}

func (a adapted[To, From]) Advance(ctx context.Context, tx To, scope string, obj Object, version int64) (bool, error) {
	return a.store.Advance(ctx, a.unwrap(tx), scope, obj, version)
}

func (a adapted[To, From]) MarkAndAdvance(ctx context.Context, tx To, scope, id string, at time.Time, obj Object, version int64) (fresh, newer bool, err error) {
	return MarkAndAdvance(ctx, a.store, a.unwrap(tx), scope, id, at, obj, version)
}

func (a adapted[To, From]) Version(ctx context.Context, tx To, scope string, obj Object) (int64, error) {
	return a.store.Version(ctx, a.unwrap(tx), scope, obj)
}

func (a adapted[To, From]) Prune(ctx context.Context, tx To, before time.Time, limit int) (int, error) {
	return a.store.Prune(ctx, a.unwrap(tx), before, limit)
}

type adaptedWithLetters[To, From any] struct {
	adapted[To, From]
	letters DeadLetters[From]
}

func (a adaptedWithLetters[To, From]) SetAside(ctx context.Context, tx To, letter DeadLetter) error {
	return a.letters.SetAside(ctx, a.unwrap(tx), letter)
}

func (a adaptedWithLetters[To, From]) DeadLetter(ctx context.Context, tx To, scope, id string) (DeadLetter, error) {
	return a.letters.DeadLetter(ctx, a.unwrap(tx), scope, id)
}

func (a adaptedWithLetters[To, From]) ListDeadLetters(ctx context.Context, tx To, scope, after string, limit int) ([]DeadLetter, error) {
	return a.letters.ListDeadLetters(ctx, a.unwrap(tx), scope, after, limit)
}

func (a adaptedWithLetters[To, From]) Discard(ctx context.Context, tx To, scope, id string) error {
	return a.letters.Discard(ctx, a.unwrap(tx), scope, id)
}
