package catchup

import (
	"context"
	"errors"
	"fmt"

	"github.com/surehook/surehook/internal/ident"
)

// CursorStore keeps the cursors of feeds in the application's database: packages sqlite
// and postgres beside this one have one each. Tx is the transaction of the application's
// driver; a store never begins, ends or savepoints it, and keeps no reference to it. All
// methods are safe for concurrent use.
type CursorStore[Tx any] interface {
	// Cursor returns the cursor that was stored last under a name, or "".
	Cursor(ctx context.Context, tx Tx, name string) (string, error)

	// SetCursor stores a cursor under a name, as a part of tx.
	SetCursor(ctx context.Context, tx Tx, name, cursor string) error
}

// ErrInvalid: a name or a cursor is not of the form that is asked for.
var ErrInvalid = errors.New("catchup: invalid")

const (
	maxName   = 255
	maxCursor = 4096
)

// CheckName refuses a name that is no name of a feed: 1 to 255 bytes of UTF-8 without
// NUL. Stores call it.
func CheckName(name string) error {
	if name == "" || len(name) > maxName || !storable(name) {
		return fmt.Errorf("%w name %q: it must have 1 to %d bytes of UTF-8 without NUL", ErrInvalid, name, maxName)
	}
	return nil
}

// CheckCursor refuses a cursor that cannot be kept: it must have 1 to 4096 bytes of
// UTF-8 without NUL. Stores call it.
func CheckCursor(cursor string) error {
	if cursor == "" || len(cursor) > maxCursor || !storable(cursor) {
		return fmt.Errorf("%w cursor of %d bytes: it must have 1 to %d bytes of UTF-8 without NUL", ErrInvalid, len(cursor), maxCursor)
	}
	return nil
}

func storable(text string) bool { return ident.Storable("", text) == nil }
