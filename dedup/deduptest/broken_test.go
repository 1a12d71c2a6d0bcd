package deduptest_test

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/dedup/deduptest"
	"github.com/surehook/surehook/dedup/memory"
	"github.com/surehook/surehook/dedup/sqlite"
)

type full[Tx any] interface {
	dedup.Store[Tx]
	dedup.DeadLetters[Tx]
}

// broken is a good store of which some methods are replaced.
type broken[Tx any] struct {
	full[Tx]
	mark     func(ctx context.Context, tx Tx, scope, id string, at time.Time) (bool, error)
	advance  func(ctx context.Context, tx Tx, scope string, obj dedup.Object, v int64) (bool, error)
	version  func(ctx context.Context, tx Tx, scope string, obj dedup.Object) (int64, error)
	prune    func(ctx context.Context, tx Tx, before time.Time, limit int) (int, error)
	setAside func(ctx context.Context, tx Tx, l dedup.DeadLetter) error
	letter   func(ctx context.Context, tx Tx, scope, id string) (dedup.DeadLetter, error)
	list     func(ctx context.Context, tx Tx, scope, after string, limit int) ([]dedup.DeadLetter, error)
	discard  func(ctx context.Context, tx Tx, scope, id string) error
}

func (b broken[Tx]) Mark(ctx context.Context, tx Tx, scope, id string, at time.Time) (bool, error) {
	if b.mark != nil {
		return b.mark(ctx, tx, scope, id, at)
	}
	return b.full.Mark(ctx, tx, scope, id, at)
}

func (b broken[Tx]) Advance(ctx context.Context, tx Tx, scope string, obj dedup.Object, v int64) (bool, error) {
	if b.advance != nil {
		return b.advance(ctx, tx, scope, obj, v)
	}
	return b.full.Advance(ctx, tx, scope, obj, v)
}

func (b broken[Tx]) Version(ctx context.Context, tx Tx, scope string, obj dedup.Object) (int64, error) {
	if b.version != nil {
		return b.version(ctx, tx, scope, obj)
	}
	return b.full.Version(ctx, tx, scope, obj)
}

func (b broken[Tx]) Prune(ctx context.Context, tx Tx, before time.Time, limit int) (int, error) {
	if b.prune != nil {
		return b.prune(ctx, tx, before, limit)
	}
	return b.full.Prune(ctx, tx, before, limit)
}

func (b broken[Tx]) SetAside(ctx context.Context, tx Tx, l dedup.DeadLetter) error {
	if b.setAside != nil {
		return b.setAside(ctx, tx, l)
	}
	return b.full.SetAside(ctx, tx, l)
}

func (b broken[Tx]) DeadLetter(ctx context.Context, tx Tx, scope, id string) (dedup.DeadLetter, error) {
	if b.letter != nil {
		return b.letter(ctx, tx, scope, id)
	}
	return b.full.DeadLetter(ctx, tx, scope, id)
}

func (b broken[Tx]) ListDeadLetters(ctx context.Context, tx Tx, scope, after string, limit int) ([]dedup.DeadLetter, error) {
	if b.list != nil {
		return b.list(ctx, tx, scope, after, limit)
	}
	return b.full.ListDeadLetters(ctx, tx, scope, after, limit)
}

func (b broken[Tx]) Discard(ctx context.Context, tx Tx, scope, id string) error {
	if b.discard != nil {
		return b.discard(ctx, tx, scope, id)
	}
	return b.full.Discard(ctx, tx, scope, id)
}

// breakage is one broken store and the rules that must find it.
type breakage[Tx any] struct {
	name   string
	caught []string
	change func(b *broken[Tx], h *deduptest.Harness[Tx])
}

func prove[Tx any](t *testing.T, all []breakage[Tx], good func(t *testing.T) (full[Tx], deduptest.Harness[Tx])) {
	t.Run("good", func(t *testing.T) {
		require.Empty(t, deduptest.Broken(t, func(t *testing.T) deduptest.Harness[Tx] {
			store, h := good(t)
			h.Store = broken[Tx]{full: store}
			return h
		}))
	})
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			found := deduptest.Broken(t, func(t *testing.T) deduptest.Harness[Tx] {
				store, h := good(t)
				b := &broken[Tx]{full: store}
				c.change(b, &h)
				h.Store = *b
				return h
			})
			names := slices.Sorted(maps.Keys(found))
			require.NotEmpty(t, names, "the suite passed")
			for _, name := range c.caught {
				require.Contains(t, names, name)
				t.Logf("%s: %s", name, found[name][0])
			}
			provedMu.Lock()
			defer provedMu.Unlock()
			for _, name := range c.caught {
				proved[name] = true
			}
		})
	}
}

var (
	provedMu sync.Mutex
	proved   = map[string]bool{}
)

// Every rule must be named by a broken store that it finds.
func TestSuite(t *testing.T) {
	t.Run("memory", func(t *testing.T) { prove(t, inMemory(), goodMemory) })
	t.Run("sqlite", func(t *testing.T) { prove(t, inSQLite(), goodSQLite) })
	for _, name := range deduptest.Names() {
		require.True(t, proved[name], "no broken store shows that rule %q finds anything", name)
	}
}

func goodMemory(*testing.T) (full[*memory.Tx], deduptest.Harness[*memory.Tx]) {
	s := memory.New()
	return s, deduptest.Harness[*memory.Tx]{InTx: s.InTx}
}

func goodSQLite(t *testing.T) (full[*sql.Tx], deduptest.Harness[*sql.Tx]) {
	return sqlite.New(), sqliteHarness(t, filepath.Join(t.TempDir(), "a.db"))
}

func sqliteHarness(t *testing.T, path string) deduptest.Harness[*sql.Tx] {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(wal)&_pragma=synchronous(off)")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	require.NoError(t, sqlite.Migrate(t.Context(), db))
	return deduptest.Harness[*sql.Tx]{
		InTx: func(ctx context.Context, fn func(*sql.Tx) error) error {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer tx.Rollback()
			if err := fn(tx); err != nil {
				return err
			}
			return tx.Commit()
		},
		Reopen: func(t *testing.T) deduptest.Harness[*sql.Tx] {
			h := sqliteHarness(t, path)
			h.Store = sqlite.New()
			return h
		},
	}
}

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
		{"refuses odd reasons", []string{"dead-letters-odd"}, func(b b, _ h) {
			b.setAside = func(ctx context.Context, tx tx, l dedup.DeadLetter) error {
				if strings.Contains(l.Reason, "\x00") {
					return errors.New("invalid byte sequence")
				}
				return b.full.SetAside(ctx, tx, l)
			}
		}},
		{"discards in silence", []string{"dead-letters"}, func(b b, _ h) {
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
	}
}

type deadlock struct{}

func (deadlock) Error() string    { return "deadlock detected (SQLSTATE 40P01)" }
func (deadlock) SQLState() string { return "40P01" }

func inSQLite() []breakage[*sql.Tx] {
	type tx = *sql.Tx
	type b = *broken[tx]
	type h = *deduptest.Harness[tx]
	exec := func(ctx context.Context, tx tx, query string, args ...any) (int64, error) {
		res, err := tx.ExecContext(ctx, query, args...)
		if err != nil {
			return 0, dedup.WrapError(ctx, "executing", err)
		}
		return res.RowsAffected()
	}
	return []breakage[tx]{
		{"a duplicate makes the marker younger", []string{"duplicate-changes-nothing"}, func(b b, _ h) {
			b.mark = func(ctx context.Context, tx tx, scope, id string, at time.Time) (bool, error) {
				fresh, err := b.full.Mark(ctx, tx, scope, id, at)
				if err == nil && !fresh {
					_, err = exec(ctx, tx, "UPDATE surehook_dedup_markers SET marked_at = ? WHERE scope = ? AND id = ?", at.UnixMicro(), scope, id)
				}
				return fresh, err
			}
		}},
		{"reads, then writes, and calls the lost race stale", []string{"read-before-write"}, func(b b, _ h) {
			b.advance = func(ctx context.Context, tx tx, scope string, obj dedup.Object, v int64) (bool, error) {
				newer, err := b.full.Advance(ctx, tx, scope, obj, v)
				if errors.Is(err, dedup.ErrRetryTx) {
					return false, nil
				}
				return newer, err
			}
			b.mark = func(ctx context.Context, tx tx, scope, id string, at time.Time) (bool, error) {
				fresh, err := b.full.Mark(ctx, tx, scope, id, at)
				if errors.Is(err, dedup.ErrRetryTx) {
					return false, errors.New("cannot start a transaction within a transaction")
				}
				return fresh, err
			}
		}},
		{"hands out BUSY bare", []string{"read-before-write"}, func(b b, _ h) {
			b.mark = func(ctx context.Context, tx tx, scope, id string, at time.Time) (bool, error) {
				if err := dedup.CheckMark(scope, id, at); err != nil {
					return false, err
				}
				res, err := tx.ExecContext(ctx, "INSERT OR IGNORE INTO surehook_dedup_markers VALUES (?, ?, ?)", scope, id, at.UnixMicro())
				if err != nil {
					return false, err
				}
				n, err := res.RowsAffected()
				return n == 1, err
			}
		}},
		{"the last version wins", []string{"version-order", "concurrent-versions", "uncommitted-version"}, func(b b, _ h) {
			b.advance = func(ctx context.Context, tx tx, scope string, obj dedup.Object, v int64) (bool, error) {
				newer, err := b.full.Advance(ctx, tx, scope, obj, v)
				if err == nil && !newer {
					_, err = exec(ctx, tx, "UPDATE surehook_dedup_versions SET version = ? WHERE scope = ? AND object_type = ? AND object_id = ?",
						v, scope, obj.Type, obj.ID)
				}
				return newer, err
			}
		}},
		{"prunes the newest first", []string{"prune-oldest-first"}, func(b b, _ h) {
			b.prune = func(ctx context.Context, tx tx, before time.Time, limit int) (int, error) {
				if err := dedup.CheckLimit(limit); err != nil {
					return 0, err
				}
				n, err := exec(ctx, tx, `DELETE FROM surehook_dedup_markers WHERE (scope, id) IN
					(SELECT scope, id FROM surehook_dedup_markers WHERE marked_at < ? ORDER BY marked_at DESC LIMIT ?)`, before.UnixMicro(), limit)
				return int(n), err
			}
		}},
		{"prunes by count and not by time", []string{"prune-oldest-first", "prune-batches", "prune-while-marking"}, func(b b, _ h) {
			b.prune = func(ctx context.Context, tx tx, _ time.Time, limit int) (int, error) {
				return b.full.Prune(ctx, tx, time.Now().AddDate(1, 0, 0), limit)
			}
		}},
		{"prunes versions too", []string{"prune-keeps-versions"}, func(b b, _ h) {
			b.prune = func(ctx context.Context, tx tx, before time.Time, limit int) (int, error) {
				n, err := b.full.Prune(ctx, tx, before, limit)
				if err == nil && n > 0 {
					_, err = exec(ctx, tx, "DELETE FROM surehook_dedup_versions")
				}
				return n, err
			}
		}},
		{"replaces no dead letter", []string{"dead-letters"}, func(b b, _ h) {
			b.setAside = func(ctx context.Context, tx tx, l dedup.DeadLetter) error {
				if _, err := b.full.DeadLetter(ctx, tx, l.Scope, l.ID); err == nil {
					return nil
				}
				return b.full.SetAside(ctx, tx, l)
			}
		}},
		{"lists in another order", []string{"dead-letters-list"}, func(b b, _ h) {
			b.list = func(ctx context.Context, tx tx, scope, after string, limit int) ([]dedup.DeadLetter, error) {
				list, err := b.full.ListDeadLetters(ctx, tx, scope, after, limit)
				slices.SortFunc(list, func(a, b dedup.DeadLetter) int {
					return strings.Compare(strings.ToLower(a.ID), strings.ToLower(b.ID))
				})
				return list, err
			}
		}},
		{"keeps markers in the process", []string{"reopen"}, func(b b, h h) {
			mem := memory.New()
			var mu sync.Mutex
			txs := map[tx]*memory.Tx{}
			good := h.InTx
			h.InTx = func(ctx context.Context, fn func(tx) error) error {
				return mem.InTx(ctx, func(m *memory.Tx) error {
					return good(ctx, func(t tx) error {
						mu.Lock()
						txs[t] = m
						mu.Unlock()
						return fn(t)
					})
				})
			}
			b.mark = func(ctx context.Context, t tx, scope, id string, at time.Time) (bool, error) {
				mu.Lock()
				m := txs[t]
				mu.Unlock()
				return mem.Mark(ctx, m, scope, id, at)
			}
		}},
	}
}
