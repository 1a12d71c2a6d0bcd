package sender

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Gone says what a subscription takes for the answer 410 Gone.
type Gone string

const (
	// GoneFails: it is a failure like any other.
	GoneFails Gone = ""
	// GoneStops: the endpoint wants no more. Its subscription is disabled at once, with
	// DisabledByGone as its reason, and a NoticeDisabled tells its owner and the operator.
	// The delivery that was answered so is held like all others of the subscription, so that
	// a resume sends it. For a subscription that is closing it is a failure: that one still
	// gets the rest of its deliveries.
	GoneStops Gone = "stop"
)

// DisabledByGone is the DisabledReason of a subscription that GoneStops has disabled.
const DisabledByGone = "its endpoint answered 410 Gone, which stops it as its settings say"

// NeverDisable is the Settings.DisableAfter of a subscription that is never disabled because
// it fails.
const NeverDisable = time.Duration(-1)

// PolicyBounds say which policies subscriptions may have of their own: RetryDelays, Horizon
// and DisableAfter of their Settings. The zero value allows none. Settings.Gone needs no
// permission, because it can only end work.
//
// Give the Registry and the Dispatcher the same. The Registry refuses what is beyond them.
// The Dispatcher keeps to them at each attempt, so that narrower bounds hold for stored
// policies, too. It replaces a value beyond a bound by the bound, and ignores the whole
// policy if policies are not allowed any more. Stored policies stay as they are.
type PolicyBounds struct {
	// Allowed lets subscriptions have policies of their own, within the other fields.
	Allowed bool

	// MinDelay is the shortest that a retry delay may be, before jitter. The default is 10 s,
	// the least 1 s.
	MinDelay time.Duration

	// MaxTries is how many attempts a schedule may come to, over its horizon, at an endpoint
	// that fails at once. A schedule without a Horizon of its own is counted over MaxHorizon.
	// The Dispatcher makes the last one at the horizon. Attempts that were lost with their
	// process come on top. The default is 30; from 2 to 1000.
	MaxTries int

	// MaxHorizon is the longest Settings.Horizon. The default is 72 h. It must be within
	// Retention.Reach, as the Dispatcher's own horizon is, and Retention.Receivers must
	// exceed both together.
	MaxHorizon time.Duration

	// MaxDisableAfter is the longest Settings.DisableAfter. The default is 120 h.
	MaxDisableAfter time.Duration

	// Never allows NeverDisable.
	Never bool
}

// Bounds that hold whatever an operator allows.
const (
	maxRetryDelays  = 100
	minMinDelay     = time.Second
	maxMaxTries     = 1000
	minHorizon      = time.Minute
	minDisableAfter = time.Hour
)

// WithDefaults returns the bounds with their zero fields set to their defaults.
func (b PolicyBounds) WithDefaults() PolicyBounds {
	if b.MinDelay == 0 {
		b.MinDelay = 10 * time.Second
	}
	if b.MaxTries == 0 {
		b.MaxTries = 30
	}
	if b.MaxHorizon == 0 {
		b.MaxHorizon = 72 * time.Hour
	}
	if b.MaxDisableAfter == 0 {
		b.MaxDisableAfter = 120 * time.Hour
	}
	return b
}

// Horizon is the longest horizon that these bounds let a subscription have: 0 if they allow
// none.
func (b PolicyBounds) Horizon() time.Duration {
	if !b.Allowed {
		return 0
	}
	return b.WithDefaults().MaxHorizon
}

// Problems returns all that is wrong with bounds.
func (b PolicyBounds) Problems() []error {
	b = b.WithDefaults()
	var errs []error
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf("sender: PolicyBounds."+format, args...))
		}
	}
	bad(b.MinDelay < minMinDelay, "MinDelay is %v: it must be at least %v, or zero for the default", b.MinDelay, minMinDelay)
	bad(b.MaxTries < 2 || b.MaxTries > maxMaxTries, "MaxTries is %d: it must be from 2 to %d, or zero for the default", b.MaxTries, maxMaxTries)
	bad(b.MaxHorizon < minHorizon, "MaxHorizon is %v: it must be at least %v, or zero for the default", b.MaxHorizon, minHorizon)
	bad(b.MaxDisableAfter < minDisableAfter, "MaxDisableAfter is %v: it must be at least %v, or zero for the default", b.MaxDisableAfter, minDisableAfter)
	return errs
}

// HasPolicy tells whether the settings have a schedule, a horizon or a time until disabling
// of their own.
func (s *Settings) HasPolicy() bool {
	return len(s.RetryDelays) > 0 || s.Horizon != 0 || s.DisableAfter != 0
}

// samePolicy tells whether two settings have the same policy.
func (s *Settings) samePolicy(as *Settings) bool {
	return slices.Equal(s.RetryDelays, as.RetryDelays) && s.Horizon == as.Horizon && s.DisableAfter == as.DisableAfter
}

// check reports all that is wrong with the policy of settings.
func (b PolicyBounds) check(s *Settings) error {
	if !s.HasPolicy() {
		return nil
	}
	if !b.Allowed {
		return b.refuse(s)
	}
	b = b.WithDefaults()
	var errs []error
	bad := func(wrong bool, field, format string, args ...any) {
		if wrong {
			errs = append(errs, refuseField(field, "settings: ", format, args...))
		}
	}
	bad(s.Horizon != 0 && (s.Horizon < minHorizon || s.Horizon > b.MaxHorizon), "horizon",
		"the horizon is %v: it must be from %v to %v, or 0", s.Horizon, minHorizon, b.MaxHorizon)
	bad(len(s.RetryDelays) > maxRetryDelays, "retry_delays", "there are %d retry delays: at most %d are allowed, the last of which is repeated", len(s.RetryDelays), maxRetryDelays)
	short := slices.IndexFunc(s.RetryDelays, func(d time.Duration) bool { return d < b.MinDelay })
	if short >= 0 {
		bad(true, "retry_delays", "retry delay %d is %v: it must be at least %v", short+1, s.RetryDelays[short], b.MinDelay)
	}
	if len(errs) == 0 && len(s.RetryDelays) > 0 {
		horizon := s.Horizon
		if horizon == 0 {
			horizon = b.MaxHorizon
		}
		tries := triesOf(s.RetryDelays, horizon)
		bad(tries > int64(b.MaxTries), "retry_delays", "the retry delays come to %d attempts in %v: at most %d are allowed, so make them longer, or the horizon shorter", tries, horizon, b.MaxTries)
	}
	switch {
	case s.DisableAfter == NeverDisable && !b.Never:
		bad(true, "disable_after", "disable after is never: it must be from %v to %v, or 0", minDisableAfter, b.MaxDisableAfter)
	case s.DisableAfter != 0 && s.DisableAfter != NeverDisable:
		or := ""
		if b.Never {
			or = "never, "
		}
		bad(s.DisableAfter < minDisableAfter || s.DisableAfter > b.MaxDisableAfter, "disable_after",
			"disable after is %v: it must be from %v to %v, %sor 0", s.DisableAfter, minDisableAfter, b.MaxDisableAfter, or)
	}
	return errors.Join(errs...)
}

// refuse names the first field that must go.
func (PolicyBounds) refuse(s *Settings) error {
	field, value := "disable_after", fmt.Sprint("disable after is ", s.DisableAfter)
	switch {
	case len(s.RetryDelays) > 0:
		field, value = "retry_delays", fmt.Sprintf("there are %d retry delays", len(s.RetryDelays))
	case s.Horizon != 0:
		field, value = "horizon", fmt.Sprint("the horizon is ", s.Horizon)
	}
	return &FieldError{
		Field: field, Reason: value + ": subscriptions have no policy of their own here, so leave out retry delays, horizon and disable after",
		before: "subscription: settings: ", after: " (RegistryConfig.OwnPolicies)",
	}
}

// triesOf is how many attempts delays come to until the horizon, the one at the horizon
// included. All delays are positive.
func triesOf(delays []time.Duration, horizon time.Duration) int64 {
	tries, left := int64(1), horizon
	for _, d := range delays {
		if left <= 0 {
			return tries
		}
		tries, left = tries+1, left-min(d, left)
	}
	last := delays[len(delays)-1]
	if left > 0 {
		tries += int64((left-1)/last) + 1
	}
	return tries
}

// EffectivePolicy is what the Dispatcher does about the failures of a subscription: what its
// Settings ask for, within the bounds, and for the rest what all have. See
// dispatch.Policy.Of.
type EffectivePolicy struct {
	// Tries are the times of the attempts since the first, which is at 0, at an endpoint that
	// fails at once, without jitter. The last is at the Horizon, unless they are more than
	// 100.
	Tries   []time.Duration
	Horizon time.Duration

	// DisableAfter is after how long a failing subscription is disabled; NeverDisable: never.
	DisableAfter time.Duration

	Gone Gone

	// Own tells that some of it is the subscription's own.
	Own bool
}

// DisabledAt is the earliest time at which an active subscription is disabled if it goes
// on failing, as seen from now. It is zero if the subscription does not fail, or is never
// disabled. Only a failure disables it, a tenth of DisableAfter after its last warning or
// later.
func (p EffectivePolicy) DisabledAt(h Health, now time.Time) time.Time {
	if p.DisableAfter < 0 || h.FailingSince.IsZero() {
		return time.Time{}
	}
	at, chance := h.FailingSince.Add(p.DisableAfter), p.DisableAfter/10
	warned, last := h.WarnedAt, at.Add(-chance)
	if h.Warned < lastWarning || !warned.IsZero() && warned.Before(last) { // it is still to come
		warned = later(last, now)
	}
	return later(later(at, warned.Add(chance)), now)
}

// lastWarning is the last share of DisableAfter at which an owner is warned, in percent: see
// dispatch.Policy.
const lastWarning = 90

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
