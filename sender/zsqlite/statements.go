package sqlite

import (
	"context"
	"database/sql"
	"strconv"
	"strings"
)

// hot are the statements of publishing and dispatching. Compiling one costs more
// than running it.
func hot() []string {
	statements := []string{
		lockQuery,
		selectKey, insertKey, assignVersion, raiseVersion, insertEvent, selectSubscriberNo,
		selectRegistryVersion, selectExpanded, updateExpanded, selectNewEvents, lowerHeads, lowerTurns,
		selectDueTurns, selectDueHeads, selectDueDeliveries, selectLeastDue, selectLeastHead, leaseDelivery,
		updateHead, updateHealth, lowerTurn, updateTurn,
		selectLive, deleteLive, retryLive, selectHeads,
	}
	for _, m := range []manyRows{newDeliveries, newAttempts} {
		statements = append(statements, m.text(1), m.text(manyAtOnce))
	}
	return statements
}

// manyRows is an INSERT of as many rows as one likes.
type manyRows struct {
	head, row string
	columns   int
}

// manyAtOnce is how many rows a statement inserts. Each execution costs as much
// as several rows do.
const manyAtOnce = 32

func (m manyRows) text(rows int) string {
	return m.head + strings.Repeat(m.row+", ", rows-1) + m.row
}

// insert inserts rows, given one after the other.
func (w *work) insert(m manyRows, values []any) error {
	for len(values) > 0 {
		rows := 1
		if len(values) >= manyAtOnce*m.columns {
			rows = manyAtOnce
		}
		n := rows * m.columns
		if err := w.execs(m.text(rows), values[:n]...); err != nil {
			return err
		}
		values = values[n:]
	}
	return nil
}

// prepare compiles the hot statements, once they are needed. It needs a connection
// of the pool, so it must not be called by somebody who holds one.
func (s *Store) prepare(ctx context.Context) (map[string]*sql.Stmt, error) {
	if p := s.prepared.Load(); p != nil {
		return *p, nil
	}
	prepared := map[string]*sql.Stmt{}
	for _, query := range hot() {
		stmt, err := s.db.PrepareContext(ctx, query)
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
