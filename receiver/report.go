package receiver

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/surehook/surehook/dedup"
)

// begin calls the start hook. A hook that returns no context, or that panics,
// leaves ctx as it was.
func (r *Receiver[Tx]) begin(ctx context.Context, header http.Header) context.Context {
	out := ctx
	if hook := r.cfg.Hooks.Start; hook != nil {
		r.hook(ctx, func() {
			if c := hook(ctx, header); c != nil {
				out = c
			}
		})
	}
	return out
}

func (r *Receiver[Tx]) rejected(ctx context.Context, err *Error) {
	r.counts.add(&r.counts.Rejected)
	r.log().LogAttrs(ctx, err.level(), "receiver: request rejected", failureAttrs(err)...)
	if hook := r.cfg.Hooks.Rejected; hook != nil {
		r.hook(ctx, func() { hook(ctx, err) })
	}
}

func (r *Receiver[Tx]) failed(ctx context.Context, ev Event, err *Error) {
	r.counts.add(&r.counts.Failed)
	r.log().LogAttrs(ctx, err.level(), "receiver: event not applied", append(objectAttrs(ev), failureAttrs(err)...)...)
	if hook := r.cfg.Hooks.Failed; hook != nil {
		r.hook(ctx, func() { hook(ctx, ev, err) })
	}
}

func (r *Receiver[Tx]) taken(ctx context.Context, ev Event, res Result, cause error) {
	r.counts.add(r.counts.of(res))
	if res == DeadLettered {
		r.log().LogAttrs(ctx, slog.LevelError, "receiver: event set aside as a dead letter", append(objectAttrs(ev), slog.Any("error", cause))...)
		if hook := r.cfg.Hooks.DeadLettered; hook != nil {
			r.hook(ctx, func() { hook(ctx, ev, cause) })
		}
		return
	}
	r.logTaken(ctx, ev, res)
	var hook func(context.Context, Event)
	switch res {
	case Applied:
		hook = r.cfg.Hooks.Applied
	case Duplicate:
		hook = r.cfg.Hooks.Duplicate
	case Stale:
		hook = r.cfg.Hooks.Stale
	case Reapplied:
		hook = r.cfg.Hooks.Reapplied
	case Ignored:
		hook = r.cfg.Hooks.Ignored
	case Recorded:
		hook = r.cfg.Hooks.Recorded
	}
	if hook != nil {
		r.hook(ctx, func() { hook(ctx, ev) })
	}
}

// logTaken builds a record only if its level is enabled: nearly all requests come this way.
func (r *Receiver[Tx]) logTaken(ctx context.Context, ev Event, res Result) {
	log, level := r.log(), slog.LevelDebug
	unknown := res == Ignored && log.Enabled(ctx, slog.LevelInfo) && r.unknown.first(ev.Type)
	if res == Stale || res == Reapplied || unknown {
		level = slog.LevelInfo
	}
	switch {
	case !log.Enabled(ctx, level):
	case unknown:
		log.LogAttrs(ctx, level, "receiver: no route matches this type: its events are acknowledged, and nothing is done; this is said once for each type",
			eventAttrs(ev)...)
	case res == Stale:
		log.LogAttrs(ctx, level, "receiver: stale event skipped: its handler did not run, because its object's version or a newer one had been applied",
			objectAttrs(ev)...)
	default:
		log.LogAttrs(ctx, level, "receiver: event taken", append(eventAttrs(ev), slog.String("result", string(res)))...)
	}
}

func (r *Receiver[Tx]) hook(ctx context.Context, call func()) {
	err := contain(func() error {
		call()
		return nil
	})
	if err != nil {
		r.log().LogAttrs(ctx, slog.LevelError, "receiver: a hook panicked", append([]slog.Attr{slog.Any("error", err)}, stackAttr(err)...)...)
	}
}

func eventAttrs(ev Event) []slog.Attr {
	return []slog.Attr{
		slog.String("event_id", ev.ID), slog.String("event_type", ev.Type),
		slog.String("scope", ev.Scope), slog.String("key_id", ev.Verified.KeyID),
	}
}

// objectAttrs also say what the event is about: whoever looks for the cause begins there.
func objectAttrs(ev Event) []slog.Attr {
	if ev.Object == (dedup.Object{}) {
		return eventAttrs(ev)
	}
	return append(eventAttrs(ev), slog.String("object_type", ev.Object.Type), slog.String("object_id", ev.Object.ID), slog.Int64("version", ev.Version))
}

// level is Error for a fault on this side, and Info for an event that somebody else is
// applying right now: nothing is wrong with that.
func (e *Error) level() slog.Level {
	switch {
	case e.Status() == http.StatusInternalServerError, e.Reason == ReasonApply: // whatever status a wrapped handler has chosen
		return slog.LevelError
	case e.Reason == ReasonInWork:
		return slog.LevelInfo
	}
	return slog.LevelWarn
}

func failureAttrs(err *Error) []slog.Attr {
	attrs := []slog.Attr{
		slog.String("reason", string(err.Reason)), slog.Int("status", err.Status()), slog.Any("error", err.Err),
	}
	if err.Tried != nil {
		attrs = append(attrs, slog.Any("tried", err.Tried))
	}
	if err.Diagnosis != nil {
		attrs = append(attrs, slog.Any("diagnosis", err.Diagnosis))
	}
	return append(attrs, stackAttr(err)...)
}

func stackAttr(err error) []slog.Attr {
	var p *panicError
	if errors.As(err, &p) {
		return []slog.Attr{slog.String("stack", string(p.stack))}
	}
	return nil
}
