package portal

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"

	"github.com/surehook/surehook/sender"
)

func (p *Portal) changeEndpoint(ctx context.Context, r *http.Request) (outcome, error) {
	e, err := p.own(ctx, r)
	if err != nil {
		return outcome{}, err
	}
	typed, now := entriesOf(r.PostForm), entriesIn(&e)
	if was := r.PostForm.Get("was"); was != "" && was != now.mark() {
		f := p.formOf(typed)
		f.WrongElse = []string{"the endpoint has changed since this page was loaded, in another window or by somebody else. Below is what you have typed, and nothing was saved: open the endpoint to see how it is now, or save again to replace that"}
		v, err := p.endpointPage(ctx, e, f)
		return outcome{page: "endpoint", status: http.StatusConflict, view: v, unchanged: true}, err
	}
	_, err = p.b.Registry.Update(ctx, e.ID, changeTyped(r.PostForm, &typed, &e))
	if wrong, rest := refused(err); wrong != nil || rest != nil {
		f := p.formOf(typed)
		f.Wrong, f.WrongElse = wrong, rest
		v, err := p.endpointPage(ctx, e, f)
		return outcome{page: "endpoint", status: http.StatusUnprocessableEntity, view: v}, err
	}
	return outcome{to: "endpoints/" + e.ID, said: "changed"}, err
}

// changeTyped is what a form changes of an endpoint, and no more: a challenge of the URL takes a
// while, and what others save meanwhile stays.
func changeTyped(form url.Values, typed *entries, e *sender.Subscription) (c sender.SubscriptionChange) {
	if typed.Description != e.Description {
		c.Description = &typed.Description
	}
	if !e.Implicit { // whose URL and types follow from what it is for
		if typed.URL != e.URL {
			c.URL = &typed.URL
		}
		types := slices.Sorted(slices.Values(typed.Types))
		if len(types) == 0 || !slices.Equal(slices.Compact(types), e.EventTypes) {
			c.EventTypes = typed.Types
		}
		filter := compact(typed.Filter)
		if form.Has("filter") && (filter != e.Filter.String() || e.Filter.Unreadable() != nil) {
			c.Filter = &filter
		}
	}
	if _, changed := settingsTyped(form, typed, e.Settings); changed {
		c.EditSettings = func(s *sender.Settings) { *s, _ = settingsTyped(form, typed, *s) }
	}
	return c
}

// settingsTyped are an endpoint's settings after the form, and whether that changes them.
// Settings that the form leaves out stay as they are.
func settingsTyped(form url.Values, typed *entries, s sender.Settings) (_ sender.Settings, changed bool) {
	if s.Unreadable() != nil { // the registry refuses the change: what is stored would be lost
		return s, false
	}
	if form.Has("order") && typed.Order != s.Order {
		s, changed = typed.settings(s), true
	}
	if typed.Version != "" && typed.Version != s.PayloadVersion {
		s.PayloadVersion, changed = typed.Version, true
	}
	return s, changed
}

// onOwn does something with an endpoint of the session's subscriber, and says so there.
func (p *Portal) onOwn(ctx context.Context, r *http.Request, said string, do func(id string) error) (string, string, error) {
	e, err := p.own(ctx, r)
	if err == nil {
		err = do(e.ID)
	}
	return "endpoints/" + e.ID, said, err
}

func (p *Portal) pause(ctx context.Context, r *http.Request) (string, string, error) {
	return p.onOwn(ctx, r, "paused", func(id string) error { return p.b.Registry.Pause(ctx, id) })
}

func (p *Portal) resume(ctx context.Context, r *http.Request) (string, string, error) {
	var take sender.Resume
	switch r.PostForm.Get("take") {
	case "all":
	case "none":
		take.None = true
	case "since":
		var err error
		if take.Since, err = sinceOf(r.PostForm); err != nil {
			return "", "", err
		}
	default:
		return "", "", badInput("Say which deliveries are sent: all of them, none, or those published since a time.")
	}
	return p.onOwn(ctx, r, "resumed", func(id string) error { return p.b.Registry.Resume(ctx, id, take) })
}

func (p *Portal) sendTest(ctx context.Context, r *http.Request) (string, string, error) {
	return p.onOwn(ctx, r, "test", func(id string) error {
		_, err := p.b.Registry.SendTest(ctx, id)
		return err
	})
}

func (p *Portal) deleteEndpoint(ctx context.Context, r *http.Request) (outcome, error) {
	_, said, err := p.onOwn(ctx, r, "deleted", func(id string) error { return p.b.Registry.Unsubscribe(ctx, id) })
	o := outcome{said: said}
	if errors.Is(err, sender.ErrNotFound) && p.formFits(sessionIn(ctx), r.PathValue("id"), r.PostForm.Get("shown")) {
		err, o.unchanged = nil, true // the form has come before
	}
	return o, err
}
