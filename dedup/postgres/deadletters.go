package postgres

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/internal/pgtx"
)

// SetAside implements [dedup.DeadLetters].
func (s *Store[Tx]) SetAside(ctx context.Context, tx Tx, letter dedup.DeadLetter) error {
	l, err := letter.Prepare()
	if err != nil {
		return err
	}
	_, err = s.exec(ctx, tx, s.sql.setAside,
		l.Scope, l.ID, l.Type, l.Object.Type, l.Object.ID, l.Version, l.Body, l.Reason, l.At)
	return dedup.WrapError(ctx, "setting an event aside", err)
}

// DeadLetter implements [dedup.DeadLetters].
func (s *Store[Tx]) DeadLetter(ctx context.Context, tx Tx, scope, id string) (dedup.DeadLetter, error) {
	if err := dedup.CheckID(scope, id); err != nil {
		return dedup.DeadLetter{}, err
	}
	l, err := scanLetter(func(into ...any) error {
		return s.row(ctx, tx, s.sql.letter, []any{scope, id}, into...)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return dedup.DeadLetter{}, dedup.ErrNotFound
	}
	return l, dedup.WrapError(ctx, "reading a dead letter", err)
}

// ListDeadLetters implements [dedup.DeadLetters].
func (s *Store[Tx]) ListDeadLetters(ctx context.Context, tx Tx, scope, after string, limit int) ([]dedup.DeadLetter, error) {
	if err := dedup.CheckList(scope, after, limit); err != nil {
		return nil, err
	}
	in, err := s.session(tx)
	if err != nil {
		return nil, err
	}
	var list []dedup.DeadLetter
	err = in.Rows(ctx, s.sql.letters, []any{scope, after, limit}, func(row pgtx.Row) error {
		l, err := scanLetter(row.Scan)
		list = append(list, l)
		return err
	})
	if err != nil {
		return nil, dedup.WrapError(ctx, "listing dead letters", err)
	}
	return list, nil
}

// Discard implements [dedup.DeadLetters].
func (s *Store[Tx]) Discard(ctx context.Context, tx Tx, scope, id string) error {
	if err := dedup.CheckID(scope, id); err != nil {
		return err
	}
	n, err := s.exec(ctx, tx, s.sql.discard, scope, id)
	if err == nil && n == 0 {
		return dedup.ErrNotFound
	}
	return dedup.WrapError(ctx, "discarding a dead letter", err)
}

func scanLetter(scan func(...any) error) (dedup.DeadLetter, error) {
	var l dedup.DeadLetter
	var at int64
	err := scan(&l.Scope, &l.ID, &l.Type, &l.Object.Type, &l.Object.ID, &l.Version, &l.Body, &l.Reason, &at)
	if err != nil {
		return dedup.DeadLetter{}, err
	}
	l.At = time.UnixMicro(at).UTC()
	return l, nil
}
