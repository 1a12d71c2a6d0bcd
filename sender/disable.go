package sender

import (
	"cmp"
	"fmt"
	"time"
)

// A subscription is neither warned of nor disabled before it has failed so often.
const disableStreak = 5

// Shares of Policy.DisableAfter, in percent, at which an owner is warned. The
// highest comes first: of those passed at once, it alone is told.
var warnAt = [...]int{90, 75, 50}

// warn adds to the decision on a failure that its subscription is disabled, or
// that its owner is warned.
func (p Policy) warn(d *Decision, r Result, now time.Time) {
	h, after := &d.Health, cmp.Or(p.DisableAfter, defaultDisableAfter)
	if after < 0 || h.Streak < disableStreak {
		return
	}
	failing := now.Sub(h.FailingSince)
	told := fmt.Sprintf("it has been failing for %v: %d attempts without a success, the last one: %s",
		failing.Truncate(time.Second), h.Streak, failure(r))
	if failing >= after {
		// A store drops both if the subscription is not active any more.
		d.Disable = told
		d.Notices = append(d.Notices, Notice{Kind: NoticeDisabled, Detail: told})
		return
	}
	for _, percent := range warnAt {
		if float64(failing) < float64(after)*float64(percent)/100 {
			continue
		}
		if h.Warned < percent {
			h.Warned = percent
			d.Notices = append(d.Notices, Notice{Kind: NoticeFailing, Percent: percent,
				Detail: fmt.Sprintf("%s. After %v it is disabled", told, after)})
		}
		return
	}
}
