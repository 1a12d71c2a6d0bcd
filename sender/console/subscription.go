package console

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/internal/look"
)

type subscriptionView struct {
	subscriptionRow
	Headers    []string // the names alone: their values are secrets
	Deliveries []sender.Delivery
	Notices    []noticeGroup
	Span       span
	Spans      []span
	Attempts   figure
	Whole      history.SubscriptionRollup // of the span
	Policy     []fact                     // what is done about its failures
	DisabledOn time.Time                  // when it is disabled if nothing succeeds; zero: not known
}

// Held tells whether its deliveries are held.
func (s *subscriptionView) Held() bool {
	return s.Status == sender.SubscriptionPaused || s.Status == sender.SubscriptionDisabled
}

// newest bounds the deliveries, and the notices, on a subscription's page.
const newest = 10

func (c *Console) subscription(ctx context.Context, r *http.Request) (view, error) {
	id := r.PathValue("id")
	s, err := c.Registry.Subscription(ctx, id)
	if isGone(err) {
		return c.deletedOne(ctx, history.FoundSubscription, id, err)
	}
	if err != nil {
		return view{}, err
	}
	rows, err := c.rows(ctx, []sender.Subscription{s})
	if err != nil {
		return view{}, err
	}
	v := subscriptionView{subscriptionRow: rows[0], Spans: hourlySpans, Span: hourlySpanOf(r.URL.Query().Get("range")), Headers: slices.Sorted(maps.Keys(s.Settings.Headers)), Policy: c.policy(&s.Settings)}
	if v.Way >= 0 {
		v.DisabledOn = c.disabledOn(&s)
	}
	if v.Attempts, v.Whole, err = c.hourly(ctx, s.ID, v.Span); err != nil {
		return view{}, err
	}
	if v.Deliveries, _, err = c.History.Deliveries(ctx, history.DeliveryQuery{Subscription: s.ID, Limit: newest}); err != nil {
		return view{}, err
	}
	if v.Notices, err = c.newestNotices(ctx, history.NoticeQuery{Subscription: s.ID}, newest); err != nil {
		return view{}, err
	}
	return view{title: look.Host(s.URL), nav: "subscriptions", crumbs: []crumb{{"Subscriptions", "subscriptions"}}, owners: []string{s.Subscriber}, data: &v}, nil
}

func (c *Console) pause(ctx context.Context, r *http.Request) (string, string, error) {
	id := r.PathValue("id")
	return "subscriptions/" + id, "paused", c.Registry.Pause(ctx, id)
}

func (c *Console) disable(ctx context.Context, r *http.Request) (string, string, error) {
	id := r.PathValue("id")
	reason := strings.TrimSpace(r.PostForm.Get("reason"))
	if reason == "" {
		return "", "", badInput("reason: it is empty: the subscription's owner is told why")
	}
	return "subscriptions/" + id, "disabled", c.Registry.Disable(ctx, id, reason)
}

func (c *Console) resume(ctx context.Context, r *http.Request) (string, string, error) {
	id := r.PathValue("id")
	take := sender.Resume{Force: r.PostForm.Get("force") != ""}
	which, since := r.PostForm.Get("take"), r.PostForm.Get("since")
	if since != "" && which != "since" { // all of them would be sent, or none
		return "", "", badInput("since: there is a time, and another choice: choose “Those published since”, or leave the time empty")
	}
	switch which {
	case "all":
	case "none":
		take.None = true
	case "since":
		since, err := timeOf("since", since)
		if err == nil && since.IsZero() {
			err = badInput("since: it is empty: give the time from which on deliveries are sent")
		}
		if err != nil {
			return "", "", err
		}
		take.Since = since
	default:
		return "", "", badInput("take: say which deliveries are sent: all, none, or those since a time")
	}
	return "subscriptions/" + id, "resumed", c.Registry.Resume(ctx, id, take)
}

func (c *Console) sendTest(ctx context.Context, r *http.Request) (string, string, error) {
	id := r.PathValue("id")
	_, err := c.Registry.SendTest(ctx, id)
	return "subscriptions/" + id, "test", err
}
