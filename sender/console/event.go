package console

import (
	"context"
	"net/http"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/catalogue"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/internal/look"
)

type eventsView struct {
	Filter     filter
	List       []sender.StoredEvent
	Pages      look.Pages
	More       bool
	Span       span
	Spans      []span
	Published  figure
	Whole      history.Rollup
	Unexpanded int64
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
	counts, err := c.History.Counts(ctx)
	if err != nil {
		return view{}, err
	}
	s, err := c.series(ctx, counts.At, spanOf(q.Get("range"), hour))
	if err != nil {
		return view{}, err
	}
	v := eventsView{
		Filter: f, List: page, More: next != "", Pages: pagesOf(q, "cursor", next, look.Plural(len(page), "event")+" on this page"),
		Span: s.span, Spans: spans, Published: publishedChart(s), Whole: s.Whole, Unexpanded: counts.Unexpanded,
	}
	all := view{title: "Events", nav: "events", data: &v, counts: &counts}
	for i := range page {
		all.owners = append(all.owners, page[i].Subscriber)
	}
	return all, nil
}

type eventView struct {
	sender.StoredEvent
	Deliveries []sender.Delivery
	More       bool // it has others
	Delivered  int
	Known      *catalogue.Type // what the catalogue says of its type; nil: nothing
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
	v := eventView{StoredEvent: e, Deliveries: list, More: next != "", Known: c.known(e.Type)}
	page := view{title: look.Plain(e.Type), nav: "events", crumbs: []crumb{{"Events", "events"}}, owners: []string{e.Subscriber}, data: &v}
	for i := range list {
		page.owners = append(page.owners, list[i].Subscriber)
		if list[i].Status == sender.StatusDelivered {
			v.Delivered++
		}
	}
	return page, nil
}
