package console

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
)

type subscriptionsView struct {
	Filter   filter
	Failing  bool
	Implicit bool
	Statuses []sender.SubscriptionStatus
	List     []sender.Subscription
	Older    string
	First    string // the link to the first page; "" on the first page
}

// failingPages bounds how many pages of subscriptions are searched for failing ones.
const failingPages = 5

func (c *Console) subscriptions(ctx context.Context, r *http.Request) (view, error) {
	q := r.URL.Query()
	f, err := filterOf(q)
	if err != nil {
		return view{}, err
	}
	v := subscriptionsView{
		Filter: f, Failing: q.Get("failing") != "", Implicit: q.Get("implicit") != "",
		Statuses: []sender.SubscriptionStatus{sender.SubscriptionActive, sender.SubscriptionPaused, sender.SubscriptionDisabled, sender.SubscriptionClosing},
	}
	query := sender.SubscriptionQuery{Subscriber: f.Subscriber, Status: sender.SubscriptionStatus(f.Status), Implicit: v.Implicit, Cursor: q.Get("cursor"), Limit: pageSize}
	pages := 1
	if v.Failing {
		pages = failingPages
	}
	for range pages {
		page, next, err := c.History.Subscriptions(ctx, query)
		if err != nil {
			return view{}, err
		}
		for _, s := range page {
			if !v.Failing || !s.Health.FailingSince.IsZero() {
				v.List = append(v.List, s)
			}
		}
		if query.Cursor = next; next == "" {
			break
		}
	}
	v.Older, v.First = older(q, "cursor", query.Cursor), first(q, "cursor")
	return view{title: "Subscriptions", nav: "subscriptions", data: &v}, nil
}

type subscriptionView struct {
	sender.Subscription
	Headers    []string // the names alone: their values are secrets
	Deliveries []sender.Delivery
	Notices    []sender.Notice
}

// Held tells whether its deliveries are held.
func (s *subscriptionView) Held() bool {
	return s.Status == sender.SubscriptionPaused || s.Status == sender.SubscriptionDisabled
}

// newest bounds the deliveries, and the notices, on a subscription's page.
const newest = 10

func (c *Console) subscription(ctx context.Context, r *http.Request) (view, error) {
	s, err := c.Registry.Subscription(ctx, r.PathValue("id"))
	if err != nil {
		return view{}, err
	}
	v := subscriptionView{Subscription: s, Headers: slices.Sorted(maps.Keys(s.Settings.Headers))}
	if v.Deliveries, _, err = c.History.Deliveries(ctx, history.DeliveryQuery{Subscription: s.ID, Limit: newest}); err != nil {
		return view{}, err
	}
	if v.Notices, _, err = c.History.Notices(ctx, history.NoticeQuery{Subscription: s.ID, Unread: true, Limit: newest}); err != nil {
		return view{}, err
	}
	return view{title: "Subscription " + s.ID, nav: "subscriptions", data: &v}, nil
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
	switch which := r.PostForm.Get("take"); which {
	case "all":
	case "none":
		take.None = true
	case "since":
		since, err := timeOf("since", r.PostForm.Get("since"))
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
