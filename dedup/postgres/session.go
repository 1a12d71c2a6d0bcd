package postgres

import (
	"context"
	"fmt"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/internal/pgtx"
)

var errNoTx = fmt.Errorf("%w: the transaction is nil", dedup.ErrInvalid)

// session is the caller's transaction.
func (s *Store[Tx]) session(tx Tx) (pgtx.Tx, error) {
	if in := s.in(tx); in != nil {
		return in, nil
	}
	return nil, errNoTx
}

func (s *Store[Tx]) exec(ctx context.Context, tx Tx, query string, args ...any) (int64, error) {
	in, err := s.session(tx)
	if err != nil {
		return 0, err
	}
	return in.Exec(ctx, query, args...)
}

func (s *Store[Tx]) row(ctx context.Context, tx Tx, query string, args []any, into ...any) error {
	in, err := s.session(tx)
	if err != nil {
		return err
	}
	return in.Row(ctx, query, args, into...)
}
