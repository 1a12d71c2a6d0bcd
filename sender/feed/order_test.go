package feed_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	_ "modernc.org/sqlite"

	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/feed"
	"github.com/surehook/surehook/sender/postgres"
	"github.com/surehook/surehook/sender/sqlite"
	"github.com/surehook/surehook/sender/storetest"
)

// Writers commit in another order than they write in, and some roll back. Expanders and
// readers work meanwhile. Each reader sees all committed events, once, in one order, and no
// other events.
func TestNoCommitIsSkipped(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "sender.db")+"?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(20000)&_txlock=immediate")
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, db.Close()) })
		store, err := sqlite.New(db, nil)
		require.NoError(t, err)
		require.NoError(t, store.Migrate(t.Context()))
		skipNone(t, store, false)
	})
	t.Run("postgres", func(t *testing.T) {
		pool, err := pgxpool.New(t.Context(), pgtest.With(pgtest.DSN(t), "pool_max_conns", "20"))
		require.NoError(t, err)
		t.Cleanup(pool.Close)
		db := stdlib.OpenDBFromPool(pool)
		t.Cleanup(func() { _ = db.Close() })
		store, err := postgres.New(pool, &postgres.Config{Schema: pgtest.Schema(t, db)})
		require.NoError(t, err)
		require.NoError(t, store.Migrate(t.Context()))
		skipNone(t, store, true)
	})
}

var errUndone = errors.New("undone on purpose")

// skipNone runs the test on a store. turned tells that several transactions can be open at
// once.
func skipNone[Tx any](t *testing.T, store storetest.Store[Tx], turned bool) {
	const writers, each, readers = 8, 30, 3
	pub, err := sender.NewPublisher(store, nil)
	require.NoError(t, err)
	reader, err := feed.NewReader(store, &feed.ReaderConfig{Poll: 5 * time.Millisecond})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()

	var mu sync.Mutex
	var committed []string
	var writing errgroup.Group
	// Half of the writers write, and then wait until another writer has committed a later
	// write. So the order is turned round where the database has several writers.
	overtaken, alone := make(chan struct{}), make(chan struct{})
	var overtaking sync.WaitGroup
	overtaking.Add(writers / 2)
	go func() {
		overtaking.Wait()
		close(alone)
	}()
	for w := range writers {
		writing.Go(func() error {
			if w%2 == 1 {
				defer overtaking.Done()
			}
			for i := range each {
				var ref sender.Ref
				err := store.InTx(ctx, func(tx Tx) (err error) {
					ref, err = pub.PublishTx(ctx, tx, sender.Event{Type: "thing.made", Object: sender.Object{Type: "thing", ID: fmt.Sprintf("%d-%d", w, i)}})
					if err != nil {
						return err
					}
					if w%2 == 0 && turned {
						select {
						case <-overtaken:
						case <-alone:
						}
					}
					if rand.IntN(5) == 0 {
						return errUndone
					}
					return nil
				})
				switch {
				case errors.Is(err, errUndone):
				case err != nil:
					return err
				default:
					mu.Lock()
					committed = append(committed, ref.ID)
					mu.Unlock()
				}
				if w%2 == 1 {
					select {
					case overtaken <- struct{}{}:
					default:
					}
				}
			}
			return nil
		})
	}
	written := make(chan struct{})
	var working errgroup.Group
	for range 2 {
		working.Go(func() error { return expandUntil(ctx, store, written) })
	}
	read := make([][]string, readers)
	for n := range readers {
		working.Go(func() error {
			after := ""
			for {
				over := false
				select {
				case <-written:
					over = true
				default:
				}
				p, err := reader.Page(ctx, feed.Query{Viewer: sender.Operator, After: after, Limit: 1 + rand.IntN(10), Wait: 200 * time.Millisecond})
				if err != nil {
					return err
				}
				read[n], after = append(read[n], ids(p)...), p.Next
				if over && len(p.Events) == 0 {
					return nil
				}
			}
		})
	}
	require.NoError(t, writing.Wait())
	require.NoError(t, expandAll(ctx, store))
	close(written)
	require.NoError(t, working.Wait())
	require.NotEmpty(t, committed)
	for n := range read {
		require.ElementsMatch(t, committed, read[n], "reader %d", n)
		require.Equal(t, read[0], read[n], "all readers see one order")
	}
	if turned {
		require.False(t, slices.IsSorted(read[0]), "nothing was written before what was committed before it: nothing was tried")
	}
}

func expandUntil(ctx context.Context, store dispatch.Store, over <-chan struct{}) error {
	for {
		select {
		case <-over:
			return expandAll(ctx, store)
		case <-time.After(time.Duration(rand.IntN(5)) * time.Millisecond): // when positions are given is the test's random input
		}
		if err := expandAll(ctx, store); err != nil {
			return err
		}
	}
}

func expandAll(ctx context.Context, store dispatch.Store) error {
	for more := true; more; {
		x, _, err := store.Step(ctx, dispatch.ExpandParams{Events: 1 + rand.IntN(20), Deliveries: 100}, dispatch.Batch{})
		if err != nil {
			return err
		}
		more = x.More
	}
	return nil
}
