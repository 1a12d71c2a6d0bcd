package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/filter"
)

// Subscription is a subscriber's registered callback URL with its filter.
type Subscription struct {
	ID             string          `json:"id" doc:"The subscription's id."`
	SubscriberID   string          `json:"subscriber_id" doc:"Whose it is."`
	URL            string          `json:"url" doc:"Where events are posted to."`
	EventTypes     []string        `json:"event_types" nullable:"false" doc:"Exact types, prefix.* or *."`
	Filter         json.RawMessage `json:"filter" doc:"Which events of these types it gets, by their content; null: all of them."`
	Order          string          `json:"order" enum:"relaxed,object,latest" doc:"How the deliveries about one object wait for each other: see NewSubscription."`
	HoldTries      int             `json:"hold_tries" doc:"With the order object: after how many attempts a failing delivery holds its object back no longer. 0: when its schedule ends."`
	HoldForSeconds int64           `json:"hold_for_seconds" doc:"With the order object: after how many seconds. 0: when its schedule ends."`
	HoldDead       bool            `json:"hold_dead" doc:"With the order object: a dead letter goes on to hold back the later versions of its object."`
	PayloadVersion *string         `json:"payload_version" doc:"The date whose versions of the events' data it gets; null: there is one version of each."`

	RetryDelaysSeconds  []int64 `json:"retry_delays_seconds" nullable:"false" doc:"How long the attempts of a delivery that fails wait for each other; empty: as for all."`
	HorizonSeconds      int64   `json:"horizon_seconds" doc:"For how long after its first attempt a delivery is tried. 0: as for all."`
	DisableAfterSeconds int64   `json:"disable_after_seconds" doc:"After how long without a success it is disabled. 0: as for all."`
	Gone                string  `json:"gone" enum:"failure,stop" doc:"What the answer 410 Gone does: see NewSubscription."`

	Description    string     `json:"description" doc:"For people."`
	Implicit       bool       `json:"implicit" doc:"It stands for the callback URLs of one origin, of jobs."`
	Status         string     `json:"status" enum:"active,paused,disabled,closing" doc:"While it is paused or disabled, its deliveries are held. closing: it gets what was committed before its subscriber was deleted, and ends."`
	CreatedAt      time.Time  `json:"created_at" doc:"When it was registered."`
	FailingSince   *time.Time `json:"failing_since" doc:"Since when no attempt has succeeded; kept while it is disabled."`
	DisabledAt     *time.Time `json:"disabled_at" doc:"When it was disabled; null unless it is."`
	DisabledReason *string    `json:"disabled_reason" doc:"Why it was disabled; null unless it is."`
	LastSuccessAt  *time.Time `json:"last_success_at" doc:"When an attempt succeeded last, to about a minute; null if none did."`
	LastFailureAt  *time.Time `json:"last_failure_at" doc:"When an attempt failed last; null if none did."`
	Backlog        int64      `json:"backlog" doc:"How many of its deliveries have not ended."`
	DeadLettered   int64      `json:"dead_lettered" doc:"How many dead letters are kept."`
}

func viewSubscription(s sender.Subscription) Subscription {
	return Subscription{
		ID: s.ID, SubscriberID: s.Subscriber, URL: s.URL, EventTypes: s.EventTypes, Filter: viewFilter(s.Filter), Description: s.Description,
		Order: viewOrder(s.Settings.Order), HoldTries: s.Settings.HoldTries, HoldForSeconds: int64(s.Settings.HoldFor / time.Second), HoldDead: s.Settings.HoldDead,
		PayloadVersion:     orNull(s.Settings.PayloadVersion),
		RetryDelaysSeconds: viewDelays(s.Settings.RetryDelays), HorizonSeconds: int64(s.Settings.Horizon / time.Second),
		DisableAfterSeconds: int64(s.Settings.DisableAfter / time.Second), Gone: viewGone(s.Settings.Gone),
		Implicit: s.Implicit, Status: string(s.Status), CreatedAt: s.CreatedAt.UTC(), FailingSince: timeOrNull(s.Health.FailingSince),
		DisabledAt: timeOrNull(s.DisabledAt), DisabledReason: orNull(s.DisabledReason),
		LastSuccessAt: timeOrNull(s.Health.LastSuccess), LastFailureAt: timeOrNull(s.Health.LastFailure),
		Backlog: s.Backlog, DeadLettered: s.DeadLettered,
	}
}

// viewFilter is the filter as JSON, and null if there is none.
func viewFilter(f *filter.Filter) json.RawMessage {
	text, err := f.MarshalJSON()
	if err != nil {
		return json.RawMessage("null")
	}
	return text
}

// expression is a filter as it was given, "" if it is null or left out.
func expression(given json.RawMessage) string {
	if string(given) == "null" {
		return ""
	}
	return string(given)
}

// NewSubscription asks for a subscription.
type NewSubscription struct {
	URL         string          `json:"url" doc:"Where events are posted to."`
	EventTypes  []string        `json:"event_types,omitempty" nullable:"false" minItems:"1" doc:"Exact types, prefix.* or *, which is the default when it is left out. A notice's event never goes to the subscription that it is about: one that names such a type has a clause in its filter that keeps its own out."`
	Filter      json.RawMessage `json:"filter,omitempty" doc:"Which events of these types it gets, by their content, such as {\"data.status\": \"paid\", \"data.amount\": {\"gte\": 100}}: see the documentation of filters. Left out or null: all of them."`
	Description string          `json:"description,omitempty" doc:"For people: up to 1024 bytes."`
	Ordering
	Failing
	SubscriberID string `json:"subscriber_id,omitempty" minLength:"1" doc:"For the operator: whose it is. Without it an operator's subscription gets the events of all."`
}

// SubscriptionChange lists the fields to change. A field that is left out stays as it is.
type SubscriptionChange struct {
	URL         *string         `json:"url,omitempty" doc:"Another one. Attempts that begin later go there."`
	EventTypes  []string        `json:"event_types,omitempty" nullable:"false" minItems:"1" doc:"Exact types, prefix.* or *."`
	Filter      json.RawMessage `json:"filter,omitempty" doc:"Another filter on the events' content; null removes it."`
	Description *string         `json:"description,omitempty" doc:"For people: up to 1024 bytes."`
	Ordering
	Failing
	Status string `json:"status,omitempty" enum:"active,paused" doc:"active also enables a disabled one."`
	Resume string `json:"resume,omitempty" minLength:"1" doc:"With the status active: which of the held deliveries are sent, all (the default), none, or those published since a time (RFC 3339)."`
}

// TestSent is the answer to a request for a test event.
type TestSent struct {
	EventID    string `json:"event_id" doc:"The test event's id."`
	DeliveryID string `json:"delivery_id" doc:"The id of its delivery."`
}

type (
	createSubscription struct {
		Keyed
		Body NewSubscription
	}
	createdSubscription struct {
		Location string `header:"Location"`
		Body     Subscription
	}
	listSubscriptions struct {
		Page
		Status       string `query:"status" enum:"active,paused,disabled,closing" doc:"Subscriptions of one status."`
		Implicit     bool   `query:"implicit" doc:"List the implicit ones, too."`
		SubscriberID string `query:"subscriber_id" doc:"For the operator: whose."`
	}
	SubscriptionPath struct {
		ID string `path:"id" doc:"The subscription's id."`
	}
	changeSubscription struct {
		SubscriptionPath
		Keyed
		Body SubscriptionChange
	}
	keyedSubscription struct {
		SubscriptionPath
		Keyed
	}
)

func (s *server) subscriptionOperations() {
	const tag = "Subscriptions"
	handle(s, operation{method: http.MethodPost, path: "/subscriptions", id: "create-subscription", summary: "Register a callback URL", tag: tag, status: http.StatusCreated, long: s.challenger != nil, errors: []int{http.StatusForbidden, http.StatusConflict}}, s.createSubscription)
	handle(s, operation{method: http.MethodGet, path: "/subscriptions", id: "list-subscriptions", summary: "List subscriptions, oldest first", tag: tag}, s.listSubscriptions)
	handle(s, operation{method: http.MethodGet, path: "/subscriptions/{id}", id: "get-subscription", summary: "Read a subscription", tag: tag}, s.getSubscription)
	handle(s, operation{method: http.MethodPatch, path: "/subscriptions/{id}", id: "change-subscription", summary: "Change, pause or resume a subscription", tag: tag, long: s.challenger != nil, errors: []int{http.StatusConflict}}, s.changeSubscription)
	handle(s, operation{method: http.MethodDelete, path: "/subscriptions/{id}", id: "delete-subscription", summary: "Delete a subscription", tag: tag, status: http.StatusNoContent, errors: []int{http.StatusConflict}}, s.deleteSubscription)
	handle(s, operation{method: http.MethodGet, path: "/subscriptions/{id}/why", id: "why-event", summary: "Ask why an event goes to a subscription, or not", tag: tag}, s.whyEvent)
	handle(s, operation{method: http.MethodPost, path: "/subscriptions/preview", id: "preview-filter", summary: "Count which stored events a filter would pass", tag: tag, long: true, errors: []int{http.StatusForbidden, http.StatusConflict}}, s.previewFilter)
	handle(s, operation{method: http.MethodPost, path: "/subscriptions/{id}/test", id: "test-subscription", summary: "Send a test event to a subscription alone", tag: tag, status: http.StatusAccepted, errors: []int{http.StatusConflict}}, s.testSubscription)
}

func (s *server) createSubscription(ctx context.Context, c caller, in *createSubscription) (*createdSubscription, error) {
	owner := in.Body.SubscriberID
	if !c.operator() {
		if owner != "" && owner != c.id {
			return nil, problem(http.StatusForbidden, "subscriber_id is for the operator: leave it out", Detail{Location: "body.subscriber_id", Message: "leave it out"})
		}
		owner = c.id
	}
	if owner == "" {
		owner = sender.Operator
	}
	if err := errors.Join(textOnly("body.description", in.Body.Description), textOnly("body.subscriber_id", owner)); err != nil {
		return nil, err
	}
	if expression(in.Body.Filter) == "" {
		in.Body.Filter = nil
	}
	challenge := func() error { return s.challenged(ctx, owner, newID("wsub_"), in.Body.URL, "body.url") }
	body, err := challengedOnce(ctx, s.service, c, in.Key, in.Body, challenge, func(tx *sql.Tx) (Subscription, error) {
		if err := s.roomForSubscription(ctx, tx, c); err != nil {
			return Subscription{}, err
		}
		made, err := s.subscribeTx(ctx, tx, sender.NewSubscription{
			Subscriber: owner, URL: in.Body.URL, EventTypes: in.Body.EventTypes, Filter: expression(in.Body.Filter), Description: in.Body.Description, Settings: in.Body.failing(in.Body.settings(sender.Settings{})),
		})
		return viewSubscription(made), err
	})
	if errors.Is(err, sender.ErrNotFound) {
		err = invalid("body.subscriber_id", fmt.Sprintf("there is no subscriber %q", owner))
	}
	if err != nil {
		return nil, err
	}
	return &createdSubscription{Location: "/subscriptions/" + body.ID, Body: body}, nil
}

func (s *server) listSubscriptions(ctx context.Context, c caller, in *listSubscriptions) (*answer[List[Subscription]], error) {
	cursor, err := in.cursor("subscriptions")
	if err != nil {
		return nil, err
	}
	owner := c.scope()
	if owner == "" {
		owner = in.SubscriberID
	} else if in.SubscriberID != "" && in.SubscriberID != owner {
		return listOf("subscriptions", nil, "", viewSubscription), nil
	}
	page, next, err := s.history.Subscriptions(ctx, sender.SubscriptionQuery{
		Subscriber: owner, Implicit: in.Implicit, Status: sender.SubscriptionStatus(in.Status), Cursor: cursor, Limit: in.Limit,
	})
	if err != nil {
		return nil, err
	}
	return listOf("subscriptions", page, next, viewSubscription), nil
}

// own reads a subscription in the transaction that uses it, so that nobody can touch
// another's.
func (s *service) own(ctx context.Context, tx *sql.Tx, c caller, key sender.SubscriptionKey) (sender.Subscription, error) {
	sub, err := s.db.sender.SubscriptionTx(ctx, tx, key)
	return sub, c.foundOwn(sub, err)
}

// readOwn reads a subscription of the caller's.
func (s *service) readOwn(ctx context.Context, c caller, id string) (sender.Subscription, error) {
	sub, err := s.registry.Subscription(ctx, id)
	return sub, c.foundOwn(sub, err)
}

// foundOwn answers for another's subscription as for one that is not there.
func (c caller) foundOwn(sub sender.Subscription, err error) error {
	if err == nil && !c.owns(sub.Subscriber) || errors.Is(err, sender.ErrNotFound) {
		return notFound("subscription")
	}
	return err
}

func (s *server) getSubscription(ctx context.Context, c caller, in *SubscriptionPath) (*answer[Subscription], error) {
	sub, err := s.readOwn(ctx, c, in.ID)
	if err != nil {
		return nil, err
	}
	return &answer[Subscription]{viewSubscription(sub)}, nil
}

func (s *server) changeSubscription(ctx context.Context, c caller, in *changeSubscription) (*answer[Subscription], error) {
	take, err := resumeOf(in.Body)
	if err != nil {
		return nil, err
	}
	if in.Body.Description != nil {
		if err := textOnly("body.description", *in.Body.Description); err != nil {
			return nil, err
		}
	}
	challenge := func() error { return s.challengedAnew(ctx, c, in) }
	body, err := challengedOnce(ctx, s.service, c, in.Key, in.Body, challenge, func(tx *sql.Tx) (Subscription, error) {
		return s.changeTx(ctx, tx, c, in.ID, in.Body, take)
	})
	if err != nil {
		return nil, err
	}
	return &answer[Subscription]{body}, nil
}

// changeTx changes a subscription in the caller's transaction. Nobody else may change it
// meanwhile: what is left out of the settings stays as it is.
func (s *service) changeTx(ctx context.Context, tx *sql.Tx, c caller, id string, asked SubscriptionChange, take sender.Resume) (Subscription, error) {
	sub, err := s.own(ctx, tx, c, sender.SubscriptionKey{ID: id, ToChange: true})
	if err != nil {
		return Subscription{}, err
	}
	if change, some := asked.of(&sub); some {
		if _, err := s.registry.UpdateTx(ctx, tx, id, changeWithoutOwn(&sub, change)); err != nil {
			return Subscription{}, err
		}
	}
	switch asked.Status {
	case "paused":
		err = s.registry.PauseTx(ctx, tx, id)
	case "active":
		err = s.registry.ResumeTx(ctx, tx, id, take)
	}
	if err != nil {
		return Subscription{}, err
	}
	sub, err = s.own(ctx, tx, c, sender.SubscriptionKey{ID: id})
	return viewSubscription(sub), err
}

// of is the change of a subscription that was asked for, and whether there is any besides
// that of its status.
func (n *SubscriptionChange) of(sub *sender.Subscription) (change sender.SubscriptionChange, some bool) {
	change = sender.SubscriptionChange{URL: n.URL, EventTypes: n.EventTypes, Description: n.Description}
	if n.Filter != nil {
		text := expression(n.Filter)
		change.Filter = &text
	}
	settings := n.any() || n.fails()
	if settings && sub.Settings.Unreadable() == nil { // else the registry refuses: what is stored would be lost
		all := n.failing(n.settings(sub.Settings))
		change.Settings = &all
	}
	return change, settings || n.URL != nil || n.EventTypes != nil || n.Filter != nil || n.Description != nil
}

// challengedAnew is challenged, for a URL that is another one.
func (s *server) challengedAnew(ctx context.Context, c caller, in *changeSubscription) error {
	if in.Body.URL == nil {
		return nil
	}
	was, err := s.readOwn(ctx, c, in.ID)
	if err != nil || was.URL == *in.Body.URL {
		return err
	}
	return s.challenged(ctx, was.Subscriber, in.ID, *in.Body.URL, "body.url")
}

func resumeOf(change SubscriptionChange) (sender.Resume, error) {
	if change.Resume != "" && change.Status != "active" {
		return sender.Resume{}, invalid("body.resume", `it goes with "status": "active"`)
	}
	switch change.Resume {
	case "", "all":
		return sender.Resume{}, nil
	case "none":
		return sender.Resume{None: true}, nil
	}
	since, err := time.Parse(time.RFC3339, change.Resume)
	if err != nil {
		return sender.Resume{}, invalid("body.resume", "it must be all, none or a time such as 2006-01-02T15:04:05Z")
	}
	return sender.Resume{Since: since}, nil
}

func (s *server) deleteSubscription(ctx context.Context, c caller, in *keyedSubscription) (*struct{}, error) {
	_, err := once(ctx, s.answers, c, in.Key, nil, func(tx *sql.Tx) (struct{}, error) {
		if _, err := s.own(ctx, tx, c, sender.SubscriptionKey{ID: in.ID}); err != nil {
			return struct{}{}, err
		}
		return struct{}{}, s.registry.UnsubscribeTx(ctx, tx, in.ID)
	})
	return nil, err
}

func (s *server) testSubscription(ctx context.Context, c caller, in *keyedSubscription) (*answer[TestSent], error) {
	body, err := once(ctx, s.answers, c, in.Key, nil, func(tx *sql.Tx) (TestSent, error) {
		if _, err := s.own(ctx, tx, c, sender.SubscriptionKey{ID: in.ID}); err != nil {
			return TestSent{}, err
		}
		ref, err := s.registry.SendTestTx(ctx, tx, in.ID)
		return TestSent{ref.ID, ref.Delivery}, err
	})
	if err != nil {
		return nil, err
	}
	s.expanded(ctx, body.DeliveryID)
	return &answer[TestSent]{body}, nil
}

// expanded waits a moment for a delivery to be made of its event, which a dispatcher does
// after the commit, so that the caller's next request finds it.
func (s *service) expanded(ctx context.Context, delivery string) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	for {
		if _, err := s.history.Delivery(ctx, delivery); !errors.Is(err, sender.ErrNotFound) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}
