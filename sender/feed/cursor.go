package feed

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/surehook/surehook/sender"
)

// cursor is a place between two positions.
type cursor struct {
	position int64 // the last one that was read
	// The reader knows that events up to this position were pruned: the reader got
	// an ExpiredError, or began with the events that were kept then. So events that
	// stay below it, such as a dead letter's, can be read without another
	// ExpiredError.
	pruned int64
}

const (
	cursorVersion = 1
	maxCursor     = 64 // bytes, of text; it takes up to 36
)

var cursorText = base64.RawURLEncoding.Strict()

// text is a version, the two numbers, and a sum, so that a text that was cut off or
// mistyped is not taken for another place. It is neither secret nor signed: a client
// that makes one up only moves within the events that it may read anyway.
func (c cursor) text() string {
	b := []byte{cursorVersion}
	b = binary.AppendUvarint(b, uint64(c.position))
	b = binary.AppendUvarint(b, uint64(c.pruned))
	return cursorText.EncodeToString(binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b)))
}

var errCursor = fmt.Errorf("%w cursor: it must be one that a page came with, or empty to begin with the oldest event, or now to begin with what comes", sender.ErrInvalid)

// parseCursor reads a text of cursor.text, and refuses all others.
func parseCursor(text string) (c cursor, err error) {
	if len(text) > maxCursor {
		return c, errCursor
	}
	b, err := cursorText.DecodeString(text)
	if err != nil || len(b) == 0 || b[0] != cursorVersion {
		return c, errCursor
	}
	position, n := binary.Uvarint(b[1:])
	if n <= 0 || position > math.MaxInt64 {
		return c, errCursor
	}
	pruned, m := binary.Uvarint(b[1+n:])
	if m <= 0 || pruned > math.MaxInt64 {
		return c, errCursor
	}
	c = cursor{position: int64(position), pruned: int64(pruned)}
	if c.text() != text {
		return cursor{}, errCursor
	}
	return c, nil
}
