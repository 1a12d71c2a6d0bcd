package sqlite

import (
	"context"
	"database/sql"
	"slices"
	"strconv"
	"strings"
)

// hot returns the statements of publishing and dispatching. Compiling one costs more than
// running it. Statements with "LIMIT ?" are compiled again for each number, to plan by it,
// and those with "column = ?" for each of -1, 0 and 1: SQLite takes these for values that
// many rows have. With "? + 0" neither is so.
func hot() []string {
	statements := []string{
		lockQuery, selectTarget, selectMatches, selectAllMatches, selectKeyring, selectSecrets,
		selectKey, insertKey, assignVersion, raiseVersion, insertEvent, selectSubscriberNo,
		selectRegistryVersion, selectAnyUnexpanded, selectExpanded, updateExpanded, selectNewEvents, selectNewBodies, selectUnexpanded, upsertUnexpanded, deleteUnexpanded, selectObject,
		selectDueTurns.Alone, selectDueTurns.Shared, selectNextTurn.Alone, selectNextTurn.Shared, selectDueHeads.Alone, selectDueHeads.Shared,
		updateOwner, selectLeasesEnd, updateTurns, updateHealth, lowerTurn, selectHeads, selectLeases, deleteLeases,
		selectLost, selectDueWaiting, selectPending, selectFirstPending, leasePending, deletePending, leaseWaiting, deleteWaiting, insertWaiting, deleteLease, insertEnd, selectResumed,
		selectLeastUntil, selectLeastWaiting, selectBodies, addCounts, upsertRollup, upsertHour, storeBeat, selectPresent,
		updateHeads[0][0], updateHeads[0][1], updateHeads[1][0], updateHeads[1][1], selectObjects, numberObject, selectInLine, selectLines, selectFirst, selectBehind, selectFirsts, selectAgain, insertLine, markAhead, setPlace, takePending, goBehind, takeWaiting, deleteFromLine, leaveLineOf, stopLine,
		nextReplay, selectRunning, countAhead, moveReplay, selectReplayDead, selectReplayDeadOf, selectReplayDelivered, selectReplayDeliveredOf, deleteEnd, lastNumber, insertAgain, insertLate, deleteLate,
		// A delivery is read with several of these.
		selectSeq, selectBody, selectEventBody, selectDelivery, selectLive, selectSkipped, selectEnd, countAttempts, selectLastAnswer, selectAttempts, selectTellingAttempts,
	}
	for _, m := range []*manyRows{newPending, newLined, pendingAgain, newAttempts, newSucceeded} {
		for _, c := range m.chunks {
			statements = append(statements, c.query)
		}
	}
	for _, l := range []*listed{pendingNext, leaveLines} {
		for _, c := range l.chunks {
			statements = append(statements, c.query)
		}
	}
	return statements
}

// manyRows is a statement over any number of rows.
type manyRows struct {
	columns int     // of a row
	chunks  []chunk // the largest first
}

// chunk is the statement's text for a fixed number of rows.
type chunk struct {
	rows  int
	query string
}

// newManyRows makes a statement of a head and a text for each row. An execution costs
// as much as several rows do. If a row begins with ?1, all rows share that value.
//
// A statement that inserts many rows says OR FAIL. Otherwise SQLite copies each page that
// it changes, to undo the statement alone if a row is refused. Here the whole transaction
// is rolled back then. So it must not run in a caller's transaction.
func newManyRows(head, row string) *manyRows {
	m := &manyRows{columns: strings.Count(row, "?") - strings.Count(row, "?1")}
	for _, n := range [...]int{64, 8, 1} {
		m.chunks = append(m.chunks, chunk{n, head + strings.Repeat(row+", ", n-1) + row})
	}
	return m
}

// execMany runs a statement over rows, given one after the other. shared is the value that
// they share, if there is one.
func (w *work) execMany(m *manyRows, rows []any, shared ...any) error {
	var args []any
	for _, c := range m.chunks {
		for n := c.rows * m.columns; len(rows) >= n; rows = rows[n:] {
			args = append(append(args[:0], shared...), rows[:n]...)
			if err := w.execs(c.query, args...); err != nil {
				return err
			}
		}
	}
	return nil
}

// listed is a statement with a subscription and a list of events. SQLite removes rows as it
// finds them if these are listed one by one, and collects them first if a query names them.
type listed struct {
	chunks []chunk // the smallest first
}

// newListed has many sizes: what a list lacks to the next one is bound and read all the same.
func newListed(head, item, tail string) *listed {
	l := &listed{}
	for _, n := range [...]int{1, 4, 8, 12, 16, 20, 24, 28, 32} {
		l.chunks = append(l.chunks, chunk{n, head + strings.Repeat(item+", ", n-1) + item + tail})
	}
	return l
}

// countListed runs a statement over events, and returns how many rows it has changed. A list
// that is not full ends with NULLs, which are no event's.
func (w *work) countListed(l *listed, subscription int64, events []int64) (changed int64, err error) {
	var args []any
	for len(events) > 0 {
		c := l.chunks[len(l.chunks)-1]
		if i := slices.IndexFunc(l.chunks, func(c chunk) bool { return c.rows >= len(events) }); i >= 0 {
			c = l.chunks[i]
		}
		args = append(args[:0], subscription)
		for i := range c.rows {
			if i < len(events) {
				args = append(args, events[i])
			} else {
				args = append(args, nil)
			}
		}
		n, err := w.count(c.query, args...)
		if changed += int64(n); err != nil {
			return changed, err
		}
		events = events[min(c.rows, len(events)):]
	}
	return changed, nil
}

// prepare compiles the hot statements, once they are needed. It needs a connection of the
// pool, so a caller must not hold one.
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

// list returns a JSON array of numbers, for json_each. So a statement's text does not
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
