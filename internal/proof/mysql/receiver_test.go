//go:build linux

package mysql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/surehook/surehook"
	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/dedup/mysql"
	"github.com/surehook/surehook/internal/killtest"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/receivertest"
	"github.com/surehook/surehook/signing"
)

const effects = "CREATE TABLE effects (id VARCHAR(128) PRIMARY KEY, object VARCHAR(255), version BIGINT, newer BOOLEAN)"

// A receiver keeps its promises under hostile deliveries, of which some are at once.
func testReceiver(t *testing.T, s server) {
	for name, c := range map[string]struct {
		opts     *sql.TxOptions
		settings []string
		group    *receiver.GroupConfig
	}{
		"read committed":  {},
		"repeatable read": {opts: repeatableRead},
		"group":           {settings: []string{"multiStatements=true"}, group: &receiver.GroupConfig{}},
		"group, repeatable read, several at a time": {
			opts: repeatableRead, settings: []string{"multiStatements=true"}, group: &receiver.GroupConfig{Transactions: 4, Size: 3},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, db := s.migrated(t, append(c.settings, "innodb_lock_wait_timeout=2")...)
			_, err := db.ExecContext(t.Context(), effects)
			require.NoError(t, err)
			inTx := receiver.InTx[*sql.Tx](mysql.InTx(db, c.opts))
			if c.group != nil {
				group, err := receiver.NewGroup(inTx, receiver.SQLExec, c.group)
				require.NoError(t, err)
				inTx = group.InTx
			}
			secret := signing.GenerateSecret()
			hooks, err := surehook.NewReceiver(inTx, mysql.New(), "billing", secret.Reveal(), &surehook.ReceiverConfig{Receive: receiver.Config{Logger: slog.New(slog.DiscardHandler)}})
			require.NoError(t, err)
			receivertest.Hostile(t, receivertest.Subject{
				Secret: secret,
				Handler: hooks.Handler(receiver.State(func(ctx context.Context, tx *sql.Tx, ev receiver.Event) error {
					_, err := tx.ExecContext(ctx, "INSERT INTO effects (id) VALUES (?)", ev.ID)
					return err
				})),
				Effects: func(ctx context.Context, ev receivertest.Event) (n int, err error) {
					return n, db.QueryRowContext(ctx, "SELECT COUNT(*) FROM effects WHERE id = ?", ev.ID).Scan(&n)
				},
				Fail: func() func() {
					_, err := db.ExecContext(t.Context(), "RENAME TABLE effects TO gone")
					require.NoError(t, err)
					return func() {
						_, err := db.ExecContext(t.Context(), "RENAME TABLE gone TO effects")
						require.NoError(t, err)
					}
				},
			}, nil)
		})
	}
}

// applying marks events and writes their effects, in several goroutines, and prints the number
// of each event after its commit.
var applying = killtest.NewChild("applying", func(ctx context.Context, dsn string) error {
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		return err
	}
	inTx, store := mysql.InTx(db, nil), mysql.New()
	var g errgroup.Group
	for range 4 {
		g.Go(func() error {
			for {
				n := rand.IntN(2000)
				id, obj := strconv.Itoa(n), dedup.Object{Type: "account", ID: strconv.Itoa(n % 10)}
				err := inTx(ctx, func(tx *sql.Tx) error {
					fresh, newer, err := dedup.MarkAndAdvance(ctx, store, tx, "test", id, time.Now(), obj, int64(n+1))
					if err != nil || !fresh {
						return err
					}
					_, err = tx.ExecContext(ctx, "INSERT INTO effects VALUES (?, ?, ?, ?)", id, obj.ID, n+1, newer)
					return err
				})
				if errors.Is(err, dedup.ErrRetryTx) {
					continue
				}
				if err != nil {
					return err
				}
				fmt.Println(n)
			}
		})
	}
	return g.Wait()
})

// After each kill there is a marker if and only if there is its effect, everything that was
// reported as committed is there, and each object has its highest version.
func testKills(t *testing.T, s server) {
	database, db := s.migrated(t)
	_, err := db.ExecContext(t.Context(), effects)
	require.NoError(t, err)
	committed := map[string]bool{}
	killtest.Run(t, killtest.Case{
		Child: func(int) *exec.Cmd { return applying.Command(s.dsn(database, "innodb_lock_wait_timeout=2")) }, Rounds: 12,
		Point: killtest.Lines(1, 60), // between two commits, or in one: the process does not wait for us
		Heard: func(line string) { committed[line] = true },
		Check: func() {
			// One snapshot: the server may still be ending the work that the process had begun.
			tx := begin(t, db, repeatableRead)
			defer tx.Rollback()
			there := map[string]bool{}
			ids := column(t, tx, "SELECT id FROM effects ORDER BY id")
			for _, id := range ids {
				there[id] = true
			}
			require.Equal(t, ids, column(t, tx, "SELECT id FROM surehook_dedup_markers ORDER BY id"), "marker if and only if effect")
			for id := range committed {
				require.True(t, there[id], "%s was committed", id)
			}
			require.Equal(t,
				column(t, tx, "SELECT CONCAT(object, ' ', MAX(version)) FROM effects WHERE newer GROUP BY object ORDER BY object"),
				column(t, tx, "SELECT CONCAT(object_id, ' ', version) FROM surehook_dedup_versions ORDER BY object_id"))
		},
	})
	require.Greater(t, len(committed), 12)
}

func column(t *testing.T, tx *sql.Tx, query string) []string {
	t.Helper()
	rows, err := tx.QueryContext(t.Context(), query)
	require.NoError(t, err, query)
	defer rows.Close()
	values := []string{}
	for rows.Next() {
		var v string
		require.NoError(t, rows.Scan(&v))
		values = append(values, v)
	}
	require.NoError(t, rows.Err())
	return values
}
