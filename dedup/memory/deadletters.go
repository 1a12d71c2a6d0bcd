package memory

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/surehook/surehook/dedup"
)

// SetAside implements [dedup.DeadLetters].
func (s *Store) SetAside(ctx context.Context, tx *Tx, letter dedup.DeadLetter) error {
	l, err := letter.Prepare()
	if err != nil {
		return err
	}
	k := eventKey{l.Scope, l.ID}
	err = s.write(ctx, tx, letterKey(k), func() bool {
		tx.letters[k] = change[dedup.DeadLetter]{value: l}
		return true
	})
	return dedup.WrapError(ctx, "setting an event aside", err)
}

// DeadLetter implements [dedup.DeadLetters].
func (s *Store) DeadLetter(ctx context.Context, tx *Tx, scope, id string) (dedup.DeadLetter, error) {
	if err := dedup.CheckID(scope, id); err != nil {
		return dedup.DeadLetter{}, err
	}
	if err := s.begin(ctx, tx); err != nil {
		return dedup.DeadLetter{}, dedup.WrapError(ctx, "reading a dead letter", err)
	}
	defer s.mu.Unlock()
	l, ok := row(s.letters, tx.letters, eventKey{scope, id})
	if !ok {
		return dedup.DeadLetter{}, dedup.ErrNotFound
	}
	return withOwnBody(l), nil
}

// ListDeadLetters implements [dedup.DeadLetters].
func (s *Store) ListDeadLetters(ctx context.Context, tx *Tx, scope, after string, limit int) ([]dedup.DeadLetter, error) {
	if err := dedup.CheckList(scope, after, limit); err != nil {
		return nil, err
	}
	if err := s.begin(ctx, tx); err != nil {
		return nil, dedup.WrapError(ctx, "listing dead letters", err)
	}
	defer s.mu.Unlock()
	var letters []dedup.DeadLetter
	for _, k := range keys(s.letters, tx.letters) {
		if k.scope == scope && k.id > after {
			l, _ := row(s.letters, tx.letters, k)
			letters = append(letters, withOwnBody(l))
		}
	}
	slices.SortFunc(letters, func(a, b dedup.DeadLetter) int { return cmp.Compare(a.ID, b.ID) })
	return letters[:min(limit, len(letters))], nil
}

// Discard implements [dedup.DeadLetters].
func (s *Store) Discard(ctx context.Context, tx *Tx, scope, id string) error {
	if err := dedup.CheckID(scope, id); err != nil {
		return err
	}
	k := eventKey{scope, id}
	found := false
	err := s.write(ctx, tx, letterKey(k), func() bool {
		if _, found = row(s.letters, tx.letters, k); found {
			tx.letters[k] = change[dedup.DeadLetter]{removed: true}
		}
		return found
	})
	if err == nil && !found {
		return dedup.ErrNotFound
	}
	return dedup.WrapError(ctx, "discarding a dead letter", err)
}

func withOwnBody(l dedup.DeadLetter) dedup.DeadLetter {
	l.Body = bytes.Clone(l.Body)
	return l
}
