package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/surehook/surehook/dedup"
)

type reapplyKey struct {
	scope  string
	number int64
}

// AskReapply implements [dedup.Reapplies]. The number of a transaction that is rolled back
// is not used again.
func (s *Store) AskReapply(ctx context.Context, tx *Tx, r dedup.Reapply) (int64, error) {
	r, err := r.Prepare()
	if err != nil {
		return 0, err
	}
	if err := s.begin(ctx, tx); err != nil {
		return 0, dedup.WrapError(ctx, "asking for events to be applied again", err)
	}
	defer s.mu.Unlock()
	s.asked++
	r.Number = s.asked
	tx.requests[reapplyKey{r.Scope, r.Number}] = change[dedup.Reapply]{value: r}
	return r.Number, nil
}

// ListReapplies implements [dedup.Reapplies].
func (s *Store) ListReapplies(ctx context.Context, tx *Tx, scope string, after int64, limit int) ([]dedup.Reapply, error) {
	if err := dedup.CheckListReapplies(scope, after, limit); err != nil {
		return nil, err
	}
	if err := s.begin(ctx, tx); err != nil {
		return nil, dedup.WrapError(ctx, "listing requests to apply again", err)
	}
	defer s.mu.Unlock()
	var list []dedup.Reapply
	for _, k := range keys(s.requests, tx.requests) {
		if k.scope == scope && k.number > after {
			r, _ := row(s.requests, tx.requests, k)
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b dedup.Reapply) int { return cmp.Compare(a.Number, b.Number) })
	return list[:min(limit, len(list))], nil
}

// CancelReapply implements [dedup.Reapplies].
func (s *Store) CancelReapply(ctx context.Context, tx *Tx, scope string, number int64) error {
	if err := dedup.CheckReapplyNumber(scope, number); err != nil {
		return err
	}
	k := reapplyKey{scope, number}
	found := false
	err := s.write(ctx, tx, k, func() bool {
		if _, found = row(s.requests, tx.requests, k); found {
			tx.requests[k] = change[dedup.Reapply]{removed: true}
		}
		return found
	})
	if err == nil && !found {
		return dedup.ErrNotFound
	}
	return dedup.WrapError(ctx, "cancelling a request to apply again", err)
}

// TakeReapply implements [dedup.Reapplies]. It looks at every request there is.
func (s *Store) TakeReapply(ctx context.Context, tx *Tx, scope, id string, obj dedup.Object) (bool, error) {
	if err := dedup.CheckTakeReapply(scope, id, obj); err != nil {
		return false, err
	}
	due := false
	k := eventKey{scope, id}
	err := s.write(ctx, tx, k, func() bool {
		m, marked := row(s.markers, tx.markers, k)
		if last := s.lastRequest(tx, k, m.at, obj); marked && last > m.reapplied {
			due, m.reapplied = true, last
			tx.markers[k] = change[marker]{value: m}
		}
		return due
	})
	return due, dedup.WrapError(ctx, "looking for a request to apply an event again", err)
}

// lastRequest is the highest number of the requests that cover a marker, or 0.
func (s *Store) lastRequest(tx *Tx, event eventKey, markedAt int64, obj dedup.Object) (last int64) {
	for _, k := range keys(s.requests, tx.requests) {
		r, _ := row(s.requests, tx.requests, k)
		if k.scope == event.scope && (r.ID == "" || r.ID == event.id) &&
			(r.Object == dedup.Object{} || r.Object == obj) &&
			markedAt <= r.At.UnixMicro() &&
			(r.From.IsZero() || markedAt >= r.From.UnixMicro()) &&
			(r.Until.IsZero() || markedAt < r.Until.UnixMicro()) {
			last = max(last, k.number)
		}
	}
	return last
}

// AdvanceAgain implements [dedup.Reapplies].
func (s *Store) AdvanceAgain(ctx context.Context, tx *Tx, scope string, obj dedup.Object, version int64) (bool, error) {
	if err := dedup.CheckVersion(scope, obj, version); err != nil {
		return false, err
	}
	current := false
	k := objectKey{scope, obj}
	err := s.write(ctx, tx, k, func() bool {
		if current = version >= s.version(tx, k); current {
			tx.versions[k] = version
		}
		return current
	})
	return current, dedup.WrapError(ctx, "advancing a version again", err)
}

// pruneRequests removes up to limit requests that are older than before. The caller holds
// the mutex. A request that another transaction is cancelling is gone either way.
func (s *Store) pruneRequests(tx *Tx, before time.Time, limit int) {
	var old []reapplyKey
	for _, k := range keys(s.requests, tx.requests) {
		if r, _ := row(s.requests, tx.requests, k); r.At.UnixMicro() < before.UnixMicro() {
			old = append(old, k)
		}
	}
	slices.SortFunc(old, func(a, b reapplyKey) int { return cmp.Compare(a.number, b.number) })
	for _, k := range old[:min(limit, len(old))] {
		tx.requests[k] = change[dedup.Reapply]{removed: true}
	}
}
