package deduptest_test

import (
	"context"
	"database/sql"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/dedup/deduptest"
	"github.com/surehook/surehook/dedup/memory"
	"github.com/surehook/surehook/dedup/sqlite"
	"github.com/surehook/surehook/internal/race"
)

type full[Tx any] interface {
	dedup.Store[Tx]
	dedup.DeadLetters[Tx]
	dedup.Reapplies[Tx]
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

	ask    func(ctx context.Context, tx Tx, r dedup.Reapply) (int64, error)
	asked  func(ctx context.Context, tx Tx, scope string, after int64, limit int) ([]dedup.Reapply, error)
	cancel func(ctx context.Context, tx Tx, scope string, number int64) error
	take   func(ctx context.Context, tx Tx, scope, id string, obj dedup.Object) (bool, error)
	again  func(ctx context.Context, tx Tx, scope string, obj dedup.Object, v int64) (bool, error)

	markAndAdvance func(ctx context.Context, tx Tx, scope, id string, at time.Time, obj dedup.Object, v int64) (bool, bool, error)
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

func (b broken[Tx]) MarkAndAdvance(ctx context.Context, tx Tx, scope, id string, at time.Time, obj dedup.Object, v int64) (bool, bool, error) {
	switch {
	case b.markAndAdvance != nil:
		return b.markAndAdvance(ctx, tx, scope, id, at, obj, v)
	case b.mark != nil || b.advance != nil: // as broken as these
		type parts struct{ dedup.Store[Tx] } // without this method
		return dedup.MarkAndAdvance(ctx, dedup.Store[Tx](parts{b}), tx, scope, id, at, obj, v)
	}
	return dedup.MarkAndAdvance(ctx, dedup.Store[Tx](b.full), tx, scope, id, at, obj, v)
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

func (b broken[Tx]) AskReapply(ctx context.Context, tx Tx, r dedup.Reapply) (int64, error) {
	if b.ask != nil {
		return b.ask(ctx, tx, r)
	}
	return b.full.AskReapply(ctx, tx, r)
}

func (b broken[Tx]) ListReapplies(ctx context.Context, tx Tx, scope string, after int64, limit int) ([]dedup.Reapply, error) {
	if b.asked != nil {
		return b.asked(ctx, tx, scope, after, limit)
	}
	return b.full.ListReapplies(ctx, tx, scope, after, limit)
}

func (b broken[Tx]) CancelReapply(ctx context.Context, tx Tx, scope string, number int64) error {
	if b.cancel != nil {
		return b.cancel(ctx, tx, scope, number)
	}
	return b.full.CancelReapply(ctx, tx, scope, number)
}

func (b broken[Tx]) TakeReapply(ctx context.Context, tx Tx, scope, id string, obj dedup.Object) (bool, error) {
	if b.take != nil {
		return b.take(ctx, tx, scope, id, obj)
	}
	return b.full.TakeReapply(ctx, tx, scope, id, obj)
}

func (b broken[Tx]) AdvanceAgain(ctx context.Context, tx Tx, scope string, obj dedup.Object, v int64) (bool, error) {
	if b.again != nil {
		return b.again(ctx, tx, scope, obj, v)
	}
	return b.full.AdvanceAgain(ctx, tx, scope, obj, v)
}

// breakage is one broken store and the rules that must find it.
type breakage[Tx any] struct {
	name   string
	caught []string
	change func(b *broken[Tx], h *deduptest.Harness[Tx])
}

func prove[Tx any](t *testing.T, all []breakage[Tx], good func(t *testing.T) (full[Tx], deduptest.Harness[Tx])) {
	t.Run("good", func(t *testing.T) {
		require.Empty(t, deduptest.Broken(t, deduptest.Names(), 5*time.Minute, func(t *testing.T) deduptest.Harness[Tx] {
			store, h := good(t)
			h.Store = broken[Tx]{full: store}
			return h
		}))
	})
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			// On a busy machine a store that does not wait can be slower than the suite gives it to
			// show that. So the suite has some tries.
			found := map[string][]string{}
			for try := 0; try < 5 && len(found) < len(c.caught); try++ {
				maps.Copy(found, deduptest.Broken(t, c.caught, 8*time.Second, func(t *testing.T) deduptest.Harness[Tx] {
					store, h := good(t)
					b := &broken[Tx]{full: store}
					c.change(b, &h)
					h.Store = *b
					return h
				}))
			}
			for _, name := range c.caught {
				require.Contains(t, found, name, "the store passed, or there is no such rule")
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
	if race.Enabled {
		t.Skip("the suite races in the tests of each store; that it finds what is broken is shown without the race detector")
	}
	t.Cleanup(func() { // when all have ended
		for _, name := range deduptest.Names() {
			if !proved[name] {
				t.Errorf("no broken store shows that rule %q finds anything", name)
			}
		}
	})
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		prove(t, inMemory(), goodMemory)
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		prove(t, inSQLite(), goodSQLite)
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		t.Cleanup(dropPools)
		prove(t, inPostgres(), goodPostgres)
	})
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
		Lose: func(t *testing.T) (back func()) {
			db.SetMaxOpenConns(1)
			require.NoError(t, os.Rename(path, path+".moved"))
			return func() { require.NoError(t, os.Rename(path+".moved", path)) }
		},
		Reopen: func(t *testing.T) deduptest.Harness[*sql.Tx] {
			h := sqliteHarness(t, path)
			h.Store = sqlite.New()
			return h
		},
	}
}
