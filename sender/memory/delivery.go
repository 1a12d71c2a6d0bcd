package memory

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/rules"
)

// delivery is live while its row is not nil.
type delivery struct {
	event    *event
	sub      *subscription
	live     *live
	ended    sender.Status // how, while it is not live
	endedAs  int64         // the number of that end, of all ends in the store
	endedAt  time.Time
	attempts []sender.Attempt
	kept     []byte            // the body, if it is not the event's: see KeepBodies
	stops    bool              // it is dead-lettered, and holds back the later ones of its line
	halts    bool              // it is behind, the first of its line, and nothing comes out of that until a sweep
	in       *queue[*delivery] // the queue of its subscription that it stands in; nil: none
	at       int               // see member
}

// live is the row of a delivery that has not ended. Rows are never changed, but replaced
// by setLive.
type live struct {
	due    time.Time // while it is leased: the end of the lease
	turn   time.Time // while it was never claimed: where it stands among what is due; zero: as due says
	number int       // of the attempt that was claimed last
	token  int64     // of the last lease
	by     int64     // the process that holds it
	tries  int       // attempts of the present schedule
	first  time.Time // claim of the first of them; zero: none
	stood  time.Duration
	leased time.Time // claim of the attempt in hand; zero: none
	single bool
	spared bool // the last attempt was spared
	// returned: it was released at once, before its first attempt, and goes before all
	// others.
	returned bool
	replay   int64 // the replay that has admitted it, while it was not claimed since; 0: none
	// dropped: its subscription was resumed without it while it was leased. It
	// stands in no line, and ends with the attempt in hand.
	dropped bool
	// behind: it waits for an earlier one about its object, and stands in no queue.
	behind bool
	// resumed: its subscription was resumed, with it, since the attempt in hand was claimed.
	resumed bool
}

// renewed returns a row whose schedule starts anew. An attempt in hand becomes the first
// one of the new schedule.
func (l *live) renewed(now time.Time) *live {
	row := live{due: now, number: l.number, token: l.token, by: l.by, single: l.single, behind: l.behind}
	if !l.leased.IsZero() {
		row.due, row.leased = l.due, l.leased
		row.tries, row.first = 1, l.leased
	}
	return &row
}

// end ends a delivery that is live, or was just made.
func (tx *Tx) end(d *delivery, status sender.Status) {
	tx.setLive(d, nil)
	set(tx, &d.ended, status)
	set(tx, &tx.store.ends, tx.store.ends+1)
	set(tx, &d.endedAs, tx.store.ends)
	set(tx, &d.endedAt, tx.store.now())
	if status == sender.StatusDeadLettered {
		set(tx, &d.sub.DeadLettered, d.sub.DeadLettered+1)
	}
	tx.endInLine(d)
}

// revive makes a delivery that has ended live again.
func (tx *Tx) revive(d *delivery, row *live) {
	if d.ended == sender.StatusDeadLettered {
		set(tx, &d.sub.DeadLettered, d.sub.DeadLettered-1)
	}
	set(tx, &d.ended, "")
	tx.enter(d, row)
}

func (d *delivery) index() *int { return &d.at }

func (d *delivery) before(other *delivery) bool {
	if d.live.returned != other.live.returned {
		return d.live.returned
	}
	if at, others := d.live.position(), other.live.position(); !d.live.returned && !at.Equal(others) {
		return at.Before(others)
	}
	return d.event.no < other.event.no
}

// position is where a delivery stands among those that are due.
func (l *live) position() time.Time {
	if l.number == 0 && l.leased.IsZero() && !l.turn.IsZero() {
		return l.turn
	}
	return l.due
}

func (d *delivery) key() dispatch.DeliveryKey {
	return dispatch.DeliveryKey{Event: d.event.no, Subscription: d.sub.no}
}

// forDecision returns a live delivery as the rules take it.
func (d *delivery) forDecision() dispatch.Live {
	return dispatch.Live{
		Key: d.key(), Number: d.live.number, Tries: d.live.tries, First: d.live.first, Single: d.live.single,
		Stood: d.live.stood, Notice: d.event.info.Notice, Spared: d.live.spared,
	}
}

// take sets the fields that the rules decide.
func (l *live) take(v *dispatch.Live) {
	l.number, l.tries, l.first, l.stood, l.spared, l.resumed = v.Number, v.Tries, v.First, v.Stood, v.Spared, false
}

func (d *delivery) status() sender.Status {
	if d.live == nil {
		return d.ended
	}
	return rules.Status(d.cancelled(), d.live.single, d.sub.holds(), len(d.attempts))
}

// cancelled tells whether a live delivery is to be ended.
func (d *delivery) cancelled() bool { return d.sub.deleted || d.live.dropped }

// inFlight tells whether the lease of an attempt is running.
func (l *live) inFlight(now time.Time) bool {
	return l != nil && !l.leased.IsZero() && l.due.After(now)
}

// Event ids begin with eventPrefix, deliveries' with deliveryPrefix.
const (
	eventPrefix    = "evt_"
	deliveryPrefix = "dlv_"
)

func (d *delivery) id() string { return deliveryID(d.event.info.ID, d.sub) }

// deliveryID returns the event's id without its prefix, with the subscription's number in
// base 36.
func deliveryID(event string, sub *subscription) string {
	return deliveryPrefix + strings.TrimPrefix(event, eventPrefix) + "_" + strconv.FormatInt(sub.no, 36)
}

// deliveryByID returns nil if there is none.
func (s *Store) deliveryByID(id string) *delivery {
	rest, _ := strings.CutPrefix(id, deliveryPrefix)
	cut := strings.LastIndexByte(rest, '_')
	if cut < 0 {
		return nil
	}
	e := s.eventByID[eventPrefix+rest[:cut]]
	if e == nil {
		e = s.eventByID[rest[:cut]]
	}
	no, err := strconv.ParseInt(rest[cut+1:], 36, 64)
	if e == nil || err != nil {
		return nil
	}
	d := s.deliveries[dispatch.DeliveryKey{Event: e.no, Subscription: no}]
	if d == nil || d.id() != id { // numbers can be written in several ways
		return nil
	}
	return d
}

// summary returns a delivery without its body and its attempts.
func (d *delivery) summary(now time.Time) sender.Delivery {
	out := sender.Delivery{
		ID: d.id(), Event: d.event.info, Version: d.event.version,
		Subscriber: d.sub.owner.ID, Subscription: d.sub.ID, URL: cmp.Or(d.event.info.URL, d.sub.URL),
		Status: d.status(), CreatedAt: d.event.info.CreatedAt,
		AttemptCount: len(d.attempts), InFlight: d.live.inFlight(now), Redacted: d.event.redacted,
	}
	if d.live != nil && !d.live.behind && !d.cancelled() && !d.sub.holds() && !out.InFlight {
		out.NextAttemptAt = d.live.due
	}
	if n := len(d.attempts); n > 0 {
		out.LastErrorClass, out.LastStatusCode = d.attempts[n-1].Class, d.attempts[n-1].StatusCode
	}
	return out
}

// body is what is posted.
func (d *delivery) body() []byte {
	if d.kept != nil {
		return d.kept
	}
	return d.event.body
}

// selected are the attempts that a query selects.
func (d *delivery) selected(q history.AttemptQuery) []sender.Attempt {
	list := d.attempts
	if q.Before > 0 {
		list = list[:min(len(list), q.Before-1)]
	}
	return list[max(0, len(list)-q.Limit):]
}

// telling are the attempts that explain a delivery: see history.Store.Facts.
func (d *delivery) telling() (list []sender.Attempt) {
	last := len(d.attempts) - 1
	succeeded := slices.IndexFunc(d.attempts, func(a sender.Attempt) bool { return a.Class == sender.ClassNone })
	for i, a := range d.attempts {
		if i == 0 || i == succeeded || i == last {
			list = append(list, a)
		}
	}
	return list
}

func copied(attempts []sender.Attempt) []sender.Attempt {
	attempts = slices.Clone(attempts)
	for i := range attempts {
		attempts[i].Snippet = bytes.Clone(attempts[i].Snippet)
	}
	return attempts
}

// target returns where a delivery goes. The deliveries of one subscription share its
// entry in targets.
func (d *delivery) target(targets map[int64]*dispatch.Target) *dispatch.Target {
	t := targets[d.sub.no]
	if t == nil {
		t = &dispatch.Target{
			Subscription: d.sub.ID, SubscriptionNo: d.sub.no, URL: d.sub.URL,
			Subscriber: d.sub.owner.ID, SubscriberNumber: d.sub.owner.no,
			KeyringVersion: d.sub.owner.keyring.Version, Lane: d.sub.Health.Lane,
		}
		settings := cloneSettings(d.sub.Settings)
		t.Settings = &settings
		targets[d.sub.no] = t
	}
	return t
}
