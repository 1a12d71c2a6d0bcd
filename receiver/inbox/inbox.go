package inbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"

	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/signing"
)

// Inbox records events and applies them afterwards. It is safe for concurrent use and
// starts nothing before [Inbox.Run].
type Inbox[Tx any] struct {
	rcv   *receiver.Receiver[Tx]
	inTx  receiver.InTx[Tx]
	store Store[Tx]
	todo  receiver.Work[Tx]
	cfg   Config

	running atomic.Bool
	wake    chan struct{} // something may be due
}

// New makes an Inbox whose events are verified by rcv and applied with w, as
// rcv.Handler(w) would do at once. inTx and store must be for rcv's database. Events are
// recorded and removed in rcv's transactions, and claimed in transactions of inTx. A nil
// cfg means all defaults. All problems are reported at once.
//
// The events that w gets have neither Verified nor Attempt: they were verified when
// they were recorded.
func New[Tx any](rcv *receiver.Receiver[Tx], inTx receiver.InTx[Tx], store Store[Tx], w receiver.Work[Tx], cfg *Config) (*Inbox[Tx], error) {
	in := &Inbox[Tx]{rcv: rcv, inTx: inTx, store: store, todo: w, cfg: cfg.withDefaults(), wake: make(chan struct{}, 1)}
	errs := []error{in.cfg.validate(), w.Check()}
	for _, need := range []struct {
		missing bool
		what    string
	}{
		{rcv == nil, "the receiver is nil: make one with receiver.New"},
		{inTx == nil, "the InTx is nil: give the receiver's"},
		{store == nil, "the store is nil: give one of the packages beside this one"},
	} {
		if need.missing {
			errs = append(errs, errors.New("inbox: "+need.what))
		}
	}
	if rcv != nil {
		in.cfg.Timeout = cmp.Or(in.cfg.Timeout, max(defaultTimeout, rcv.Timeout()))
	}
	// A negative lease is reported already.
	if in.cfg.Lease >= 0 && in.cfg.Lease <= in.cfg.Timeout {
		errs = append(errs, fmt.Errorf("inbox: Lease is %v and Timeout %v: it must be longer, or others apply an event that is still being applied", in.cfg.Lease, in.cfg.Timeout))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	in.cfg.Policy.Schedule = guarded{in.cfg.Policy.Schedule, func(v any) {
		in.panicked(context.Background(), "inbox: the Policy's Schedule panicked; the default one is used", v)
	}}
	return in, nil
}

// Handler answers requests by recording their events. It must come before any
// middleware that reads bodies. An event is answered with 200 once it is committed to
// the inbox; one that cannot be recorded, with 503. Run need not be under way, nor run
// in the same process.
func (in *Inbox[Tx]) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fresh := false
		defer in.wakeIf(&fresh)
		in.rcv.RecordHandler(in.record(&fresh)).ServeHTTP(w, r)
	})
}

// Receive is Handler for programs that have bytes and no net/http; see
// [receiver.Receiver.Receive].
func (in *Inbox[Tx]) Receive(ctx context.Context, m signing.Message) (receiver.Result, error) {
	fresh := false
	defer in.wakeIf(&fresh)
	return in.rcv.ReceiveToRecord(ctx, m, in.record(&fresh))
}

// Status counts the events that Run is to apply. Its cost grows with their number.
func (in *Inbox[Tx]) Status(ctx context.Context) (s Status, err error) {
	err = in.inTx(ctx, func(tx Tx) (err error) {
		s, err = in.store.StatusTx(ctx, tx, in.rcv.Scope())
		return err
	})
	return s, err
}

// record records the event of one request. fresh tells whether it was new.
func (in *Inbox[Tx]) record(fresh *bool) receiver.RecordFunc[Tx] {
	return func(ctx context.Context, tx Tx, ev receiver.Event) (_ bool, err error) {
		*fresh, err = in.store.RecordTx(ctx, tx, Record{
			Scope: ev.Scope, ID: ev.ID, Line: in.line(ev), Type: ev.Type, Version: ev.Version, Body: ev.Body,
			OneScope: in.rcv.Scope() != "",
		})
		return *fresh, err
	}
}

// line returns the same line for events that must be applied one after the other. No type
// of an object has a slash, so two objects never share a line.
func (in *Inbox[Tx]) line(ev receiver.Event) string {
	if in.cfg.Ordered && ev.Object.ID != "" {
		return "object/" + ev.Object.Type + "/" + ev.Object.ID
	}
	return "event/" + ev.ID
}

// wakeIf is called after the commit. A refused request wakes no worker: a flood of forged
// requests must not become a flood of queries. Each request has a flag of its own: one that
// all share would be taken by a request that ends before the commit.
func (in *Inbox[Tx]) wakeIf(fresh *bool) {
	if *fresh {
		in.wakeUp()
	}
}

func (in *Inbox[Tx]) wakeUp() {
	select {
	case in.wake <- struct{}{}:
	default: // it is awake already
	}
}

func (in *Inbox[Tx]) log() *slog.Logger {
	if in.cfg.Logger != nil {
		return in.cfg.Logger
	}
	return slog.Default()
}
