package dedup_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite" // the driver
	"pgregory.net/rapid"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/dedup/memory"
	"github.com/surehook/surehook/dedup/postgres"
	"github.com/surehook/surehook/dedup/sqlite"
	"github.com/surehook/surehook/internal/pgtest"
)

var errBack = errors.New("rolled back on purpose")

// model is a store's required behaviour, in as little code as possible.
type model struct {
	marks    map[string]time.Time
	versions map[dedup.Object]int64
}

func (m model) clone() model {
	c := model{map[string]time.Time{}, map[dedup.Object]int64{}}
	for k, v := range m.marks {
		c.marks[k] = v
	}
	for k, v := range m.versions {
		c.versions[k] = v
	}
	return c
}

// Random transactions, committed and rolled back, give the model's answers on every store.
func TestPropertyStoresAnswerAsTheModel(t *testing.T) {
	t.Run("memory", func(t *testing.T) {
		s := memory.New()
		checkModel(t, s, s.InTx, 30)
	})
	t.Run("sqlite", func(t *testing.T) {
		db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "a.db")+"?_txlock=immediate&_pragma=journal_mode(wal)&_pragma=synchronous(off)")
		require.NoError(t, err)
		t.Cleanup(func() { _ = db.Close() })
		require.NoError(t, sqlite.Migrate(t.Context(), db))
		checkModel(t, sqlite.New(), sqlTx(db), 10)
	})
	t.Run("postgres", func(t *testing.T) {
		db, err := sql.Open("pgx", pgtest.With(pgtest.DSN(t), "synchronous_commit", "off"))
		require.NoError(t, err)
		t.Cleanup(func() { _ = db.Close() })
		schema := pgtest.Schema(t, db)
		require.NoError(t, postgres.Migrate(t.Context(), db, &postgres.Config{Schema: schema}))
		s, err := postgres.NewSQL(&postgres.Config{Schema: schema})
		require.NoError(t, err)
		checkModel(t, s, sqlTx(db), 8)
	})
}

func sqlTx(db *sql.DB) func(context.Context, func(*sql.Tx) error) error {
	return func(ctx context.Context, fn func(*sql.Tx) error) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := fn(tx); err != nil {
			return err
		}
		return tx.Commit()
	}
}

func checkModel[Tx any](t *testing.T, store dedup.Store[Tx], inTx func(context.Context, func(Tx) error) error, transactions int) {
	ctx, run := t.Context(), 0
	rapid.Check(t, func(t *rapid.T) {
		run++ // each check in scopes of its own
		scopes := []string{fmt.Sprint("a", run), fmt.Sprint("b", run)}
		m := model{map[string]time.Time{}, map[dedup.Object]int64{}}
		for range rapid.IntRange(1, transactions).Draw(t, "transactions") {
			next, committed := m.clone(), rapid.Bool().Draw(t, "committed")
			err := inTx(ctx, func(tx Tx) error {
				for range rapid.IntRange(1, 6).Draw(t, "steps") {
					scope := rapid.SampledFrom(scopes).Draw(t, "scope")
					obj := dedup.Object{Type: scope, ID: rapid.SampledFrom([]string{"1", "2", "é"}).Draw(t, "object")}
					switch rapid.IntRange(0, 2).Draw(t, "what") {
					case 0:
						id := rapid.SampledFrom([]string{"x", "y", "X"}).Draw(t, "id")
						at := time.Unix(1_700_000_000+rapid.Int64Range(0, 9).Draw(t, "at"), 0)
						fresh, err := store.Mark(ctx, tx, scope, id, at)
						require.NoError(t, err)
						_, seen := next.marks[scope+"/"+id]
						require.Equal(t, !seen, fresh)
						if fresh {
							next.marks[scope+"/"+id] = at
						}
					case 1:
						version := rapid.Int64Range(1, 8).Draw(t, "version")
						newer, err := store.Advance(ctx, tx, scope, obj, version)
						require.NoError(t, err)
						require.Equal(t, version > next.versions[obj], newer)
						next.versions[obj] = max(version, next.versions[obj])
					case 2:
						version, err := store.Version(ctx, tx, scope, obj)
						require.NoError(t, err)
						require.Equal(t, next.versions[obj], version)
					}
				}
				if !committed {
					return errBack
				}
				return nil
			})
			if committed {
				require.NoError(t, err)
				m = next
			} else {
				require.ErrorIs(t, err, errBack)
			}
		}
		// Every pruned marker is older than the bound. All such markers are pruned in
		// time, oldest first.
		before := time.Unix(1_700_000_000+rapid.Int64Range(0, 10).Draw(t, "before"), 0)
		var goes []time.Time
		for _, at := range m.marks {
			if at.Before(before) {
				goes = append(goes, at)
			}
		}
		slices.SortFunc(goes, time.Time.Compare)
		removed := 0
		require.NoError(t, inTx(ctx, func(tx Tx) (err error) {
			removed, err = store.Prune(ctx, tx, before, 1000)
			return err
		}))
		require.Equal(t, len(goes), removed)
		// The rest is pruned, too, because the next check would find it.
		require.NoError(t, inTx(ctx, func(tx Tx) (err error) {
			removed, err = store.Prune(ctx, tx, before.Add(time.Hour), 1000)
			return err
		}))
		require.Equal(t, len(m.marks)-len(goes), removed)
	})
}
