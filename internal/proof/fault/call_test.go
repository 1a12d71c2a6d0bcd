package fault_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/surehook/surehook/internal/proof/faultdriver"
)

// mode is the way in which a call fails.
type mode string

const (
	beforeEffect mode = "before its effect"
	afterEffect  mode = "after its effect"
	hanging      mode = "hanging" // until its context ends, without effect
)

var modes = []mode{beforeEffect, afterEffect, hanging}

var errFault = errors.New("as the test wants it")

// hangTime bounds a call that hangs and whose context does not end, like a driver's own
// timeout.
const hangTime = 20 * time.Millisecond

// fault makes the n-th of the calls that it counts fail.
type fault struct {
	n      int64 // 0: none
	mode   mode
	calls  atomic.Int64
	struck atomic.Bool
	log    func(what ...any)

	mu     sync.Mutex
	cancel context.CancelFunc // of the caller that waits for the calls
}

// context is for work that ends when a call hangs.
func (f *fault) context(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cancel = cancel
	return ctx, cancel
}

// strikes counts a call, and reports whether it is to fail.
func (f *fault) strikes() bool {
	if f.calls.Add(1) != f.n {
		return false
	}
	f.struck.Store(true)
	return true
}

func (f *fault) giveUp() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cancel != nil {
		f.cancel()
	}
}

// where describes the call that fails, for error messages.
func (f *fault) where(what ...any) {
	if f.log != nil {
		f.log(what...)
	}
}

// around is a faultdriver.Hook.
func (f *fault) around(ctx context.Context, c faultdriver.Call, do func() error) error {
	if !f.strikes() {
		return do()
	}
	f.where(c.Kind, c.Text[:min(len(c.Text), 60)])
	err := errFault
	if c.Kind == faultdriver.Commit || c.Kind == faultdriver.Rollback { // otherwise the connection would be used again, in the transaction
		err = errors.Join(err, driver.ErrBadConn)
	}
	switch f.mode {
	case afterEffect:
		if err := do(); err != nil {
			return err
		}
	case hanging:
		f.giveUp()
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(hangTime):
		}
	}
	return err
}

// dial returns connections whose writes are counted.
func (f *fault) dial(inner func(ctx context.Context, network, addr string) (net.Conn, error)) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := inner(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		w := &faultdriver.Conn{Conn: c}
		var lost atomic.Bool // the answer to what was written
		w.OnWrite = func(b []byte, write func([]byte) (int, error)) (int, error) {
			if !f.strikes() {
				return write(b)
			}
			f.where("writing ", len(b), " bytes")
			switch f.mode {
			case beforeEffect:
				_ = c.Close()
				return 0, errFault
			case afterEffect:
				lost.Store(true)
				return write(b)
			}
			f.giveUp()
			return len(b), nil // nobody will answer
		}
		w.OnRead = func(b []byte, read func([]byte) (int, error)) (int, error) {
			n, err := read(b)
			if lost.Load() && n > 0 { // so the server has done its work
				_ = c.Close()
				return 0, errFault
			}
			return n, err
		}
		return w, nil
	}
}
