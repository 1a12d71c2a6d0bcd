package dispatch

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/surehook/surehook/sender"
)

// refused logs why Run does not begin, since a caller may not look at what it returns.
func (d *Dispatcher) refused(ctx context.Context, err error) error {
	if err != nil {
		d.cfg.Logger.ErrorContext(ctx, "the dispatcher does not run: nothing is delivered", "error", err)
	}
	return err
}

// logStart names the process by the number that others log if it is gone.
func (d *Dispatcher) logStart(ctx context.Context, process int64) {
	d.cfg.Logger.InfoContext(ctx, "the dispatcher has started", "process", process, "store", fmt.Sprintf("%T", d.store), "slots", d.cfg.Slots,
		"timeout", d.cfg.Timeout, "lease", d.cfg.Lease, "drain_timeout", d.cfg.DrainTimeout)
}

func (d *Dispatcher) logEnd(ctx context.Context, err error) error {
	if err != nil {
		d.cfg.Logger.WarnContext(ctx, "the dispatcher has stopped", "error", err)
		return err
	}
	d.cfg.Logger.InfoContext(ctx, "the dispatcher has stopped")
	return nil
}

// noticeWords say what has happened. A notice's detail says why.
func noticeWords(n sender.Notice) string {
	switch n.Kind {
	case sender.NoticeDeadLettered:
		return "a delivery is a dead letter"
	case sender.NoticeFailing:
		return "a subscription is failing"
	case sender.NoticeDisabled:
		return "a subscription was disabled, and its deliveries are held until it is resumed"
	case sender.NoticeNetwork:
		return "our own network or machine fails"
	case sender.NoticeProxy:
		return "a proxy is failing"
	case sender.NoticeReplayFinished:
		return "a replay has come to its end"
	}
	return "a notice"
}

// logFailure logs an attempt that failed. The event and the subscription name the delivery.
func (p *pump) logFailure(ctx context.Context, r *Recorded) {
	level, message := slog.LevelDebug, "an attempt failed"
	if r.beginsStreak() {
		level, message = slog.LevelWarn, "a subscription's endpoint begins to fail; later failures are logged at Debug"
	}
	log := p.d.cfg.Logger
	if !log.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("event_id", r.Event.ID), slog.String("event_type", r.Event.Type), slog.String("subscription_id", r.Target.Subscription),
		slog.String("subscriber_id", r.Target.Subscriber), slog.Int("attempt", r.Result.Number), slog.String("error_class", string(r.Result.Class)),
	}
	if r.Result.StatusCode != 0 {
		attrs = append(attrs, slog.Int("status_code", r.Result.StatusCode))
	}
	if r.Decision.Status == sender.StatusAwaitingRetry {
		attrs = append(attrs, slog.String("next_attempt_at", r.Decision.Due.UTC().Format(time.RFC3339)))
	}
	log.LogAttrs(ctx, level, message, attrs...)
}

// beginsStreak tells whether a failed attempt is its subscription's first: ever, since its
// last success, or after a long silence. A failure that was spared, or that our own network or
// proxy is to blame for, does not count.
func (r *Recorded) beginsStreak() bool {
	counts := r.Result.Class != sender.ClassInterrupted && !r.Result.OwnNetwork && !r.Result.ProxyFailed && !r.Decision.Uncounted
	return counts && r.Decision.Health.Streak == 1
}
