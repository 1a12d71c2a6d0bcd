package postgres

import (
	"sync"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/internal/fanout"
)

// PostgreSQL keeps what was deleted or changed until it is vacuumed, and a snapshot
// that somebody holds open keeps it from that: a scan that begins at the lowest key
// passes over all of it, each time. So scans begin where the last ones have found
// something, and once in a while at the beginning, for what was committed late.
const (
	// rescanEvery is how often a scan begins at the beginning.
	rescanEvery = time.Second
	// How much later than others a transaction is expected to commit: a producer's, and
	// one of the store's own.
	producersLate = 5 * time.Second
	stepsLate     = 2 * time.Second
)

// floors are where this process's scans begin. They are hints.
type scanFrom struct {
	off    bool // for tests whose clocks jump: scans begin at the beginning
	outbox outboxFrom
	turns  [sender.Lanes]turnFrom

	mu      sync.Mutex
	fanOut  float64 // deliveries that an event has made lately, if it was not large
	waiting int     // events that have waited lately for others
	few     bool    // there were a few events lately, with a few deliveries
}

// outboxFloor is a lower bound of seq. A sequence is not the order of the commits, so
// it lags by producersLate.
type outboxFrom struct {
	mu       sync.Mutex
	low      int64
	next     int64 // will be the floor,
	nextAt   time.Time
	rescanAt time.Time
}

// from is where to begin.
func (f *outboxFrom) from(now time.Time) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now.After(f.rescanAt) {
		f.rescanAt = now.Add(rescanEvery)
		return 0
	}
	return f.low
}

// found notes what a scan from somewhere has found first; 0: nothing.
func (f *outboxFrom) found(from, first int64, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if first != 0 && first < f.low {
		f.low, f.next = first, first
	}
	if first > f.next && now.After(f.nextAt) {
		f.low, f.next, f.nextAt = f.next, first, now.Add(producersLate)
	}
}

// turnFloor is a lower bound of surehook_turns.next_due.
type turnFrom struct {
	mu       sync.Mutex
	low      timestamp
	rescanAt time.Time
}

func (f *turnFrom) from(now time.Time) timestamp {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.low == none || now.After(f.rescanAt) {
		f.rescanAt = now.Add(rescanEvery)
		return always
	}
	return f.low
}

// found notes the least that a scan has found; never: nothing.
func (f *turnFrom) found(least, now timestamp) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.low = min(least, now).plus(-stepsLate)
}

// eventsFor is how many events to take for p.Deliveries, besides those that wait:
// what lies beyond would be matched in vain.
func (f *scanFrom) eventsFor(p sender.ExpandParams) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	events := p.Events
	if f.fanOut > 1 {
		events = max(1, min(events, int(float64(p.Deliveries)/f.fanOut)+1))
	}
	return events + min(f.waiting, fanout.Waiting)
}

// fewer tells whether a few events are to be expected, for a few subscriptions.
func (f *scanFrom) fewer() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.few && f.waiting == 0
}

// expanded notes what was made of events that are not large, how many were found that
// wait, and whether all that was little.
func (f *scanFrom) expanded(x sender.Expanded, waiting int, few bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting, f.few = waiting, few
	if x.Events > 0 {
		f.fanOut = float64(x.Deliveries) / float64(x.Events)
	}
}
