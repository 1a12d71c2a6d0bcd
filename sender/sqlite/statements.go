package sqlite

import (
	"context"
	"database/sql"
	"strconv"
	"strings"
)

// hot are the statements of publishing and dispatching. Compiling one costs more
// than running it. A bare "LIMIT ?" would have SQLite compile it again for each
// number, to plan by it; "LIMIT ? + 0" does not.
func hot() []string {
	statements := []string{
		lockQuery,
		selectKey, insertKey, assignVersion, raiseVersion, insertEvent, selectSubscriberNo,
		selectRegistryVersion, selectExpanded, updateExpanded, selectNewEvents, addPending, lowerTurns,
		selectDueTurns, selectNextTurn, selectDueHeads, updateTurns, updateHeads, updateHealth, lowerTurn, selectHeads,
		selectLost, selectDueWaiting, selectPending, leasePending, deletePending, leaseWaiting, deleteWaiting, insertWaiting, selectResumed,
		selectLeastUntil, selectLeastWaiting, addCounts, upsertRollup,
		selectRunning, countAhead, moveReplay, selectReplayDead, selectReplayDeadOf, selectReplayDelivered, deleteEnd, lastNumber, insertReplayed, insertLate, deleteLate,
		// A delivery is read with several of these.
		selectSeq, selectBody, selectDelivery, selectLive, selectLeft, selectEnd, countAttempts, selectLastClass, selectAttempts,
	}
	for _, m := range []*manyRows{&newPending, &newAttempts, &takeLeases} {
		statements = append(statements, m.text(1), m.text(manyAtOnce))
	}
	return statements
}

// manyRows is a statement over as many rows as one likes.
type manyRows struct {
	head, row, end string
	columns        int
}

// manyAtOnce is how many rows a statement takes. Each execution costs as much as
// several rows do.
const manyAtOnce = 32

func (m *manyRows) text(rows int) string {
	return m.head + strings.Repeat(m.row+", ", rows-1) + m.row + m.end
}

// chunks calls fn with a statement's text and its arguments, until all rows,
// given one after the other, have been in one.
func (m *manyRows) chunks(rows []any, fn func(query string, args []any) error) error {
	for len(rows) > 0 {
		n := 1
		if len(rows) >= manyAtOnce*m.columns {
			n = manyAtOnce
		}
		if err := fn(m.text(n), rows[:n*m.columns]); err != nil {
			return err
		}
		rows = rows[n*m.columns:]
	}
	return nil
}

// execMany runs a statement over rows.
func (w *work) execMany(m *manyRows, rows []any) error {
	return m.chunks(rows, func(query string, args []any) error { return w.execs(query, args...) })
}

// prepare compiles the hot statements, once they are needed. It needs a connection
// of the pool, so it must not be called by somebody who holds one.
func (s *Store) prepare(ctx context.Context) (map[string]*sql.Stmt, error) {
	if p := s.prepared.Load(); p != nil {
		return *p, nil
	}
	prepared := map[string]*sql.Stmt{}
	for _, query := range hot() {
		stmt, err := s.db.PrepareContext(ctx, query) //nolint:sqlclosecheck // kept for as long as the store is
		if err != nil {
			closeAll(prepared)
			return nil, err
		}
		prepared[query] = stmt
	}
	if !s.prepared.CompareAndSwap(nil, &prepared) {
		closeAll(prepared)
	}
	return *s.prepared.Load(), nil
}

func closeAll(stmts map[string]*sql.Stmt) {
	for _, s := range stmts {
		_ = s.Close()
	}
}

// list is a JSON array of numbers, for json_each: a statement's text then does not
// depend on how many there are.
func list(numbers []int64) string {
	b := make([]byte, 0, 2+8*len(numbers))
	b = append(b, '[')
	for i, n := range numbers {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, n, 10)
	}
	return string(append(b, ']'))
}
