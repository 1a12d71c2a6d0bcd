package memory

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
)

// A claim finds due deliveries by two levels of heads. In each lane the subscribers with
// live work stand in line, and in each subscriber its subscriptions do. All of this
// follows from the live rows and from who was served when. So a change is undone by
// putting the old row back and standing its subscription in line anew.

// turn is where somebody stands in a line.
type turn struct {
	next   time.Time // when to look at it: never later than when something is due
	served time.Time // when it was served last
	nth    int64     // in the order of all turns, where times are equal
	at     int       // see member
}

func (t *turn) index() *int { return &t.at }

// head is where a subscriber stands in a lane.
type head struct {
	owner *subscriber
	lane  sender.Lane
	line  queue[*subscription]
	turn
}

func (h *head) before(other *head) bool {
	return h.turn.earlier(&other.turn, h.owner.no < other.owner.no)
}

func (sub *subscription) before(other *subscription) bool {
	return sub.turn.earlier(&other.turn, sub.no < other.no)
}

func (t *turn) earlier(other *turn, older bool) bool {
	if !t.next.Equal(other.next) {
		return t.next.Before(other.next)
	}
	if t.nth != other.nth {
		return t.nth < other.nth
	}
	return older
}

// change runs fn, which changes a subscription in a way that can move it in line. It
// stands the subscription in line anew, now and after a rollback.
func (tx *Tx) change(sub *subscription, fn func()) {
	tx.undo = append(tx.undo, func() { tx.store.line(sub) })
	fn()
	tx.store.line(sub)
}

// setLive gives a delivery another live row; nil: it is live no more.
func (tx *Tx) setLive(d *delivery, row *live) {
	tx.undo = append(tx.undo, func() { d.queue(); tx.store.line(d.sub) })
	set(tx, &d.live, row)
	d.queue()
	tx.store.line(d.sub)
}

// serve notes that a subscription and its subscriber had their turns, and sends both to
// the tail.
func (tx *Tx) serve(sub *subscription, now time.Time) {
	h := sub.in
	set(tx, &tx.store.served, tx.store.served+1)
	tx.change(sub, func() {
		for _, t := range []*turn{&sub.turn, &h.turn} {
			set(tx, &t.served, now)
			set(tx, &t.nth, tx.store.served)
		}
	})
}

// queue stands a delivery among the live ones of its subscription, and among the leased
// ones.
func (d *delivery) queue() {
	var to *queue[*delivery]
	switch {
	case d.live == nil || d.live.dropped || d.live.behind:
	case d.live.replay != 0:
		to = &d.sub.replayed
	default:
		to = &d.sub.live
	}
	if d.in != nil && d.in != to {
		d.in.remove(d)
	}
	if d.in = to; to != nil {
		to.put(d)
	}
	mark(d.sub.leased, d, d.live != nil && !d.live.leased.IsZero())
	mark(d.sub.behind, d, d.live != nil && d.live.behind)
}

func mark(of map[*delivery]struct{}, d *delivery, is bool) {
	if is {
		of[d] = struct{}{}
	} else {
		delete(of, d)
	}
}

// upNext returns the delivery of a subscription that is to be claimed next; nil: there is
// none. Deliveries that replays have admitted come after all others that are due.
func (sub *subscription) upNext(now time.Time) *delivery {
	first, replayed := sub.live.first(), sub.replayed.first()
	if replayed == nil || first != nil && !first.live.due.After(later(now, replayed.live.due)) {
		return first
	}
	return replayed
}

// waits tells whether a subscription has live deliveries.
func (sub *subscription) waits() bool {
	return sub.live.first() != nil || sub.replayed.first() != nil || len(sub.behind) > 0
}

// backlog counts the live deliveries of a subscription.
func (sub *subscription) backlog() int64 {
	return int64(len(sub.live.items) + len(sub.replayed.items) + len(sub.behind))
}

// all returns the live deliveries of a subscription, those of older events first: the order
// is total, so that the same calls have the same results.
func (sub *subscription) all() []*delivery {
	live := slices.AppendSeq(slices.Concat(sub.live.items, sub.replayed.items), maps.Keys(sub.behind))
	slices.SortFunc(live, func(a, b *delivery) int { return cmp.Compare(a.event.no, b.event.no) })
	return live
}

// line stands a subscription where it belongs among its subscriber's.
func (s *Store) line(sub *subscription) {
	first := sub.upNext(time.Time{}) // the first that is due
	var in *head
	if first != nil && !sub.deleted && !sub.holds() {
		in = &sub.owner.heads[sub.Health.Lane]
	}
	if out := sub.in; out != nil && out != in {
		s.leave(sub)
	}
	if in == nil {
		return
	}
	sub.in = in
	sub.next = later(later(first.live.due, sub.served), sub.again)
	in.line.put(sub)
	s.lineHead(in)
}

// leave takes a subscription out of line.
func (s *Store) leave(sub *subscription) {
	h := sub.in
	sub.in = nil
	h.line.remove(sub)
	s.lineHead(h)
}

// lineHead stands a subscriber where it belongs in a lane.
func (s *Store) lineHead(h *head) {
	first := h.line.first()
	if first == nil {
		s.lanes[h.lane].remove(h)
		return
	}
	h.next = later(first.next, h.served)
	s.lanes[h.lane].put(h)
}

// nextDue returns when to claim next; zero if nothing is live, except what is held.
func (s *Store) nextDue() (next time.Time) {
	for lane := range s.lanes {
		if h := s.lanes[lane].first(); h != nil && (next.IsZero() || h.next.Before(next)) {
			next = h.next
		}
	}
	return next
}

// later returns the later one of two times.
func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
