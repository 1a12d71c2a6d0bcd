package console

import (
	"context"
	"net/http"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
)

type eventsView struct {
	Filter filter
	List   []sender.StoredEvent
	Older  string
	First  string
}

func (c *Console) events(ctx context.Context, r *http.Request) (view, error) {
	q := r.URL.Query()
	f, err := filterOf(q)
	if err != nil {
		return view{}, err
	}
	page, next, err := c.History.Events(ctx, history.EventQuery{
		Type: f.Type, Object: f.object(), Subscriber: f.Subscriber, Since: f.since, Until: f.until, Cursor: q.Get("cursor"), Limit: pageSize,
	})
	if err != nil {
		return view{}, err
	}
	v := eventsView{Filter: f, List: page, Older: older(q, "cursor", next), First: first(q, "cursor")}
	return view{title: "Events", nav: "events", data: &v}, nil
}

type eventView struct {
	sender.StoredEvent
	Deliveries []sender.Delivery
	More       bool // it has others
}

func (c *Console) event(ctx context.Context, r *http.Request) (view, error) {
	e, err := c.History.Event(ctx, r.PathValue("id"))
	if err != nil {
		return view{}, err
	}
	list, next, err := c.History.Deliveries(ctx, history.DeliveryQuery{Event: e.ID, Limit: pageSize})
	if err != nil {
		return view{}, err
	}
	v := eventView{StoredEvent: e, Deliveries: list, More: next != ""}
	return view{title: "Event " + e.ID, nav: "events", data: &v}, nil
}
