package dispatch

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// bodies are those of the deliveries that a dispatcher holds: one for each event, however
// many deliveries it has, and one for each delivery whose body was converted.
type bodies struct {
	bytes int64
	by    map[DeliveryKey]*heldBody // without a subscription: of the event
}

type heldBody struct {
	body []byte
	uses int
	by   *subscriberSlots // that held it first
}

// bodyOf is the key of a delivery's body.
func bodyOf(c *Claimed) DeliveryKey {
	if c.Converted {
		return c.Key
	}
	return DeliveryKey{Event: c.Key.Event}
}

// hold counts a delivery of a subscriber, and returns the body that it shares with others.
func (b *bodies) hold(of DeliveryKey, body []byte, by *subscriberSlots) *heldBody {
	h := b.by[of]
	if h == nil {
		if b.by == nil {
			b.by = map[DeliveryKey]*heldBody{}
		}
		h = &heldBody{body: body, by: by}
		b.by[of] = h
		b.bytes += int64(len(body))
		by.bytes += int64(len(body))
	}
	h.uses++
	return h
}

// release ends the count of a delivery.
func (b *bodies) release(of DeliveryKey, h *heldBody) {
	if h.uses--; h.uses == 0 {
		delete(b.by, of)
		b.bytes -= int64(len(h.body))
		h.by.bytes -= int64(len(h.body))
	}
}

// unread are claims whose events could not be read. The call that claimed them began at
// asked.
type unread struct {
	claims []Claimed
	asked  time.Time // when they were claimed: see attempt
	heard  time.Time
}

// withoutUnread puts aside the claims whose events were not read, and returns the others.
func (p *pump) withoutUnread(claimed []Claimed, asked, heard time.Time) []Claimed {
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
	p.unread.asked, p.unread.heard = asked, heard
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
	bounded, end := p.d.within(ctx)
	read, err := p.d.store.Payloads(bounded, slices.Compact(events))
	end()
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
	p.accept(p.converted(ctx, whole, u.asked), u.asked, u.heard)
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
	p.reportPutOff(ctx, &c, PutOffEvent, secretPause)
	p.giveUnreadBack(c, c.At.Add(now.Sub(asked)+secretPause))
}

// giveUnreadBack gives back a claim that never had a slot.
func (p *pump) giveUnreadBack(c Claimed, due time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.back = append(p.back, givenBack{&attempt{Claimed: c}, due})
	p.signal()
}
