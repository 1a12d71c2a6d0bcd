package dispatch

import (
	"cmp"
	"fmt"
	"time"

	"github.com/surehook/surehook/backoff"
	"github.com/surehook/surehook/sender"
)

// Policy decides what an attempt's outcome does to its delivery and to its subscription. It
// is a value, and its decisions depend on their arguments alone.
//
// If the server closed an idle connection just when the attempt was made, or refused the
// request without processing it (Result.ClosedIdle), the attempt is made again after about
// a second, and does not count. No two attempts in a row are spared.
//
// Where later versions of an object wait for a delivery (sender.OrderObject), it is given up
// after its subscription's HoldTries and HoldFor, too.
//
// A subscription may have a schedule, a horizon and a DisableAfter of its own, within Own.
// Jitter, Retry-After and the rules about failures that are not the endpoint's are the same
// for all. If the subscription chose sender.GoneStops, the answer 410 Gone disables it, and
// its delivery is not given up, even if this was the last attempt of its schedule: it is
// held.
//
// A single attempt (Live.Single) leaves its delivery delivered, whatever its result. It is
// made again if it failed because of our own network, our own machine or the operator's
// proxy, and if it was lost with its process, because nobody knows whether it was made.
type Policy struct {
	// Backoff says when to try again and when to give up. Its zero
	// value is backoff.Reference.
	Backoff backoff.Policy

	// FastAnswer is how soon an endpoint must answer to be proven. Zero: 1 s.
	FastAnswer time.Duration

	// DisableAfter is for how long a subscription must have been failing, without one
	// success, with at least 5 failures and no silence of more than 24 h between them, to be
	// disabled. Its owner and the operator are warned by the first failure after half, after
	// three quarters and after nine tenths of that time. If that time becomes longer
	// meanwhile, the shares of the longer one count. The subscription is disabled no sooner
	// than a tenth of that time after the last warning, so that there is a warning first even
	// if it had no attempts for a while. Zero: 120 h. Negative: it is never disabled, and
	// nobody is warned.
	DisableAfter time.Duration

	// Own are the bounds of what subscriptions have of their own: see sender.PolicyBounds.
	// The zero value allows nothing.
	Own sender.PolicyBounds

	mostTries int // of a schedule of a subscription's own; 0: not bounded
}

const (
	defaultFastAnswer   = time.Second
	defaultDisableAfter = 120 * time.Hour
)

// A schedule stands still for at most this many times its horizon.
const mostHorizonsStood = 2

// Decide is the function that a Batch carries. now is the database's time.
func (p Policy) Decide(l Live, h sender.Health, r Result, now time.Time) Decision {
	common, ours := p, r.ProxyFailed
	if l.Own != nil {
		p = p.within(l.Own)
	}
	if r.OwnNetwork || r.ProxyFailed {
		if d, ok := p.standStill(l, h, r, now); ok {
			return d
		}
		// A horizon of the subscription's own may end the delivery earlier than the common one
		// would. That does not make the failure the endpoint's.
		_, stands := common.standStill(l, h, r, now)
		ours = ours || stands
	}
	if spared(l.Spared, &r) {
		return spare(h, r, now)
	}
	d := p.deliver(l, r, now)
	d.Health = h
	if !ours || r.Class == sender.ClassNone {
		d.Health = p.health(h, r, now)
	}
	if l.GoneStops && gone(r) {
		return p.stop(d, r, now)
	}
	// A dead letter of a notice makes no notice: it could become a dead letter too, and so
	// on without end. Warnings come to an end.
	if d.Status == sender.StatusDeadLettered && !l.Notice {
		d.Notices = append(d.Notices, sender.Notice{Kind: sender.NoticeDeadLettered, Detail: fmt.Sprintf(
			"it is not attempted any more: %s without a success, the last one: %s", attempts(l.Number), failure(r))})
	}
	if r.Class != sender.ClassInterrupted && !ours {
		p.warn(&d, r, now)
	}
	return d
}

func (p Policy) deliver(l Live, r Result, now time.Time) Decision {
	if r.Class == sender.ClassNone || l.Single && r.Class != sender.ClassInterrupted {
		return Decision{Status: sender.StatusDelivered}
	}
	schedule := p.Backoff
	if l.HoldFor > 0 {
		schedule.Horizon = min(l.HoldFor, schedule.WithDefaults().Horizon)
	}
	// A delivery that is put off before an attempt can stand for longer than a failing attempt may.
	age := now.Sub(l.First) - min(l.Stood, p.mostStood())
	delay, again := schedule.Next(backoff.State{
		Attempt: l.Tries, Age: age, Outcome: outcome(r), RetryAfter: r.RetryAfter,
	}, r.Chance)
	if p.mostTries > 0 && l.Tries >= p.mostTries-1 && r.Class != sender.ClassInterrupted {
		delay = schedule.WithDefaults().Horizon - max(age, 0)
	}
	switch {
	case again && (l.Single || l.HoldTries == 0 || l.Tries < l.HoldTries):
		return Decision{Status: sender.StatusAwaitingRetry, Due: now.Add(delay)}
	case l.Single:
		return Decision{Status: sender.StatusDelivered}
	}
	return Decision{Status: sender.StatusDeadLettered}
}

// standStill decides on an attempt that failed because our own network or the proxy fails.
// It decides as if the attempt had not been made, for as long as a schedule may stand
// still. If ok is false, the attempt counts in the schedule like any other.
func (p Policy) standStill(l Live, h sender.Health, r Result, now time.Time) (d Decision, ok bool) {
	if r.Class == sender.ClassNone || r.Class == sender.ClassInterrupted {
		return Decision{}, false
	}
	// The age does not matter, because it stands still, even for an attempt that would have
	// been the last. The delay is one of the first two, so that deliveries go out soon
	// after the network or the proxy is back.
	delay, _ := p.Backoff.Next(backoff.State{Attempt: min(l.Tries, 2)}, r.Chance)
	due := now.Add(delay)
	stands := max(0, due.Sub(r.StartedAt))
	if l.Stood+stands > p.mostStood() {
		return Decision{}, false
	}
	return Decision{Status: sender.StatusAwaitingRetry, Due: due, Health: h, Uncounted: true, Stands: stands}, true
}

// mostStood is for how long a schedule may stand still.
func (p Policy) mostStood() time.Duration {
	return mostHorizonsStood * p.Backoff.WithDefaults().Horizon
}

func outcome(r Result) backoff.Outcome {
	if r.Class == sender.ClassInterrupted {
		return backoff.Interrupted
	}
	return backoff.Failed
}

// failure says for people how an attempt failed.
func failure(r Result) string {
	switch {
	case r.StatusCode != 0:
		return fmt.Sprintf("%s, answered %d", r.Class, r.StatusCode)
	case r.ProxyFailed:
		return fmt.Sprintf("%s, %s", r.Class, r.Error)
	}
	return string(r.Class)
}

// attempts counts them in words.
func attempts(n int) string {
	if n == 1 {
		return "1 attempt"
	}
	return fmt.Sprintf("%d attempts", n)
}

func (p Policy) fastAnswer() time.Duration { return cmp.Or(p.FastAnswer, defaultFastAnswer) }
