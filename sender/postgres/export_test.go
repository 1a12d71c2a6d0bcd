package postgres

import (
	"context"
	"errors"
)

// SetClock makes statements read the database's time from an expression.
func (s *Store[Tx]) SetClock(expression string) { s.clock, s.scanFrom.off = expression, true }

// Text is a statement as it is sent.
func (s *Store[Tx]) Text(query string) string { return s.text(query) }

// Hinting tells whether a hint to other processes is under way.
func (s *Store[Tx]) Hinting() bool {
	s.hints.mu.Lock()
	defer s.hints.mu.Unlock()
	return s.hints.running
}

// Settings are those of the dispatchers' transactions, by their names.
func (s *Store[Tx]) Settings(ctx context.Context, all map[string]string) error {
	return s.dispatching().writeLater(ctx, func(w *work) error {
		return w.each(func(r rows) (bool, error) {
			var name, value string
			err := r.Scan(&name, &value)
			all[name] = value
			return true, err
		}, `SELECT name, current_setting(name) FROM pg_settings`)
	})
}

// Share makes a store's dispatchers use the connections of another open store's
// dispatchers: to connect takes longer than most tests.
func (s *Store[Tx]) Share(open *Store[Tx]) {
	conn, err := open.dispatching().acquire(context.Background())
	if err != nil {
		panic(err)
	}
	s.sessions.users, s.sessions.pool = 1, conn.pool
	conn.release(nil)
}

// Set changes a setting on two connections of the dispatchers.
func (s *Store[Tx]) Set(ctx context.Context, name, value string) error {
	return s.dispatching().read(ctx, func(w *work) error {
		var set string
		const text = `SELECT set_config($1, $2, false)`
		return errors.Join(w.row(text, name, value).Scan(&set), s.dispatching().readOne(ctx, text, []any{name, value}, &set))
	})
}

// ReadAhead is how many bytes of memory are there for bodies that filters ask for in the next
// expansion.
func (s *Store[Tx]) ReadAhead() int { return cap(s.ahead.Load().bytes) }
