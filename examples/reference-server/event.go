package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/feed"
	"github.com/surehook/surehook/sender/history"
)

// Event is something that happened, as it is posted to callback URLs.
type Event struct {
	ID         string     `json:"id" doc:"The event's id: deduplicate by it."`
	Type       string     `json:"type" doc:"Words joined by full stops, such as order.paid."`
	OccurredAt *time.Time `json:"occurred_at,omitempty" doc:"When it happened."`
	Object     Object     `json:"object" doc:"What it is about."`
	Version    int64      `json:"version" doc:"Higher with each change of the object."`

	PayloadVersion string          `json:"payload_version,omitempty" doc:"In which version of its type the data is: the date since which that is there. Left out where there is one version."`
	Data           json.RawMessage `json:"data,omitempty" doc:"What the producer has added."`
	Redacted       bool            `json:"redacted,omitempty" doc:"What it said was removed."`
}

// EventRecord is an event with its deliveries.
type EventRecord struct {
	Event
	Deliveries []Delivery `json:"deliveries" nullable:"false" doc:"Those that the caller may see; the first 200. GET /deliveries?event_id= lists them all."`
}

// EventPage is a part of the feed.
type EventPage struct {
	Data       []Event `json:"data" nullable:"false" doc:"In the order in which they became visible."`
	NextCursor string  `json:"next_cursor" doc:"Always there: what to go on with, for ever."`
}

type (
	listEvents struct {
		After  string `query:"after" doc:"The next_cursor of the page before. Without it, from the oldest event that is kept; now is the end, so that only later events follow."`
		Cursor string `query:"cursor" doc:"The same, by the name that it has in every other list."`
		Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50" doc:"How many events a page has at most."`
		Wait   int    `query:"wait" minimum:"0" maximum:"30" default:"0" doc:"For how many seconds an empty answer is held open."`
	}
	eventID struct {
		ID string `path:"id" doc:"The event's id."`
	}
)

const maxDeliveries = 200

func (s *server) eventOperations() {
	handle(s, operation{method: http.MethodGet, path: "/events", id: "list-events", summary: "Read the events by cursor, oldest first", tag: "Events", says: true, long: true, errors: []int{http.StatusGone}}, s.listEvents)
	handle(s, operation{method: http.MethodGet, path: "/events/{id}", id: "get-event", summary: "Read an event, with its deliveries", tag: "Events"}, s.getEvent)
}

func (s *server) listEvents(ctx context.Context, c caller, in *listEvents) (*answer[EventPage], error) {
	if in.After != "" && in.Cursor != "" && in.After != in.Cursor {
		return nil, invalid("query.cursor", "it is another one than after: give one of them")
	}
	page, err := s.feed.Page(ctx, feed.Query{Viewer: c.id, After: cmp.Or(in.After, in.Cursor), Limit: in.Limit, Wait: time.Duration(in.Wait) * time.Second})
	var expired *feed.ExpiredError
	var wrong *feed.InvalidError
	switch {
	case errors.As(err, &expired):
		p := problem(http.StatusGone, "events that follow the cursor are not kept any more: make sure of the state that they would have brought, then go on with next_cursor")
		p.Type, p.Title, p.NextCursor = typeCursorExpired, "The cursor is older than what is kept", expired.Next
		return nil, p
	case errors.As(err, &wrong):
		at := wrong.Parameter
		if at == "after" && in.After == "" {
			at = "cursor"
		}
		return nil, invalid("query."+at, plain(wrong.Err))
	case errors.Is(err, sender.ErrNotFound): // the caller was deleted while it waited
		return nil, unauthorized()
	case err != nil:
		return nil, err
	}
	out := &answer[EventPage]{EventPage{Data: make([]Event, len(page.Events)), NextCursor: page.Next}}
	for i := range page.Events {
		if out.Body.Data[i], err = viewEvent(&page.Events[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (s *server) getEvent(ctx context.Context, c caller, in *eventID) (*answer[EventRecord], error) {
	e, err := s.feed.Event(ctx, c.id, in.ID)
	if errors.Is(err, sender.ErrNotFound) {
		err = notFound("event")
	}
	if err != nil {
		return nil, err
	}
	page, _, err := s.deliveriesOf(c).Deliveries(ctx, history.DeliveryQuery{Event: in.ID, Limit: maxDeliveries})
	if err != nil {
		return nil, err
	}
	r := EventRecord{Deliveries: []Delivery{}}
	if r.Event, err = viewEvent(&e); err != nil {
		return nil, err
	}
	for _, d := range page {
		r.Deliveries = append(r.Deliveries, viewDelivery(d))
	}
	return &answer[EventRecord]{r}, nil
}

// viewEvent reads an event's body, which has the fields of an Event already.
func viewEvent(e *sender.StoredEvent) (out Event, err error) {
	return out, json.Unmarshal(feed.AppendEvent(nil, e), &out)
}
