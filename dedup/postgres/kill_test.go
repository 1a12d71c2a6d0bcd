package postgres_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/dedup/postgres"
	"github.com/surehook/surehook/internal/pgtest"
)

// applyForEver marks events and writes their effects in several goroutines until
// it is killed, and prints the number of each event after its commit.
func applyForEver(ctx context.Context, dsn, schema string) error {
	pool, err := pgxpool.New(ctx, pgtest.With(dsn, "search_path", schema))
	if err != nil {
		return err
	}
	s, err := postgres.New(&postgres.Config{Schema: schema})
	if err != nil {
		return err
	}
	var g errgroup.Group
	for range 4 {
		g.Go(func() error {
			for {
				n := rand.IntN(2000)
				if err := applyOnce(ctx, pool, s, n); err != nil && !errors.Is(err, dedup.ErrRetryTx) {
					return err
				}
				fmt.Println(n)
			}
		})
	}
	return g.Wait()
}

func applyOnce(ctx context.Context, pool *pgxpool.Pool, s *postgres.Store[pgx.Tx], n int) error {
	obj := dedup.Object{Type: "account", ID: strconv.Itoa(n % 10)}
	return inPgx(pool)(ctx, func(tx pgx.Tx) error {
		fresh, newer, err := s.MarkAndAdvance(ctx, tx, "test", strconv.Itoa(n), time.Now(), obj, int64(n+1))
		if err != nil || !fresh {
			return err
		}
		_, err = tx.Exec(ctx, "INSERT INTO effects (id, object, version, newer) VALUES ($1, $2, $3, $4)",
			strconv.Itoa(n), obj.ID, n+1, newer)
		return err
	})
}

// The process is killed at random moments: there is a marker if and only if there
// is its effect, and what was reported as committed is there. Each look is one
// snapshot, as the server may still be ending what the process had begun.
func TestKill(t *testing.T) {
	ctx := t.Context()
	cfg := newSchema(t)
	pool := openPool(t, "search_path", cfg.Schema)
	_, err := pool.Exec(ctx, "CREATE TABLE effects (id text PRIMARY KEY, object text, version bigint, newer boolean)")
	require.NoError(t, err)

	committed := map[string]bool{}
	for range 12 {
		child := exec.CommandContext(ctx, os.Args[0])
		child.Env = append(os.Environ(), childDSN+"="+pgtest.DSN(t), childSchema+"="+cfg.Schema)
		var stderr strings.Builder
		child.Stderr = &stderr
		out, err := child.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, child.Start())
		// Between two commits, or in one: the child does not wait for us.
		lines := bufio.NewScanner(out)
		for left := 1 + rand.IntN(60); left > 0 && lines.Scan(); left-- {
			committed[lines.Text()] = true
		}
		require.NoError(t, child.Process.Kill())
		for lines.Scan() { // what it wrote before it was killed; a pipe takes short lines whole
			committed[lines.Text()] = true
		}
		require.ErrorContains(t, child.Wait(), "signal: killed", "the child ended by itself: %s", stderr.String())

		tx, err := pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
		require.NoError(t, err)
		effects, markers := column(t, tx, "SELECT id FROM effects"), column(t, tx, "SELECT id FROM surehook_dedup_markers")
		require.Equal(t, effects, markers, "marker if and only if effect")
		for id := range committed {
			require.Contains(t, effects, id, "it was committed")
		}
		require.Equal(t,
			column(t, tx, "SELECT object || ' ' || max(version) FROM effects WHERE newer GROUP BY object"),
			column(t, tx, "SELECT object_id || ' ' || version FROM surehook_dedup_versions"))
		require.NoError(t, tx.Rollback(ctx))
	}
	require.Greater(t, len(committed), 12)
	require.Eventually(t, func() bool { // or the schema could not be dropped
		var others int
		require.NoError(t, pool.QueryRow(ctx, `SELECT count(*) FROM pg_locks
			WHERE relation = 'effects'::regclass AND pid <> pg_backend_pid()`).Scan(&others))
		return others == 0
	}, time.Minute, time.Millisecond)
}

func column(t *testing.T, tx pgx.Tx, query string) map[string]bool {
	t.Helper()
	rows, err := tx.Query(t.Context(), query)
	require.NoError(t, err)
	values, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	all := map[string]bool{}
	for _, v := range values {
		all[v] = true
	}
	return all
}
