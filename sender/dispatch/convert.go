package dispatch

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/surehook/surehook/sender"
)

// Convert makes the data of an event of a type, published in the version from, into what a
// subscription gets that is pinned to a date, and returns its version. It must be a pure
// function. A *catalogue.Catalogue's Convert is one.
type Convert func(eventType, from, date string, data json.RawMessage) (version string, converted json.RawMessage, err error)

// converted gives claims the bodies that their subscriptions' payload versions ask for, and
// returns those that can be attempted. The others are given back.
//
// The bytes of a delivery never change. Therefore what was made is kept in the database
// before it is sent, and whoever attempts the delivery again, in whatever process and with
// whatever code, sends what is kept. Nothing is kept of a delivery that goes out as it was
// published. That is stable by itself, because the version of a subscription can only rise:
// what was new enough for it once is so for ever.
func (p *pump) converted(ctx context.Context, claimed []Claimed, asked time.Time) []Claimed {
	var asks []KeptBody
	var at []int // of each in claimed
	wrong := map[int]error{}
	for i := range claimed {
		c := &claimed[i]
		body, needed, err := p.d.convert(c)
		if err != nil {
			wrong[i] = err
		}
		if needed {
			asks = append(asks, KeptBody{c.Key, c.Token, body})
			at = append(at, i)
		}
	}
	if len(asks) == 0 {
		return claimed
	}
	kept, err := p.d.store.KeepBodies(ctx, asks)
	out := map[int]bool{}
	for n, i := range at {
		c := &claimed[i]
		body, there := kept[c.Key]
		switch {
		case err != nil:
			p.putOff(ctx, c, asked, fmt.Errorf("keeping the body of a delivery: %w", err))
			out[i] = true
		case there:
			c.Body, c.Converted = body, true
		case wrong[i] != nil:
			p.putOff(ctx, c, asked, wrong[i])
			out[i] = true
		case asks[n].Body != nil: // its lease is over, or its event is redacted
			p.giveUnreadBack(*c, time.Time{})
			out[i] = true
		}
	}
	if len(out) == 0 {
		return claimed
	}
	left := claimed[:0]
	for i := range claimed {
		if !out[i] {
			left = append(left, claimed[i])
		}
	}
	return left
}

// convert makes the body that a claim's subscription asks for. needed tells whether the store
// must be asked: because a body was made, or could not be, or because one may have been kept
// by an attempt before.
func (d *Dispatcher) convert(c *Claimed) (body []byte, needed bool, err error) {
	head, p, ok := sender.SplitBody(c.Body)
	if !ok {
		return nil, false, nil
	}
	pinned := ""
	if s := c.Target.Settings; s != nil {
		if s.Unreadable() != nil {
			return nil, false, nil // it is not sent
		}
		pinned = s.PayloadVersion
	}
	again := c.Number > 1
	switch {
	case p.Version <= pinned || p.Data == nil:
		return nil, again, nil
	case d.cfg.Convert == nil && pinned == "":
		return nil, again, nil
	case d.cfg.Convert == nil:
		return nil, true, fmt.Errorf("sender: the subscription is pinned to the payload version %q, and this process has no catalogue that could make it of %q: give all processes the same", pinned, p.Version)
	}
	version, data, err := d.converts(c.Event.Type, p.Version, pinned, p.Data)
	if err != nil {
		return nil, true, err
	}
	if version == p.Version {
		return nil, again, nil
	}
	return sender.JoinBody(head, sender.Payload{Version: version, Data: data}), true, nil
}

// converts calls Config.Convert. One that panics has failed: others' deliveries go on.
func (d *Dispatcher) converts(eventType, from, date string, data json.RawMessage) (version string, converted json.RawMessage, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("sender: converting the data of %s panicked: %s", eventType, panicText(v))
		}
	}()
	return d.cfg.Convert(eventType, from, date, data)
}

// putOff gives back a claim whose body cannot be made, and logs it.
func (p *pump) putOff(ctx context.Context, c *Claimed, asked time.Time, err error) {
	now := p.d.now()
	if p.d.unsent.due(c.Target.SubscriberNumber, now) {
		p.d.cfg.Logger.ErrorContext(ctx, "a delivery cannot be sent in the payload version of its subscription, nor perhaps others; they are looked at again later",
			"event_id", c.Event.ID, "subscription_id", c.Target.Subscription, "subscriber_id", c.Target.Subscriber, "error", err, "in", secretPause)
	}
	p.giveUnreadBack(*c, c.At.Add(now.Sub(asked)+secretPause))
}
