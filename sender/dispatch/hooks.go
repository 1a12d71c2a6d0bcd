package dispatch

import (
	"context"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/replay"
)

// Hooks are optional functions that the dispatcher calls. They may be called
// from many goroutines at once, never inside a database transaction, and must
// not block: the attempt, or the dispatcher, waits for them. A panic in one is
// logged and contained.
type Hooks struct {
	// AttemptStart is called before an attempt. The context that it returns, if it
	// is not nil, is the attempt's: it can carry a trace's span.
	AttemptStart func(ctx context.Context, c *Claimed) context.Context

	// AttemptEnd is called after the attempt, before its result is recorded.
	AttemptEnd func(ctx context.Context, c *Claimed, r *Result)

	// Recorded is called once a result was recorded, with what was decided. If
	// Lost is set, the lease was lost before and nothing was changed. Attempts
	// that a claim found interrupted come here too.
	Recorded func(ctx context.Context, r *Recorded)

	// ReplayFinished is called once a replay has admitted or skipped all that it had
	// to send. The last attempts may still be under way.
	ReplayFinished func(ctx context.Context, r replay.Replay)

	// Expanded is called once deliveries were made of events, with how many.
	Expanded func(ctx context.Context, x Expanded)

	// Noticed is called once a notice was stored.
	Noticed func(ctx context.Context, n sender.Notice)

	// NetworkDown is called when our own network seems to be down: hosts of several
	// subscribers failed at connecting since then, and nobody answered. Such
	// failures are not charged to the endpoints, and only a few attempts at a time
	// are made, until NetworkUp. since is a time of this process's clock.
	NetworkDown func(ctx context.Context, since time.Time)

	// NetworkUp is called when somebody answered again. since is the same as
	// at NetworkDown.
	NetworkUp func(ctx context.Context, since time.Time)

	// ProxyDown is called when one of Config.Proxies, by its name, seems to be
	// failing: two attempts or more have failed by its fault since then, and it has made no
	// tunnel meanwhile. Such failures are not charged to the endpoints, and only a few
	// attempts at a time go through it, until ProxyUp. since is a time of this process's
	// clock.
	ProxyDown func(ctx context.Context, proxy string, since time.Time)

	// ProxyUp is called when it has made a tunnel again, or when nothing has failed by its
	// fault for 15 minutes. since is the same as at ProxyDown.
	ProxyUp func(ctx context.Context, proxy string, since time.Time)

	// Pruned is called at the end of each pass of pruning, with what it has removed
	// in all.
	Pruned func(ctx context.Context, p Pruned)
}
