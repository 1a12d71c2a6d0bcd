package rules

import (
	"fmt"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
)

// RedactPass returns behind which event a redaction goes on, and up to which one it
// goes: zeros if it begins. The error matches sender.ErrInvalid.
func RedactPass(p *history.RedactParams) (from, upTo int64, err error) {
	if p.Limit < 1 {
		return 0, 0, fmt.Errorf("%w limit %d: it must be at least 1", sender.ErrInvalid, p.Limit)
	}
	if p.Cursor != "" && (!ReadDecimal(p.Cursor, &from, &upTo) || upTo <= from) {
		return 0, 0, errPassCursor
	}
	return from, upTo, nil
}

// RedactCursor is the cursor of the batch that follows: "" if it has looked at all.
func RedactCursor(to, upTo int64) string {
	if to >= upTo {
		return ""
	}
	return Decimal(to, upTo)
}
