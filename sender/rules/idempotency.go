package rules

import (
	"bytes"
	"fmt"

	"github.com/surehook/surehook/sender"
)

// Duplicate answers a draft whose idempotency key is known: with what was first published
// under it, as the store has it, if the hashes are the same, else with
// sender.ErrIdempotencyKey.
func Duplicate(d *sender.Draft, first sender.Ref, hash []byte) (sender.Ref, error) {
	if !bytes.Equal(hash, d.KeyHash[:]) {
		return sender.Ref{}, fmt.Errorf("%w: key %q in scope %q", sender.ErrIdempotencyKey, d.Key, d.KeyScope)
	}
	first.Duplicate = true
	return first, nil
}
