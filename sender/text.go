package sender

import (
	"fmt"

	"github.com/surehook/surehook/internal/ident"
)

// named is a text that a caller gave, and what the caller knows it by.
type named struct{ name, text string }

// storable reports, as ErrInvalid, all texts that a database may not be able to keep.
// It comes before the first statement: PostgreSQL would abort the transaction, which
// may be the caller's.
func storable(texts ...named) (errs []error) {
	for _, t := range texts {
		if err := ident.Storable(t.name, t.text); err != nil {
			errs = append(errs, fmt.Errorf("%w: %w", ErrInvalid, err))
		}
	}
	return errs
}
