package memory

import "context"

// Join is for packages that keep more under this store's transactions, as jobs/memory
// does. It returns an error unless tx is open and is this store's. A rollback of tx calls
// undo, unless that is nil, before it undoes anything that was done earlier. While tx is
// open no other transaction is.
func (s *Store) Join(ctx context.Context, tx *Tx, undo func()) error {
	return s.in(ctx, tx, func() error {
		if undo != nil {
			tx.undo = append(tx.undo, undo)
		}
		return nil
	})
}
