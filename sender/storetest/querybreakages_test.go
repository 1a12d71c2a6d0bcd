package storetest_test

import (
	"context"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
)

// queryBreakages break a store's answers to an operator.
var queryBreakages = map[string]breakage{
	"owner ignored in lists":      {[]string{"query/deliveries"}, onQuery(func(q *sender.DeliveryQuery) { q.Subscriber = "" })},
	"type ignored in lists":       {[]string{"query/deliveries", "query/many candidates"}, onQuery(func(q *sender.DeliveryQuery) { q.EventType = "" })},
	"object ignored in lists":     {[]string{"query/deliveries"}, onQuery(func(q *sender.DeliveryQuery) { q.Object = sender.Object{} })},
	"class ignored in lists":      {[]string{"query/deliveries"}, onQuery(func(q *sender.DeliveryQuery) { q.Class = "" })},
	"Since is exclusive in lists": {[]string{"query/deliveries"}, onQuery(func(q *sender.DeliveryQuery) { q.Since = after(q.Since) })},
	"Until is inclusive in lists": {[]string{"query/deliveries"}, onQuery(func(q *sender.DeliveryQuery) { q.Until = after(q.Until) })},
	"a short page is the end": {[]string{"query/many candidates"}, func(b *broken, _ *harness) {
		b.deliveries = func(ctx context.Context, q sender.DeliveryQuery) ([]sender.Delivery, string, error) {
			page, next, err := b.Store.Deliveries(ctx, q)
			if len(page) < q.Limit {
				next = ""
			}
			return page, next, err
		}
	}},
	"events unfiltered": {[]string{"query/events", "query/many candidates"}, onAnswers(func(a *answers) {
		a.events = func(ctx context.Context, q sender.EventQuery) ([]sender.StoredEvent, string, error) {
			return a.Store.Events(ctx, sender.EventQuery{Cursor: q.Cursor, Limit: q.Limit})
		}
	})},
	"events oldest first": {[]string{"query/events"}, onAnswers(func(a *answers) {
		a.events = func(ctx context.Context, q sender.EventQuery) ([]sender.StoredEvent, string, error) {
			page, next, err := a.Store.Events(ctx, q)
			slices.Reverse(page)
			return page, next, err
		}
	})},
	"status of subscriptions ignored": {[]string{"query/subscriptions"}, onAnswers(func(a *answers) {
		a.subscriptions = func(ctx context.Context, q sender.SubscriptionQuery) ([]sender.Subscription, string, error) {
			q.Status = ""
			return a.Store.Subscriptions(ctx, q)
		}
	})},
	"event without its body": {[]string{"query/event"}, onAnswers(func(a *answers) {
		a.event = func(ctx context.Context, id string) (sender.StoredEvent, error) {
			e, err := a.Store.Event(ctx, id)
			e.Body = nil
			return e, err
		}
	})},
	"held counts as live": {[]string{"query/counts", "random/seed 1"}, onCounts(func(c *sender.Counts) { c.Live, c.Held = c.Live+c.Held, 0 })},
	"OldestDue forgotten": {[]string{"query/counts", "random/seed 1"}, onCounts(func(c *sender.Counts) { c.OldestDue = time.Time{} })},
	"counts once": {[]string{"query/counts", "random/seed 1"}, onAnswers(func(a *answers) {
		var first *sender.Counts
		a.counts = func(ctx context.Context) (sender.Counts, error) {
			if first == nil {
				c, err := a.Store.Counts(ctx)
				first = &c
				return c, err
			}
			return *first, nil
		}
	})},
	"lost results counted": {[]string{"query/rollups"}, onAnswers(func(a *answers) {
		lost := int64(0)
		a.b.batch = func(ctx context.Context, batch sender.Batch) (sender.Claims, error) {
			c, err := a.b.Store.RecordAndClaim(ctx, batch)
			for _, r := range c.Recorded {
				if r.Lost {
					lost++
				}
			}
			return c, err
		}
		a.rollups = func(ctx context.Context, from, to time.Time) ([]sender.Rollup, error) {
			all, err := a.Store.Rollups(ctx, from, to)
			for i := range all {
				all[i].Delivered += lost
			}
			return all, err
		}
	})},
	"rollups include their end": {[]string{"query/rollups"}, onAnswers(func(a *answers) {
		a.rollups = func(ctx context.Context, from, to time.Time) ([]sender.Rollup, error) {
			return a.Store.Rollups(ctx, from, after(to))
		}
	})},
	"latency from the claim": {[]string{"query/rollups"}, func(b *broken, _ *harness) {
		b.batch = func(ctx context.Context, batch sender.Batch) (sender.Claims, error) {
			batch.Results = slices.Clone(batch.Results)
			for i := range batch.Results {
				batch.Results[i].Published = batch.Results[i].StartedAt
			}
			return b.Store.RecordAndClaim(ctx, batch)
		}
	}},
	"turns not counted":     {[]string{"query/facts"}, onFacts(func(f *sender.Facts) { f.Ahead = 0 })},
	"Single forgotten":      {[]string{"query/facts"}, onFacts(func(f *sender.Facts) { f.Single = false })},
	"deleted reads as held": {[]string{"query/facts"}, onFacts(func(f *sender.Facts) { f.Status = sender.SubscriptionDisabled })},
}

// after is the next time that a store can distinguish from t.
func after(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(time.Microsecond)
}

func onQuery(change func(*sender.DeliveryQuery)) func(*broken, *harness) {
	return func(b *broken, _ *harness) {
		b.deliveries = func(ctx context.Context, q sender.DeliveryQuery) ([]sender.Delivery, string, error) {
			change(&q)
			return b.Store.Deliveries(ctx, q)
		}
	}
}

// answers is a store with some answers replaced. A nil field leaves the answer sound.
type answers struct {
	sender.Store[tx]
	b             *broken
	events        func(ctx context.Context, q sender.EventQuery) ([]sender.StoredEvent, string, error)
	event         func(ctx context.Context, id string) (sender.StoredEvent, error)
	subscriptions func(ctx context.Context, q sender.SubscriptionQuery) ([]sender.Subscription, string, error)
	counts        func(ctx context.Context) (sender.Counts, error)
	rollups       func(ctx context.Context, from, to time.Time) ([]sender.Rollup, error)
	facts         func(ctx context.Context, id string) (sender.Facts, error)
}

func onAnswers(change func(*answers)) func(*broken, *harness) {
	return func(b *broken, h *harness) {
		a := &answers{Store: b, b: b}
		change(a)
		h.Store = a
	}
}

func onCounts(change func(*sender.Counts)) func(*broken, *harness) {
	return onAnswers(func(a *answers) {
		a.counts = func(ctx context.Context) (sender.Counts, error) {
			c, err := a.Store.Counts(ctx)
			change(&c)
			return c, err
		}
	})
}

func onFacts(change func(*sender.Facts)) func(*broken, *harness) {
	return onAnswers(func(a *answers) {
		a.facts = func(ctx context.Context, id string) (sender.Facts, error) {
			f, err := a.Store.Facts(ctx, id)
			change(&f)
			return f, err
		}
	})
}

func (a *answers) Events(ctx context.Context, q sender.EventQuery) ([]sender.StoredEvent, string, error) {
	if a.events != nil {
		return a.events(ctx, q)
	}
	return a.Store.Events(ctx, q)
}

func (a *answers) Event(ctx context.Context, id string) (sender.StoredEvent, error) {
	if a.event != nil {
		return a.event(ctx, id)
	}
	return a.Store.Event(ctx, id)
}

func (a *answers) Subscriptions(ctx context.Context, q sender.SubscriptionQuery) ([]sender.Subscription, string, error) {
	if a.subscriptions != nil {
		return a.subscriptions(ctx, q)
	}
	return a.Store.Subscriptions(ctx, q)
}

func (a *answers) Counts(ctx context.Context) (sender.Counts, error) {
	if a.counts != nil {
		return a.counts(ctx)
	}
	return a.Store.Counts(ctx)
}

func (a *answers) Rollups(ctx context.Context, from, to time.Time) ([]sender.Rollup, error) {
	if a.rollups != nil {
		return a.rollups(ctx, from, to)
	}
	return a.Store.Rollups(ctx, from, to)
}

func (a *answers) Facts(ctx context.Context, id string) (sender.Facts, error) {
	if a.facts != nil {
		return a.facts(ctx, id)
	}
	return a.Store.Facts(ctx, id)
}
