package jobstest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/jobs"
)

// breakage is a way to break a store, with the tests that must catch it.
type breakage struct {
	caughtBy []string
	how      func(b *broken, h *harness)
}

var breakages = map[string]breakage{
	"somebody else's shown": {[]string{"insert"}, func(b *broken, _ *harness) {
		b.get = func(ctx context.Context, tx tx, k jobs.Key) (jobs.Record, error) {
			return b.Store.GetTx(ctx, tx, jobs.Key{ID: k.ID})
		}
	}},
	"somebody else's locked": {[]string{"update of nothing"}, func(b *broken, _ *harness) {
		b.lock = func(ctx context.Context, tx tx, k jobs.Key) (jobs.Record, time.Time, error) {
			return b.Store.LockTx(ctx, tx, jobs.Key{ID: k.ID})
		}
	}},
	"ids in lower case": {[]string{"odd strings"}, func(b *broken, _ *harness) {
		b.insert = func(ctx context.Context, tx tx, r jobs.Record) (jobs.Record, bool, error) {
			id := r.ID
			r.ID = strings.ToLower(id)
			r, existed, err := b.Store.InsertTx(ctx, tx, r)
			r.ID = id
			return r, existed, err
		}
		b.get = func(ctx context.Context, tx tx, k jobs.Key) (jobs.Record, error) {
			id := k.ID
			k.ID = strings.ToLower(id)
			r, err := b.Store.GetTx(ctx, tx, k)
			r.ID = id
			return r, err
		}
	}},
	"input compacted":        {[]string{"odd strings"}, onInsert(func(r *jobs.Record) { r.Input = []byte(strings.Join(strings.Fields(string(r.Input)), "")) })},
	"callback url forgotten": {[]string{"insert"}, onInsert(func(r *jobs.Record) { r.CallbackURL = "" })},
	"keys forgotten":         {[]string{"idempotency key", "idempotency key at once"}, onInsert(func(r *jobs.Record) { r.IdempotencyKey = "" })},
	"scopes ignored":         {[]string{"idempotency key"}, onInsert(func(r *jobs.Record) { r.KeyScope = "" })},
	"known key as an error": {[]string{"idempotency key"}, func(b *broken, _ *harness) {
		b.insert = func(ctx context.Context, tx tx, r jobs.Record) (jobs.Record, bool, error) {
			r, existed, err := b.Store.InsertTx(ctx, tx, r)
			if existed {
				err = jobs.ErrIdempotencyKey
			}
			return r, existed, err
		}
	}},
	"known key as new": {[]string{"idempotency key", "idempotency key at once"}, func(b *broken, _ *harness) {
		b.insert = func(ctx context.Context, tx tx, r jobs.Record) (jobs.Record, bool, error) {
			r, _, err := b.Store.InsertTx(ctx, tx, r)
			return r, false, err
		}
	}},
	"key found in any scope": {[]string{"idempotency key"}, func(b *broken, _ *harness) {
		b.key = func(ctx context.Context, tx tx, _, key string) (jobs.Record, bool, error) {
			return b.Store.KeyTx(ctx, tx, "a", key)
		}
	}},
	"key found without its job": {[]string{"idempotency key"}, func(b *broken, _ *harness) {
		b.key = func(ctx context.Context, tx tx, scope, key string) (jobs.Record, bool, error) {
			r, found, err := b.Store.KeyTx(ctx, tx, scope, key)
			r.Input = nil
			return r, found, err
		}
	}},
	"key never found": {[]string{"idempotency key"}, func(b *broken, _ *harness) {
		b.key = func(context.Context, tx, string, string) (jobs.Record, bool, error) { return jobs.Record{}, false, nil }
	}},
	"state forgotten":    {[]string{"update", "odd strings"}, onUpdate(func(r *jobs.Record) { r.State = nil })},
	"token forgotten":    {[]string{"update", "lock", "due alone"}, onUpdate(func(r *jobs.Record) { r.Token = 0 })},
	"token of 53 bits":   {[]string{"update"}, onUpdate(func(r *jobs.Record) { r.Token = int64(float64(r.Token)) })},
	"progress forgotten": {[]string{"update"}, onUpdate(func(r *jobs.Record) { r.Progress = nil })},
	"cancel forgotten":   {[]string{"update"}, onUpdate(func(r *jobs.Record) { r.CancelRequested = false })},
	"seconds alone":      {[]string{"update"}, onUpdate(func(r *jobs.Record) { r.Due = r.Due.Truncate(time.Second) })},
	"update of what isn't": {[]string{"update of nothing"}, func(b *broken, _ *harness) {
		b.update = func(ctx context.Context, tx tx, r jobs.Record) error {
			if err := b.Store.UpdateTx(ctx, tx, r); !errors.Is(err, jobs.ErrNotFound) {
				return err
			}
			return nil
		}
	}},
	"kinds ignored": {[]string{"due", "idempotency key"}, func(b *broken, _ *harness) {
		b.due = func(ctx context.Context, tx tx, q jobs.DueQuery) (all []jobs.Record, now time.Time, err error) {
			for _, k := range []string{"work", "other", "nothing"} {
				var rs []jobs.Record
				q.Kind = k
				if rs, now, err = b.Store.DueTx(ctx, tx, q); err != nil {
					return nil, now, err
				}
				all = append(all, rs...)
			}
			return all, now, nil
		}
	}},
	"leases ignored": {[]string{"due"}, func(b *broken, h *harness) {
		b.due = func(ctx context.Context, tx tx, q jobs.DueQuery) ([]jobs.Record, time.Time, error) {
			_, now, err := b.Store.DueTx(ctx, tx, q)
			if err != nil {
				return nil, now, err
			}
			rs, _, err := b.Store.ListTx(ctx, tx, jobs.ListQuery{Kind: q.Kind, Limit: 1000})
			rs = slices.DeleteFunc(rs, func(r jobs.Record) bool { return r.Status.Finished() })
			slices.Reverse(rs)
			return rs[:min(q.Limit, len(rs))], now, err
		}
	}},
	"running ones never due": {[]string{"due"}, onDue(func(rs []jobs.Record) []jobs.Record {
		return slices.DeleteFunc(rs, func(r jobs.Record) bool { return r.Status == jobs.Running })
	})},
	"youngest first": {[]string{"due"}, onDue(func(rs []jobs.Record) []jobs.Record { slices.Reverse(rs); return rs })},
	"due without input": {[]string{"due"}, onDue(func(rs []jobs.Record) []jobs.Record {
		for i := range rs {
			rs[i].Input = nil
		}
		return rs
	})},
	"limit ignored": {[]string{"due"}, func(b *broken, _ *harness) {
		b.due = func(ctx context.Context, tx tx, q jobs.DueQuery) ([]jobs.Record, time.Time, error) {
			q.Limit = 1000
			return b.Store.DueTx(ctx, tx, q)
		}
	}},
	"callbacks not left out": {[]string{"due without callbacks"}, func(b *broken, _ *harness) {
		b.due = func(ctx context.Context, tx tx, q jobs.DueQuery) ([]jobs.Record, time.Time, error) {
			q.NoCallbacks = false
			return b.Store.DueTx(ctx, tx, q)
		}
	}},
	"callbacks left out unasked": {[]string{"due without callbacks"}, func(b *broken, _ *harness) {
		b.due = func(ctx context.Context, tx tx, q jobs.DueQuery) ([]jobs.Record, time.Time, error) {
			q.NoCallbacks = true
			return b.Store.DueTx(ctx, tx, q)
		}
	}},
	"callbacks left out of the limit": {[]string{"due without callbacks"}, func(b *broken, _ *harness) {
		b.due = func(ctx context.Context, tx tx, q jobs.DueQuery) ([]jobs.Record, time.Time, error) {
			without := q.NoCallbacks
			q.NoCallbacks = false
			rs, now, err := b.Store.DueTx(ctx, tx, q)
			return slices.DeleteFunc(rs, func(r jobs.Record) bool { return without && r.CallbackURL != "" }), now, err
		}
	}},
	"nothing is found by a look": {[]string{"due"}, func(b *broken, _ *harness) { b.anyDue = func([]jobs.DueQuery) (bool, error) { return false, nil } }},
	"something is found in vain": {[]string{"due", "due without callbacks", "due without owners"}, func(b *broken, _ *harness) {
		b.anyDue = func([]jobs.DueQuery) (bool, error) { return true, nil }
	}},
	"a look is for the first query": {[]string{"due"}, func(b *broken, _ *harness) {
		b.anyDue = func(queries []jobs.DueQuery) (bool, error) { return b.look(context.Background(), queries[:1]) }
	}},
	"owners not left out": {[]string{"due without owners", "shares"}, func(b *broken, _ *harness) {
		b.due = func(ctx context.Context, tx tx, q jobs.DueQuery) ([]jobs.Record, time.Time, error) {
			q.Except = nil
			return b.Store.DueTx(ctx, tx, q)
		}
	}},
	"one owner left out": {[]string{"due without owners"}, func(b *broken, _ *harness) {
		b.due = func(ctx context.Context, tx tx, q jobs.DueQuery) ([]jobs.Record, time.Time, error) {
			q.Except = q.Except[:min(1, len(q.Except))]
			return b.Store.DueTx(ctx, tx, q)
		}
	}},
	"owners left out of the limit": {[]string{"due without owners"}, func(b *broken, _ *harness) {
		b.due = func(ctx context.Context, tx tx, q jobs.DueQuery) ([]jobs.Record, time.Time, error) {
			except := q.Except
			q.Except = nil
			rs, now, err := b.Store.DueTx(ctx, tx, q)
			return slices.DeleteFunc(rs, func(r jobs.Record) bool { return slices.Contains(except, r.Owner) }), now, err
		}
	}},
	"due not locked":    {[]string{"due alone"}, func(b *broken, _ *harness) { b.stale() }},
	"stale reads":       {[]string{"lock"}, func(b *broken, _ *harness) { b.stale() }},
	"list oldest first": {[]string{"list"}, onList(func(rs []jobs.Record) []jobs.Record { slices.Reverse(rs); return rs })},
	"list filter of owners ignored": {[]string{"list"}, func(b *broken, _ *harness) {
		b.list = func(ctx context.Context, tx tx, q jobs.ListQuery) ([]jobs.Record, int64, error) {
			q.Owner = ""
			return b.Store.ListTx(ctx, tx, q)
		}
	}},
	"list cursor ignored": {[]string{"list"}, func(b *broken, _ *harness) {
		calls := 0
		b.list = func(ctx context.Context, tx tx, q jobs.ListQuery) ([]jobs.Record, int64, error) {
			if q.Before > 0 {
				if calls++; calls > 10 {
					return nil, 0, nil
				}
			}
			q.Before = 0
			return b.Store.ListTx(ctx, tx, q)
		}
	}},
	"list without an end": {[]string{"list"}, func(b *broken, _ *harness) {
		b.list = func(ctx context.Context, tx tx, q jobs.ListQuery) ([]jobs.Record, int64, error) {
			rs, _, err := b.Store.ListTx(ctx, tx, q)
			if len(rs) == 0 {
				return rs, max(1, q.Before), err
			}
			return rs, rs[len(rs)-1].No, err
		}
	}},
	"list that ends where nothing matches": {[]string{"list"}, func(b *broken, _ *harness) {
		b.list = func(ctx context.Context, tx tx, q jobs.ListQuery) ([]jobs.Record, int64, error) {
			rs, next, err := b.Store.ListTx(ctx, tx, q)
			if len(rs) < q.Limit {
				next = 0
			}
			return rs, next, err
		}
	}},
	"list looks at everything": {[]string{"list"}, func(b *broken, _ *harness) {
		b.list = func(ctx context.Context, tx tx, q jobs.ListQuery) ([]jobs.Record, int64, error) {
			q.Examine = 1000
			return b.Store.ListTx(ctx, tx, q)
		}
	}},
	"list that looks at jobs that have ended": {[]string{"list"}, func(b *broken, _ *harness) {
		b.list = func(ctx context.Context, tx tx, q jobs.ListQuery) ([]jobs.Record, int64, error) {
			status := q.Status
			q.Status = ""
			rs, next, err := b.Store.ListTx(ctx, tx, q)
			return slices.DeleteFunc(rs, func(r jobs.Record) bool { return status != "" && r.Status != status }), next, err
		}
	}},
	"list without a bound of bytes": {[]string{"list of results"}, func(b *broken, _ *harness) {
		b.list = func(ctx context.Context, tx tx, q jobs.ListQuery) ([]jobs.Record, int64, error) {
			q.Bytes = 0
			return b.Store.ListTx(ctx, tx, q)
		}
	}},
	"list that loses what does not fit": {[]string{"list of results"}, func(b *broken, _ *harness) {
		b.list = func(ctx context.Context, tx tx, q jobs.ListQuery) ([]jobs.Record, int64, error) {
			fits, _, err := b.Store.ListTx(ctx, tx, q)
			if err != nil {
				return nil, 0, err
			}
			q.Bytes = 0
			_, next, err := b.Store.ListTx(ctx, tx, q)
			return fits, next, err
		}
	}},
	"list with inputs": {[]string{"list"}, onList(func(rs []jobs.Record) []jobs.Record {
		for i := range rs {
			rs[i].Input = []byte("1")
		}
		return rs
	})},
	"prunes too early":              {[]string{"prune"}, onPrune(func(q *jobs.PruneQuery) { q.Age -= time.Second })},
	"prunes too late":               {[]string{"prune"}, onPrune(func(q *jobs.PruneQuery) { q.Age += time.Second })},
	"prunes without bound":          {[]string{"prune"}, onPrune(func(q *jobs.PruneQuery) { q.Limit = 1000 })},
	"prunes without bound of bytes": {[]string{"prune by bytes"}, onPrune(func(q *jobs.PruneQuery) { q.Bytes = 0 })},
	"prunes nothing that is large": {[]string{"prune by bytes"}, func(b *broken, _ *harness) {
		b.prune = func(ctx context.Context, tx tx, q jobs.PruneQuery) (int, error) {
			if q.Bytes > 0 && q.Bytes < 6 { // the first job is larger
				return 0, nil
			}
			return b.Store.PruneTx(ctx, tx, q)
		}
	}},
	"roll-back of InTx leaks": {[]string{"rolled back", "transactions"}, func(b *broken, _ *harness) {
		b.inTx = func(ctx context.Context, fn func(tx) error) error {
			var failed error
			if err := b.Store.InTx(ctx, func(tx tx) error { failed = fn(tx); return nil }); err != nil {
				return err
			}
			return failed
		}
	}},
	"roll-back of the caller leaks": {[]string{"rolled back"}, func(_ *broken, h *harness) {
		begin := h.Begin
		h.Begin = func(t *testing.T) (tx, func() error, func() error) {
			tx, commit, _ := begin(t)
			return tx, commit, commit
		}
	}},
	"no second run": {[]string{"transactions"}, func(b *broken, _ *harness) {
		b.inTx = func(ctx context.Context, fn func(tx) error) error {
			return b.Store.InTx(ctx, func(tx tx) error {
				err := fn(tx)
				if errors.Is(err, sender.ErrRetryTx) {
					return errors.New("not retried")
				}
				return err
			})
		}
	}},
	"unfit": {[]string{"check"}, func(b *broken, _ *harness) { b.check = func(context.Context) error { return sender.ErrUnfit } }},
}

func onInsert(change func(*jobs.Record)) func(*broken, *harness) {
	return func(b *broken, _ *harness) {
		b.insert = func(ctx context.Context, tx tx, r jobs.Record) (jobs.Record, bool, error) {
			change(&r)
			return b.Store.InsertTx(ctx, tx, r)
		}
	}
}

func onUpdate(change func(*jobs.Record)) func(*broken, *harness) {
	return func(b *broken, _ *harness) {
		b.update = func(ctx context.Context, tx tx, r jobs.Record) error {
			change(&r)
			return b.Store.UpdateTx(ctx, tx, r)
		}
	}
}

func onDue(change func([]jobs.Record) []jobs.Record) func(*broken, *harness) {
	return func(b *broken, _ *harness) {
		b.due = func(ctx context.Context, tx tx, q jobs.DueQuery) ([]jobs.Record, time.Time, error) {
			rs, now, err := b.Store.DueTx(ctx, tx, q)
			return change(rs), now, err
		}
	}
}

func onList(change func([]jobs.Record) []jobs.Record) func(*broken, *harness) {
	return func(b *broken, _ *harness) {
		b.list = func(ctx context.Context, tx tx, q jobs.ListQuery) ([]jobs.Record, int64, error) {
			rs, next, err := b.Store.ListTx(ctx, tx, q)
			return change(rs), next, err
		}
	}
}

func onPrune(change func(q *jobs.PruneQuery)) func(*broken, *harness) {
	return func(b *broken, _ *harness) {
		b.prune = func(ctx context.Context, tx tx, q jobs.PruneQuery) (int, error) {
			change(&q)
			return b.Store.PruneTx(ctx, tx, q)
		}
	}
}
