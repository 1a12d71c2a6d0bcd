package history

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/surehook/surehook/sender"
)

// The reasons why an event has no delivery to a subscription.
const (
	WhyNotAddressed Reason = "not_addressed" // it is addressed to others
	WhyNotAsked     Reason = "not_asked"     // the subscription does not ask for its type
	WhyOlder        Reason = "older"         // it was published before there was the subscription
	WhyRedacted     Reason = "redacted"      // nothing of it is left that a filter could match, or that could be sent
	WhyFiltered     Reason = "filtered"      // the subscription's filter does not match it
	WhyClosing      Reason = "closing"       // the subscription is closing, and gets nothing that comes later
	WhyNoDelivery   Reason = "no_delivery"   // by what is stored now, it would get there, or the filter cannot be asked here
)

// WhyOf explains what became of an event for a subscription. If there is a delivery, it
// answers as [History.Why] does. Otherwise it says why there is none, by the types, the
// filter and the payload version that the subscription has now. A sentence about a filter
// shows a part of the body that it gets. ErrNotFound: there is no such event, or no such
// subscription that is not deleted.
func (h *History) WhyOf(ctx context.Context, event, subscription string) (Why, error) {
	return h.whyOf(ctx, event, subscription, "")
}

// WhyOf is [History.WhyOf] for one of the subscriber's subscriptions, and an event that is
// addressed to the subscriber or to everybody.
func (o *Owned) WhyOf(ctx context.Context, event, subscription string) (Why, error) {
	if o.subscriber == "" {
		return Why{}, errNobody
	}
	return o.all.whyOf(ctx, event, subscription, o.subscriber)
}

// whyOf answers a subscriber, or the operator if it is empty.
func (h *History) whyOf(ctx context.Context, event, subscription, owner string) (Why, error) {
	e, err := h.store.Event(ctx, event)
	if err != nil {
		return Why{}, err
	}
	if owner != "" && e.Subscriber != "" && e.Subscriber != owner {
		return Why{}, fmt.Errorf("%w: event %q", sender.ErrNotFound, event)
	}
	if subscription == "" { // to a query it is any one, another's too
		return Why{}, fmt.Errorf("%w: subscription %q", sender.ErrNotFound, subscription)
	}
	page, _, err := h.store.Subscriptions(ctx, sender.SubscriptionQuery{ID: subscription, Subscriber: owner, Implicit: true, Limit: 1})
	if err != nil {
		return Why{}, err
	}
	if len(page) == 0 {
		return Why{}, fmt.Errorf("%w: subscription %q", sender.ErrNotFound, subscription)
	}
	made, _, err := h.store.Deliveries(ctx, DeliveryQuery{Event: event, Subscription: subscription, Limit: 1})
	if err != nil {
		return Why{}, err
	}
	if len(made) > 0 {
		w, err := h.Why(ctx, made[0].ID)
		if !errors.Is(err, sender.ErrNotFound) { // it was removed in the meantime
			return w, err
		}
	}
	return whyNot(&e, &page[0], h.convert), nil
}

// whyNot is a pure function of an event and a subscription that has no delivery of it.
func whyNot(e *sender.StoredEvent, s *sender.Subscription, convert sender.Convert) Why {
	w := Why{Subscription: s.Status}
	say := func(reason Reason, format string, args ...any) Why {
		w.Reason = reason
		w.Parts, w.Sentence = parts("Not delivered: " + fmt.Sprintf(format, args...))
		return w
	}
	addressed := e.Subscription == s.ID // its filter is not asked
	asks, told := sender.Matches(*s, e.Type, "", "", ""), sender.Matches(*s, e.Type, "", "", about(e))
	switch {
	case addressed:
	case e.Subscription != "":
		return say(WhyNotAddressed, "the event is addressed to another subscription alone.")
	case e.Subscriber != "" && e.Subscriber != s.Subscriber && s.Subscriber != sender.Operator:
		return say(WhyNotAddressed, "the event is addressed to another subscriber.")
	case !asks:
		return say(WhyNotAsked, "the subscription does not ask for the type %s; it asks for %s.", e.Type, strings.Join(s.EventTypes, ", "))
	case !told:
		return say(WhyNotAsked, "the event tells of this subscription itself, which gets that only if it asks for exactly the type %s; it asks for %s.", e.Type, strings.Join(s.EventTypes, ", "))
	case e.CreatedAt.Before(s.CreatedAt.Truncate(time.Second)):
		return say(WhyOlder, "the event was published at %s, before there was the subscription.", at(e.CreatedAt))
	case s.Filter != nil && e.Redacted:
		return say(WhyRedacted, "the event was redacted, so no filter matches it.")
	}
	if e.Redacted {
		return say(WhyRedacted, "the event was redacted, so nothing of it is left to send.")
	}
	body, _, err := convert.Body(e.Type, e.Body, s.Settings.PayloadVersion)
	switch {
	case addressed, s.Filter == nil, s.Settings.Unreadable() != nil && s.Filter.Unreadable() == nil: // see rules.AskedBy
	case err != nil && s.Filter.Unreadable() == nil:
		return say(WhyNoDelivery, "by its type the subscription would get the event. Its filter cannot be asked here. %s", notMade(e.Body, s.Settings.PayloadVersion))
	case !s.Filter.Match(body):
		return say(WhyFiltered, "the subscription's filter does not match. %s.", clauses(s, body))
	}
	if s.Status == sender.SubscriptionClosing {
		return say(WhyClosing, "the subscription is closing: it gets what was published before that, and nothing later. If the event was, it is not expanded yet, or the record of the delivery is gone with its retention.")
	}
	return say(WhyNoDelivery, "as the subscription is now, it would get the event. The event is not expanded yet, which takes moments if a dispatcher runs, or the subscription was changed since, or the record of the delivery is gone with its retention.")
}

// notMade tells of a body that could not be made in the payload version of a subscription.
func notMade(published []byte, pinned string) string {
	_, p, _ := sender.SplitBody(published)
	return fmt.Sprintf("Its data was published in the payload version %s, the subscription gets %s, and the one could not be made into the other: a converter fails, or this process has no catalogue, or an older one.", p.Version, cmp.Or(pinned, "the oldest one"))
}

// clauses says which clauses of a filter did not match.
func clauses(s *sender.Subscription, body []byte) string {
	var all []string
	for _, r := range s.Filter.Explain(body) {
		all = append(all, r.String())
	}
	return strings.ReplaceAll(strings.Join(all, "; "), timeMark, "")
}

// about returns the id of the subscription that an event of a notice tells of, or "" if it
// tells of none.
func about(e *sender.StoredEvent) string {
	var data struct {
		Data struct {
			Subscription string `json:"subscription_id"`
		}
	}
	if e.Notice {
		_ = json.Unmarshal(e.Body, &data) // a redacted one has none
	}
	return data.Data.Subscription
}
