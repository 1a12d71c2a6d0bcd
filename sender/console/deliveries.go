package console

import (
	"context"
	"net/http"
	"net/url"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/internal/look"
)

type deliveriesView struct {
	Heading  string
	Filter   filter
	Statuses []sender.Status
	Classes  []sender.Class
	Chips    []chip
	Narrowed []narrowing // by what else the list is filtered
	List     []sender.Delivery
	Pages    look.Pages
	More     bool
	Replay   string // the link to a replay of the same deliveries; "": no replay can select them
	Open     bool   // the form of all filters is open
	Deleted  bool   // they are of a subscription that is deleted
}

// narrowing is a filter that is in force, and the link to the list without it.
type narrowing struct{ Name, Value, Without string }

func (c *Console) deliveries(ctx context.Context, r *http.Request) (view, error) {
	q := r.URL.Query()
	f, err := filterOf(q)
	if err != nil {
		return view{}, err
	}
	page, next, err := c.History.Deliveries(ctx, history.DeliveryQuery{
		Status: sender.Status(f.Status), Subscription: f.Subscription, Subscriber: f.Subscriber, Event: f.Event, EventType: f.Type, Object: f.object(),
		Since: f.since, Until: f.until, Class: sender.Class(f.Class), StatusCode: f.code, Cursor: q.Get("cursor"), Limit: pageSize,
	})
	if err != nil {
		return view{}, err
	}
	counts, err := c.History.Counts(ctx)
	if err != nil {
		return view{}, err
	}
	v := deliveriesView{
		Heading: "Deliveries", Filter: f, Statuses: statuses, Classes: classes, Chips: deliveryChips(&f, &counts), Narrowed: f.narrowings(),
		List: page, More: next != "", Pages: pagesOf(q, "cursor", next, countOf(len(page), "delivery", "deliveries")+" on this page"),
		Replay: replayLink(&f), Open: q.Get("more") != "",
	}
	if f.Subscription != "" && len(page) > 0 {
		if _, err := c.Registry.Subscription(ctx, f.Subscription); isGone(err) {
			v.Deleted = true
		} else if err != nil {
			return view{}, err
		}
	}
	nav := "deliveries"
	if sender.Status(f.Status) == sender.StatusDeadLettered {
		v.Heading, nav = "Dead letters", "dead letters"
	}
	all := view{title: v.Heading, nav: nav, data: &v, counts: &counts}
	if nav == "dead letters" {
		all.title, all.crumbs = "One by one", []crumb{{"Dead letters", "dead-letters"}}
	}
	for i := range page {
		all.owners = append(all.owners, page[i].Subscriber)
	}
	return all, nil
}

func countOf(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return look.Count(n) + " " + more
}

// deliveryChips are the statuses, each with the link to the same list of that status. The
// counts are those of all deliveries, so a narrower list has none.
func deliveryChips(f *filter, counts *history.Counts) (list []chip) {
	link := func(status string) string {
		v := f.values()
		v.Del("status")
		if status != "" {
			v.Set("status", status)
		}
		return "?" + v.Encode()
	}
	list = append(list, chip{Link: link(""), Title: "All", Current: f.Status == ""})
	whole := len(f.narrowings()) == 0
	for _, s := range statuses {
		c := chip{Link: link(string(s)), Title: look.Status(s).Word, State: look.Status(s), Current: f.Status == string(s)}
		switch s {
		case sender.StatusDeadLettered:
			c.Title, c.Count, c.Counted = "Dead letters", counts.DeadLettered, whole
		case sender.StatusHeld:
			c.Count, c.Counted = counts.Held, whole
		}
		list = append(list, c)
	}
	return list
}

// narrowings are the filters in force, except the status, which the chips show.
func (f *filter) narrowings() (list []narrowing) {
	all := f.values()
	for _, n := range []struct{ field, name, value string }{
		{"class", "last failure", f.Class}, {"code", "last answer", f.Code}, {"type", "event type", f.Type}, {"object_type", "object type", f.ObjectType}, {"object_id", "object", f.ObjectID},
		{"subscription", "subscription", f.Subscription}, {"subscriber", "customer", f.Subscriber}, {"event", "event", f.Event}, {"since", "since", f.Since}, {"until", "before", f.Until},
	} {
		if n.value == "" {
			continue
		}
		without := url.Values{}
		for name, values := range all {
			if name != n.field && (n.field != "object_type" || name != "object_id") {
				without[name] = values
			}
		}
		list = append(list, narrowing{n.name, look.Short(n.value), "?" + without.Encode()})
	}
	return list
}

// replayLink returns the link to a replay of a list's deliveries, or "" if no replay
// can select them.
func replayLink(f *filter) string {
	if s := sender.Status(f.Status); s != sender.StatusDeadLettered && s != sender.StatusDelivered && s != sender.StatusSuperseded || f.Event != "" || f.ObjectType != "" || f.ObjectID != "" {
		return ""
	}
	return "replays/new?" + f.values().Encode()
}
