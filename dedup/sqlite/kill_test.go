package sqlite_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/dedup/sqlite"
)

const childPath = "SUREHOOK_TEST_KILL_PATH"

func TestMain(m *testing.M) {
	if path := os.Getenv(childPath); path != "" {
		fmt.Fprintln(os.Stderr, applyForEver(path))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// applyForEver marks events and writes their effects in several goroutines until
// it is killed, and prints the number of each event after its commit.
func applyForEver(path string) error {
	db, err := sql.Open("sqlite", "file:"+path+"?"+immediate)
	if err != nil {
		return err
	}
	s, ctx := sqlite.New(), context.Background()
	var g errgroup.Group
	for range 4 {
		g.Go(func() error {
			for {
				n := rand.IntN(2000)
				if err := applyOnce(ctx, db, s, n); err != nil && !errors.Is(err, dedup.ErrRetryTx) {
					return err
				}
				fmt.Println(n)
			}
		})
	}
	return g.Wait()
}

func applyOnce(ctx context.Context, db *sql.DB, s *sqlite.Store, n int) error {
	obj := dedup.Object{Type: "account", ID: strconv.Itoa(n % 10)}
	return inTx(db)(ctx, func(tx *sql.Tx) error {
		fresh, err := s.Mark(ctx, tx, "test", strconv.Itoa(n), time.Now())
		if err != nil || !fresh {
			return err
		}
		newer, err := s.Advance(ctx, tx, "test", obj, int64(n+1))
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO effects (id, object, version, newer) VALUES (?, ?, ?, ?)",
			strconv.Itoa(n), obj.ID, n+1, newer)
		return err
	})
}

// The process is killed at random moments: there is a marker if and only if there
// is its effect, and what was reported as committed is there.
func TestKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	db := open(t, path, immediate)
	_, err := db.ExecContext(t.Context(), "CREATE TABLE effects (id TEXT PRIMARY KEY, object TEXT, version INTEGER, newer INTEGER)")
	require.NoError(t, err)

	committed := map[string]bool{}
	for range 12 {
		child := exec.CommandContext(t.Context(), os.Args[0])
		child.Env = append(os.Environ(), childPath+"="+path)
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

		var ok string
		require.NoError(t, db.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&ok))
		require.Equal(t, "ok", ok)
		effects, markers := column(t, db, "SELECT id FROM effects"), column(t, db, "SELECT id FROM surehook_dedup_markers")
		require.Equal(t, effects, markers, "marker if and only if effect")
		for id := range committed {
			require.Contains(t, effects, id, "it was committed")
		}
		require.Equal(t,
			column(t, db, "SELECT object || ' ' || max(version) FROM effects WHERE newer GROUP BY object"),
			column(t, db, "SELECT object_id || ' ' || version FROM surehook_dedup_versions"))
	}
	require.Greater(t, len(committed), 12)
}

func column(t *testing.T, db *sql.DB, query string) map[string]bool {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	require.NoError(t, err)
	defer rows.Close()
	all := map[string]bool{}
	for rows.Next() {
		var s string
		require.NoError(t, rows.Scan(&s))
		all[s] = true
	}
	require.NoError(t, rows.Err())
	return all
}
