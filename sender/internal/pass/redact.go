package pass

import (
	"fmt"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/internal/cursor"
)

// NewRedact returns behind which event a redaction goes on, and up to which one it
// goes: zeros if it begins. The error matches sender.ErrInvalid.
func NewRedact(p *sender.RedactParams) (from, upTo int64, err error) {
	if p.Limit < 1 {
		return 0, 0, fmt.Errorf("%w limit %d: it must be at least 1", sender.ErrInvalid, p.Limit)
	}
	if p.Cursor != "" && (!cursor.ReadDecimal(p.Cursor, &from, &upTo) || upTo <= from) {
		return 0, 0, errCursor
	}
	return from, upTo, nil
}

// Redacted is the cursor of the batch that follows: "" if it has looked at all.
func Redacted(to, upTo int64) string {
	if to >= upTo {
		return ""
	}
	return cursor.Decimal(to, upTo)
}
