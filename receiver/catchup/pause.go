package catchup

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/surehook/surehook/backoff"
	"github.com/surehook/surehook/receiver"
)

// pause waits before the next try, and returns false if ctx has ended. try counts
// from 0; atLeast is what the sender has asked for.
func (c *Catchup[Tx]) pause(ctx context.Context, try int, event string, err error, atLeast time.Duration) bool {
	if ctx.Err() != nil {
		return false
	}
	d := backoff.Exponential{Base: c.cfg.RetryMin, Max: c.cfg.RetryMax}.Delay(try + 1)
	d = max(backoff.Equal().Apply(d, rand.Float64()), min(atLeast, maxRetryAfter))
	level, text, hook := slog.LevelWarn, "catchup: it failed, and will be tried again", c.cfg.Hooks.Retry
	if failed, ok := errors.AsType[*receiver.Error](err); ok && failed.Reason == receiver.ReasonInWork {
		level, text, hook = slog.LevelDebug, "catchup: the event is being applied already, and is looked at again", nil
	}
	c.log().LogAttrs(ctx, level, text,
		slog.String("feed", c.cfg.Name), slog.String("event_id", event), slog.Duration("pause", d), slog.Any("error", err))
	if hook != nil {
		c.hook(ctx, func() { hook(ctx, event, err, d) })
	}
	return sleep(ctx, d)
}

// maxRetryAfter bounds what a sender can ask for.
const maxRetryAfter = time.Hour

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
