package postgres

import (
	"context"

	"github.com/surehook/surehook/sender/internal/pgrun"
)

// InTx implements jobs.Store. The transaction has the database's default isolation
// level. If PostgreSQL aborts it because of other transactions it is run again, up to
// fifty times in all, within some seconds.
func (s *Store[Tx]) InTx(ctx context.Context, fn func(tx Tx) error) error {
	return pgrun.Again(ctx, func() error { return s.run(ctx, fn) })
}

func fail(doing string, err error) error { return pgrun.Fail(doing, err) }
