package history

import (
	"context"
	"errors"
	"fmt"

	"github.com/surehook/surehook/internal/ident"
	"github.com/surehook/surehook/sender"
)

// redactAtOnce is how many events one batch redacts.
const redactAtOnce = 100

// Redaction names the events whose bodies are to be removed: all those about an
// object, whomever they are addressed to, or all those that are addressed to a
// subscriber, which may be a deleted one. One of the two is given.
type Redaction struct {
	Object     sender.Object
	Subscriber string
}

// Redact removes the bodies of events, what endpoints answered to them, and the headers of
// their attempts, so that what they said of a person is not kept. It concerns what was
// committed until now. The events, their versions and their deliveries stay on record, as
// Redacted, until Retention has them removed. With them stay their types, the types and
// ids of their objects, the URLs of callbacks, and the idempotency keys. The last version
// of an object is kept under its type and id for ever. So an id that says something of a
// person, as an address does, is not for an object: use one that says nothing without your
// own data.
//
// Their live deliveries are cancelled at once: only an attempt in flight is left to end.
// No delivery of them can be sent again (ErrRedacted).
//
// It works in batches, so that it delays nobody, and returns how many events it has
// redacted, also beside an error: then call it again. ErrInvalid: r names nothing,
// or both, or what can be no name; ErrNotFound: there never was such a subscriber.
func (h *History) Redact(ctx context.Context, r Redaction) (events int, err error) {
	if (r.Object != sender.Object{}) == (r.Subscriber != "") {
		return 0, fmt.Errorf("%w redaction: it must name an object or a subscriber, and not both", sender.ErrInvalid)
	}
	err = errors.Join(ident.AllStorable(sender.ErrInvalid, ident.Text{Name: "object type", Text: r.Object.Type}, ident.Text{Name: "object id", Text: r.Object.ID}, ident.Text{Name: "subscriber", Text: r.Subscriber})...)
	if err != nil {
		return 0, err
	}
	p := RedactParams{Object: r.Object, Subscriber: r.Subscriber, Limit: redactAtOnce}
	for {
		done, err := h.store.Redact(ctx, p)
		events += done.Events
		if err != nil || done.Cursor == "" {
			return events, err
		}
		p.Cursor = done.Cursor
	}
}
