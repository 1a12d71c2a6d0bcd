package sqlite

import (
	"context"
	"database/sql"
	"strconv"
)

// hot are the statements of publishing and dispatching. Compiling one costs more
// than running it.
func hot() []string {
	return []string{
		lockQuery,
		selectKey, insertKey, assignVersion, raiseVersion, insertEvent, selectSubscriberNo, selectSubscriptionNo,
		selectRegistryVersion, selectTarget,
		selectExpanded, updateExpanded, selectNewEvents, selectAskers, selectAllAskers,
		insertDeliveries, insertQueue, lowerHeads, lowerTurns,
		selectNext, selectLeases, updateLeases, insertWaiting, insertEnded, insertAttempts,
		selectHeads, selectDueHeads, updateHead, updateHealth, lowerTurn,
		selectDueTurns, updateTurns, selectQueue, selectWaiting, deleteWaiting,
		selectEvents, selectEventRange,
	}
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
