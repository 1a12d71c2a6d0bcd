package receiver

import (
	"context"
	"encoding/json"
	"time"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/signing"
)

// Event is an event as its verified body states it. The signature covers all of it,
// except Attempt, and the Type with [Envelope].UnsignedType.
type Event struct {
	ID      string // the key of deduplication; [Envelope] says which it is for other senders
	Type    string
	Object  dedup.Object // zero only under an Envelope
	Version int64        // from 1 to 2^53-1; 0 if there is none, only under an Envelope

	OccurredAt time.Time // zero if the body does not say

	PayloadVersion string          // the version of Data, as a date; "" if the sender has none
	Data           json.RawMessage // a part of Body, or a form as a JSON object; nil if there is none
	Body           []byte          // the bytes that the signature covers, never nil; not to be changed

	Scope    string           // from the configuration, or from the key that verified
	Verified signing.Verified // which scheme and key; zero for a dead letter that is applied by hand

	// Attempt is the sender's number of this attempt, from 1, or 0 if the sender gives
	// none. No signature covers it: it is information only.
	Attempt int
}

// HandlerFunc applies an event in tx, together with its marker and, if it is a state, its
// version: returning nil commits all of them, an error rolls all of them back. It must not
// commit or roll back tx itself, nor keep it. [State] or [Fact] makes a Work of it.
//
// An error is answered with 500, or with 503 if it comes from a database that is away. One
// of a transaction that lost against another one has the whole transaction run again, the
// function with it: a serialization failure, a deadlock, a lock that could not be had, or
// dedup.ErrRetryTx. It runs four times at most, with some milliseconds between; then the
// answer is 503. For that the database's error must be returned as it is, or wrapped. See
// [Permanent] for one that no retry can mend.
type HandlerFunc[Tx any] func(ctx context.Context, tx Tx, ev Event) error
