package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/surehook/surehook/sender"
)

// NewEvent reports something that happened, for services that have nothing but HTTP.
type NewEvent struct {
	Type         string          `json:"type" doc:"Words joined by full stops. Those that begin with subscriber, job, delivery, subscription and webhook are the server's own."`
	Object       Object          `json:"object" doc:"What it is about. The objects of the server's own events are its own."`
	Version      *integer        `json:"version,omitempty" minimum:"1" maximum:"9007199254740991" doc:"Higher than the object's last. Without it, the object's next."`
	Data         json.RawMessage `json:"data,omitempty" doc:"Any JSON. Without it, or with null, the event is thin."`
	SubscriberID string          `json:"subscriber_id,omitempty" minLength:"1" doc:"Whom it is for. Without it, everyone who asks for its type."`
}

// PublishedEvent names an event that is durable.
type PublishedEvent struct {
	ID      string `json:"id" doc:"The event's id."`
	Version int64  `json:"version" doc:"That of the object now."`
}

type (
	publishEvent struct {
		Keyed
		Body NewEvent
	}
	publishedEvent struct {
		Location string `header:"Location"`
		Body     PublishedEvent
	}
)

// reserved are the words with which the types of the server's own events begin. Their
// objects are its own, too, with the versions in its tables.
var reserved = map[string]bool{"subscriber": true, "job": true, "delivery": true, "subscription": true, "webhook": true}

func (s *server) publishOperations() {
	handle(s, operation{method: http.MethodPost, path: "/events", id: "publish-event", summary: "Publish an event", tag: "Events", status: http.StatusCreated, who: operatorOnly, errors: []int{http.StatusConflict}}, s.publish)
}

func (s *server) publish(ctx context.Context, c caller, in *publishEvent) (*publishedEvent, error) {
	if string(in.Body.Data) == "null" {
		in.Body.Data = nil
	}
	e := sender.Event{Type: in.Body.Type, Object: sender.Object(in.Body.Object), Data: in.Body.Data, Subscriber: in.Body.SubscriberID}
	if first, _, _ := strings.Cut(e.Type, "."); reserved[first] {
		return nil, invalid("body.type", fmt.Sprintf("the types %s.* are the server's own", first))
	}
	if reserved[e.Object.Type] {
		return nil, invalid("body.object.type", fmt.Sprintf("the server itself gives versions to every %s: choose another type", e.Object.Type))
	}
	if err := textOnly("body.subscriber_id", e.Subscriber); err != nil {
		return nil, err
	}
	if s.options.addressed && e.Subscriber == "" {
		return nil, invalid("body.subscriber_id", "it is required: this server runs with -require-subscriber, so that no event is for everybody by mistake")
	}
	if in.Body.Version != nil {
		e.Version = int64(*in.Body.Version)
	}
	body, err := once(ctx, s.answers, c, in.Key, in.Body, func(tx *sql.Tx) (PublishedEvent, error) {
		ref, err := s.publisher.PublishTx(ctx, tx, e)
		if errors.Is(err, sender.ErrNotFound) {
			err = invalid("body.subscriber_id", fmt.Sprintf("there is no subscriber %q", e.Subscriber))
		}
		return PublishedEvent{ref.ID, ref.Version}, err
	})
	if err != nil {
		return nil, err
	}
	return &publishedEvent{Location: "/events/" + body.ID, Body: body}, nil
}
