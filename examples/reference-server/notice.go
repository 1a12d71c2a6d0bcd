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
	ID             string     `json:"id" doc:"The notice's id."`
	Kind           string     `json:"kind" doc:"Also the type of the event that tells of it."`
	SubscriberID   string     `json:"subscriber_id" doc:"Whom it is for."`
	SubscriptionID *string    `json:"subscription_id" doc:"The subscription that it is about; null if it is about none."`
	DeliveryID     *string    `json:"delivery_id" doc:"The delivery that it is about; null if it is about none."`
	Detail         string     `json:"detail" doc:"What has happened, in a sentence."`
	CreatedAt      time.Time  `json:"created_at" doc:"When it happened."`
	AcknowledgedAt *time.Time `json:"acknowledged_at" doc:"When somebody acknowledged it; null until then."`
}

func viewNotice(n sender.Notice) Notice {
	return Notice{
		ID: n.ID, Kind: string(n.Kind), SubscriberID: n.Subscriber, SubscriptionID: orNull(n.Subscription), DeliveryID: orNull(n.Delivery),
		Detail: n.Detail, CreatedAt: n.CreatedAt.UTC(), AcknowledgedAt: timeOrNull(n.AcknowledgedAt),
	}
}

type listNotices struct {
	Page
	Kind           string `query:"kind" enum:"delivery.dead_lettered,subscription.failing,subscription.disabled,network.unreachable,proxy.failing,replay.finished" doc:"What it tells of."`
	Unacknowledged bool   `query:"unacknowledged" doc:"Only those that nobody has acknowledged."`
}

type acknowledgeNotice struct {
	ID string `path:"id" doc:"The notice's id."`
	Keyed
}

func (s *server) noticeOperations() {
	handle(s, operation{method: http.MethodGet, path: "/notices", id: "list-notices", summary: "List notices, newest first", tag: "Notices"}, s.listNotices)
	handle(s, operation{method: http.MethodPost, path: "/notices/{id}/acknowledge", id: "acknowledge-notice", summary: "Acknowledge a notice", tag: "Notices", errors: []int{http.StatusConflict}}, s.acknowledge)
}

func (s *server) listNotices(ctx context.Context, c caller, in *listNotices) (*answer[List[Notice]], error) {
	cursor, err := in.cursor("notices")
	if err != nil {
		return nil, err
	}
	page, next, err := s.history.Notices(ctx, history.NoticeQuery{Subscriber: c.scope(), Kind: sender.NoticeKind(in.Kind), Unread: in.Unacknowledged, Cursor: cursor, Limit: in.Limit})
	if err != nil {
		return nil, err
	}
	return listOf("notices", page, next, viewNotice), nil
}

func (s *server) acknowledge(ctx context.Context, c caller, in *acknowledgeNotice) (*answer[Notice], error) {
	body, err := onceApart(ctx, s.answers, c, in.Key, nil, apart, func(ctx context.Context) (Notice, error) {
		n, err := s.history.Acknowledge(ctx, in.ID, c.scope())
		if errors.Is(err, sender.ErrNotFound) {
			err = notFound("notice")
		}
		return viewNotice(n), err
	})
	if err != nil {
		return nil, err
	}
	return &answer[Notice]{body}, nil
}
