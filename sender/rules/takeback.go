package rules

import (
	"time"

	"github.com/surehook/surehook/sender/dispatch"
)

// TakeBack undoes a claim whose attempt did not begin: see dispatch.Store.Release. It
// returns what the row remembers then, and when the delivery is due. The attempt's number
// is free again (I7). If the attempt was to be the first of its schedule, the next one is,
// and the horizon does not run meanwhile. A spared attempt before it stays spared. claimed
// is when the claim was, and resumed is as Standing.Resumed: the schedule has then not
// begun.
//
// due is Release.Due. Zero is at once: a delivery without an attempt is then due since its
// event was created, and so before all that are pending behind it, however many retries a
// claim finds between them. A zero created says that the event is not there: the delivery
// is then due since it was claimed. No other delivery is due before now.
//
// A delivery that is given back until due was put off, because something is wrong on this
// side. A schedule that has begun stands still from the claim until then.
func TakeBack(l dispatch.Live, claimed, created time.Time, resumed bool, due, now time.Time) (dispatch.Live, time.Time) {
	l.Number--
	l.Tries--
	if resumed {
		l.Tries, l.First, l.Stood, l.Spared = 0, time.Time{}, 0, false
	}
	if l.Tries == 0 && l.First.Equal(claimed) {
		l.First = time.Time{}
	}
	if !due.IsZero() && !l.First.IsZero() {
		l.Stood += max(0, due.Sub(claimed))
	}
	switch {
	case due.IsZero() && l.Number == 0 && created.IsZero():
		return l, claimed
	case due.IsZero() && l.Number == 0:
		return l, created
	case due.Before(now):
		return l, now
	}
	return l, due
}
