package receiver

import (
	"context"
	"net/http"

	"github.com/surehook/surehook/signing"
)

// RecordFunc keeps a verified event in tx, as a whole: [Receiver.Apply] needs its body
// and its scope later. It reports false for an event that is kept already. It must not
// commit or roll back tx itself, nor keep it.
type RecordFunc[Tx any] func(ctx context.Context, tx Tx, ev Event) (fresh bool, err error)

// RecordHandler is [Receiver.Handler] for applications that apply events later. An event
// is answered with 200, as [Recorded] or as [Duplicate], once record's work is committed.
// Neither marker nor version is touched: the application calls [Receiver.Apply] later,
// which takes both. Package inbox beside this one does all of it. An error of record is
// answered with 503.
func (r *Receiver[Tx]) RecordHandler(record RecordFunc[Tx]) http.Handler {
	return r.handler(order[Tx]{record: record})
}

// ReceiveToRecord is [Receiver.Receive] for applications that apply events later; see
// [Receiver.RecordHandler].
func (r *Receiver[Tx]) ReceiveToRecord(ctx context.Context, m signing.Message, record RecordFunc[Tx]) (Result, error) {
	return r.receive(ctx, m, order[Tx]{record: record})
}

// record does not enter the event as in work: it is short, and must not be refused
// because the same event is being applied.
func (r *Receiver[Tx]) record(ctx context.Context, ev Event, record RecordFunc[Tx]) (res Result, failure *Error) {
	failure = r.transact(ctx, func(tx Tx) *Error {
		fresh, err := record(ctx, tx, ev)
		if err != nil {
			return failDB(ctx, ReasonDatabase, err)
		}
		if res = Duplicate; fresh {
			res = Recorded
		}
		return nil
	})
	return res, failure
}
