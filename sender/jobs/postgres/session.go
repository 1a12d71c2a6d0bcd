package postgres

import (
	"fmt"

	"github.com/surehook/surehook/internal/pgtx"
	"github.com/surehook/surehook/sender"
)

var errNoTx = fmt.Errorf("%w transaction: it is nil", sender.ErrInvalid)

// session is the caller's transaction.
func (s *Store[Tx]) session(tx Tx) (pgtx.Tx, error) {
	if in := s.in(tx); in != nil {
		return in, nil
	}
	return nil, errNoTx
}
