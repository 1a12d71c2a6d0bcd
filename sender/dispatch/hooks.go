package dispatch

import (
	"context"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/replay"
)

// Hooks are optional functions that the dispatcher calls. They may be called from many
// goroutines at once, and never inside a database transaction. They must not block, because
// the attempt or the dispatcher waits for them. A panic in a hook is logged and contained.
//
// A Claimed and a Result belong to the dispatcher: a hook changes nothing of them, and copies
// what it keeps, or has other goroutines read, after its return. The bytes of a Claimed.Body
// never change. A Recorded is the hook's own.
type Hooks struct {
	// AttemptStart is called before an attempt. If it returns a context that is not nil, the
	// attempt has that context's values, such as a trace's span. The end of that context does
	// not end the attempt.
	AttemptStart func(ctx context.Context, c *Claimed) context.Context

	// AttemptEnd is called after the attempt, before its result is recorded, with the values
	// of the context that AttemptStart has returned. It is not called for an attempt that a
	// drain gave up.
	AttemptEnd func(ctx context.Context, c *Claimed, r *Result)

	// PutOff is called when a delivery that was claimed is put off before an attempt, because
	// something is wrong on this side. It is looked at again after a pause, and put off again
	// while that is so. The log has the error, once a minute for each subscriber.
	PutOff func(ctx context.Context, p PutOff)

	// Stepped is called after each step's transaction, whether it succeeded or not. A
	// dispatcher that has nothing to do makes a step each Config.MaxIdle.
	Stepped func(ctx context.Context, s Stepped)

	// TakenOver is called once leases of a process that is gone were ended, with their
	// number. Their deliveries are attempted again.
	TakenOver func(ctx context.Context, leases int)

	// Recorded is called once a result was recorded, with the decision about it. If Lost is
	// set, nothing was changed: the lease was lost before, or a call that seemed to fail has
	// recorded the result. It is also called for attempts that a claim found interrupted.
	Recorded func(ctx context.Context, r *Recorded)

	// ReplayFinished is called once a replay has admitted or skipped all of its deliveries.
	// The last attempts may still be under way.
	ReplayFinished func(ctx context.Context, r replay.Replay)

	// Expanded is called once events were expanded into deliveries, with the numbers of
	// both.
	Expanded func(ctx context.Context, x Expanded)

	// Noticed is called once a notice was stored.
	Noticed func(ctx context.Context, n sender.Notice)

	// NetworkDown is called when our own network seems to be down: from the time since on,
	// hosts of several subscribers have failed at connecting, and nobody has answered.
	// Until NetworkUp such failures are not charged to the endpoints, and only a few
	// attempts at a time are made. since is a time of this process's clock.
	NetworkDown func(ctx context.Context, since time.Time)

	// NetworkUp is called when somebody answered again. since is the same as
	// at NetworkDown.
	NetworkUp func(ctx context.Context, since time.Time)

	// ProxyDown is called when one of Config.Proxies, by its name, seems to be failing:
	// from the time since on, two attempts or more have failed by its fault, and it has
	// made no tunnel. Until ProxyUp such failures are not charged to the endpoints, and
	// only a few attempts at a time go through the proxy. since is a time of this process's
	// clock.
	ProxyDown func(ctx context.Context, proxy string, since time.Time)

	// ProxyUp is called when the proxy has made a tunnel again, or when nothing has failed
	// by its fault for 15 minutes. since is the same as at ProxyDown.
	ProxyUp func(ctx context.Context, proxy string, since time.Time)

	// Restored is called once the store has noticed that its database was brought back to an
	// earlier state, or moved, and versions and positions go on above what may be lost (see
	// RestoreWatch). The store may have lost commits, or none: it cannot know.
	Restored func(ctx context.Context, r sender.Restoration)

	// Pruned is called at the end of each pass of pruning, with the numbers of all removed
	// records. It is not called if each kind of record has failed.
	Pruned func(ctx context.Context, p Pruned)
}

// PutOff tells of a delivery that was put off before an attempt.
type PutOff struct {
	Delivery *Claimed // without an Event, if that could not be read
	Reason   PutOffReason
	Pause    time.Duration // until it is looked at again
}

// PutOffReason is why a delivery is put off before an attempt.
type PutOffReason string

const (
	// PutOffEvent: its event could not be read.
	PutOffEvent PutOffReason = "event"
	// PutOffPayload: its data could not be made in the payload version of its subscription.
	PutOffPayload PutOffReason = "payload"
	// PutOffBody: the body that was made in that version could not be kept, or one that was
	// kept could not be read.
	PutOffBody PutOffReason = "body"
	// PutOffSecret: the subscriber's secret could not be read, or not be opened.
	PutOffSecret PutOffReason = "secret"
	// PutOffSettings: the subscription's URL or settings cannot be used: a value cannot be
	// opened, or a proxy is asked for that this process does not have.
	PutOffSettings PutOffReason = "settings"
	// PutOffProxy: the operator's proxy is failing, and is asked by a few attempts at a time.
	PutOffProxy PutOffReason = "proxy"
)

// PutOffReasons are all of them.
func PutOffReasons() []PutOffReason {
	return []PutOffReason{PutOffEvent, PutOffPayload, PutOffBody, PutOffSecret, PutOffSettings, PutOffProxy}
}

// Stepped tells of a step: one transaction that expands events, records results and claims
// deliveries.
type Stepped struct {
	Duration time.Duration // of the store's call: round trips, waits for locks, and the commit
	Err      error         // why the step failed; then it is tried again
	Expanded Expanded
	Results  int // that it recorded
	Claimed  int // deliveries
	// OnWire is how many attempts are under way, by the lane whose slots they use.
	OnWire [sender.Lanes]int
}
