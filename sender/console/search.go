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

// search finds what a text is the id of, the object that it names, and customers and
// subscriptions that have it in their names and URLs. If it names one thing it leads there.
func (c *Console) search(ctx context.Context, r *http.Request) (view, error) {
	v := searchView{Text: strings.TrimSpace(r.URL.Query().Get("q"))}
	page := view{title: "Search", data: &v, static: true}
	if v.Text == "" {
		return page, nil
	}
	at, err := c.find(ctx, &v)
	if err != nil {
		return view{}, err
	}
	if c.Jobs != nil {
		if _, err := c.Jobs.Get(ctx, jobs.Key{ID: v.Text}); err == nil {
			v.Exact = append(v.Exact, found{"job", "Job " + look.Plain(v.Text), "jobs/" + url.PathEscape(v.Text)})
		} else if !c.nothing(err) {
			return view{}, err
		}
	}
	if len(v.Exact) == 1 {
		page.leads = v.Exact[0].Link
		return page, nil
	}
	if c.Customers != nil {
		if v.Customers, _, err = c.Customers.Customers(ctx, CustomerQuery{Text: v.Text, Limit: newest}); err != nil {
			return view{}, err
		}
	}
	if v.Subscriptions, err = c.rows(ctx, at); err != nil {
		return view{}, err
	}
	for i := range v.Subscriptions {
		page.owners = append(page.owners, v.Subscriptions[i].Subscriber)
	}
	return page, nil
}

// find asks the history. It returns the subscriptions whose URLs have the text.
func (c *Console) find(ctx context.Context, v *searchView) (at []sender.Subscription, err error) {
	all, more, err := c.History.Find(ctx, v.Text)
	if object := asObject(v.Text); err == nil && len(all) == 0 && object != v.Text {
		all, more, err = c.History.Find(ctx, object)
	}
	if err != nil {
		return nil, err
	}
	v.MoreAfter = more
	for i := range all {
		f := &all[i]
		if f.Kind != history.FoundSubscription && f.Kind != history.FoundSubscriber {
			v.Exact = append(v.Exact, exactly(f))
			continue
		}
		s, gone, err := c.owner(ctx, f)
		switch {
		case err != nil:
			return nil, err
		case gone:
			v.Exact = append(v.Exact, deleted(f))
		case f.URL != "":
			at = append(at, s)
		default:
			v.Exact = append(v.Exact, exactly(f))
		}
	}
	return at, nil
}

// owner reads the subscription or the subscriber that was found. gone: it is deleted.
func (c *Console) owner(ctx context.Context, f *history.Found) (s sender.Subscription, gone bool, err error) {
	if f.Kind == history.FoundSubscription {
		s, err = c.Registry.Subscription(ctx, f.ID)
	} else {
		_, err = c.Registry.Subscriber(ctx, f.ID)
	}
	if isGone(err) {
		return s, true, nil
	}
	return s, false, err
}

// asObject writes "invoice in_1" and "invoice/in_1" as History.Find reads an object.
func asObject(text string) string {
	if i := strings.IndexAny(text, " /:"); i > 0 {
		return text[:i] + ":" + text[i+1:]
	}
	return text
}

// exactly is where what a text names is shown.
func exactly(f *history.Found) found {
	id := url.PathEscape(f.ID)
	switch f.Kind {
	case history.FoundDelivery:
		return found{"send", "Delivery " + look.Plain(f.ID), "deliveries/" + id}
	case history.FoundSubscription:
		return found{"subs", "Subscription " + look.Plain(f.ID), "subscriptions/" + id}
	case history.FoundSubscriber:
		return found{"people", "Customer " + look.Plain(f.ID), "customers/" + id}
	case history.FoundReplay:
		return found{"replay", "Replay " + look.Plain(f.ID), "replays/" + id}
	case history.FoundNotice:
		return found{"bell", "Notice " + look.Plain(f.ID), "notices?all=1"}
	case history.FoundObject:
		return found{"send", "Deliveries of " + look.Plain(f.Object.Type+" "+f.Object.ID), "deliveries?" + url.Values{"object_type": {f.Object.Type}, "object_id": {f.Object.ID}}.Encode()}
	}
	return found{"event", "Event " + look.Plain(f.ID), "events/" + id}
}

// deleted is where the deliveries are of a subscription, or a subscriber, that is deleted.
func deleted(f *history.Found) found {
	return found{"send", "Deliveries of " + look.Plain(f.ID) + ", which is deleted", "deliveries?" + url.Values{string(f.Kind): {f.ID}}.Encode()}
}

// deletedOne leads from the page of what is deleted to its deliveries, which are kept. missing is
// the error of what never was.
func (c *Console) deletedOne(ctx context.Context, kind history.FoundKind, id string, missing error) (view, error) {
	all, _, err := c.History.Find(ctx, id)
	if err != nil {
		return view{}, err
	}
	for i := range all {
		if f := &all[i]; f.Kind == kind && f.ID == id {
			return view{leads: deleted(f).Link}, nil
		}
	}
	return view{}, missing
}

// nothing tells whether an error says that there is no such thing, or cannot be.
func (c *Console) nothing(err error) bool {
	status, _ := c.problem(err)
	return status == http.StatusNotFound || status == http.StatusUnprocessableEntity
}
