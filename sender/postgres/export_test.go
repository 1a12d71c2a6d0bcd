package postgres

// SetClock has statements read the database's time from an expression.
func (s *Store[Tx]) SetClock(expression string) { s.clock, s.floors.off = expression, true }

// Text is a statement as it is sent.
func (s *Store[Tx]) Text(query string) string { return s.text(query) }

// Hinting tells whether a hint to other processes is under way.
func (s *Store[Tx]) Hinting() bool {
	s.hints.mu.Lock()
	defer s.hints.mu.Unlock()
	return s.hints.running
}
