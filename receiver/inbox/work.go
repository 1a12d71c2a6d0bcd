package inbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/surehook/surehook/internal/ident"
	"github.com/surehook/surehook/receiver"
)

// work brings one claimed event through the receiver's pipeline.
func (in *Inbox[Tx]) work(ctx context.Context, c Claim) {
	var err error
	if c.Attempt > in.cfg.MaxAttempts { // those before it ended with their process
		err = fmt.Errorf("%s ended without a result", attempts(c.Attempt-1))
	} else if _, err = in.rcv.Apply(ctx, in.trusted(c), in.todo); err == nil {
		in.next()
		return
	}
	if errors.Is(err, ErrLeaseLost) {
		in.leaseLost(ctx, c)
		return
	}
	var reason receiver.Reason
	permanent := false
	if failed, ok := errors.AsType[*receiver.Error](err); ok {
		reason, permanent, err = failed.Reason, failed.Permanent(), failed
	}
	after, giveUp := decide(in.cfg.Policy, in.cfg.MaxAttempts, c, reason, rand.Float64())
	if permanent || giveUp {
		cause := err
		if !permanent {
			cause = fmt.Errorf("given up after %s: %w", attempts(c.Attempt), err)
		}
		_, kept := in.rcv.SetAside(ctx, in.trusted(c), in.todo, cause)
		switch {
		case kept == nil:
			in.next()
			return
		case errors.Is(kept, ErrLeaseLost):
			in.leaseLost(ctx, c)
			return
		}
		err = errors.Join(err, fmt.Errorf("inbox: setting the event aside: %w", kept))
		after = max(in.cfg.Policy.WithDefaults().Schedule.Delay(c.Attempt), in.cfg.Poll)
	}
	in.retry(ctx, c, err, after)
}

// attempts counts them in words.
func attempts(n int) string {
	if n == 1 {
		return "1 attempt"
	}
	return fmt.Sprintf("%d attempts", n)
}

func (in *Inbox[Tx]) trusted(c Claim) receiver.Trusted[Tx] {
	return receiver.Trusted[Tx]{
		Body: c.Body, Scope: c.Scope, ID: c.ID, Type: c.Type, Timeout: in.cfg.Timeout,
		Then: func(ctx context.Context, tx Tx) error { return in.store.FinishTx(ctx, tx, c) },
	}
}

// next wakes a worker for the line's next event.
func (in *Inbox[Tx]) next() {
	if in.cfg.Ordered {
		in.wakeUp()
	}
}

func (in *Inbox[Tx]) retry(ctx context.Context, c Claim, err error, after time.Duration) {
	ctx = context.WithoutCancel(ctx)
	bounded, cancel := context.WithTimeout(ctx, storing)
	defer cancel()
	reason := ident.MadeStorable(err.Error(), maxReason)
	stored := in.transact(bounded, func(tx Tx) error { return in.store.RetryTx(bounded, tx, c, after, reason) })
	switch {
	case errors.Is(stored, ErrLeaseLost):
		in.leaseLost(ctx, c)
		return
	case stored != nil: // it is due when its lease ends
		in.log().LogAttrs(ctx, slog.LevelError, "inbox: a failure could not be recorded", append(attrs(c), slog.Any("error", stored))...)
		return
	}
	level, text := slog.LevelWarn, "inbox: an event could not be applied, and will be tried again"
	failed, ok := errors.AsType[*receiver.Error](err)
	switch {
	case errors.Is(err, receiver.ErrNotKept):
		level, text = slog.LevelError, "inbox: an event can never be applied, and stays in the inbox, as no dead letter can be kept"
	case ok && failed.Reason == receiver.ReasonInWork: // nothing is wrong with that
		level, text = slog.LevelInfo, "inbox: an event is being applied already, and will be looked at again"
	}
	in.log().LogAttrs(ctx, level, text,
		append(attrs(c), slog.Duration("after", after), slog.Any("error", err))...)
	if hook := in.cfg.Hooks.Retry; hook != nil {
		in.hook(ctx, func() { hook(ctx, c, err, after) })
	}
}

func (in *Inbox[Tx]) leaseLost(ctx context.Context, c Claim) {
	in.log().LogAttrs(ctx, slog.LevelWarn, "inbox: an attempt outlived its lease and was rolled back", attrs(c)...)
	if hook := in.cfg.Hooks.LeaseLost; hook != nil {
		in.hook(ctx, func() { hook(ctx, c) })
	}
}

// hook contains a panic in a hook: it must neither end the process nor keep a worker's slot.
func (in *Inbox[Tx]) hook(ctx context.Context, call func()) {
	defer func() {
		if v := recover(); v != nil {
			in.panicked(ctx, "inbox: a hook panicked", v)
		}
	}()
	call()
}

// panicked logs a panic, and only the type of its value, which may hold an event.
func (in *Inbox[Tx]) panicked(ctx context.Context, text string, v any) {
	in.log().LogAttrs(ctx, slog.LevelError, text,
		slog.String("panic", fmt.Sprintf("%T", v)), slog.String("stack", string(debug.Stack())))
}

func attrs(c Claim) []slog.Attr {
	return []slog.Attr{
		slog.String("event_id", c.ID), slog.String("event_type", c.Type),
		slog.String("scope", c.Scope), slog.Int("attempt", c.Attempt),
	}
}
