package dispatch

import (
	"cmp"
	"fmt"
	"time"

	"github.com/surehook/surehook/sender"
)

// A subscription is not disabled before it has failed this often, and no warning of it is
// given before.
const disableStreak = 5

// Shares of Policy.DisableAfter, in percent, at which an owner is warned. The highest comes
// first, because only the highest is given when several are passed at once.
var warnAt = [...]int{90, 75, 50}

// warn adds to the decision on a failure that its subscription is disabled, or
// that its owner is warned.
func (p Policy) warn(d *Decision, r Result, now time.Time) {
	h, after := &d.Health, cmp.Or(p.DisableAfter, defaultDisableAfter)
	if after < 0 || h.Streak < disableStreak {
		return
	}
	failing, chance := now.Sub(h.FailingSince), after/10 // chance is how long its owner has after the last warning
	reason := fmt.Sprintf("it has been failing for %v: %d attempts without a success, the last one: %s",
		failing.Truncate(time.Second), h.Streak, failure(r))
	percent, warned := passed(failing, after), h.Warned
	if !h.WarnedAt.IsZero() { // the time may have become longer since: then it is warned of anew
		warned = min(warned, passed(h.WarnedAt.Sub(h.FailingSince), after))
	}
	switch {
	case percent > warned:
		h.Warned, h.WarnedAt = percent, now
		ends := fmt.Sprintf("After %v it is disabled", after)
		if failing+chance > after {
			ends = fmt.Sprintf("If that goes on for %v it is disabled", chance)
		}
		d.Notices = append(d.Notices, sender.Notice{Kind: sender.NoticeFailing, Percent: percent, Detail: reason + ". " + ends})
	case failing >= after && now.Sub(h.WarnedAt) >= chance:
		// A store drops both Disable and the notice if the subscription is not active any
		// more.
		d.Disable = reason
		d.Notices = append(d.Notices, sender.Notice{Kind: sender.NoticeDisabled, Detail: reason})
	}
}

// passed is the highest of the shares in warnAt that has passed, in percent; 0: none has.
func passed(failing, after time.Duration) int {
	for _, percent := range warnAt {
		if float64(failing) >= float64(after)*float64(percent)/100 {
			return percent
		}
	}
	return 0
}
