package console

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/internal/look"
	"github.com/surehook/surehook/sender/jobs"
)

// searchView has what a text was found in.
type searchView struct {
	Text          string
	Exact         []found
	Customers     []Customer
	Subscriptions []subscriptionRow
	MoreAfter     bool // subscriptions remain that were not looked at
}

// found is a thing with that id.
type found struct{ Icon, Title, Link string }

// Nothing tells whether nothing was found.
func (s *searchView) Nothing() bool {
	return len(s.Exact)+len(s.Customers)+len(s.Subscriptions) == 0
}

// search finds what has a text as its id, and customers and subscriptions that have it in
// their names and URLs. It looks at a bounded number of subscriptions.
func (c *Console) search(ctx context.Context, r *http.Request) (view, error) {
	v := searchView{Text: strings.TrimSpace(r.URL.Query().Get("q"))}
	page := view{title: "Search", data: &v, static: true}
	if v.Text == "" {
		return page, nil
	}
	var err error
	if v.Exact, err = c.byID(ctx, v.Text); err != nil {
		return view{}, err
	}
	if c.Customers != nil {
		if v.Customers, _, err = c.Customers.Customers(ctx, CustomerQuery{Text: v.Text, Limit: newest}); err != nil {
			return view{}, err
		}
	}
	list, next, err := c.findSubscriptions(ctx, &subscriptionsView{Text: v.Text, Implicit: true}, "")
	if err != nil {
		return view{}, err
	}
	if v.Subscriptions, err = c.rows(ctx, list[:min(len(list), pageSize)]); err != nil {
		return view{}, err
	}
	v.MoreAfter = next != ""
	for i := range v.Subscriptions {
		page.owners = append(page.owners, v.Subscriptions[i].Subscriber)
	}
	return page, nil
}

// byID finds what has exactly this id, whatever it is of; and the deliveries of an object
// that is written as its type, a blank or a slash, and its id.
func (c *Console) byID(ctx context.Context, text string) (list []found, err error) {
	looked := []struct {
		prefix, icon, title, link string
		read                      func() error
	}{
		{"dlv_", "send", "Delivery", "deliveries/", func() error { _, err := c.History.Delivery(ctx, text); return err }},
		{"evt_", "event", "Event", "events/", func() error { _, err := c.History.Event(ctx, text); return err }},
		{"wsub_", "subs", "Subscription", "subscriptions/", func() error { _, err := c.Registry.Subscription(ctx, text); return err }},
		{"sub_", "people", "Customer", "customers/", func() error { _, err := c.Registry.Subscriber(ctx, text); return err }},
		{"rpl_", "replay", "Replay", "replays/", func() error { _, err := c.Replays.Get(ctx, text); return err }},
		{"job_", "job", "Job", "jobs/", func() error {
			if c.Jobs == nil {
				return sender.ErrNotFound
			}
			_, err := c.Jobs.Get(ctx, jobs.Key{ID: text})
			return err
		}},
	}
	for _, l := range looked {
		if !strings.HasPrefix(text, l.prefix) {
			continue
		}
		if err := l.read(); err == nil {
			list = append(list, found{l.icon, l.title + " " + look.Plain(text), l.link + url.PathEscape(text)})
		} else if !c.nothing(err) {
			return nil, err
		}
	}
	if kind, id, ok := strings.Cut(strings.Replace(text, "/", " ", 1), " "); ok {
		object := sender.Object{Type: kind, ID: id}
		page, _, err := c.History.Deliveries(ctx, history.DeliveryQuery{Object: object, Limit: 1})
		if err != nil && !c.nothing(err) {
			return nil, err
		}
		if len(page) > 0 {
			list = append(list, found{"send", "Deliveries of " + look.Plain(text), "deliveries?" + url.Values{"object_type": {kind}, "object_id": {id}}.Encode()})
		}
	}
	return list, nil
}

// nothing tells whether an error says that there is no such thing, or can be none.
func (c *Console) nothing(err error) bool {
	status, _ := c.problem(err)
	return status == http.StatusNotFound || status == http.StatusUnprocessableEntity
}
