package portal

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/catalogue"
	"github.com/surehook/surehook/sender/history"
)

// endpointView is an endpoint with its form; a new one has the form alone.
type endpointView struct {
	sender.Subscription
	figures
	endpointForm
	Newest  []sender.Delivery
	Shown   string // tells, once it is deleted, that it was this subscriber's
	givesUp time.Time
}

// New tells whether the endpoint is not there yet.
func (v *endpointView) New() bool { return v.ID == "" }

// Held tells whether its deliveries are held.
func (v *endpointView) Held() bool {
	return v.Status == sender.SubscriptionPaused || v.Status == sender.SubscriptionDisabled
}

// Active tells whether its deliveries are attempted.
func (v *endpointView) Active() bool { return v.Status == sender.SubscriptionActive }

// GivesUp is when no more is tried unless it answers.
func (v *endpointView) GivesUp() time.Time { return v.givesUp }

// endpointForm has the fields as they were typed, and what is wrong with them.
type endpointForm struct {
	Typed     entries
	Was       string // the mark of the entries that the endpoint had when they were shown
	Once      string // of a new one: drawn for this page, see onceID
	All       bool
	Groups    []typeGroup
	Others    string           // types and patterns that are not in the catalogue
	Orders    []orderChoice    // one of them is chosen
	Versions  []string         // that it can be pinned to, the newest first; none: there is nothing to choose
	Tried     *history.Preview // what the filter would have passed; nil: it was not tried
	Wrong     map[string][]string
	WrongElse []string // of fields that this form does not have
}

// typeGroup is a part of the catalogue, as boxes to tick.
type typeGroup struct {
	Name  string
	Types []typeBox
}

type typeBox struct {
	catalogue.Type
	Ticked bool
}

func (p *Portal) formOf(e entries) endpointForm {
	types := e.Types
	f := endpointForm{Typed: e, All: slices.Contains(types, "*"), Orders: ordersWith(e.Order)}
	known := map[string]bool{}
	if p.cfg.Catalogue != nil {
		known["*"] = true
		for _, g := range p.cfg.Catalogue.Groups() {
			group := typeGroup{Name: g.Name}
			for _, t := range g.Types {
				known[t.Name] = true
				group.Types = append(group.Types, typeBox{t, slices.Contains(types, t.Name)})
			}
			f.Groups = append(f.Groups, group)
		}
	}
	var others []string
	for _, t := range types {
		if !known[t] {
			others = append(others, t)
		}
	}
	f.Others = strings.Join(others, ", ")
	return f
}

// Chosen is how many boxes are ticked, and Known how many there are.
func (f *endpointForm) Chosen() (n int) {
	for _, g := range f.Groups {
		for _, t := range g.Types {
			if t.Ticked {
				n++
			}
		}
	}
	return n
}

// Known is how many types the catalogue has.
func (f *endpointForm) Known() (n int) {
	for _, g := range f.Groups {
		n += len(g.Types)
	}
	return n
}

func (p *Portal) newEndpoint(context.Context, *http.Request) (view, error) {
	return newPage(p.formOf(entries{Types: []string{"*"}})), nil
}

func newPage(f endpointForm) view {
	if f.Once == "" {
		f.Once = rand.Text()
	}
	return view{title: "Add an endpoint", tab: "endpoints", data: &endpointView{endpointForm: f}}
}

func (p *Portal) addEndpoint(ctx context.Context, r *http.Request) (outcome, error) {
	e, owner, once := entriesOf(r.PostForm), sessionIn(ctx).Subscriber, r.PostForm.Get("once")
	id := onceID("wsub_", owner, once, e.mark())
	made, err := p.b.Registry.Subscribe(ctx, sender.NewSubscription{
		ID: id, Subscriber: owner, URL: e.URL, EventTypes: e.Types, Filter: compact(e.Filter), Description: e.Description, Settings: e.settings(sender.Settings{}),
	})
	if err != nil && id != "" {
		// The form may have come before: what it made takes the last room that a registry has, and
		// its URL may answer one challenge alone.
		if was, missing := p.ownNamed(ctx, id); missing == nil && was.Status != sender.SubscriptionClosing {
			made, err = was, nil
		}
	}
	f := p.formOf(e)
	f.Once = once
	if errors.Is(err, sender.ErrExists) {
		f.Once, f.WrongElse = "", []string{"the form was sent before, and the endpoint that it made was deleted since. Nothing was saved: press Add to add it once more"}
		return outcome{page: "endpoint", status: http.StatusConflict, view: newPage(f), unchanged: true}, nil
	}
	if f.Wrong, f.WrongElse = refused(err); f.Wrong != nil || f.WrongElse != nil {
		return outcome{page: "endpoint", status: http.StatusUnprocessableEntity, view: newPage(f)}, nil
	}
	return outcome{to: "endpoints/" + made.ID, said: "added"}, err
}

// refused sorts what is wrong with a form by its fields.
func refused(err error) (wrong map[string][]string, rest []string) {
	if err == nil {
		return nil, nil
	}
	if text, ok := strings.CutPrefix(err.Error(), sender.ErrChallenge.Error()+": "); ok && errors.Is(err, sender.ErrChallenge) {
		return map[string][]string{"url": {"it did not answer our challenge as it must: " + text}}, nil
	}
	for _, e := range sender.FieldErrors(err) {
		if wrong == nil {
			wrong = map[string][]string{}
		}
		switch e.Field {
		case "url", "event_types", "description", "order", "filter":
			wrong[e.Field] = append(wrong[e.Field], e.Reason)
		default:
			rest = append(rest, strings.ReplaceAll(e.Field, "_", " ")+": "+e.Reason)
		}
	}
	return wrong, rest
}

// own returns an endpoint of the session's subscriber. Another's is not there.
func (p *Portal) own(ctx context.Context, r *http.Request) (sender.Subscription, error) {
	return p.ownNamed(ctx, r.PathValue("id"))
}

func (p *Portal) ownNamed(ctx context.Context, id string) (sender.Subscription, error) {
	e, err := p.b.Registry.Subscription(ctx, id)
	if err != nil {
		return sender.Subscription{}, err
	}
	if e.Subscriber != sessionIn(ctx).Subscriber {
		return sender.Subscription{}, sender.ErrNotFound
	}
	return e, nil
}

func (p *Portal) endpoint(ctx context.Context, r *http.Request) (view, error) {
	e, err := p.own(ctx, r)
	if err != nil {
		return view{}, err
	}
	return p.endpointPage(ctx, e, p.formOf(entriesIn(&e)))
}

func (p *Portal) endpointPage(ctx context.Context, e sender.Subscription, f endpointForm) (view, error) {
	s := sessionIn(ctx)
	f.Versions = p.versionsFor(&e)
	if f.Was == "" {
		now := entriesIn(&e)
		f.Was = now.mark()
	}
	v := endpointView{Subscription: e, endpointForm: f, Shown: p.form(s, e.ID), givesUp: p.givesUp(&e)}
	all, err := p.figures(ctx, s, []sender.Subscription{e})
	if err != nil {
		return view{}, err
	}
	v.figures = all[0]
	if v.Newest, _, err = p.b.History.ForSubscriber(s.Subscriber).Deliveries(ctx, history.DeliveryQuery{Subscription: e.ID, Limit: newest}); err != nil {
		return view{}, err
	}
	return view{title: "Endpoint", tab: "endpoints", data: &v}, nil
}
