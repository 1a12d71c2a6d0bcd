package console

import (
	"fmt"
	"strings"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/internal/look"
)

// fact is a line among a subscription's settings.
type fact struct{ Name, Text string }

// mostTimes bounds how many times of a schedule are written out.
const mostTimes = 12

// policy is what is done about the failures of a subscription; without Config.Policy, what
// its settings ask for.
func (c *Console) policy(s *sender.Settings) (facts []fact) {
	e := sender.EffectivePolicy{Horizon: s.Horizon, DisableAfter: s.DisableAfter, Gone: s.Gone, Own: true}
	tried := "after " + times(s.RetryDelays) + ", the last one repeated"
	if c.cfg.Policy != nil {
		e = c.cfg.Policy(*s)
		tried = look.Plural(len(e.Tries), "time") + ": at once, then after " + times(e.Tries[1:])
	}
	if c.cfg.Policy != nil || len(s.RetryDelays) > 0 {
		facts = append(facts, fact{"Tried", tried})
	}
	if e.Horizon > 0 {
		facts = append(facts, fact{"Given up", spell(e.Horizon) + " after the first attempt"})
	}
	switch {
	case e.DisableAfter < 0:
		facts = append(facts, fact{"Disabled", "never, however long it fails"})
	case e.DisableAfter > 0:
		facts = append(facts, fact{"Disabled", "after failing for " + spell(e.DisableAfter)})
	}
	if e.Gone == sender.GoneStops {
		facts = append(facts, fact{"410 Gone", "stops it"})
	}
	if e.Own && len(facts) > 0 {
		facts = append(facts, fact{"Policy", "its own"})
	}
	return facts
}

// disableAfter is for how long a subscription may fail until it is disabled; 0: not known;
// below that: it never is.
func (c *Console) disableAfter(s *sender.Subscription) time.Duration {
	if c.cfg.Policy != nil {
		return c.cfg.Policy(s.Settings).DisableAfter
	}
	return c.cfg.DisableAfter
}

// disabledOn is when a subscription that fails is disabled, if it ever is.
func (c *Console) disabledOn(s *sender.Subscription) time.Time {
	policy := sender.EffectivePolicy{DisableAfter: c.cfg.DisableAfter}
	if c.cfg.Policy != nil {
		policy = c.cfg.Policy(s.Settings)
	}
	return policy.DisabledAt(s.Health, c.cfg.Now())
}

func times(all []time.Duration) string {
	var words []string
	for i, d := range all {
		if i == mostTimes {
			words = append(words, fmt.Sprintf("%d more", len(all)-i))
			break
		}
		words = append(words, spell(d))
	}
	return strings.Join(words, ", ")
}

// spell writes a duration exactly, without the units that are zero: 2h36m.
func spell(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
