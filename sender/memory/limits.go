package memory

import (
	"time"

	"github.com/surehook/surehook/sender/rules"
)

// limits says how often a subscription may be attempted.
type limits struct {
	rateAt time.Time // as rules.TakeRate takes it
	again  time.Time // when its rate allows another attempt
}

// inFlight counts the running leases of a subscription. A lease that has ended does not
// count: its delivery waits to be claimed.
func (sub *subscription) inFlight(now time.Time) (n int) {
	for d := range sub.leased {
		if d.live.inFlight(now) {
			n++
		}
	}
	return n
}

// within tells whether a subscription's own settings allow another attempt now. If its
// rate does not, the subscription stands in line for the time when it does.
func (w *batch) within(sub *subscription) bool {
	set := &sub.Settings
	if set.MaxInFlight > 0 && sub.inFlight(w.now) >= set.MaxInFlight {
		return false
	}
	if set.Rate > 0 {
		if granted, _, again := rules.TakeRate(set.Rate, sub.rateAt, w.now, 1); granted == 0 {
			w.tx.again(sub, again)
			return false
		}
	}
	return true
}

// spend notes that an attempt was claimed.
func (w *batch) spend(sub *subscription) {
	if rate := sub.Settings.Rate; rate > 0 {
		_, next, _ := rules.TakeRate(rate, sub.rateAt, w.now, 1)
		set(w.tx, &sub.rateAt, next)
	}
}

// again sets when to look at a subscription again.
func (tx *Tx) again(sub *subscription, at time.Time) {
	tx.change(sub, func() { set(tx, &sub.again, at) })
}
