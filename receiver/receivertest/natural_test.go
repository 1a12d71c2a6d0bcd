package receivertest_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup/sqlite"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/receivertest"
)

// orderRoute is made by receiver.OnState or by receiver.OnFact.
type orderRoute func(pattern string, h func(context.Context, *sql.Tx, receiver.Typed[any]) error) receiver.Route[*sql.Tx]

// The consumer that comes to mind first inserts a row at the first type of event and
// changes it at the second. As states it loses events, and Hostile finds that out by its
// defaults. Two correct forms pass: a row that every event can make, and facts that do not
// depend on each other.
func TestHostileFindsTheNaturalMistake(t *testing.T) {
	t.Parallel()
	exec := func(query string) func(context.Context, *sql.Tx, receiver.Typed[any]) error {
		return func(ctx context.Context, tx *sql.Tx, ev receiver.Typed[any]) error {
			_, err := tx.ExecContext(ctx, query, ev.Object.ID, ev.ID, ev.Type)
			return err
		}
	}
	insert := exec("INSERT INTO orders (id, event, state) VALUES (?1, ?2, ?3)")
	update := exec("UPDATE orders SET event = ?2, state = ?3 WHERE id = ?1")
	upsert := exec("INSERT INTO orders (id, event, state) VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET event = ?2, state = ?3")
	payment := exec("INSERT INTO payments (order_id, event) VALUES (?1, ?2)")
	orders := []string{"order.created", "order.paid"}
	for name, c := range map[string]struct {
		types         []string // nil: the defaults
		on            orderRoute
		first, second func(context.Context, *sql.Tx, receiver.Typed[any]) error
		facts, lost   bool
	}{
		"insert and update as states":              {types: nil, on: receiver.OnState[*sql.Tx, any], first: insert, second: update, lost: true},
		"insert and update of an order":            {types: orders, on: receiver.OnState[*sql.Tx, any], first: insert, second: update, lost: true},
		"insert and update as facts":               {types: orders, on: receiver.OnFact[*sql.Tx, any], first: insert, second: update, facts: true, lost: true},
		"upsert as states":                         {types: orders, on: receiver.OnState[*sql.Tx, any], first: upsert, second: upsert},
		"inserts as facts":                         {types: orders, on: receiver.OnFact[*sql.Tx, any], first: insert, second: payment, facts: true},
		"inserts as states, which are no states":   {types: orders, on: receiver.OnState[*sql.Tx, any], first: insert, second: payment, facts: true, lost: true},
		"upsert as facts, where an old state wins": {types: orders, on: receiver.OnFact[*sql.Tx, any], first: upsert, second: upsert, lost: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := openShop(t.TempDir())
			t.Cleanup(func() { _ = s.db.Close() })
			_, err := s.db.Exec(`CREATE TABLE orders (id TEXT PRIMARY KEY, event TEXT NOT NULL, state TEXT NOT NULL);
				CREATE TABLE payments (order_id TEXT NOT NULL, event TEXT PRIMARY KEY)`)
			require.NoError(t, err)
			types := c.types
			if types == nil {
				types = []string{"subscriber.created", "subscriber.updated"}
			}
			routes, err := receiver.Router(c.on(types[0], c.first), c.on(types[1], c.second))
			require.NoError(t, err)
			rcv, err := receiver.New(s.verifier, receiver.SQL(s.db, nil), sqlite.New(), "orders", &receiver.Config{Logger: quiet})
			require.NoError(t, err)
			told := &reporting{told: map[string]bool{}}
			receivertest.Hostile(told, receivertest.Subject{
				Handler: rcv.Handler(routes),
				Secret:  s.secret,
				Effects: func(ctx context.Context, ev receivertest.Event) (n int, err error) {
					return n, s.db.QueryRowContext(ctx, "SELECT (SELECT count(*) FROM orders WHERE event = ?1) + (SELECT count(*) FROM payments WHERE event = ?1)", ev.ID).Scan(&n)
				},
			}, &receivertest.HostileConfig{Types: c.types, Facts: c.facts, Flood: flood})
			require.Equal(t, c.lost, len(told.told) > 0, told.told)
			if c.lost && name != "upsert as facts, where an old state wins" {
				require.Contains(t, told.told, "receivertest: broken: "+receivertest.PromiseNotLost)
			}
		})
	}
}
