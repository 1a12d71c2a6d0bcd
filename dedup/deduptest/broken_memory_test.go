package deduptest_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/dedup/deduptest"
	"github.com/surehook/surehook/dedup/memory"
)

func inMemory() []breakage[*memory.Tx] {
	type tx = *memory.Tx
	type b = *broken[tx]
	type h = *deduptest.Harness[tx]
	type key struct{ scope, id string }
	return []breakage[tx]{
		{"marks in a transaction of its own", []string{"rollback", "panic", "marker-and-version-together", "next-after-rollback", "dead-letters-rollback"}, func(b b, h h) {
			b.mark = func(ctx context.Context, _ tx, scope, id string, at time.Time) (fresh bool, err error) {
				err = h.InTx(ctx, func(own tx) (err error) {
					fresh, err = b.full.Mark(ctx, own, scope, id, at)
					return err
				})
				return fresh, err
			}
		}},
		{"never fresh", []string{"first-is-fresh", "one-of-many"}, func(b b, _ h) {
			b.mark = func(ctx context.Context, tx tx, scope, id string, at time.Time) (bool, error) {
				_, err := b.full.Mark(ctx, tx, scope, id, at)
				return false, err
			}
		}},
		{"always fresh", []string{"first-is-fresh", "one-of-many"}, func(b b, _ h) {
			b.mark = func(ctx context.Context, tx tx, scope, id string, at time.Time) (bool, error) {
				_, err := b.full.Mark(ctx, tx, scope, id, at)
				return err == nil, err
			}
		}},
		{"truncates long ids", []string{"odd-values", "distinct-values"}, func(b b, _ h) {
			b.mark = func(ctx context.Context, tx tx, scope, id string, at time.Time) (bool, error) {
				return b.full.Mark(ctx, tx, scope, id[:min(64, len(id))], at)
			}
		}},
		{"lower-cases ids", []string{"distinct-values"}, func(b b, _ h) {
			b.mark = func(ctx context.Context, tx tx, scope, id string, at time.Time) (bool, error) {
				return b.full.Mark(ctx, tx, scope, strings.ToLower(id), at)
			}
		}},
		{"trims what is around an id", []string{"odd-values"}, func(b b, _ h) {
			b.mark = func(ctx context.Context, tx tx, scope, id string, at time.Time) (bool, error) {
				return b.full.Mark(ctx, tx, scope, strings.TrimSpace(id), at)
			}
		}},
		{"ignores the scope of markers", []string{"scopes", "distinct-values"}, func(b b, _ h) {
			b.mark = func(ctx context.Context, tx tx, _, id string, at time.Time) (bool, error) {
				return b.full.Mark(ctx, tx, "all", id, at)
			}
		}},
		{"ignores the scope of versions", []string{"scopes"}, func(b b, _ h) {
			b.advance = func(ctx context.Context, tx tx, _ string, obj dedup.Object, v int64) (bool, error) {
				return b.full.Advance(ctx, tx, "all", obj, v)
			}
			b.version = func(ctx context.Context, tx tx, _ string, obj dedup.Object) (int64, error) {
				return b.full.Version(ctx, tx, "all", obj)
			}
		}},
		{"joins object type and id", []string{"distinct-values"}, func(b b, _ h) {
			join := func(o dedup.Object) dedup.Object { return dedup.Object{Type: "all", ID: o.Type + o.ID} }
			b.advance = func(ctx context.Context, tx tx, scope string, obj dedup.Object, v int64) (bool, error) {
				return b.full.Advance(ctx, tx, scope, join(obj), v)
			}
			b.version = func(ctx context.Context, tx tx, scope string, obj dedup.Object) (int64, error) {
				return b.full.Version(ctx, tx, scope, join(obj))
			}
		}},
		{"an equal version is newer", []string{"version-order", "version-own-transaction", "concurrent-versions", "prune-keeps-versions"}, func(b b, _ h) {
			b.advance = func(ctx context.Context, tx tx, scope string, obj dedup.Object, v int64) (bool, error) {
				newer, err := b.full.Advance(ctx, tx, scope, obj, v)
				if err == nil && !newer {
					stored, err := b.full.Version(ctx, tx, scope, obj)
					return stored == v, err
				}
				return newer, err
			}
		}},
		{"only the next version is newer", []string{"version-order"}, func(b b, _ h) {
			b.advance = func(ctx context.Context, tx tx, scope string, obj dedup.Object, v int64) (bool, error) {
				stored, err := b.full.Version(ctx, tx, scope, obj)
				if err != nil || stored > 0 && v != stored+1 {
					return false, err
				}
				return b.full.Advance(ctx, tx, scope, obj, v)
			}
		}},
		{"does not see its own versions", []string{"version-own-transaction"}, func(b b, h h) {
			b.version = func(ctx context.Context, _ tx, scope string, obj dedup.Object) (v int64, err error) {
				err = h.InTx(ctx, func(own tx) (err error) {
					v, err = b.full.Version(ctx, own, scope, obj)
					return err
				})
				return v, err
			}
		}},
		{"keeps versions in memory across a rollback", []string{"rollback", "uncommitted-version"}, func(b b, _ h) {
			var mu sync.Mutex
			cache := map[dedup.Object]int64{}
			b.advance = func(ctx context.Context, tx tx, scope string, obj dedup.Object, v int64) (bool, error) {
				mu.Lock()
				if cache[obj] >= v && dedup.CheckVersion(scope, obj, v) == nil {
					mu.Unlock()
					return false, nil
				}
				mu.Unlock()
				newer, err := b.full.Advance(ctx, tx, scope, obj, v)
				if newer {
					mu.Lock()
					cache[obj] = v
					mu.Unlock()
				}
				return newer, err
			}
		}},
		{"looks, then inserts", []string{"uncommitted-marker", "one-of-many"}, func(b b, h h) {
			var mu sync.Mutex
			committed, pending := map[key]bool{}, map[tx][]key{}
			good := h.InTx
			h.InTx = func(ctx context.Context, fn func(tx) error) error {
				var mine tx
				err := good(ctx, func(t tx) error { mine = t; return fn(t) })
				mu.Lock()
				defer mu.Unlock()
				for _, k := range pending[mine] {
					if err == nil {
						committed[k] = true
					}
				}
				delete(pending, mine)
				return err
			}
			b.mark = func(ctx context.Context, tx tx, scope, id string, at time.Time) (bool, error) {
				k := key{scope, id}
				if err := dedup.CheckMark(scope, id, at); err != nil {
					return false, err
				}
				mu.Lock()
				seen := committed[k] || slices.Contains(pending[tx], k)
				mu.Unlock()
				if seen {
					return false, ctx.Err()
				}
				time.Sleep(time.Millisecond)
				mu.Lock()
				defer mu.Unlock()
				pending[tx] = append(pending[tx], k)
				return true, ctx.Err()
			}
		}},
		{"a mark in work is a duplicate", []string{"uncommitted-marker"}, func(b b, h h) {
			var mu sync.Mutex
			inWork := map[key]tx{}
			good := h.InTx
			h.InTx = func(ctx context.Context, fn func(tx) error) error {
				var mine tx
				defer func() {
					mu.Lock()
					defer mu.Unlock()
					maps.DeleteFunc(inWork, func(_ key, t tx) bool { return t == mine })
				}()
				return good(ctx, func(t tx) error { mine = t; return fn(t) })
			}
			b.mark = func(ctx context.Context, tx tx, scope, id string, at time.Time) (bool, error) {
				mu.Lock()
				if owner := inWork[key{scope, id}]; owner != nil && owner != tx {
					mu.Unlock()
					return false, ctx.Err()
				}
				if dedup.CheckMark(scope, id, at) == nil {
					inWork[key{scope, id}] = tx
				}
				mu.Unlock()
				return b.full.Mark(ctx, tx, scope, id, at)
			}
		}},
		{"a duplicate spoils the transaction", []string{"usable-after-waiting"}, func(b b, _ h) {
			var mu sync.Mutex
			spoilt := map[tx]bool{}
			b.mark = func(ctx context.Context, tx tx, scope, id string, at time.Time) (bool, error) {
				mu.Lock()
				defer mu.Unlock()
				if spoilt[tx] {
					return false, errors.New("current transaction is aborted (SQLSTATE 25P02)")
				}
				mu.Unlock()
				fresh, err := b.full.Mark(ctx, tx, scope, id, at)
				mu.Lock()
				spoilt[tx] = err == nil && !fresh
				return fresh, err
			}
		}},
		{"advances the version of a duplicate", []string{"mark-and-advance", "mark-and-advance-waits"}, func(b b, _ h) {
			b.markAndAdvance = func(ctx context.Context, tx tx, scope, id string, at time.Time, obj dedup.Object, v int64) (bool, bool, error) {
				fresh, err := b.full.Mark(ctx, tx, scope, id, at)
				if err != nil {
					return false, false, err
				}
				newer, err := b.full.Advance(ctx, tx, scope, obj, v)
				return fresh, newer, err
			}
		}},
		{"marks before it looks at the version's form", []string{"mark-and-advance-refused"}, func(b b, _ h) {
			b.markAndAdvance = func(ctx context.Context, tx tx, scope, id string, at time.Time, obj dedup.Object, v int64) (bool, bool, error) {
				fresh, err := b.full.Mark(ctx, tx, scope, id, at)
				if err != nil || !fresh {
					return false, false, err
				}
				newer, err := b.full.Advance(ctx, tx, scope, obj, v)
				return err == nil, newer, err
			}
		}},
		{"remembers in the process what it took", []string{"mark-and-advance", "mark-and-advance-waits", "many-writers"}, func(b b, _ h) {
			var mu sync.Mutex
			taken := map[key]bool{}
			b.markAndAdvance = func(ctx context.Context, tx tx, scope, id string, at time.Time, obj dedup.Object, v int64) (bool, bool, error) {
				mu.Lock()
				known := taken[key{scope, id}]
				mu.Unlock()
				if known {
					return false, false, ctx.Err()
				}
				fresh, newer, err := dedup.MarkAndAdvance(ctx, dedup.Store[*memory.Tx](b.full), tx, scope, id, at, obj, v)
				if err == nil {
					mu.Lock()
					taken[key{scope, id}] = true
					mu.Unlock()
				}
				return fresh, newer, err
			}
		}},
		{"swallows errors", []string{"odd-values", "context-ended"}, func(b b, _ h) {
			b.mark = func(ctx context.Context, tx tx, scope, id string, at time.Time) (bool, error) {
				fresh, _ := b.full.Mark(ctx, tx, scope, id, at)
				return fresh, nil
			}
		}},
		{"hands out the driver's error bare", []string{"circle-of-waits"}, func(b b, _ h) {
			b.mark = func(ctx context.Context, tx tx, scope, id string, at time.Time) (bool, error) {
				fresh, err := b.full.Mark(ctx, tx, scope, id, at)
				if errors.Is(err, dedup.ErrRetryTx) {
					err = deadlock{}
				}
				return fresh, err
			}
		}},
		{"takes a lost transaction for broken", []string{"circle-of-waits"}, func(b b, _ h) {
			b.mark = func(ctx context.Context, tx tx, scope, id string, at time.Time) (bool, error) {
				fresh, err := b.full.Mark(ctx, tx, scope, id, at)
				if errors.Is(err, dedup.ErrRetryTx) {
					err = errors.New("something went wrong")
				}
				return fresh, err
			}
		}},
		{"does not look at the context", []string{"context-ended"}, func(b b, _ h) {
			b.advance = func(ctx context.Context, tx tx, scope string, obj dedup.Object, v int64) (bool, error) {
				return b.full.Advance(context.WithoutCancel(ctx), tx, scope, obj, v)
			}
		}},
		{"takes its own time", []string{"prune-oldest-first", "duplicate-changes-nothing"}, func(b b, _ h) {
			b.mark = func(ctx context.Context, tx tx, scope, id string, _ time.Time) (bool, error) {
				return b.full.Mark(ctx, tx, scope, id, time.Now())
			}
		}},
		{"keeps whole seconds", []string{"prune-oldest-first"}, func(b b, _ h) {
			b.mark = func(ctx context.Context, tx tx, scope, id string, at time.Time) (bool, error) {
				return b.full.Mark(ctx, tx, scope, id, at.Truncate(time.Second))
			}
		}},
		{"prunes what is as old as the time", []string{"prune-oldest-first"}, func(b b, _ h) {
			b.prune = func(ctx context.Context, tx tx, before time.Time, limit int) (int, error) {
				return b.full.Prune(ctx, tx, before.Add(time.Microsecond), limit)
			}
		}},
		{"prunes without a bound", []string{"prune-oldest-first", "prune-while-marking", "odd-values"}, func(b b, _ h) {
			b.prune = func(ctx context.Context, tx tx, before time.Time, _ int) (int, error) {
				return b.full.Prune(ctx, tx, before, 1<<30)
			}
		}},
		{"prunes dead letters with their markers", []string{"dead-letters-prune"}, func(b b, _ h) {
			var last dedup.DeadLetter
			b.setAside = func(ctx context.Context, tx tx, l dedup.DeadLetter) error {
				last = l
				return b.full.SetAside(ctx, tx, l)
			}
			b.prune = func(ctx context.Context, tx tx, before time.Time, limit int) (int, error) {
				n, err := b.full.Prune(ctx, tx, before, limit)
				if err == nil && n > 0 && last.ID != "" {
					err = b.full.Discard(ctx, tx, last.Scope, last.ID)
				}
				return n, err
			}
		}},
		{"prunes all requests at once", []string{"reapply-prune"}, func(b b, _ h) {
			b.prune = func(ctx context.Context, tx tx, before time.Time, limit int) (int, error) {
				n, err := b.full.Prune(ctx, tx, before, limit)
				if err == nil && n < limit {
					_, err = b.full.Prune(ctx, tx, before, 1000)
				}
				return n, err
			}
		}},
		{"prunes one too few in a batch", []string{"prune-oldest-first", "prune-batches"}, func(b b, _ h) {
			b.prune = func(ctx context.Context, tx tx, before time.Time, limit int) (int, error) {
				return b.full.Prune(ctx, tx, before, max(limit-1, 1))
			}
		}},
		{"prunes in a transaction of its own", []string{"prune-rollback"}, func(b b, h h) {
			b.prune = func(ctx context.Context, _ tx, before time.Time, limit int) (n int, err error) {
				err = h.InTx(ctx, func(own tx) (err error) {
					n, err = b.full.Prune(ctx, own, before, limit)
					return err
				})
				return n, err
			}
		}},
		{"keeps the caller's body", []string{"dead-letters-own-copy"}, func(b b, _ h) {
			var body []byte
			b.setAside = func(ctx context.Context, tx tx, l dedup.DeadLetter) error {
				body = l.Body
				return b.full.SetAside(ctx, tx, l)
			}
			b.letter = func(ctx context.Context, tx tx, scope, id string) (dedup.DeadLetter, error) {
				l, err := b.full.DeadLetter(ctx, tx, scope, id)
				l.Body = body
				return l, err
			}
		}},
		{"cuts long bodies off", []string{"dead-letters"}, func(b b, _ h) {
			b.setAside = func(ctx context.Context, tx tx, l dedup.DeadLetter) error {
				l.Body = l.Body[:min(len(l.Body), 1<<20)]
				return b.full.SetAside(ctx, tx, l)
			}
		}},
		{"refuses odd reasons", []string{"dead-letters-odd"}, func(b b, _ h) {
			b.setAside = func(ctx context.Context, tx tx, l dedup.DeadLetter) error {
				if strings.Contains(l.Reason, "\x00") {
					return errors.New("invalid byte sequence")
				}
				return b.full.SetAside(ctx, tx, l)
			}
		}},
		{"discards in silence", []string{"dead-letters", "one-discards"}, func(b b, _ h) {
			b.discard = func(ctx context.Context, tx tx, scope, id string) error {
				if err := b.full.Discard(ctx, tx, scope, id); !errors.Is(err, dedup.ErrNotFound) {
					return err
				}
				return nil
			}
		}},
		{"lists the cursor again", []string{"dead-letters-list"}, func(b b, _ h) {
			b.list = func(ctx context.Context, tx tx, scope, after string, limit int) ([]dedup.DeadLetter, error) {
				list, err := b.full.ListDeadLetters(ctx, tx, scope, after, limit)
				if l, getErr := b.full.DeadLetter(ctx, tx, scope, after); err == nil && getErr == nil {
					list = append([]dedup.DeadLetter{l}, list...)
				}
				return list, err
			}
		}},
		{"keeps what it discards", []string{"dead-letters", "reapply-dead-letters"}, func(b b, _ h) {
			b.discard = func(ctx context.Context, tx tx, scope, id string) error {
				_, err := b.full.DeadLetter(ctx, tx, scope, id)
				return err
			}
		}},
		{"forgets when it was asked", []string{"reapply-covers", "reapply-list"}, func(b b, _ h) {
			b.ask = func(ctx context.Context, tx tx, r dedup.Reapply) (int64, error) {
				if !r.At.IsZero() {
					r.At = r.At.AddDate(1, 0, 0)
				}
				return b.full.AskReapply(ctx, tx, r)
			}
		}},
		{"any request for an object covers it", []string{"reapply-covers"}, func(b b, _ h) {
			b.ask = func(ctx context.Context, tx tx, r dedup.Reapply) (int64, error) {
				if r.Object.ID != "" && r.Object.Type != "" {
					r.Object, r.From = dedup.Object{}, r.At.AddDate(-1, 0, 0)
				}
				return b.full.AskReapply(ctx, tx, r)
			}
		}},
		{"does not note that a request was used", []string{"reapply-once", "reapply-one-of-many"}, func(b b, h h) {
			b.take = func(ctx context.Context, tx tx, scope, id string, obj dedup.Object) (bool, error) {
				due, err := b.full.TakeReapply(ctx, tx, scope, id, obj)
				if err == nil && due {
					list, _ := b.full.ListReapplies(ctx, tx, scope, 0, 1000)
					r := list[len(list)-1]
					r.Number = 0
					_, err = b.full.AskReapply(ctx, tx, r)
				}
				return due, err
			}
		}},
		{"takes in a transaction of its own", []string{"reapply-rollback"}, func(b b, h h) {
			b.take = func(ctx context.Context, _ tx, scope, id string, obj dedup.Object) (due bool, err error) {
				err = h.InTx(ctx, func(own tx) (err error) {
					due, err = b.full.TakeReapply(ctx, own, scope, id, obj)
					return err
				})
				return due, err
			}
		}},
		{"the stored version is not current", []string{"reapply-versions", "reapply-rollback"}, func(b b, _ h) {
			b.again = b.full.Advance
		}},
		{"an older version is current", []string{"reapply-versions", "reapply-waits"}, func(b b, _ h) {
			b.again = func(ctx context.Context, tx tx, scope string, obj dedup.Object, v int64) (bool, error) {
				_, err := b.full.AdvanceAgain(ctx, tx, scope, obj, v)
				return err == nil, err
			}
		}},
		{"locks no version that stays as it is", []string{"reapply-waits"}, func(b b, _ h) {
			b.again = func(ctx context.Context, tx tx, scope string, obj dedup.Object, v int64) (bool, error) {
				if stored, err := b.full.Version(ctx, tx, scope, obj); err != nil || stored == v && v != 0 {
					return err == nil, err
				}
				return b.full.AdvanceAgain(ctx, tx, scope, obj, v)
			}
		}},
		{"cancels in silence", []string{"reapply-list"}, func(b b, _ h) {
			b.cancel = func(ctx context.Context, tx tx, scope string, number int64) error {
				if err := b.full.CancelReapply(ctx, tx, scope, number); !errors.Is(err, dedup.ErrNotFound) {
					return err
				}
				return nil
			}
		}},
		{"lists the newest first", []string{"reapply-list"}, func(b b, _ h) {
			b.asked = func(ctx context.Context, tx tx, scope string, after int64, limit int) ([]dedup.Reapply, error) {
				list, err := b.full.ListReapplies(ctx, tx, scope, after, limit)
				slices.Reverse(list)
				return list, err
			}
		}},
		{"takes the caller's number for its own", []string{"reapply-odd"}, func(b b, _ h) {
			b.ask = func(ctx context.Context, tx tx, r dedup.Reapply) (int64, error) {
				r.Number = 0
				return b.full.AskReapply(ctx, tx, r)
			}
		}},
	}
}

type deadlock struct{}

func (deadlock) Error() string    { return "deadlock detected (SQLSTATE 40P01)" }
func (deadlock) SQLState() string { return "40P01" }
