package jobstest_test

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/jobs"
	"github.com/surehook/surehook/sender/jobs/jobstest"
	jobsmemory "github.com/surehook/surehook/sender/jobs/memory"
	"github.com/surehook/surehook/sender/memory"
)

type (
	tx      = *memory.Tx
	harness = jobstest.Harness[tx]
)

// breakageName names the way in which TestSuite breaks the store that it runs the
// suite on. TestSuite alone, without it, shows that the store is sound otherwise.
const breakageName = "JOBSTEST_BREAKAGE"

func TestSuite(t *testing.T) {
	breakStore := func(*broken, *harness) {}
	if name := os.Getenv(breakageName); name != "" {
		breakStore = breakages[name].how
		require.NotNil(t, breakStore, "%s=%s", breakageName, name)
	}
	jobstest.Run(t, func(t *testing.T) harness {
		var passed atomic.Int64
		start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		now := func() time.Time { return start.Add(time.Duration(passed.Load())) }
		under, err := memory.New(nil)
		require.NoError(t, err)
		store, err := jobsmemory.New(under, &jobsmemory.Config{Now: now})
		require.NoError(t, err)
		b := &broken{Store: store}
		h := harness{
			Store:   b,
			Advance: func(d time.Duration) { passed.Add(int64(d)) },
			Begin: func(t *testing.T) (tx, func() error, func() error) {
				tx, err := under.Begin(t.Context())
				require.NoError(t, err)
				return tx, tx.Commit, tx.Rollback
			},
		}
		breakStore(b, &h)
		return h
	})
}

// TestBrokenStores runs, for each way to break a store, the tests that must catch
// it, in a process of their own, since a test cannot be expected to fail.
func TestBrokenStores(t *testing.T) {
	for name, b := range breakages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.NotEmpty(t, b.caughtBy)
			for _, test := range b.caughtBy {
				path := "TestSuite/" + strings.ReplaceAll(test, " ", "_")
				cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSuite$/^"+regexp.QuoteMeta(strings.ReplaceAll(test, " ", "_"))+"$", "-test.timeout=30s")
				cmd.Env = append(os.Environ(), breakageName+"="+name)
				out, err := cmd.CombinedOutput()
				var failed *exec.ExitError
				require.ErrorAs(t, err, &failed, "%s does not catch it:\n%s", test, out)
				require.Contains(t, string(out), "--- FAIL: "+path+" (", "%s was to catch it", test)
				require.Contains(t, string(out), "the rule: ")
				require.NotContains(t, string(out), "panic:", "%s fails for another reason", test)
			}
		})
	}
}

// broken is a store with some methods replaced. A nil field leaves the method sound.
type broken struct {
	jobs.Store[tx] // the sound one
	inTx           func(ctx context.Context, fn func(tx) error) error
	insert         func(ctx context.Context, tx tx, r jobs.Record) (jobs.Record, bool, error)
	key            func(ctx context.Context, tx tx, scope, key string) (jobs.Record, bool, error)
	due            func(ctx context.Context, tx tx, q jobs.DueQuery) ([]jobs.Record, time.Time, error)
	anyDue         func(queries []jobs.DueQuery) (bool, error)
	lock           func(ctx context.Context, tx tx, k jobs.Key) (jobs.Record, time.Time, error)
	update         func(ctx context.Context, tx tx, r jobs.Record) error
	get            func(ctx context.Context, tx tx, k jobs.Key) (jobs.Record, error)
	list           func(ctx context.Context, tx tx, q jobs.ListQuery) ([]jobs.Record, int64, error)
	prune          func(ctx context.Context, tx tx, q jobs.PruneQuery) (int, error)
	check          func(ctx context.Context) error
}

// stale makes transactions read rows that others are about to change: their writes
// happen in a second transaction.
func (b *broken) stale() {
	later := map[tx]*[]jobs.Record{} // belongs to the transaction that is open
	b.update = func(_ context.Context, tx tx, r jobs.Record) error {
		*later[tx] = append(*later[tx], r)
		return nil
	}
	b.inTx = func(ctx context.Context, fn func(tx) error) error {
		var writes []jobs.Record
		err := b.Store.InTx(ctx, func(tx tx) error {
			later[tx] = &writes
			defer delete(later, tx)
			return fn(tx)
		})
		if err != nil {
			return err
		}
		runtime.Gosched()
		return b.Store.InTx(ctx, func(tx tx) error {
			for _, r := range writes {
				if err := b.Store.UpdateTx(ctx, tx, r); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

func (b *broken) Check(ctx context.Context) error {
	if b.check != nil {
		return b.check(ctx)
	}
	return b.Store.Check(ctx)
}

// AnyDue implements jobs.Looker, which the sound one is not.
func (b *broken) AnyDue(ctx context.Context, queries []jobs.DueQuery) (bool, error) {
	if b.anyDue != nil {
		return b.anyDue(queries)
	}
	return b.look(ctx, queries)
}

func (b *broken) look(ctx context.Context, queries []jobs.DueQuery) (some bool, err error) {
	err = b.Store.InTx(ctx, func(tx tx) error {
		for _, q := range queries {
			due, _, err := b.Store.DueTx(ctx, tx, q)
			if err != nil {
				return err
			}
			some = some || len(due) > 0
		}
		return nil
	})
	return some, err
}

func (b *broken) InTx(ctx context.Context, fn func(tx) error) error {
	if b.inTx != nil {
		return b.inTx(ctx, fn)
	}
	return b.Store.InTx(ctx, fn)
}

func (b *broken) InsertTx(ctx context.Context, tx tx, r jobs.Record) (jobs.Record, bool, error) {
	if b.insert != nil {
		return b.insert(ctx, tx, r)
	}
	return b.Store.InsertTx(ctx, tx, r)
}

func (b *broken) KeyTx(ctx context.Context, tx tx, scope, key string) (jobs.Record, bool, error) {
	if b.key != nil {
		return b.key(ctx, tx, scope, key)
	}
	return b.Store.KeyTx(ctx, tx, scope, key)
}

func (b *broken) DueTx(ctx context.Context, tx tx, q jobs.DueQuery) ([]jobs.Record, time.Time, error) {
	if b.due != nil {
		return b.due(ctx, tx, q)
	}
	return b.Store.DueTx(ctx, tx, q)
}

func (b *broken) LockTx(ctx context.Context, tx tx, k jobs.Key) (jobs.Record, time.Time, error) {
	if b.lock != nil {
		return b.lock(ctx, tx, k)
	}
	return b.Store.LockTx(ctx, tx, k)
}

func (b *broken) UpdateTx(ctx context.Context, tx tx, r jobs.Record) error {
	if b.update != nil {
		return b.update(ctx, tx, r)
	}
	return b.Store.UpdateTx(ctx, tx, r)
}

func (b *broken) GetTx(ctx context.Context, tx tx, k jobs.Key) (jobs.Record, error) {
	if b.get != nil {
		return b.get(ctx, tx, k)
	}
	return b.Store.GetTx(ctx, tx, k)
}

func (b *broken) ListTx(ctx context.Context, tx tx, q jobs.ListQuery) ([]jobs.Record, int64, error) {
	if b.list != nil {
		return b.list(ctx, tx, q)
	}
	return b.Store.ListTx(ctx, tx, q)
}

func (b *broken) PruneTx(ctx context.Context, tx tx, q jobs.PruneQuery) (int, error) {
	if b.prune != nil {
		return b.prune(ctx, tx, q)
	}
	return b.Store.PruneTx(ctx, tx, q)
}
