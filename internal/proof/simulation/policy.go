package simulation

import (
	"cmp"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// The policies that subscriptions have of their own: a schedule, a horizon, a time until
// disabling, and what 410 means. The rules are said here once more, as the documentation has
// them, and not by dispatch.Policy.

const longestHorizon = 72 * time.Hour

// mostOwnTries is more than any schedule of drawPolicy comes to.
const mostOwnTries = 200

// jitter is the fifth by which a delay may be shorter or longer.
const jitter = 5

func ownPolicies(horizon time.Duration) sender.PolicyBounds {
	return sender.PolicyBounds{Allowed: true, MinDelay: time.Second, MaxTries: mostOwnTries, MaxHorizon: horizon, MaxDisableAfter: 30 * 24 * time.Hour}
}

// drawPolicy gives some settings a policy of their own.
func (w *world) drawPolicy(s *sender.Settings) {
	if w.rand.IntN(2) == 0 {
		s.Gone = sender.GoneStops
	}
	if w.rand.IntN(2) > 0 {
		return
	}
	horizon := w.config.Policy.Backoff.Horizon
	if w.rand.IntN(3) > 0 { // often so short that deliveries come to it
		horizon = w.between(max(time.Minute, horizon/100), horizon/2)
		s.Horizon = horizon
	}
	if w.rand.IntN(2) == 0 {
		s.DisableAfter = w.between(time.Hour, 10*24*time.Hour)
	}
	for range w.rand.IntN(4) {
		s.RetryDelays = append(s.RetryDelays, w.between(horizon/40, horizon/4))
	}
	if s.Horizon == 0 && len(s.RetryDelays) > 0 {
		s.Horizon = horizon // otherwise the tries are counted over the longest horizon
	}
}

// horizon is when the deliveries of a subscription are given up.
func (s *subscription) horizon() time.Duration {
	horizon := cmp.Or(s.settings.Horizon, s.w.config.Policy.Backoff.Horizon)
	if hold := s.settings.HoldFor; hold > 0 {
		return min(hold, horizon)
	}
	return horizon
}

// leastDelay is how long a delivery that failed waits at least.
func (s *subscription) leastDelay() time.Duration {
	least := time.Minute // after the first attempt, by the schedule of all
	if own := s.settings.RetryDelays; len(own) > 0 {
		least = slices.Min(own)
	}
	return least - least/jitter
}

// disableAfter is for how long a subscription fails before it is disabled.
func (s *subscription) disableAfter() time.Duration {
	if own := s.settings.DisableAfter; own > 0 {
		return own
	}
	return s.w.config.Policy.DisableAfter
}

// checkOwnDelay checks that a delivery of a subscription with a schedule of its own does not
// wait longer than that says.
func (w *world) checkOwnDelay(d *delivery, r *dispatch.Result, dec *dispatch.Decision) {
	own := d.sub.settings.RetryDelays
	p := d.posts[r.Number]
	if len(own) == 0 || dec.Status != sender.StatusAwaitingRetry || dec.Spared || dec.Stands > 0 || r.Class == sender.ClassInterrupted || p != nil && p.retryAfter > 0 {
		return
	}
	w.counts["own schedule"]++
	most := slices.Max(own)
	most += most / jitter
	if wait := dec.Due.Sub(w.now); wait > most {
		w.violated("I8", "attempt %d of %s failed, and the next one is due in %v, beyond %v, as its subscription's own schedule says", r.Number, d.name, wait, most)
	}
}

// checkGone checks that 410 stops a subscription if, and only if, its owner wants that.
func (w *world) checkGone(d *delivery, r *dispatch.Result, dec *dispatch.Decision) {
	stops := d.sub.stops(r)
	if is := dec.Disable == sender.DisabledByGone; is && !stops || !is && stops && !r.OwnNetwork && !w.stoppedBefore(d) {
		w.violated("I1", "attempt %d of %s was answered %d, and that stops its subscription: %v", r.Number, d.name, r.StatusCode, is)
	}
	if stops && dec.Status == sender.StatusDeadLettered {
		w.violated("I1", "%s was answered 410, which stops its subscription, and it is given up", d.name)
	}
	if stops {
		w.counts["gone"]++
	}
}

// stops tells whether a result stops a subscription, instead of counting as a failure.
func (s *subscription) stops(r *dispatch.Result) bool {
	return s.settings.Gone == sender.GoneStops && r.StatusCode == 410 && r.Class == sender.ClassStatus
}

// stoppedBefore tells whether nothing is left to be stopped: a decision disables an active
// subscription alone.
func (w *world) stoppedBefore(d *delivery) bool {
	return d.sub.status != sender.SubscriptionActive || w.overtaken(d.event, d.sub) || d.mayCancel
}
