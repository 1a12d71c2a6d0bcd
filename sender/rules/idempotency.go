package rules

import (
	"bytes"
	"fmt"

	"github.com/surehook/surehook/sender"
)

// Duplicate answers a draft whose idempotency key is known. If the hashes are the same it
// returns first, the Ref of what was first published under the key, as a duplicate.
// Otherwise the error matches sender.ErrIdempotencyKey.
func Duplicate(d *sender.Draft, first sender.Ref, hash []byte) (sender.Ref, error) {
	if !bytes.Equal(hash, d.KeyHash[:]) {
		return sender.Ref{}, fmt.Errorf("%w: key %q in scope %q", sender.ErrIdempotencyKey, d.Key, d.KeyScope)
	}
	first.Duplicate = true
	return first, nil
}
