package memory

import (
	"bytes"
	"context"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/rules"
)

// Payloads implements dispatch.Store.
func (s *Store) Payloads(ctx context.Context, events []int64) (map[int64]dispatch.Payload, error) {
	all := make(map[int64]dispatch.Payload, len(events))
	err := s.inTx(ctx, func(*Tx) error {
		for _, no := range events {
			if i := s.after(no - 1); i < len(s.events) && s.events[i].no == no {
				all[no] = dispatch.Payload{Event: s.events[i].info, Body: bytes.Clone(s.events[i].body)}
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// claim lets those that have work due in a lane take turns, each of one delivery. It ends
// when the lane's slots are used, or when nobody who may have more has work due. A turn
// that ends a lost attempt without starting another uses a slot too, so that a claim's
// work is bounded by its slots.
func (w *batch) claim(lane sender.Lane, c *dispatch.Claims) error {
	if w.bytes.Over() {
		return nil
	}
	s, p := w.tx.store, w.Claim.Lanes[lane]
	given := room{
		bySubscriber: p.SubscriberRoom, perSubscriber: p.PerSubscriber, toSubscriber: map[int64]int{},
		bySubscription: w.Claim.SubscriptionRoom, perSubscription: p.PerSubscription, toSubscription: map[int64]int{},
	}
	full := aside{store: s} // those that may not have more
	defer full.comeBack()
	for turns := p.Slots; turns > 0; {
		h := s.lanes[lane].first()
		if h == nil || h.next.After(w.now) {
			return nil
		}
		if !given.forSubscriber(h.owner.no) {
			full.putSubscriber(h)
			continue
		}
		sub := h.line.first()
		if w.others(sub) {
			w.aside.put(sub)
			continue
		}
		if !given.forSubscription(sub.no) || !w.within(sub) {
			full.put(sub)
			continue
		}
		d := sub.upNext(w.now)
		if !w.bytes.Take(d.event.no, int64(len(d.event.body))) {
			return nil
		}
		turns--
		w.tx.serve(sub, w.now)
		claimed, err := w.take(d, c)
		if err != nil {
			return err
		}
		if claimed {
			w.spend(sub)
			given.toSubscriber[h.owner.no]++
			given.toSubscription[sub.no]++
		}
	}
	return nil
}

// aside has subscribers and subscriptions that stand out of line for a while. comeBack must
// be deferred, so that it runs after a panic too: a rollback knows nothing of them.
type aside struct {
	store         *Store
	subscribers   []*head
	subscriptions []*subscription
}

func (a *aside) putSubscriber(h *head) {
	a.store.lanes[h.lane].remove(h)
	a.subscribers = append(a.subscribers, h)
}

func (a *aside) put(sub *subscription) {
	a.store.leave(sub)
	a.subscriptions = append(a.subscriptions, sub)
}

func (a *aside) comeBack() {
	for _, sub := range a.subscriptions {
		a.store.line(sub)
	}
	for _, h := range a.subscribers {
		a.store.lineHead(h)
	}
}

// take leases a delivery that is due. If its last attempt was lost, the rules may end the
// delivery or put it off instead.
func (w *batch) take(d *delivery, c *dispatch.Claims) (claimed bool, err error) {
	if !d.live.leased.IsZero() {
		lost, err := w.settle(d, rules.Lost(d.forDecision(), d.live.token, d.live.leased, d.event.info.CreatedAt, w.Claim.Chance))
		if err != nil {
			return false, err
		}
		c.Interrupted = append(c.Interrupted, lost)
		if d.live == nil || d.live.behind || d.live.due.After(w.now) || d.sub.holds() {
			return false, nil
		}
	}
	row := *d.live
	row.number++
	row.tries++
	if row.first.IsZero() {
		row.first = w.now
	}
	row.replay, row.returned, row.turn = 0, false, time.Time{}
	row.leased, row.due, row.token = w.now, w.now.Add(w.Claim.Lease), w.Claim.Token
	row.by = w.Claim.By.Process
	set(w.tx, &d.sub.process, row.by)
	w.tx.setLive(d, &row)
	c.Claimed = append(c.Claimed, dispatch.Claimed{
		Key: d.key(), Token: row.token, Number: row.number,
		Target: d.target(w.targets), Event: d.event.info, Body: w.body(d.event), At: w.now, Spared: row.spared,
	})
	return true, nil
}

// others tells whether another process holds deliveries of a subscription.
func (w *batch) others(sub *subscription) bool {
	return sub.process != 0 && sub.process != w.Claim.By.Process && sub.inFlight(w.now) > 0
}

// body returns a copy of an event's body, which its deliveries in a claim share.
func (w *batch) body(e *event) []byte {
	body, ok := w.bodies[e.no]
	if !ok {
		body = bytes.Clone(e.body)
		w.bodies[e.no] = body
	}
	return body
}

// room is how many more deliveries of a lane a claim may give to a subscriber and to a
// subscription.
type room struct {
	bySubscriber, bySubscription   map[int64]int
	perSubscriber, perSubscription int
	toSubscriber, toSubscription   map[int64]int // given so far
}

func (r *room) forSubscriber(no int64) bool {
	return r.toSubscriber[no] < rules.Room(no, r.bySubscriber, r.perSubscriber)
}

func (r *room) forSubscription(no int64) bool {
	return r.toSubscription[no] < rules.Room(no, r.bySubscription, r.perSubscription)
}
