package dedup

import (
	"context"
	"time"
)

// MarkAdvancer is an optional interface of a [Store] that can take the marker and
// the version in one step, which over a network is one trip instead of two.
type MarkAdvancer[Tx any] interface {
	// MarkAndAdvance is Mark and, if the event is fresh, Advance after it. For a
	// duplicate the version is not looked at, and newer is false. The marker must be
	// locked before the version. The rules of [Store] for both methods hold here too. All
	// arguments are checked before anything is written.
	MarkAndAdvance(ctx context.Context, tx Tx, scope, id string, at time.Time, obj Object, version int64) (fresh, newer bool, err error)
}

// MarkAndAdvance is [MarkAdvancer] for every store: in one step if s can do it,
// otherwise by Mark and then Advance.
func MarkAndAdvance[Tx any](ctx context.Context, s Store[Tx], tx Tx, scope, id string, at time.Time, obj Object, version int64) (fresh, newer bool, err error) {
	if m, ok := s.(MarkAdvancer[Tx]); ok {
		return m.MarkAndAdvance(ctx, tx, scope, id, at, obj, version)
	}
	if err := CheckVersion(scope, obj, version); err != nil {
		return false, false, err
	}
	if fresh, err = s.Mark(ctx, tx, scope, id, at); err != nil || !fresh {
		return false, false, err
	}
	newer, err = s.Advance(ctx, tx, scope, obj, version)
	if err != nil {
		return false, false, err
	}
	return true, newer, nil
}
