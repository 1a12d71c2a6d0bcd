package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
)

// started calls the hook, and returns the context for the function.
func (j *Jobs[Tx]) started(ctx context.Context, job Job) context.Context {
	hook := j.cfg.Hooks.Started
	if hook == nil {
		return ctx
	}
	j.guarded(ctx, "Started", func() {
		if c := hook(ctx, job); c != nil {
			ctx = c
		}
	})
	return ctx
}

// innermost is the error that others were wrapped around, whose type says most.
func innermost(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

func (j *Jobs[Tx]) ended(ctx context.Context, t Try) {
	if t.Err != nil {
		level, message := slog.LevelWarn, "a job's try failed"
		if !t.Lost && (t.Job.Status == Cancelled || t.Job.Status == Queued && errors.Is(context.Cause(ctx), ErrDraining)) {
			level, message = slog.LevelInfo, "a job's try was stopped"
		}
		// The error's text comes from the kind. It may contain the owner's
		// data, so it is not logged: Config.Logger says where it is.
		j.cfg.Logger.Log(ctx, level, message, "kind", t.Job.Kind, "job", t.Job.ID, "status", t.Job.Status,
			"tries", t.Job.Tries, "lost", t.Lost, "error_type", fmt.Sprintf("%T", innermost(t.Err)))
	}
	if hook := j.cfg.Hooks.Ended; hook != nil {
		j.guarded(ctx, "Ended", func() { hook(ctx, t) })
	}
}

func (j *Jobs[Tx]) finished(ctx context.Context, job Job) {
	if hook := j.cfg.Hooks.Finished; hook != nil {
		j.guarded(ctx, "Finished", func() { hook(ctx, job) })
	}
}

// guarded calls a hook and contains its panics. It logs the type of the panic's value
// alone: the value may well contain an input.
func (j *Jobs[Tx]) guarded(ctx context.Context, name string, hook func()) {
	defer func() {
		if v := recover(); v != nil {
			j.cfg.Logger.ErrorContext(ctx, "a hook panicked", "hook", name, "panic", fmt.Sprintf("%T", v))
		}
	}()
	hook()
}
