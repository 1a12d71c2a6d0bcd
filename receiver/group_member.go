package receiver

import (
	"context"
	"errors"
)

// member is a function that waits for a transaction, or takes part in one. It runs in its
// caller's goroutine: the transaction is handed to it and back.
type member[Tx any] struct {
	ctx      context.Context
	fn       func(Tx) error
	promoted chan struct{} // closed when it is to begin a transaction
	turn     chan Tx
	ran      chan error // what fn returned
	end      chan error // what became of its work
	gone     chan struct{}
}

func newMember[Tx any](ctx context.Context, fn func(Tx) error) *member[Tx] {
	return &member[Tx]{
		ctx: ctx, fn: fn,
		promoted: make(chan struct{}), turn: make(chan Tx),
		ran: make(chan error, 1), end: make(chan error, 1), gone: make(chan struct{}),
	}
}

// errUnfinished stands for a function that panicked or ended its goroutine. That goes
// on in the goroutine itself.
var errUnfinished = errors.New("receiver: the function did not return")

func (m *member[Tx]) run(tx Tx) {
	err := errUnfinished
	defer func() { m.ran <- err }()
	if err = m.ctx.Err(); err == nil {
		err = errUnfinished
		err = m.fn(tx)
	}
}

// take hands the transaction over and waits until it is back.
func (m *member[Tx]) take(tx Tx) error {
	select {
	case m.turn <- tx:
		return <-m.ran
	case <-m.gone: // only possible if it has run before, and the InTx runs all again
		return errUnfinished
	}
}
