package memory

import "context"

// Join is for what keeps more under this store's transactions than the store does
// itself, as jobs/memory. It returns an error unless tx is open and this store's; and
// has undo, if it is not nil, called if tx is rolled back, before what was done
// earlier is undone. While tx is open no other transaction is.
func (s *Store) Join(ctx context.Context, tx *Tx, undo func()) error {
	return s.in(ctx, tx, func() error {
		if undo != nil {
			tx.undo = append(tx.undo, undo)
		}
		return nil
	})
}
