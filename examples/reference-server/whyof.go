package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/filter"
	"github.com/surehook/surehook/sender/history"
)

// EventWhy says why an event goes to a subscription, or does not.
type EventWhy struct {
	EventID        string     `json:"event_id" doc:"The event."`
	SubscriptionID string     `json:"subscription_id" doc:"The subscription."`
	DeliveryID     *string    `json:"delivery_id" doc:"The delivery of the one to the other; null: there is none."`
	Reason         string     `json:"reason" enum:"delivered,in_flight,due,awaiting_retry,rate_limited,paused,disabled,cancelled,dead_lettered,behind,superseded,sent_again,not_addressed,not_asked,older,redacted,filtered,closing,no_delivery" doc:"From not_addressed on, there is no delivery: the event is addressed to others; the subscription does not ask for its type; it is older than the subscription; nothing of it is left that a filter could match; the filter does not match it; the subscription is closing, and gets nothing that was published later; by what is stored now, it would get there."`
	Why            string     `json:"why" doc:"The same in a sentence, with what the filter has found."`
	Until          *time.Time `json:"until" doc:"When the reason is over if nothing else happens; null: not known, or never."`
}

// NewPreview asks what a filter would have passed.
type NewPreview struct {
	EventTypes   []string        `json:"event_types,omitempty" nullable:"false" minItems:"1" maxItems:"100" doc:"Exact types, prefix.* or *, which is the default when it is left out."`
	Filter       json.RawMessage `json:"filter" doc:"As in NewSubscription."`
	Events       integer         `json:"events,omitempty" minimum:"1" maximum:"200" doc:"How many events are looked at, the newest first. The default is 100."`
	SubscriberID string          `json:"subscriber_id,omitempty" minLength:"1" doc:"For the operator: whose events. Without it, those of all."`
}

// Previewed is what a filter would have passed.
type Previewed struct {
	Events   int        `json:"events" doc:"How many were looked at: the newest that the subscription would have got without a filter."`
	Matching int        `json:"matching" doc:"How many of these the filter passes."`
	Redacted int        `json:"redacted" doc:"How many of these have lost their bodies, so that no filter passes them."`
	Since    *time.Time `json:"since" doc:"When the oldest of them was published; null: there are none."`
	More     bool       `json:"more" doc:"There may be older ones."`
}

type (
	whyEvent struct {
		SubscriptionPath
		EventID string `query:"event_id" required:"true" minLength:"1" doc:"The event's id."`
	}
	previewFilter struct {
		Keyed
		Body NewPreview
	}
)

func (s *server) whyEvent(ctx context.Context, c caller, in *whyEvent) (*answer[EventWhy], error) {
	if _, err := s.readOwn(ctx, c, in.ID); err != nil {
		return nil, err
	}
	mine := s.deliveriesOf(c)
	why, err := mine.WhyOf(ctx, in.EventID, in.ID)
	if errors.Is(err, sender.ErrNotFound) {
		err = notFound("event")
	}
	if err != nil {
		return nil, err
	}
	made, _, err := mine.Deliveries(ctx, history.DeliveryQuery{Event: in.EventID, Subscription: in.ID, Limit: 1})
	if err != nil {
		return nil, err
	}
	out := EventWhy{EventID: in.EventID, SubscriptionID: in.ID, Reason: string(why.Reason), Why: why.Sentence, Until: timeOrNull(why.Until)}
	if len(made) > 0 {
		out.DeliveryID = &made[0].ID
	}
	return &answer[EventWhy]{out}, nil
}

func (s *server) previewFilter(ctx context.Context, c caller, in *previewFilter) (*answer[Previewed], error) {
	body, err := onceApart(ctx, s.answers, c, in.Key, in.Body, apart, func(ctx context.Context) (out Previewed, err error) {
		ctx, cancel := context.WithTimeout(ctx, apart) // without a key, too
		defer cancel()
		err = s.counting.do(ctx, c, func() error {
			return s.asking.do(ctx, func(ctx context.Context) (err error) {
				out, err = s.preview(ctx, c, in.Body)
				return err
			})
		})
		return out, err
	})
	if err != nil {
		return nil, err
	}
	return &answer[Previewed]{body}, nil
}

func (s *server) preview(ctx context.Context, c caller, asked NewPreview) (Previewed, error) {
	whose := asked.SubscriberID
	if !c.operator() && whose != "" && whose != c.id {
		return Previewed{}, problem(http.StatusForbidden, "subscriber_id is for the operator: leave it out", Detail{Location: "body.subscriber_id", Message: "leave it out"})
	}
	if err := textOnly("body.subscriber_id", whose); err != nil {
		return Previewed{}, err
	}
	if whose != "" {
		if _, err := s.registry.Subscriber(ctx, whose); errors.Is(err, sender.ErrNotFound) {
			return Previewed{}, invalid("body.subscriber_id", fmt.Sprintf("there is no subscriber %q", whose))
		} else if err != nil {
			return Previewed{}, err
		}
	}
	q := history.PreviewQuery{Subscriber: cmp.Or(whose, c.id), EventTypes: asked.EventTypes, Filter: string(asked.Filter), Events: int(asked.Events)}
	if _, err := filter.Parse([]byte(q.Filter)); err != nil {
		var errs []Detail
		for _, line := range strings.Split(err.Error(), "\n") {
			errs = append(errs, Detail{Location: "body.filter", Message: line})
		}
		return Previewed{}, problem(http.StatusUnprocessableEntity, summary(errs), errs...)
	}
	p, err := s.deliveriesOf(c).Preview(ctx, q)
	if errors.Is(err, sender.ErrInvalid) { // of the types: all else was looked at
		errs := located(err)
		for i := range errs {
			errs[i].Location = "body.event_types"
		}
		return Previewed{}, problem(http.StatusUnprocessableEntity, summary(errs), errs...)
	}
	if err != nil {
		return Previewed{}, err
	}
	return Previewed{Events: p.Events, Matching: p.Matching, Redacted: p.Redacted, Since: timeOrNull(p.Since), More: p.More}, nil
}
