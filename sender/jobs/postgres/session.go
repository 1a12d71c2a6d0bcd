package postgres

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/surehook/surehook/sender"
)

// session is a transaction of either kind. Arguments are scalars, times and []byte:
// of more than that, drivers of database/sql have notions of their own.
type session interface {
	// exec returns how many rows were changed.
	exec(ctx context.Context, query string, args ...any) (int64, error)
	// rows has each called once for each row.
	rows(ctx context.Context, query string, args []any, each func(row scanner) error) error
}

type scanner interface{ Scan(to ...any) error }

var errNoTx = fmt.Errorf("%w transaction: it is nil", sender.ErrInvalid)

func inPgx(tx pgx.Tx) (session, error) {
	if tx == nil {
		return nil, errNoTx
	}
	return pgxSession{tx}, nil
}

type pgxSession struct{ tx pgx.Tx }

func (s pgxSession) exec(ctx context.Context, query string, args ...any) (int64, error) {
	tag, err := s.tx.Exec(ctx, query, args...)
	return tag.RowsAffected(), err
}

func (s pgxSession) rows(ctx context.Context, query string, args []any, each func(row scanner) error) error {
	rows, err := s.tx.Query(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

func inSQL(tx *sql.Tx) (session, error) {
	if tx == nil {
		return nil, errNoTx
	}
	return sqlSession{tx}, nil
}

type sqlSession struct{ tx *sql.Tx }

func (s sqlSession) exec(ctx context.Context, query string, args ...any) (int64, error) {
	res, err := s.tx.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func (s sqlSession) rows(ctx context.Context, query string, args []any, each func(row scanner) error) error {
	rows, err := s.tx.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
