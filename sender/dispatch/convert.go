package dispatch

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
)

// converted gives claims the bodies that their subscriptions' payload versions ask for, and
// returns those that can be attempted. The others are given back.
//
// The bytes of a delivery never change. Therefore what was made is kept in the database
// before it is sent, and whoever attempts the delivery again, in whatever process and with
// whatever code, sends what is kept. Nothing is kept of a delivery that goes out as it was
// published. That is stable by itself, because the version of a subscription can only
// rise: data that was new enough for it once is so for ever.
func (p *pump) converted(ctx context.Context, claimed []Claimed, asked time.Time) []Claimed {
	var all []conversion
	var asks []KeptBody
	for i := range claimed {
		if x := p.d.convert(&claimed[i]); x.needed {
			all = append(all, x)
			asks = append(asks, KeptBody{x.c.Key, x.c.Token, x.body})
		}
	}
	if len(all) == 0 {
		return claimed
	}
	p.present.aside.Store(true) // until the claims are accepted
	bounded, end := p.d.within(ctx)
	kept, err := p.d.store.KeepBodies(bounded, asks)
	end()
	out := map[DeliveryKey]bool{}
	for i := range all {
		x := &all[i]
		if err != nil {
			x.err, x.reason, x.pause = fmt.Errorf("keeping the body of a delivery: %w", err), PutOffBody, unreadPause
		}
		if body, there := kept[x.c.Key]; there && err == nil {
			x.c.Body, x.c.Converted = body, true
		} else if x.err != nil || x.body != nil {
			p.putOff(ctx, x, asked)
			out[x.c.Key] = true
		}
	}
	return slices.DeleteFunc(claimed, func(c Claimed) bool { return out[c.Key] })
}

// conversion is a claim whose body may be another than that of its event.
type conversion struct {
	c      *Claimed
	needed bool          // the store must be asked: a body was made, or could not be, or one may be kept
	body   []byte        // that was made; nil: none was
	err    error         // why it could not be
	reason PutOffReason  // "": PutOffPayload
	pause  time.Duration // until it is looked at again; 0: secretPause. A database that was away is back soon
}

// convert makes the body that a claim's subscription asks for.
func (d *Dispatcher) convert(c *Claimed) conversion {
	_, p, ok := sender.SplitBody(c.Body)
	if !ok {
		return conversion{}
	}
	pinned := ""
	if s := c.Target.Settings; s != nil {
		if s.Unreadable() != nil {
			return conversion{} // it is not sent
		}
		pinned = s.PayloadVersion
	}
	body, version, err := d.cfg.Convert.Body(c.Event.Type, c.Body, pinned)
	switch {
	case err != nil:
		return conversion{c: c, needed: true, err: err}
	case version == p.Version:
		return conversion{c: c, needed: c.Number > 1} // an attempt before may have kept another
	case len(body) > d.cfg.MaxBodyBytes:
		return conversion{c: c, needed: true, err: fmt.Errorf(
			"sender: converting the data of %s from version %q to %q makes a body of %d bytes, at most %d are allowed (dispatch.Config.MaxBodyBytes): have the converter make less", c.Event.Type, p.Version, version, len(body), d.cfg.MaxBodyBytes)}
	}
	return conversion{c: c, needed: true, body: body}
}

// putOff gives back a claim whose body could not be made or kept. If it was made and not
// kept, the lease is lost or the event redacted, and the store acts on that.
func (p *pump) putOff(ctx context.Context, x *conversion, asked time.Time) {
	if x.err == nil || ctx.Err() != nil {
		p.giveUnreadBack(*x.c, time.Time{})
		return
	}
	now, pause := p.d.now(), cmp.Or(x.pause, secretPause)
	if p.d.unsent.due(x.c.Target.SubscriberNumber, now) {
		p.d.cfg.Logger.ErrorContext(ctx, "a delivery cannot be sent in the payload version of its subscription, nor perhaps others; they are looked at again later",
			"event_id", x.c.Event.ID, "subscription_id", x.c.Target.Subscription, "subscriber_id", x.c.Target.Subscriber, "error", x.err, "in", pause)
	}
	p.reportPutOff(ctx, x.c, cmp.Or(x.reason, PutOffPayload), pause)
	p.giveUnreadBack(*x.c, x.c.At.Add(now.Sub(asked)+pause))
}
