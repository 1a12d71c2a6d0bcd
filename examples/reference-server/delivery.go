package main

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
)

// Object is what an event is about.
type Object struct {
	Type string `json:"type" doc:"Words joined by full stops."`
	ID   string `json:"id" doc:"Its id, among the objects of its type."`
}

// EventInfo names the event of a delivery.
type EventInfo struct {
	ID        string    `json:"id" doc:"What receivers deduplicate by."`
	Type      string    `json:"type" doc:"Words joined by full stops, such as order.paid."`
	Object    Object    `json:"object" doc:"What the event is about."`
	Version   int64     `json:"version" doc:"Higher with each change of the object."`
	CreatedAt time.Time `json:"created_at" doc:"When it was published."`
}

// Delivery is one event on its way to one subscription.
type Delivery struct {
	ID             string     `json:"id" doc:"The delivery's id."`
	Event          EventInfo  `json:"event" doc:"Which event is delivered."`
	SubscriptionID string     `json:"subscription_id" doc:"To which subscription."`
	SubscriberID   string     `json:"subscriber_id" doc:"The subscription's owner."`
	URL            string     `json:"url" doc:"Where it is posted to."`
	Status         string     `json:"status" enum:"pending,awaiting_retry,held,delivered,dead_lettered,cancelled,superseded" doc:"How far it has come."`
	AttemptCount   int        `json:"attempt_count" doc:"How many attempts have ended."`
	NextAttemptAt  *time.Time `json:"next_attempt_at" doc:"When the next attempt is due; null if none is planned."`
	LastErrorClass string     `json:"last_error_class" doc:"Of the last attempt; empty if it succeeded, or there was none."`
}

// DeliveryRecord is a delivery with its history.
type DeliveryRecord struct {
	Delivery
	Payload  string    `json:"payload" doc:"The exact body that is posted."`
	Attempts []Attempt `json:"attempts" nullable:"false" doc:"Oldest first: the newest 1,000, if there are more."`
	Why      string    `json:"why" doc:"What it waits for, in a sentence."`

	WaitsFor  *string `json:"waits_for" doc:"The id of the delivery that goes before it, of another version of its object; null: it waits for none."`
	HoldsBack bool    `json:"holds_back" doc:"It is a dead letter for which the later versions of its object wait: redeliver it, or pass over it."`
}

// Attempt is one POST, as recorded.
type Attempt struct {
	Number          int        `json:"number" doc:"1, 2, 3 …"`
	StartedAt       time.Time  `json:"started_at" doc:"When it began."`
	DurationMS      int64      `json:"duration_ms" doc:"From the dial to the end of the answer, in milliseconds."`
	StatusCode      *int       `json:"status_code" doc:"What it was answered with; null without an answer."`
	Error           *string    `json:"error" doc:"What went wrong, for people; null for success."`
	ErrorClass      string     `json:"error_class" enum:",dns,connect,tls,timeout,reset,status,redirect,blocked,interrupted,protocol" doc:"Empty for success."`
	ResponseSnippet *string    `json:"response_snippet" doc:"The beginning of the answer's body."`
	RequestHeaders  []Header   `json:"request_headers" nullable:"false" doc:"What was sent, if it is kept. Values that may be secret read \"redacted\"."`
	ResponseHeaders []Header   `json:"response_headers" nullable:"false" doc:"What was answered, in the same form."`
	NextAttemptAt   *time.Time `json:"next_attempt_at" doc:"When another was to follow."`
}

// Header is one of an attempt's headers, as it is kept.
type Header struct {
	Name  string `json:"name" doc:"Its name; … for the last one if there were more than are kept."`
	Value string `json:"value" doc:"Its value, \"redacted\", or how many more there were."`
}

func viewEventInfo(e sender.EventInfo, version int64) EventInfo {
	return EventInfo{ID: e.ID, Type: e.Type, Object: Object(e.Object), Version: version, CreatedAt: e.CreatedAt.UTC()}
}

func viewDelivery(d sender.Delivery) Delivery {
	return Delivery{
		ID: d.ID, Event: viewEventInfo(d.Event, d.Version), SubscriptionID: d.Subscription, SubscriberID: d.Subscriber, URL: d.URL,
		Status: string(d.Status), AttemptCount: d.AttemptCount, NextAttemptAt: timeOrNull(d.NextAttemptAt), LastErrorClass: string(d.LastErrorClass),
	}
}

func viewAttempt(a sender.Attempt) Attempt {
	return Attempt{
		Number: a.Number, StartedAt: a.StartedAt.UTC(), DurationMS: a.Duration.Milliseconds(), StatusCode: orNull(a.StatusCode),
		Error: orNull(a.Error), ErrorClass: string(a.Class), ResponseSnippet: orNull(strings.ToValidUTF8(string(a.Snippet), "\uFFFD")),
		RequestHeaders: viewHeaders(a.Headers.Request()), ResponseHeaders: viewHeaders(a.Headers.Answer()),
		NextAttemptAt: timeOrNull(a.NextAttemptAt),
	}
}

func viewHeaders(all []sender.Header) []Header {
	list := make([]Header, len(all))
	for i, h := range all {
		list[i] = Header(h)
	}
	return list
}

type (
	listDeliveries struct {
		Page
		Status         string    `query:"status" enum:"pending,awaiting_retry,held,delivered,dead_lettered,cancelled,superseded" doc:"Deliveries of one status."`
		SubscriptionID string    `query:"subscription_id" doc:"To one subscription."`
		SubscriberID   string    `query:"subscriber_id" doc:"To the subscriptions of one subscriber; of another than the caller there are none, unless the operator asks."`
		EventType      string    `query:"event_type" doc:"Exact, prefix.* or *."`
		EventID        string    `query:"event_id" doc:"Of one event."`
		ErrorClass     string    `query:"error_class" enum:"dns,connect,tls,timeout,reset,status,redirect,blocked,interrupted,protocol" doc:"How the last attempt failed."`
		StatusCode     int       `query:"status_code" minimum:"100" maximum:"999" doc:"What the last attempt was answered with."`
		Since          time.Time `query:"since" doc:"The event was published at it or later."`
		Until          time.Time `query:"until" doc:"The event was published before it."`
	}
	DeliveryPath struct {
		ID string `path:"id" doc:"The delivery's id."`
	}
	keyedDelivery struct {
		DeliveryPath
		Keyed
	}
)

// Resolve implements huma.Resolver: a parameter cannot be a pointer.
func (l *listDeliveries) Resolve(ctx huma.Context) []error {
	if ctx.Query("until") != "" {
		l.Until = asBound(&l.Until)
	}
	return nil
}

func (s *server) deliveryOperations() {
	const tag = "Deliveries"
	handle(s, operation{method: http.MethodGet, path: "/deliveries", id: "list-deliveries", summary: "List deliveries, newest first", tag: tag}, s.listDeliveries)
	handle(s, operation{method: http.MethodGet, path: "/deliveries/{id}", id: "get-delivery", summary: "Read a delivery's record", tag: tag}, s.getDelivery)
	handle(s, operation{method: http.MethodPost, path: "/deliveries/{id}/redeliver", id: "redeliver", summary: "Send a delivery again, now", tag: tag, status: http.StatusAccepted, errors: []int{http.StatusConflict}}, s.redeliver)
	handle(s, operation{method: http.MethodPost, path: "/deliveries/{id}/pass-over", id: "pass-over", summary: "Let the versions go on that a dead letter holds back", tag: tag, errors: []int{http.StatusConflict}}, s.passOver)
}

func (s *server) listDeliveries(ctx context.Context, c caller, in *listDeliveries) (*answer[List[Delivery]], error) {
	cursor, err := in.cursor("deliveries")
	if err != nil {
		return nil, err
	}
	page, next, err := s.deliveriesOf(c).Deliveries(ctx, history.DeliveryQuery{
		Status: sender.Status(in.Status), Subscription: in.SubscriptionID, Subscriber: in.SubscriberID, EventType: in.EventType, Event: in.EventID,
		Class: sender.Class(in.ErrorClass), StatusCode: in.StatusCode, Since: in.Since, Until: in.Until, Cursor: cursor, Limit: in.Limit,
	})
	if err != nil {
		return nil, err
	}
	return listOf("deliveries", page, next, viewDelivery), nil
}

// deliveries are those that a caller may see and send again.
type deliveries interface {
	Delivery(ctx context.Context, id string) (sender.Delivery, error)
	Deliveries(ctx context.Context, q history.DeliveryQuery) ([]sender.Delivery, string, error)
	Why(ctx context.Context, id string) (history.Why, error)
	Redeliver(ctx context.Context, id string) error
	PassOver(ctx context.Context, id string) error
	WhyOf(ctx context.Context, event, subscription string) (history.Why, error)
	Preview(ctx context.Context, q history.PreviewQuery) (history.Preview, error)
}

// deliveriesOf are a subscriber's own, and everybody's for the operator.
func (s *service) deliveriesOf(c caller) deliveries {
	if c.operator() {
		return s.history
	}
	return s.history.ForSubscriber(c.id)
}

// record reads a delivery that the caller may see.
func (s *service) record(ctx context.Context, c caller, id string) (DeliveryRecord, error) {
	own := s.deliveriesOf(c)
	d, err := own.Delivery(ctx, id)
	if errors.Is(err, sender.ErrNotFound) {
		return DeliveryRecord{}, notFound("delivery")
	}
	if err != nil {
		return DeliveryRecord{}, err
	}
	why, err := own.Why(ctx, id)
	if err != nil {
		return DeliveryRecord{}, err
	}
	r := DeliveryRecord{Delivery: viewDelivery(d), Payload: string(d.Body), Attempts: []Attempt{}, Why: why.Sentence, WaitsFor: orNull(why.Behind), HoldsBack: why.HoldsBack}
	for _, a := range d.Attempts {
		r.Attempts = append(r.Attempts, viewAttempt(a))
	}
	return r, nil
}

func (s *server) getDelivery(ctx context.Context, c caller, in *DeliveryPath) (*answer[DeliveryRecord], error) {
	r, err := s.record(ctx, c, in.ID)
	if err != nil {
		return nil, err
	}
	return &answer[DeliveryRecord]{r}, nil
}

func (s *server) passOver(ctx context.Context, c caller, in *keyedDelivery) (*answer[DeliveryRecord], error) {
	return s.act(ctx, c, in, func(ctx context.Context, own deliveries) error {
		err := own.PassOver(ctx, in.ID)
		if errors.Is(err, sender.ErrStatus) {
			err = problem(http.StatusConflict, "it holds nothing back: pass over a dead letter whose subscription has hold_dead, and whose holds_back is true")
		}
		return err
	})
}

func (s *server) redeliver(ctx context.Context, c caller, in *keyedDelivery) (*answer[DeliveryRecord], error) {
	return s.act(ctx, c, in, func(ctx context.Context, own deliveries) error { return own.Redeliver(ctx, in.ID) })
}

// act does something with a delivery, and answers with its record as it is then.
func (s *server) act(ctx context.Context, c caller, in *keyedDelivery, do func(ctx context.Context, own deliveries) error) (*answer[DeliveryRecord], error) {
	body, err := onceApart(ctx, s.answers, c, in.Key, nil, apart, func(ctx context.Context) (DeliveryRecord, error) {
		if err := do(ctx, s.deliveriesOf(c)); errors.Is(err, sender.ErrNotFound) {
			return DeliveryRecord{}, notFound("delivery")
		} else if err != nil {
			return DeliveryRecord{}, err
		}
		return s.record(ctx, c, in.ID)
	})
	if err != nil {
		return nil, err
	}
	if in.Key != "" { // a repeat does not say what was redacted since
		if now, err := s.record(ctx, c, in.ID); err == nil && now.Payload == "" {
			body = now
		}
	}
	return &answer[DeliveryRecord]{body}, nil
}
