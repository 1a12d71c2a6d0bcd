package rules

import (
	"fmt"

	"github.com/surehook/surehook/sender"
)

// Line has what a store reads of a line: the deliveries of one subscription about one
// object, while they wait for each other. A delivery comes into it when it is made, or
// sent again, while the subscription has an order. It stays until it has ended. A dead
// letter stays that holds back those after it: see Holds. At most one of a line is out: it
// is pending, waits or is leased like any other delivery, so that a claim finds it. The
// others are behind it, and no claim finds them.
//
// Deliveries are named by the numbers of their events, which rise with the versions of an
// object.
type Line struct {
	First  int64 // the first of all; 0: there is none
	Dead   bool  // that is a dead letter
	Halted bool  // that is behind, and stays there until a sweep: see Halts
	Out    int64 // the one that is out; 0: there is none
	Leased bool  // that is in flight
	Newest int64 // the last of those that have not ended; 0: there is none
}

// Entry is where a delivery goes that comes into a line.
type Entry struct {
	// Superseded: it ends at once, for a newer one is there.
	Superseded bool
	// Supersedes: those before it end, except one that is in flight. If the line halts by
	// that, it waits behind those that are left: see Halts.
	Supersedes bool
	// Behind: it waits behind the others. Otherwise it comes out.
	Behind bool
	// Displaces: it comes out, and the one that is out goes behind it.
	Displaces bool
}

// Enter decides where a delivery goes that is made, or sent again, under an order. It must
// not be in the line. No version is attempted while an earlier one has not ended, or is a
// dead letter that holds it back. Under the latest order, none is attempted while a newer
// one has not ended.
func (l Line) Enter(order sender.Order, event int64) Entry {
	flying := l.Out != 0 && l.Leased
	if order == sender.OrderLatest {
		if l.Newest > event {
			return Entry{Superseded: true}
		}
		return Entry{Supersedes: l.First != 0, Behind: flying}
	}
	if l.First != 0 && (l.First < event || flying) {
		return Entry{Behind: true}
	}
	return Entry{Displaces: l.Out != 0}
}

// Advances tells whether something comes out of a line now: its first, or what Overtakes
// says.
func (l Line) Advances() bool { return l.First != 0 && l.Out == 0 && !l.Dead && !l.Halted }

// Overtakes tells whether the newest of a line that advances comes out, and those before
// it end, as Supersedes says. There are some before it if the order was another one when
// they came, or if one was in flight meanwhile.
func (l Line) Overtakes(order sender.Order) bool {
	return order == sender.OrderLatest && l.First < l.Newest
}

// Halts tells whether a line halts in which a newer delivery ends those before it. It does
// if some of these are left, because there are more than Superseding grants. Then the
// first of the line is marked, and nothing comes out. A sweep takes the mark away, and
// lets the line advance. So they end in several transactions, and none of them is
// attempted after the newer one. A line with a delivery in flight need not halt: nothing
// comes out of it anyway.
func (l Line) Halts(left bool) bool { return left && (l.Out == 0 || !l.Leased) }

// Overtaken tells whether a delivery that did not end with its attempt ends now, because a
// newer one has come.
func (l Line) Overtaken(order sender.Order, event int64) bool {
	return order == sender.OrderLatest && l.Newest > event
}

// Yields tells whether a delivery that did not end with its attempt goes behind, because
// an earlier one was sent again meanwhile.
func (l Line) Yields(event int64) bool { return l.First != 0 && l.First < event && !l.Dead }

// Holds tells whether a dead letter of a subscription stays in its line, so that the later
// versions of its object stay behind. It does not if the subscription is closing, which
// must come to its end. While the settings cannot be read they may say so: nothing is
// attempted until they can.
func Holds(s *sender.Settings, status sender.SubscriptionStatus) bool {
	if s == nil || status == sender.SubscriptionClosing {
		return false
	}
	return s.Unreadable() != nil || s.Order == sender.OrderObject && s.HoldDead
}

// HoldsNothing is the error for passing over a delivery that holds nothing back. It matches
// sender.ErrStatus.
func HoldsNothing(id string) error {
	return fmt.Errorf("%w: delivery %q holds nothing back: only a dead letter does, of a subscription with the order %q and HoldDead", sender.ErrStatus, id, sender.OrderObject)
}

// Bounds of what newer deliveries end in one step.
const (
	SupersedeMost = 1000               // of one line
	supersedeAll  = 20 * SupersedeMost // of all lines
)

// Superseding grants and counts the deliveries that newer ones end in one transaction. Its
// zero value is for a step.
type Superseding struct {
	sweep bool
	limit int
	ended int
}

// SupersedingInSweep is for a sweep that may still end up to limit deliveries.
func SupersedingInSweep(limit int) Superseding { return Superseding{sweep: true, limit: limit} }

// Grants returns how many deliveries may end now, of one line and of all.
func (s *Superseding) Grants() (one, all int) {
	if s.sweep {
		all = max(0, s.limit-s.ended)
		return all, all
	}
	all = max(0, supersedeAll-s.ended)
	return min(SupersedeMost, all), all
}

// Add notes that n deliveries have ended.
func (s *Superseding) Add(n int) { s.ended += n }

// Ended returns how many deliveries have ended.
func (s *Superseding) Ended() int { return s.ended }
