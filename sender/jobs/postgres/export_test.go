package postgres

// SetClock makes statements read the database's time from an expression.
func (s *Store[Tx]) SetClock(expression string) { s.setClock(expression) }
