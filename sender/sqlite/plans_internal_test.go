package sqlite

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/surehook/surehook/sender"
	_ "modernc.org/sqlite"
)

func TestDump(t *testing.T) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "a.db"))
	require.NoError(t, err)
	s, err := New(db, nil)
	require.NoError(t, err)
	require.NoError(t, s.Migrate(t.Context()))
	qs := hot()
	qs = append(qs, selectUnexpanded, insertEnd, releaseLease, deleteLease, lowerHead, lowerTurnOf, selectDeleted, selectGone, selectGoneLeases, deletePendingOne, markSwept,
		restartLease, restartWaiting, pendingToWaiting, deleteEnd, reviveDelivery, selectDelivery, selectLive, selectEnd, countAttempts, selectLastClass, selectAttempts,
		selectAskers, selectAllAskers, selectTarget, selectVersion, selectSubscriptionNo)
	for _, src := range sources[""] {
		for _, f := range []filter{{}, {event: 1}, {subscription: 1}, {event: 1, subscription: 1}} {
			q, _ := src.page(f, sender.DeliveryKey{Event: 1}, 1)
			qs = append(qs, q)
		}
	}
	for _, q := range append(qs, src2...) {
		if len(q) > 400 {
			fmt.Println("==", q[:200], "…")
		} else {
			fmt.Println("==", q)
		}
		stmtArgs := make([]any, 400)
		n := params(q)
		for i := range stmtArgs {
			stmtArgs[i] = 1
		}
		rows, err := db.Query("EXPLAIN QUERY PLAN "+q, stmtArgs[:n]...)
		require.NoError(t, err, q)
		for rows.Next() {
			var a, b, c int
			var d string
			rows.Scan(&a, &b, &c, &d)
			fmt.Printf("     %d %d %s\n", a, b, d)
		}
		require.NoError(t, rows.Err())
		rows.Close()
	}
}

var src2 []string

func params(q string) int {
	plain, high := 0, 0
	for i := 0; i < len(q); i++ {
		if q[i] == '?' {
			if i+1 < len(q) && q[i+1] >= '1' && q[i+1] <= '9' {
				high = max(high, int(q[i+1]-'0'))
			} else {
				plain++
			}
		}
	}
	return plain + high
}
