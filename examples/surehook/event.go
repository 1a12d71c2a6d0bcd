package main

import (
	"context"
	"fmt"
)

// eventReport has the deliveries of an event, and the reasons why there are no others.
type eventReport struct {
	Event      eventInfo `json:"event"`
	Deliveries []record  `json:"deliveries"`
	NoDelivery []reason  `json:"no_delivery"` // why the subscriptions that could have got it have not
}

type reason struct {
	SubscriptionID string `json:"subscription_id"`
	URL            string `json:"url"`
	Why            string `json:"why"`
}

// shownOfEvent is how many deliveries of an event, or subscriptions without one, are explained.
const shownOfEvent = 20

// reportEvent says what became of an event, whose id is what a customer knows.
func reportEvent(ctx context.Context, b backend, id string) (eventReport, error) {
	e, owner, err := b.event(ctx, id)
	if err != nil {
		return eventReport{}, err
	}
	r := eventReport{Event: e, Deliveries: []record{}, NoDelivery: []reason{}}
	found, err := b.deliveries(ctx, filter{event: id}, "", shownOfEvent)
	if err != nil {
		return r, err
	}
	has := map[string]bool{}
	for _, d := range found.Data {
		one, err := b.delivery(ctx, d.ID)
		if err != nil {
			return r, err
		}
		r.Deliveries = append(r.Deliveries, one)
		has[one.SubscriptionID] = true
	}
	if len(found.Data) > 0 && owner == "" {
		owner = onlyOwner(r.Deliveries)
	}
	if len(found.Data) == shownOfEvent || len(found.Data) > 0 && owner == "" {
		return r, nil // it went to many
	}
	could, err := b.subscriptions(ctx, "", owner, "")
	if err != nil {
		return r, err
	}
	for _, s := range could.Data[:min(shownOfEvent, len(could.Data))] {
		if has[s.ID] {
			continue
		}
		why, err := b.whyOf(ctx, id, s.ID)
		if err != nil {
			return r, err
		}
		if why != "" {
			r.NoDelivery = append(r.NoDelivery, reason{s.ID, s.URL, why})
		}
	}
	return r, nil
}

// onlyOwner returns the id of the subscriber to whom all of the deliveries go, or "" if there
// are several.
func onlyOwner(all []record) string {
	for _, d := range all {
		if d.SubscriberID != all[0].SubscriberID {
			return ""
		}
	}
	return all[0].SubscriberID
}

func printEvent(t *terminal, r *eventReport) {
	t.say("event %s: %s %s/%s, version %d, published %s UTC", r.Event.ID, r.Event.Type, r.Event.Object.Type, r.Event.Object.ID, r.Event.Version, clock(r.Event.CreatedAt))
	for _, d := range r.Deliveries {
		t.say("\n%s to %s of %s", d.ID, d.URL, d.SubscriberID)
		t.say("  %s: %s", d.Status, d.Why)
	}
	switch {
	case len(r.Deliveries) > 0:
		t.say("\nsurehook why with the id of a delivery shows its attempts")
	case len(r.NoDelivery) == 0:
		t.say("it has no delivery: nobody whom it is for has a subscription")
	default:
		t.say("it has no delivery")
	}
	for _, n := range r.NoDelivery {
		t.say("\n%s to %s\n  %s", n.SubscriptionID, n.URL, n.Why)
	}
}

// objectReport has the newest events about an object.
type objectReport struct {
	Object object        `json:"object"`
	Events []eventReport `json:"events"` // the newest first
	More   bool          `json:"more"`   // there are older ones
}

// shownOfObject is how many events of an object are explained.
const shownOfObject = 5

// whyObject says what became of the newest events about an object, which is all that somebody
// may know who misses one.
func whyObject(ctx context.Context, t *terminal, b backend, text string) error {
	r := objectReport{Events: []eventReport{}}
	if err := r.Object.Set(text); err != nil {
		return fmt.Errorf("%s is not the TYPE/ID of an object: %w", text, err)
	}
	about, more, err := b.eventsAbout(ctx, r.Object, shownOfObject)
	if err != nil {
		return err
	}
	if len(about) == 0 {
		return no("there is no event about %s: none was published, or it is older than events are kept", text)
	}
	r.More = more
	for _, e := range about {
		one, err := reportEvent(ctx, b, e.ID)
		if err != nil {
			return err
		}
		r.Events = append(r.Events, one)
	}
	if t.json {
		return t.encode(r)
	}
	for i := range r.Events {
		if i > 0 {
			t.say("")
		}
		printEvent(t, &r.Events[i])
	}
	if more {
		t.say("\nthere are older events about %s: surehook deliveries -object %s", text, text)
	}
	return nil
}
