package catchup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/surehook/surehook/internal/dberr"
	"github.com/surehook/surehook/receiver"
)

// Catchup brings the events of a feed through a receiver's pipeline. It is safe for
// concurrent use, and starts nothing.
type Catchup[Tx any] struct {
	source  Source
	rcv     *receiver.Receiver[Tx]
	inTx    receiver.InTx[Tx]
	cursors CursorStore[Tx]
	todo    receiver.Work[Tx]
	cfg     Config
	unnamed bool // Config.Name was left out
	running atomic.Bool
}

var (
	// ErrRunning: Run is under way on this Catchup.
	ErrRunning = errors.New("catchup: it is running already")

	// ErrFormerName: Config.Name is empty, and the database has no cursor of the scope's
	// name, but one of the name "default". Before, every feed without a name had that one.
	// It may be this feed's or another's: Config.Name says which.
	ErrFormerName = errors.New(`catchup: whose is the cursor "default"?`)
)

// New makes a Catchup that applies events with w, as rcv.Handler(w) applies posted ones.
// inTx and cursors must be for rcv's database. Cursors are stored in rcv's transactions,
// and in transactions of inTx where there is no event. The receiver's Config.Timeout
// bounds the work for an event, and for a cursor. A nil cfg means all defaults. All problems are reported at
// once.
func New[Tx any](source Source, rcv *receiver.Receiver[Tx], inTx receiver.InTx[Tx], cursors CursorStore[Tx], w receiver.Work[Tx], cfg *Config) (*Catchup[Tx], error) {
	own := ""
	if rcv != nil {
		own = rcv.Scope()
	}
	c := &Catchup[Tx]{source: source, rcv: rcv, inTx: inTx, cursors: cursors, todo: w, cfg: cfg.withDefaults(own), unnamed: cfg == nil || cfg.Name == ""}
	errs := []error{c.cfg.validate(), w.Check()}
	if rcv != nil {
		errs = append(errs, c.cfg.checkScope(own))
	}
	for _, need := range []struct {
		missing bool
		what    string
	}{
		{source == nil, "the source is nil: make one with NewClient"},
		{rcv == nil, "the receiver is nil: make one with receiver.New"},
		{inTx == nil, "the InTx is nil: give the receiver's"},
		{cursors == nil, "the cursor store is nil: give one of the packages beside this one"},
	} {
		if need.missing {
			errs = append(errs, errors.New("catchup: "+need.what))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return c, nil
}

// Run follows the feed from the stored cursor, or from its beginning, until ctx ends;
// then it finishes the current event and returns nil. With Config.Every it reconciles at
// intervals, the first time at once. A failure that may be temporary is tried again. The
// error matches ErrRunning or ErrFormerName, or says that the table is not migrated, or
// that the cursor could not be read before ctx ended.
func (c *Catchup[Tx]) Run(ctx context.Context) error {
	if c.running.Swap(true) {
		return ErrRunning
	}
	defer c.running.Store(false)
	at, err := c.load(ctx)
	if err != nil {
		return err
	}
	p := &pass[Tx]{Catchup: c, at: at, limit: c.cfg.Limit, stored: at, save: true, saved: time.Now()}
	if c.cfg.Every > 0 {
		return p.reconcileEvery(ctx)
	}
	for ctx.Err() == nil {
		if err := p.follow(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// Reconcile reads the feed from a cursor to its present end, or from the beginning of the
// kept events, if the cursor is empty, and applies the missed ones. It ends where no
// event follows, or at an event that occurred a minute after the call or later, since a
// busy feed never ends. The stored cursor stays as it is; Run may be under way. A failure
// that may be temporary is tried again until ctx ends: then the report covers the work
// until then, and the error is ctx's.
func (c *Catchup[Tx]) Reconcile(ctx context.Context, after string) (Report, error) {
	p := &pass[Tx]{Catchup: c, at: after, limit: c.cfg.Limit}
	err := p.toEnd(ctx)
	return p.report, err
}

// load tries until it has read the cursor.
func (c *Catchup[Tx]) load(ctx context.Context) (at string, err error) {
	for try := 0; ; try++ {
		err := c.transact(ctx, func(ctx context.Context, tx Tx) (err error) {
			if at, err = c.cursors.Cursor(ctx, tx, c.cfg.Name); err == nil && at == "" && c.unnamed {
				err = c.refuseFormer(ctx, tx)
			}
			return err
		})
		if err == nil || errors.Is(err, ErrFormerName) || errors.Is(err, dberr.ErrUnmigrated) {
			return at, err
		}
		if !c.pause(ctx, try, "", fmt.Errorf("catchup: reading the cursor: %w", err), 0) {
			return "", err
		}
	}
}

// transact runs fn in a transaction without an event, which is given up in time: a connection
// can be dead without a word, and then nothing else would end it.
func (c *Catchup[Tx]) transact(ctx context.Context, fn func(ctx context.Context, tx Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.rcv.Timeout())
	defer cancel()
	return c.contained(ctx, "a transaction", func() error {
		return c.inTx(ctx, func(tx Tx) error {
			// Here, too, so that even an InTx that does not expect panics rolls back.
			return c.contained(ctx, "a cursor's store", func() error { return fn(ctx, tx) })
		})
	})
}

// refuseFormer keeps a feed that is there from starting over, and another one from going on
// from its cursor.
func (c *Catchup[Tx]) refuseFormer(ctx context.Context, tx Tx) error {
	former, err := c.cursors.Cursor(ctx, tx, formerName)
	if err == nil && former != "" {
		err = fmt.Errorf("%w: set Config.Name to %q if it is this feed's, or to %q to read the feed from its beginning", ErrFormerName, formerName, c.cfg.Name)
	}
	return err
}

func (c *Catchup[Tx]) log() *slog.Logger {
	if c.cfg.Logger != nil {
		return c.cfg.Logger
	}
	return slog.Default()
}

// hook contains a panic in a hook: it must not end the reading, nor the process.
func (c *Catchup[Tx]) hook(ctx context.Context, call func()) {
	defer func() {
		if v := recover(); v != nil {
			c.panicked(ctx, "catchup: a hook panicked", v)
		}
	}()
	call()
}

// ask contains a panic in the source, which may be the application's own, as may a Token and
// a Transport of a Client.
func (c *Catchup[Tx]) ask(ctx context.Context, after string, limit int, wait time.Duration) (page Page, err error) {
	err = c.contained(ctx, "the source", func() (err error) {
		page, err = c.source.Page(ctx, after, limit, wait)
		return err
	})
	return page, err
}

// contained makes an error of a panic in code that may be the application's own: the failure
// is tried again, and does not end the process.
func (c *Catchup[Tx]) contained(ctx context.Context, what string, call func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			c.panicked(ctx, "catchup: "+what+" panicked", v)
			err = fmt.Errorf("catchup: %s panicked with a %T", what, v)
		}
	}()
	return call()
}

// panicked logs a panic, and only the type of its value, which may hold an event.
func (c *Catchup[Tx]) panicked(ctx context.Context, text string, v any) {
	c.log().LogAttrs(ctx, slog.LevelError, text,
		slog.String("feed", c.cfg.Name), slog.String("panic", fmt.Sprintf("%T", v)), slog.String("stack", string(debug.Stack())))
}
