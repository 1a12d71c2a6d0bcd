package dispatch

import (
	"cmp"
	"net/http"
	"time"

	"github.com/surehook/surehook/backoff"
	"github.com/surehook/surehook/sender"
)

// mostShown bounds EffectivePolicy.Tries.
const mostShown = 100

// ownSchedule has the delays of a subscription. A stored schedule may be older than the
// bounds.
type ownSchedule struct {
	delays []time.Duration
	least  time.Duration
}

func (s *ownSchedule) Delay(attempt int) time.Duration {
	return max(s.delays[min(max(attempt, 1), len(s.delays))-1], s.least)
}

// within is the policy with what settings have of their own, within the bounds.
func (p Policy) within(s *sender.Settings) Policy {
	if !p.Own.Allowed {
		return p
	}
	bounds := p.Own.WithDefaults()
	if len(s.RetryDelays) > 0 {
		p.Backoff.Schedule, p.mostTries = &ownSchedule{s.RetryDelays, bounds.MinDelay}, bounds.MaxTries
	}
	if s.Horizon > 0 {
		p.Backoff.Horizon = min(s.Horizon, bounds.MaxHorizon)
	}
	switch {
	case s.DisableAfter > 0:
		p.DisableAfter = min(s.DisableAfter, bounds.MaxDisableAfter)
	case s.DisableAfter < 0 && bounds.Never:
		p.DisableAfter = sender.NeverDisable
	case s.DisableAfter < 0:
		p.DisableAfter = bounds.MaxDisableAfter
	}
	return p
}

// Of is what the policy does about the failures of a subscription that has these settings.
// Under sender.OrderObject, HoldTries and HoldFor may end it sooner.
func (p Policy) Of(s sender.Settings) sender.EffectivePolicy {
	e := sender.EffectivePolicy{Gone: s.Gone, Own: s.Gone != sender.GoneFails}
	if s.HasPolicy() {
		e.Own = e.Own || p.Own.Allowed
		p = p.within(&s)
	}
	retries := p.Backoff.WithDefaults()
	e.Horizon, e.DisableAfter = retries.Horizon, max(cmp.Or(p.DisableAfter, defaultDisableAfter), sender.NeverDisable)
	for at := time.Duration(0); len(e.Tries) < mostShown; {
		e.Tries = append(e.Tries, at)
		if at == e.Horizon {
			break
		}
		left := e.Horizon - at
		delay := min(retries.Schedule.Delay(len(e.Tries)), left)
		if p.mostTries > 0 && len(e.Tries) >= p.mostTries-1 {
			delay = left
		}
		at += delay
	}
	return e
}

// PolicyOf is what the dispatcher does about the failures of a subscription that has these
// settings.
func (d *Dispatcher) PolicyOf(s sender.Settings) sender.EffectivePolicy { return d.cfg.Policy.Of(s) }

// gone tells whether the endpoint itself answered 410 Gone (RFC 9110, section 15.5.11).
func gone(r Result) bool {
	return r.StatusCode == http.StatusGone && r.Class == sender.ClassStatus && !r.ProxyFailed
}

// stop makes the decision about a delivery one that disables its subscription. The
// delivery goes on, so that it is held: the schedule starts anew with a resume. One that
// was delivered before stays so. A store that cannot disable the subscription now goes by
// the due time. So there is a delay even after the last attempt of a schedule: the first
// delay.
func (p Policy) stop(d Decision, r Result, now time.Time) Decision {
	if d.Status == sender.StatusDeadLettered {
		delay, _ := p.Backoff.Next(backoff.State{Attempt: 1}, r.Chance)
		d.Status, d.Due = sender.StatusAwaitingRetry, now.Add(delay)
	}
	d.Disable = sender.DisabledByGone
	d.Notices = append(d.Notices, sender.Notice{Kind: sender.NoticeDisabled, Detail: sender.DisabledByGone})
	return d
}
