package history

import (
	"context"
	"errors"
	"time"

	"github.com/surehook/surehook/internal/ident"
	"github.com/surehook/surehook/sender"
)

// DeadLetterGroup are the dead letters of a subscription whose last attempt ended in one
// way. Package replay sends a group again: see Filter.Groups there.
type DeadLetterGroup struct {
	Subscription string // its id; it may be a deleted one
	Subscriber   string // the id of its owner
	URL          string // the subscription's
	Class        sender.Class
	StatusCode   int // 0: there was no answer

	Count       int64
	First, Last time.Time // when they were dead-lettered
}

// DeadLetterQuery selects dead letters. Empty fields select all.
type DeadLetterQuery struct {
	Subscription string // id
	Subscriber   string // id of the subscription's owner
}

// DeadLetterGroups are the groups, and whether they are complete.
type DeadLetterGroups struct {
	Groups []DeadLetterGroup // those with more dead letters first
	// More tells that not all dead letters were looked at: there may be others, of these
	// groups or of further ones.
	More bool
}

// Add counts a dead letter that ended at a time. Stores call it.
func (g *DeadLetterGroup) Add(ended time.Time) {
	g.Count++
	g.First, g.Last = earlier(g.First, ended), later(g.Last, ended)
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// DeadLetterGroups groups the newest dead letters by subscription, error class and status
// code. It looks at about MaxExamined of them; of a subscriber with several subscriptions,
// at as many of each. ErrInvalid: the query is malformed.
func (h *History) DeadLetterGroups(ctx context.Context, q DeadLetterQuery) (DeadLetterGroups, error) {
	err := errors.Join(ident.AllStorable(sender.ErrInvalid, ident.Text{Name: "subscription", Text: q.Subscription}, ident.Text{Name: "subscriber", Text: q.Subscriber})...)
	if err != nil {
		return DeadLetterGroups{}, err
	}
	return h.store.DeadLetterGroups(ctx, q)
}

// DeadLetterGroups is [History.DeadLetterGroups] of the subscriber's subscriptions.
// q.Subscriber may be left out.
func (o *Owned) DeadLetterGroups(ctx context.Context, q DeadLetterQuery) (DeadLetterGroups, error) {
	if o.subscriber == "" {
		return DeadLetterGroups{}, errNobody
	}
	if q.Subscriber != "" && q.Subscriber != o.subscriber {
		return DeadLetterGroups{}, nil
	}
	q.Subscriber = o.subscriber
	return o.all.DeadLetterGroups(ctx, q)
}
