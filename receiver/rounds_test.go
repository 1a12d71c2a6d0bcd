package receiver_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup/sqlite"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/receivertest"
)

// 64 requests for one event at once, round after round, at receivers that know
// nothing of each other, while applying succeeds, fails, panics or outlives its
// client: at most one effect, a marker if and only if there is one, and each loser is
// answered with 200 or 503 unless its own work failed.
func TestRoundsOnSQLite(t *testing.T) {
	for _, locking := range []string{"immediate", "deferred"} {
		t.Run(locking, func(t *testing.T) {
			b, _ := onSQLite(t)
			if locking == "deferred" {
				db := openSQLite(t, filepath.Join(t.TempDir(), "app.db"), "&_pragma=busy_timeout(5000)&_txlock=deferred")
				b.inTx = receiver.SQL(db, nil)
				b.effects = func(t testing.TB, id string) int {
					return count(t, db, "SELECT count(*) FROM effects WHERE id = ?", id)
				}
			}
			testRounds(t, b, func() receiver.InTx[*sql.Tx] { return b.inTx })
		})
	}
	t.Run("group", func(t *testing.T) {
		b, _ := onSQLite(t)
		b.store = sqlite.New()
		testRounds(t, b, func() receiver.InTx[*sql.Tx] { return grouped(t, b.inTx, receiver.SQLExec) })
	})
}

func TestRoundsOnPostgres(t *testing.T) {
	for _, level := range []string{"read committed", "repeatable read", "serializable"} {
		t.Run(level, func(t *testing.T) {
			b := onPostgres(t, level)
			testRounds(t, b, func() receiver.InTx[pgx.Tx] { return b.inTx })
		})
	}
	t.Run("group", func(t *testing.T) {
		b := onPostgres(t, "read committed")
		testRounds(t, b, func() receiver.InTx[pgx.Tx] { return grouped(t, b.inTx, pgxExec) })
	})
}

func grouped[Tx any](t *testing.T, inTx receiver.InTx[Tx], exec receiver.Exec[Tx]) receiver.InTx[Tx] {
	t.Helper()
	group, err := receiver.NewGroup(inTx, exec, nil)
	require.NoError(t, err)
	return group.InTx
}

func testRounds[Tx any](t *testing.T, b bed[Tx], inTx func() receiver.InTx[Tx]) {
	t.Helper()
	rounds, atOnce, processes := 500, 64, 4
	if raceEnabled {
		rounds, atOnce = 20, 16
	}
	handlers := make([]http.Handler, processes)
	for i := range handlers {
		rcv := newReceiver(t, inTx(), b.store, nil)
		handlers[i] = rcv.Handler(func(ctx context.Context, tx Tx, ev receiver.Event) error {
			if err := b.effect(ctx, tx, ev); err != nil {
				return err
			}
			switch rand.IntN(8) {
			case 0:
				return errors.New("rolled back")
			case 1:
				panic("rolled back")
			case 2:
				return pgError("40001")
			}
			return nil
		})
	}
	snd := newSender(t)
	got := map[string]int{}
	for round := range rounds {
		ev := receivertest.NewEvent("subscriber", fmt.Sprint("sub_", round), 1)
		var (
			mu      sync.Mutex
			wg      sync.WaitGroup
			applied int
			start   = make(chan struct{})
		)
		for i := range atOnce {
			wg.Go(func() {
				m := snd.Request(ev).Message()
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				r, err := http.NewRequestWithContext(ctx, "POST", "/", bytes.NewReader(m.Body))
				if err != nil {
					t.Error(err)
					return
				}
				r.Header = m.Header
				w := httptest.NewRecorder()
				<-start
				if i%4 == 0 { // the client leaves
					time.AfterFunc(rand.N(2*time.Millisecond), cancel)
				}
				handlers[i%processes].ServeHTTP(w, r)
				mu.Lock()
				defer mu.Unlock()
				what := fmt.Sprint(w.Code, " ", w.Body)
				got[what]++
				switch {
				case what == `200 {"result":"applied"}`:
					applied++
				case w.Code != 200 && w.Code != 503 && w.Code != 500:
					t.Error(what)
				}
			})
		}
		close(start)
		wg.Wait()
		s := b.state(t, ev)
		require.LessOrEqual(t, s.Effects, 1)
		require.Equal(t, s.Effects, applied, "as many effects as were answered so")
		require.Equal(t, s.Effects == 1, s.Marker)
		require.Equal(t, int64(s.Effects), s.Version)
		if t.Failed() {
			return
		}
	}
	t.Log(got)
	require.NotZero(t, got[`200 {"result":"applied"}`])
	require.NotZero(t, got[`200 {"result":"duplicate"}`])
}
