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
// The result has [DeadLetters] and [Reapplies] if s has them.
func Adapt[To, From any](s Store[From], unwrap func(To) From) Store[To] {
	a := adapted[To, From]{s, unwrap}
	letters, hasLetters := s.(DeadLetters[From])
	l := adaptedLetters[To, From]{letters, unwrap}
	requests, hasRequests := s.(Reapplies[From])
	r := adaptedReapplies[To, From]{requests, unwrap}
	switch {
	case hasLetters && hasRequests:
		return struct {
			adapted[To, From]
			adaptedLetters[To, From]
			adaptedReapplies[To, From]
		}{a, l, r}
	case hasLetters:
		return struct {
			adapted[To, From]
			adaptedLetters[To, From]
		}{a, l}
	case hasRequests:
		return struct {
			adapted[To, From]
			adaptedReapplies[To, From]
		}{a, r}
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

type adaptedLetters[To, From any] struct {
	letters DeadLetters[From]
	unwrap  func(To) From
}

func (a adaptedLetters[To, From]) SetAside(ctx context.Context, tx To, letter DeadLetter) error {
	return a.letters.SetAside(ctx, a.unwrap(tx), letter)
}

func (a adaptedLetters[To, From]) DeadLetter(ctx context.Context, tx To, scope, id string) (DeadLetter, error) {
	return a.letters.DeadLetter(ctx, a.unwrap(tx), scope, id)
}

func (a adaptedLetters[To, From]) ListDeadLetters(ctx context.Context, tx To, scope, after string, limit int) ([]DeadLetter, error) {
	return a.letters.ListDeadLetters(ctx, a.unwrap(tx), scope, after, limit)
}

func (a adaptedLetters[To, From]) Discard(ctx context.Context, tx To, scope, id string) error {
	return a.letters.Discard(ctx, a.unwrap(tx), scope, id)
}

type adaptedReapplies[To, From any] struct {
	requests Reapplies[From]
	unwrap   func(To) From
}

func (a adaptedReapplies[To, From]) AskReapply(ctx context.Context, tx To, r Reapply) (int64, error) {
	return a.requests.AskReapply(ctx, a.unwrap(tx), r)
}

func (a adaptedReapplies[To, From]) ListReapplies(ctx context.Context, tx To, scope string, after int64, limit int) ([]Reapply, error) {
	return a.requests.ListReapplies(ctx, a.unwrap(tx), scope, after, limit)
}

func (a adaptedReapplies[To, From]) CancelReapply(ctx context.Context, tx To, scope string, number int64) error {
	return a.requests.CancelReapply(ctx, a.unwrap(tx), scope, number)
}

func (a adaptedReapplies[To, From]) TakeReapply(ctx context.Context, tx To, scope, id string, obj Object) (bool, error) {
	return a.requests.TakeReapply(ctx, a.unwrap(tx), scope, id, obj)
}

func (a adaptedReapplies[To, From]) AdvanceAgain(ctx context.Context, tx To, scope string, obj Object, version int64) (bool, error) {
	return a.requests.AdvanceAgain(ctx, a.unwrap(tx), scope, obj, version)
}
