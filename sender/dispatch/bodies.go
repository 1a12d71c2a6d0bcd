package dispatch

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// bodies are the bodies of the events whose deliveries a dispatcher holds: one for each
// event, however many deliveries it has.
type bodies struct {
	bytes int64
	by    map[int64]*heldBody // by the event's number
}

type heldBody struct {
	body []byte
	uses int
}

// hold counts a delivery, and returns the body that the deliveries of its event share.
func (b *bodies) hold(event int64, body []byte) *heldBody {
	h := b.by[event]
	if h == nil {
		if b.by == nil {
			b.by = map[int64]*heldBody{}
		}
		h = &heldBody{body: body}
		b.by[event] = h
		b.bytes += int64(len(body))
	}
	h.uses++
	return h
}

// release ends the count of a delivery.
func (b *bodies) release(event int64, h *heldBody) {
	if h.uses--; h.uses == 0 {
		delete(b.by, event)
		b.bytes -= int64(len(h.body))
	}
}

// unread are claims whose events could not be read. The call that claimed them began at
// asked.
type unread struct {
	claims []Claimed
	asked  time.Time
}

// withoutUnread puts aside the claims whose events were not read, and returns the others.
func (p *pump) withoutUnread(claimed []Claimed, asked time.Time) []Claimed {
	if !slices.ContainsFunc(claimed, func(c Claimed) bool { return c.Body == nil }) {
		return claimed
	}
	var whole []Claimed
	for _, c := range claimed {
		if c.Body == nil {
			p.unread.claims = append(p.unread.claims, c)
		} else {
			whole = append(whole, c)
		}
	}
	p.unread.asked = asked
	p.present.aside.Store(true)
	return whole
}

// readUnread reads the events of the claims that were put aside, and begins their attempts.
// After an error the next step calls it again, and nothing more is claimed until it
// succeeds. It gives up when the leases are of no more use.
func (p *pump) readUnread(ctx context.Context) error {
	u := p.unread
	if len(u.claims) == 0 {
		return nil
	}
	events := make([]int64, len(u.claims))
	for i, c := range u.claims {
		events[i] = c.Key.Event
	}
	slices.Sort(events)
	read, err := p.d.store.Payloads(ctx, slices.Compact(events))
	if err != nil && p.inTime(&attempt{asked: u.asked}, p.d.now()) {
		return fmt.Errorf("reading the events of claims: %w", err)
	}
	p.unread = unread{}
	var whole []Claimed
	for _, c := range u.claims {
		payload, there := read[c.Key.Event]
		c.Event, c.Body = payload.Event, payload.Body
		switch {
		case len(c.Body) > 0:
			whole = append(whole, c)
		case there: // redacted: the store cancels it
			p.giveUnreadBack(c, time.Time{})
		default:
			p.setAside(ctx, c, u.asked, err)
		}
	}
	p.accept(whole, u.asked)
	p.present.aside.Store(false)
	return nil
}

// setAside puts off a claim whose event cannot be read, and logs it.
func (p *pump) setAside(ctx context.Context, c Claimed, asked time.Time, err error) {
	if err == nil {
		err = fmt.Errorf("sender: event number %d is not in the database", c.Key.Event)
	}
	now := p.d.now()
	if p.d.unsent.due(c.Target.SubscriberNumber, now) {
		p.d.cfg.Logger.ErrorContext(ctx, "a delivery cannot be sent, since its event cannot be read; it is looked at again later",
			"subscription_id", c.Target.Subscription, "subscriber_id", c.Target.Subscriber, "error", err, "in", secretPause)
	}
	p.giveUnreadBack(c, c.At.Add(now.Sub(asked)+secretPause))
}

// giveUnreadBack gives back a claim that never had a slot.
func (p *pump) giveUnreadBack(c Claimed, due time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.back = append(p.back, givenBack{&attempt{Claimed: c}, due})
	p.signal()
}
