package console

import (
	"context"
	"net/http"
	"net/url"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
)

type deliveriesView struct {
	Filter   filter
	Statuses []sender.Status
	Classes  []sender.Class
	List     []sender.Delivery
	Older    string
	First    string
	Replay   string // the link to a replay of the same deliveries; "": no replay can select them
}

func (c *Console) deliveries(ctx context.Context, r *http.Request) (view, error) {
	q := r.URL.Query()
	f, err := filterOf(q)
	if err != nil {
		return view{}, err
	}
	v := deliveriesView{Filter: f, Statuses: statuses, Classes: classes}
	page, next, err := c.History.Deliveries(ctx, history.DeliveryQuery{
		Status: sender.Status(f.Status), Subscription: f.Subscription, Subscriber: f.Subscriber, Event: f.Event, EventType: f.Type, Object: f.object(),
		Since: f.since, Until: f.until, Class: sender.Class(f.Class), Cursor: q.Get("cursor"), Limit: pageSize,
	})
	if err != nil {
		return view{}, err
	}
	v.List, v.Older, v.First = page, older(q, "cursor", next), first(q, "cursor")
	v.Replay = replayLink(&f)
	title, nav := "Deliveries", "deliveries"
	if sender.Status(f.Status) == sender.StatusDeadLettered {
		title, nav = "Dead letters", "dead letters"
	}
	return view{title: title, nav: nav, data: &v}, nil
}

// replayLink returns the link to a replay of a list's deliveries, or "" if no replay
// can select them.
func replayLink(f *filter) string {
	if s := sender.Status(f.Status); s != sender.StatusDeadLettered && s != sender.StatusDelivered || f.Event != "" || f.ObjectType != "" || f.ObjectID != "" {
		return ""
	}
	return "replays/new?" + f.values().Encode()
}

// first is the link to the first page of a list; "" on the first page.
func first(q url.Values, parameter string) string {
	if q.Get(parameter) == "" {
		return ""
	}
	link := older(q, parameter, "x")
	v, _ := url.ParseQuery(link[1:])
	v.Del(parameter)
	return "?" + v.Encode()
}

type deliveryView struct {
	sender.Delivery
	Why history.Why
	// Redeliver is the button's label; "": the delivery cannot be sent again.
	Redeliver string
}

func (c *Console) delivery(ctx context.Context, r *http.Request) (view, error) {
	id := r.PathValue("id")
	d, err := c.History.Delivery(ctx, id)
	if err != nil {
		return view{}, err
	}
	v := deliveryView{Delivery: d}
	if v.Why, err = c.History.Why(ctx, id); err != nil {
		return view{}, err
	}
	switch {
	case d.Redacted || d.Status == sender.StatusCancelled:
	case d.Status == sender.StatusDelivered:
		v.Redeliver = "It is sent a single time more; if that fails it stays delivered."
	default:
		v.Redeliver = "It is sent now, and its schedule starts anew; its attempt numbers go on."
	}
	return view{title: "Delivery " + id, nav: "deliveries", data: &v}, nil
}

func (c *Console) redeliver(ctx context.Context, r *http.Request) (string, string, error) {
	id := r.PathValue("id")
	send := c.History.Redeliver
	if r.PostForm.Get("force") != "" {
		send = c.History.RedeliverForced
	}
	return "deliveries/" + id, "redelivered", send(ctx, id)
}
