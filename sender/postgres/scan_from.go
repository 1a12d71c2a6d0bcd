package postgres

import (
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/internal/fanout"
)

// PostgreSQL keeps deleted and changed rows until they are vacuumed, and a snapshot that
// somebody holds open prevents that. A scan that begins at the lowest key passes over all
// of them, each time. So scans begin where the last ones found something, and once in a
// while at the beginning, for rows that were committed late. A scan of the outbox does so
// before it meets anything that was numbered after such a commit: see outboxFrom.
const (
	// rescanEvery is how often a scan begins at the beginning.
	rescanEvery = time.Second
	// How much later than others most transactions commit: those of producers, and those of
	// the store.
	producersLate = 5 * time.Second
	stepsLate     = 2 * time.Second
)

// scanFrom is where the scans of this process begin. All of it is hints.
type scanFrom struct {
	off    bool // for tests whose clocks jump: scans begin at the beginning
	outbox outboxFrom
	turns  [sender.Lanes]turnFrom

	mu      sync.Mutex
	fanOut  float64 // deliveries per event lately, without large events
	waiting int     // events that waited lately for others
	few     bool    // a few events came lately, with a few deliveries
	got     []int64 // the subscriptions that got these
}

// outboxFrom is a lower bound of seq. A sequence is not in the order of the commits: below
// the bound, rows can still come of the transactions that were open when it was raised, and of
// no others. Once one of them has ended, scans begin at the beginning (see fromBound). So of two
// events about one object, which have their numbers in the order of their commits, no scan
// finds the second alone. The bound lags by producersLate, so that few are open.
type outboxFrom struct {
	mu       sync.Mutex
	low      bound
	next     int64 // will be low, from nextAt on
	nextAt   time.Time
	rescanAt time.Time
}

// bound is where a scan of the outbox begins, unless one of the open transactions has ended.
type bound struct {
	seq  int64
	open []uint64
}

// fromBound is the seq at which a scan begins, if the bound is in these parameters.
func fromBound(seq, open string) string {
	return `(SELECT CASE WHEN EXISTS (SELECT 1 FROM unnest(` + open + `::text[]) AS o(xid) WHERE pg_visible_in_snapshot(o.xid::xid8, pg_current_snapshot())) THEN 0 ELSE ` + seq + `::bigint END)`
}

// xids are the open transactions as a parameter.
func (f *bound) xids() []string {
	return column(f.open, func(xid uint64) string { return strconv.FormatUint(xid, 10) })
}

// from returns where to begin.
func (f *outboxFrom) from(now time.Time) bound {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now.After(f.rescanAt) {
		f.rescanAt = now.Add(rescanEvery)
		return bound{}
	}
	return f.low
}

// found notes the first seq that a scan found, and which transactions were open before it.
func (f *outboxFrom) found(first int64, open []uint64, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if first < f.low.seq {
		f.low.seq, f.next = first, first
	}
	if first > f.next && now.After(f.nextAt) {
		f.low, f.next, f.nextAt = bound{f.next, open}, first, now.Add(producersLate)
		return
	}
	if len(f.low.open) > 0 { // not in place: from has given it away
		f.low.open = slices.DeleteFunc(slices.Clone(f.low.open), func(xid uint64) bool { return !slices.Contains(open, xid) })
	}
}

// turnFrom is a lower bound of surehook_turns.next_due.
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

// found notes the earliest due time that a scan found; never: nothing.
func (f *turnFrom) found(least, now timestamp) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.low = min(least, now).plus(-stepsLate)
}

// eventsFor returns how many events to take for p.Deliveries, besides those that wait: more
// would be matched in vain.
func (f *scanFrom) eventsFor(p dispatch.ExpandParams) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	events := p.Events
	if f.fanOut > 1 {
		events = max(1, min(events, int(float64(p.Deliveries)/f.fanOut)+1))
	}
	return events + min(f.waiting, fanout.Waiting)
}

// fewer tells whether to expect a few events, for a few subscriptions.
func (f *scanFrom) fewer() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.few && f.waiting == 0
}

// many notes that more than a few events, or deliveries, came.
func (f *scanFrom) many() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.few = false
}

// recent returns the subscriptions that got the few events that came lately.
func (f *scanFrom) recent() []int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.got)
}

// expanded notes how many deliveries were made of events that are not large, how many
// events were found waiting, and whether all that was little, and who got it.
func (f *scanFrom) expanded(x dispatch.Expanded, waiting int, few bool, got []int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting, f.few, f.got = waiting, few, got
	if x.Events > 0 {
		f.fanOut = float64(x.Deliveries) / float64(x.Events)
	}
}
