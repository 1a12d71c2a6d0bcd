package portal

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/surehook/surehook/sender"
	expression "github.com/surehook/surehook/sender/filter"
	"github.com/surehook/surehook/sender/history"
)

// tryNew shows the form of a new endpoint again, with what its filter would have passed.
func (p *Portal) tryNew(ctx context.Context, r *http.Request) (outcome, error) {
	f, err := p.tried(ctx, entriesOf(r.PostForm), nil)
	f.Once = r.PostForm.Get("once")
	return tryOut(f, newPage(f)), err
}

// try is tryNew for an endpoint that is there.
func (p *Portal) try(ctx context.Context, r *http.Request) (outcome, error) {
	e, err := p.own(ctx, r)
	if err != nil {
		return outcome{}, err
	}
	if e.Implicit {
		return outcome{}, badInput("This endpoint has no filter: it gets what is addressed to it.")
	}
	typed, version := entriesOf(r.PostForm), e.Settings.PayloadVersion
	if slices.Contains(p.versionsFor(&e), typed.Version) {
		version = typed.Version
	}
	f, err := p.tried(ctx, typed, &version)
	if err != nil {
		return outcome{}, err
	}
	f.Was = r.PostForm.Get("was")
	v, err := p.endpointPage(ctx, e, f)
	return tryOut(f, v), err
}

// tryOut is the form again: nothing has changed.
func tryOut(f endpointForm, v view) outcome {
	status := http.StatusOK
	if f.Wrong != nil {
		status = http.StatusUnprocessableEntity
	}
	return outcome{page: "endpoint", status: status, view: v, unchanged: true}
}

// tried is a form with what its filter would have passed of the subscriber's last events, in the
// payload version of the endpoint, or with what is wrong.
func (p *Portal) tried(ctx context.Context, e entries, version *string) (endpointForm, error) {
	f := p.formOf(e)
	wrong := func(field string, err error) {
		if f.Wrong == nil {
			f.Wrong = map[string][]string{}
		}
		f.Wrong[field] = append(f.Wrong[field], strings.Split(err.Error(), "\n")...)
	}
	if e.Filter == "" {
		wrong("filter", errors.New("it is empty: all events of these types are sent"))
	} else if _, err := expression.Parse([]byte(compact(e.Filter))); err != nil {
		wrong("filter", err)
	}
	if len(e.Types) == 0 {
		wrong("event_types", errors.New("choose one or more"))
	}
	if f.Wrong != nil {
		return f, nil
	}
	var tried history.Preview
	subscriber := sessionIn(ctx).Subscriber
	err := p.count.do(ctx, subscriber, func() (err error) {
		tried, err = p.b.History.ForSubscriber(subscriber).Preview(ctx, history.PreviewQuery{EventTypes: e.Types, Filter: compact(e.Filter), PayloadVersion: version})
		return err
	})
	if errors.Is(err, sender.ErrInvalid) { // of the types: the filter is one
		wrong("event_types", errors.New(strings.ReplaceAll(err.Error(), "sender: ", "")))
		return f, nil
	}
	f.Tried = &tried
	return f, err
}
