package main

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
)

// Notice is what an operator or an owner must learn, kept until it is acknowledged.
type Notice struct {
	ID             string     `json:"id"`
	Kind           string     `json:"kind" doc:"Also the type of the event that tells of it."`
	SubscriberID   string     `json:"subscriber_id" doc:"Whom it is for."`
	SubscriptionID *string    `json:"subscription_id"`
	DeliveryID     *string    `json:"delivery_id"`
	Detail         string     `json:"detail"`
	CreatedAt      time.Time  `json:"created_at"`
	AcknowledgedAt *time.Time `json:"acknowledged_at"`
}

func viewNotice(n sender.Notice) Notice {
	return Notice{
		ID: n.ID, Kind: string(n.Kind), SubscriberID: n.Subscriber, SubscriptionID: orNull(n.Subscription), DeliveryID: orNull(n.Delivery),
		Detail: n.Detail, CreatedAt: n.CreatedAt.UTC(), AcknowledgedAt: timeOrNull(n.AcknowledgedAt),
	}
}

type noticeID struct {
	ID string `path:"id" doc:"The notice's id."`
}

func (s *server) noticeOperations() {
	handle(s, operation{method: http.MethodGet, path: "/notices", id: "list-notices", summary: "List notices, newest first", tag: "Notices"}, s.listNotices)
	handle(s, operation{method: http.MethodPost, path: "/notices/{id}/acknowledge", id: "acknowledge-notice", summary: "Acknowledge a notice", tag: "Notices"}, s.acknowledge)
}

func (s *server) listNotices(ctx context.Context, c caller, in *Page) (*answer[List[Notice]], error) {
	cursor, err := in.cursor("notices")
	if err != nil {
		return nil, err
	}
	page, next, err := s.history.Notices(ctx, history.NoticeQuery{Subscriber: c.scope(), Cursor: cursor, Limit: in.Limit})
	if err != nil {
		return nil, err
	}
	return listOf("notices", page, next, viewNotice), nil
}

func (s *server) acknowledge(ctx context.Context, c caller, in *noticeID) (*answer[Notice], error) {
	n, err := s.history.Acknowledge(ctx, in.ID, c.scope())
	if errors.Is(err, sender.ErrNotFound) {
		err = notFound("notice")
	}
	if err != nil {
		return nil, err
	}
	return &answer[Notice]{viewNotice(n)}, nil
}
