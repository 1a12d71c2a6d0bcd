package rules

import (
	"math"
	"time"
)

const (
	// Rates beyond these are taken as these, so that nothing overflows.
	leastRate, mostRate = 1e-6, 1e6

	// A remembered time may lie this much farther in the future than TakeRate can have put
	// it, as when the clocks of a database and its replica differ.
	rateSlack = 10 * time.Second
)

// TakeRate is the arithmetic of Settings.Rate and of a replay's Rate: how many of want
// attempts may begin now, if a subscription's are bounded to rate a second.
//
// at is what the store remembers for the subscription, zero if nothing; next is
// what to remember instead, in whole microseconds; and again is when at least one
// more is granted if nobody takes it before: now, if one is left. Where nothing
// is granted a store need not write.
//
// Over any time t at most rate×t + max(1, rate/10) are granted, however it is cut
// into calls, as long as the clock is not set back. Rounding to microseconds
// never grants more; it costs at most one microsecond for each call that grants.
// An at that lies farther ahead than it could (the rate was raised, or the clock
// set back by more than 10 s) is taken as now, so nobody waits for it. A rate that
// is not above zero, or not a number, is no bound.
//
// It is the generic cell rate algorithm (ITU-T I.371, Annex A), with at as the
// theoretical arrival time.
func TakeRate(rate float64, at, now time.Time, want int) (granted int, next, again time.Time) {
	want = max(want, 0)
	if !(rate > 0) {
		return want, at, now
	}
	interval, burst := paced(rate)
	if ahead := at.Sub(now); ahead > burst*interval+rateSlack {
		at = now
	}
	base := at
	if now.After(at) {
		base = now
	}
	// The nth is granted while base + (n-1)·interval ≤ now + (burst-1)·interval.
	room := int(burst - (base.Sub(now)+interval-1)/interval)
	granted = max(0, min(want, room))
	next = at
	if granted > 0 {
		next = ceilMicro(base.Add(time.Duration(granted) * interval))
		base = next
	}
	if again = ceilMicro(base.Add(-(burst - 1) * interval)); again.Before(now) {
		again = now
	}
	return granted, next, again
}

// paced is the time between two attempts at a rate, and how many may begin at once.
func paced(rate float64) (interval, burst time.Duration) {
	rate = min(max(rate, leastRate), mostRate)
	return time.Duration(math.Ceil(float64(time.Second) / rate)), time.Duration(max(1, math.Floor(rate/10)))
}

// ReplayAgain is when to look again at a replay with a rate: when half of its burst is
// granted, or one delivery. at is what the store remembers for the replay, as in TakeRate.
// Each look costs a transaction, so a fast replay does not have one for each delivery. It
// is now if one is granted.
func ReplayAgain(rate float64, at, now time.Time) time.Time {
	_, _, again := TakeRate(rate, at, now, 0)
	if !again.After(now) {
		return now
	}
	interval, burst := paced(rate)
	return again.Add((max(1, burst/2) - 1) * interval)
}

func ceilMicro(t time.Time) time.Time {
	return t.Add(time.Microsecond - 1).Truncate(time.Microsecond)
}
