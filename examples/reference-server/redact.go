package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
)

// NewRedaction names the object whose events are to say nothing any more.
type NewRedaction struct {
	Object Object `json:"object" doc:"What the events are about."`
}

// Redacted is what was done.
type Redacted struct {
	Events int `json:"events" doc:"How many events lost their bodies."`
}

type redactObject struct {
	Keyed
	Body NewRedaction
}

// redactTime bounds a request: what it has done by then is done, and the next one goes on.
const redactTime = time.Minute

func (s *server) redactOperations() {
	handle(s, operation{method: http.MethodPost, path: "/subscribers/{id}/redact", id: "redact-subscriber", summary: "Remove the bodies of a subscriber's events", tag: "Subscribers", who: operatorOnly, long: true, errors: []int{http.StatusConflict}}, s.redactSubscriber)
	handle(s, operation{method: http.MethodPost, path: "/redactions", id: "redact-object", summary: "Remove the bodies of an object's events", tag: "Events", who: operatorOnly, long: true, errors: []int{http.StatusConflict}}, s.redactObject)
}

func (s *server) redactSubscriber(ctx context.Context, c caller, in *keyedSubscriber) (*answer[Redacted], error) {
	return s.redact(ctx, c, in.Key, history.Redaction{Subscriber: in.ID})
}

func (s *server) redactObject(ctx context.Context, c caller, in *redactObject) (*answer[Redacted], error) {
	o := in.Body.Object
	if err := errors.Join(textOnly("body.object.type", o.Type), textOnly("body.object.id", o.ID)); err != nil {
		return nil, err
	}
	return s.redact(ctx, c, in.Key, history.Redaction{Object: sender.Object(o)})
}

func (s *server) redact(ctx context.Context, c caller, key string, r history.Redaction) (*answer[Redacted], error) {
	body, err := onceApart(ctx, s.answers, c, key, r, redactTime, func(ctx context.Context) (Redacted, error) {
		limited, cancel := context.WithTimeout(ctx, redactTime)
		defer cancel()
		n, err := s.history.Redact(limited, r)
		switch {
		case errors.Is(err, sender.ErrNotFound):
			err = notFound("subscriber")
		case err != nil && n > 0:
			err = unavailable(fmt.Sprintf("%d events were redacted, and not all: ask again for the others", n), err)
		}
		return Redacted{n}, err
	})
	if err != nil {
		return nil, err
	}
	return &answer[Redacted]{body}, nil
}
