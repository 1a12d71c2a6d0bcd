package postgres

import (
	"context"
	"time"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/internal/pgtx"
)

// AskReapply implements [dedup.Reapplies].
func (s *Store[Tx]) AskReapply(ctx context.Context, tx Tx, r dedup.Reapply) (int64, error) {
	r, err := r.Prepare()
	if err != nil {
		return 0, err
	}
	var number int64
	err = s.row(ctx, tx, s.sql.askReapply,
		[]any{r.Scope, r.ID, r.Object.Type, r.Object.ID, orNull(r.From), orNull(r.Until), r.At}, &number, new(*string))
	if err != nil {
		return 0, dedup.WrapError(ctx, "asking for events to be applied again", err)
	}
	return number, nil
}

// ListReapplies implements [dedup.Reapplies].
func (s *Store[Tx]) ListReapplies(ctx context.Context, tx Tx, scope string, after int64, limit int) ([]dedup.Reapply, error) {
	if err := dedup.CheckListReapplies(scope, after, limit); err != nil {
		return nil, err
	}
	in, err := s.session(tx)
	if err != nil {
		return nil, err
	}
	var list []dedup.Reapply
	err = in.Rows(ctx, s.sql.reapplies, []any{scope, after, limit}, func(row pgtx.Row) error {
		var r dedup.Reapply
		var from, until *int64
		var at int64
		err := row.Scan(&r.Number, &r.Scope, &r.ID, &r.Object.Type, &r.Object.ID, &from, &until, &at)
		r.From, r.Until, r.At = fromNull(from), fromNull(until), time.UnixMicro(at).UTC()
		list = append(list, r)
		return err
	})
	if err != nil {
		return nil, dedup.WrapError(ctx, "listing requests to apply again", err)
	}
	return list, nil
}

// CancelReapply implements [dedup.Reapplies].
func (s *Store[Tx]) CancelReapply(ctx context.Context, tx Tx, scope string, number int64) error {
	if err := dedup.CheckReapplyNumber(scope, number); err != nil {
		return err
	}
	n, err := s.exec(ctx, tx, s.sql.cancelReapply, scope, number)
	if err == nil && n == 0 {
		return dedup.ErrNotFound
	}
	return dedup.WrapError(ctx, "cancelling a request to apply again", err)
}

// TakeReapply implements [dedup.Reapplies].
func (s *Store[Tx]) TakeReapply(ctx context.Context, tx Tx, scope, id string, obj dedup.Object) (bool, error) {
	if err := dedup.CheckTakeReapply(scope, id, obj); err != nil {
		return false, err
	}
	n, err := s.exec(ctx, tx, s.sql.takeReapply, scope, id, obj.Type, obj.ID)
	if err != nil {
		return false, dedup.WrapError(ctx, "looking for a request to apply an event again", err)
	}
	return n == 1, nil
}

// AdvanceAgain implements [dedup.Reapplies].
func (s *Store[Tx]) AdvanceAgain(ctx context.Context, tx Tx, scope string, obj dedup.Object, version int64) (bool, error) {
	if err := dedup.CheckVersion(scope, obj, version); err != nil {
		return false, err
	}
	n, err := s.exec(ctx, tx, s.sql.advanceAgain, scope, obj.Type, obj.ID, version)
	if err != nil {
		return false, dedup.WrapError(ctx, "advancing a version again", err)
	}
	return n == 1, nil
}

// orNull is nil for no time. Drivers of database/sql take no other form of it alike.
func orNull(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t
}

func fromNull(at *int64) time.Time {
	if at == nil {
		return time.Time{}
	}
	return time.UnixMicro(*at).UTC()
}
