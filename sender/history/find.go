package history

import (
	"context"
	"errors"
	"strings"

	"github.com/surehook/surehook/internal/ident"
	"github.com/surehook/surehook/sender"
)

// FoundKind is the kind of what Find has found.
type FoundKind string

// The kinds.
const (
	FoundEvent        FoundKind = "event"
	FoundDelivery     FoundKind = "delivery"
	FoundSubscription FoundKind = "subscription"
	FoundSubscriber   FoundKind = "subscriber"
	FoundNotice       FoundKind = "notice"
	FoundReplay       FoundKind = "replay"
	FoundObject       FoundKind = "object"
)

// Found is something that a text names.
type Found struct {
	Kind   FoundKind
	ID     string        // "" if it is an object
	Object sender.Object // if it is one
	URL    string        // of a subscription that was found by a part of it
}

// findMost is how many subscriptions Find returns.
const findMost = 20

// Find tells what a text names. It may be the id of an event, a delivery, a subscription,
// a subscriber, a notice or a replay, or an object, written as "type:id". If it is none of
// these, Find returns up to 20 subscriptions that have the text in their URLs, and more
// tells that there may be further ones. It finds nothing by a part of an id. It looks at a
// bounded number of rows, MaxExamined subscriptions among them. Space around the text is
// left out.
func (h *History) Find(ctx context.Context, text string) (found []Found, more bool, err error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, false, nil
	}
	if err := errors.Join(ident.AllStorable(sender.ErrInvalid, ident.Text{Name: "text", Text: text})...); err != nil {
		return nil, false, err
	}
	found, err = h.named(ctx, text)
	if err != nil || len(found) > 0 {
		return found, false, err
	}
	return h.byURL(ctx, text, "")
}

// named finds everything that has the text as its id, and the object that it names.
func (h *History) named(ctx context.Context, text string) (found []Found, err error) {
	var object sender.Object
	if kind, id, ok := strings.Cut(text, ":"); ok && !strings.HasPrefix(id, "//") {
		object = sender.Object{Type: kind, ID: id}
	}
	kinds, err := h.store.Kinds(ctx, text, object)
	for _, kind := range kinds {
		if kind == FoundObject {
			found = append(found, Found{Kind: kind, Object: object})
		} else {
			found = append(found, Found{Kind: kind, ID: text})
		}
	}
	return found, err
}

func (h *History) byURL(ctx context.Context, part, subscriber string) (found []Found, more bool, err error) {
	page, next, err := h.store.Subscriptions(ctx, sender.SubscriptionQuery{URL: part, Subscriber: subscriber, Implicit: true, Limit: findMost})
	for _, s := range page {
		found = append(found, Found{Kind: FoundSubscription, ID: s.ID, URL: s.URL})
	}
	return found, next != "", err
}

// Find is [History.Find] of the subscriber's deliveries and subscriptions, and of the events
// that are addressed to it.
func (o *Owned) Find(ctx context.Context, text string) (found []Found, more bool, err error) {
	text = strings.TrimSpace(text)
	if o.subscriber == "" {
		return nil, false, errNobody
	}
	if text == "" {
		return nil, false, nil
	}
	if err := errors.Join(ident.AllStorable(sender.ErrInvalid, ident.Text{Name: "text", Text: text})...); err != nil {
		return nil, false, err
	}
	if _, err := o.DeliveryWith(ctx, text, AttemptQuery{}); err == nil {
		return []Found{{Kind: FoundDelivery, ID: text}}, false, nil
	} else if !errors.Is(err, sender.ErrNotFound) {
		return nil, false, err
	}
	if _, err := o.Event(ctx, text); err == nil {
		return []Found{{Kind: FoundEvent, ID: text}}, false, nil
	} else if !errors.Is(err, sender.ErrNotFound) {
		return nil, false, err
	}
	page, _, err := o.all.store.Subscriptions(ctx, sender.SubscriptionQuery{ID: text, Subscriber: o.subscriber, Implicit: true, Limit: 1})
	if err != nil {
		return nil, false, err
	}
	if len(page) > 0 {
		return []Found{{Kind: FoundSubscription, ID: text}}, false, nil
	}
	return o.all.byURL(ctx, text, o.subscriber)
}
