package sqlite_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/dedup/sqlite"
)

// The benchmark measures the cost that deduplication adds to a transaction that commits one
// row.
func BenchmarkCommit(b *testing.B) {
	row := func(ctx context.Context, tx *sql.Tx, i int) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO effects VALUES (?, ?)", i, "effect")
		return err
	}
	s := sqlite.New()
	mark := func(ctx context.Context, tx *sql.Tx, i int) error {
		_, err := s.Mark(ctx, tx, "bench", strconv.Itoa(i), time.Now())
		return err
	}
	advance := func(ctx context.Context, tx *sql.Tx, i int) error {
		_, err := s.Advance(ctx, tx, "bench", dedup.Object{Type: "subscriber", ID: strconv.Itoa(i % 1000)}, int64(i+1))
		return err
	}
	type step func(context.Context, *sql.Tx, int) error
	for _, c := range []struct {
		name  string
		steps []step
	}{
		{"row", []step{row}},
		{"mark", []step{mark}},
		{"mark+advance", []step{mark, advance}},
		{"mark+advance+row", []step{mark, advance, row}},
	} {
		b.Run(c.name, func(b *testing.B) {
			db := open(b, filepath.Join(b.TempDir(), "a.db"), immediate)
			ctx := b.Context()
			_, err := db.ExecContext(ctx, "CREATE TABLE effects (id INTEGER PRIMARY KEY, what TEXT)")
			require.NoError(b, err)
			run := inTx(db)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if err := run(ctx, func(tx *sql.Tx) error {
					for _, step := range c.steps {
						if err := step(ctx, tx, i); err != nil {
							return err
						}
					}
					return nil
				}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
