package postgres

import (
	"fmt"

	"github.com/surehook/surehook/internal/pgtx"
	"github.com/surehook/surehook/receiver/inbox"
)

var errNoTx = fmt.Errorf("%w: the transaction is nil", inbox.ErrInvalid)

// session is the caller's transaction.
func (s *Store[Tx]) session(tx Tx) (pgtx.Tx, error) {
	if in := s.in(tx); in != nil {
		return in, nil
	}
	return nil, errNoTx
}
