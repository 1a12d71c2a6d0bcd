package console

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/internal/look"
)

func isGone(err error) bool { return errors.Is(err, sender.ErrNotFound) }

type customersView struct {
	Text  string
	List  []Customer
	Pages look.Pages
	More  bool
}

func (c *Console) customers(ctx context.Context, r *http.Request) (view, error) {
	q := r.URL.Query()
	v := customersView{Text: strings.TrimSpace(q.Get("q"))}
	list, next, err := c.Customers.Customers(ctx, CustomerQuery{Text: v.Text, Cursor: q.Get("cursor"), Limit: pageSize})
	if err != nil {
		return view{}, err
	}
	v.List, v.More, v.Pages = list, next != "", pagesOf(q, "cursor", next, countOf(len(list), "customer", "customers")+" on this page")
	return view{title: "Customers", nav: "customers", data: &v}, nil
}

type customerView struct {
	ID             string
	Known          Customer // by the program; zero: it knows nothing
	CreatedAt      time.Time
	Attributes     []Attribute // the first of those that are known, as far as they have room
	MoreAttributes int         // how many have none

	Subscriptions []subscriptionRow
	MoreEndpoints bool
	Backlog, Dead int64
	Day           history.SubscriptionRollup // the last 24 hours of all of them
	Trouble       int
	Deliveries    []sender.Delivery
	Secrets       []sender.SubscriberSecret
	Portal        bool // there is a link to its own pages
	Jobs          bool // and to its jobs
}

// Name is the customer's, or its id.
func (v *customerView) Name() string {
	if v.Known.Name != "" {
		return look.Plain(v.Known.Name)
	}
	return look.Plain(v.ID)
}

const (
	attributesShown = 100
	attributeShown  = 1 << 10 // bytes of a name, and of a value
)

// shownAttributes are the first of a customer's attributes, each cut to what a page has room
// for: a program may take any from its callers.
func shownAttributes(all []Attribute) (shown []Attribute, more int) {
	for _, a := range all[:min(len(all), attributesShown)] {
		shown = append(shown, Attribute{beginning(a.Name), beginning(a.Value)})
	}
	return shown, len(all) - len(shown)
}

func beginning(text string) string {
	if len(text) <= attributeShown {
		return text
	}
	return strings.ToValidUTF8(text[:attributeShown], "") + "…"
}

func (c *Console) customer(ctx context.Context, r *http.Request) (view, error) {
	id := r.PathValue("id")
	s, err := c.Registry.Subscriber(ctx, id)
	if isGone(err) {
		return c.deletedOne(ctx, history.FoundSubscriber, id, err)
	}
	if err != nil {
		return view{}, err
	}
	v := customerView{ID: s.ID, CreatedAt: s.CreatedAt, Portal: c.cfg.Portal != nil && id != sender.Operator, Jobs: c.Jobs != nil}
	if c.Customers != nil && id != sender.Operator {
		if v.Known, err = c.Customers.Customer(ctx, id); err != nil && !isGone(err) {
			return view{}, err
		}
		v.Attributes, v.MoreAttributes = shownAttributes(v.Known.Attributes)
	}
	subscriptions, more, err := c.History.Subscriptions(ctx, sender.SubscriptionQuery{Subscriber: id, Implicit: true, Limit: pageSize})
	if err != nil {
		return view{}, err
	}
	if v.Subscriptions, err = c.rows(ctx, subscriptions); err != nil {
		return view{}, err
	}
	v.MoreEndpoints = more != ""
	slices.SortStableFunc(v.Subscriptions, worstFirst)
	for i := range v.Subscriptions {
		s := &v.Subscriptions[i]
		v.Day.Merge(&s.Day)
		v.Backlog, v.Dead = v.Backlog+s.Backlog, v.Dead+s.DeadLettered
		if s.State.Tone == "bad" || s.State.Tone == "warn" {
			v.Trouble++
		}
	}
	if v.Deliveries, _, err = c.History.Deliveries(ctx, history.DeliveryQuery{Subscriber: id, Limit: newest}); err != nil {
		return view{}, err
	}
	if v.Secrets, err = c.Registry.Secrets(ctx, id); err != nil && !errors.Is(err, sender.ErrSealed) {
		return view{}, err
	}
	page := view{title: v.Name(), nav: "customers", owners: []string{id}, data: &v}
	if c.Customers != nil {
		page.crumbs = []crumb{{"Customers", "customers"}}
	}
	return page, nil
}

// openPortal leads to a customer's own pages.
func (c *Console) openPortal(w http.ResponseWriter, r *http.Request) {
	s, err := c.Registry.Subscriber(r.Context(), r.PathValue("id"))
	var link string
	if err == nil {
		link, err = c.cfg.Portal(r.Context(), s.ID, whoOf(r))
	}
	if err != nil {
		c.fail(w, r, err)
		return
	}
	c.cfg.Logger.InfoContext(r.Context(), "console: done", "action", "open a customer's portal", "by", whoOf(r), "path", r.URL.Path)
	w.Header().Set("Location", link)
	w.WriteHeader(http.StatusSeeOther)
}
