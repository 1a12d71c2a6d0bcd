//go:build !race

package storetest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
)

// queryBreakages break what a store tells of deliveries, events and subscriptions.
var queryBreakages = []breakage{
	{"list loses a row at a page boundary", onPage(func(q history.DeliveryQuery, page []sender.Delivery) []sender.Delivery {
		if q.Cursor != "" && len(page) > 0 {
			return page[1:]
		}
		return page
	}), checks{"history/pages"}},
	{"list repeats a row at a page boundary", rowRepeated, checks{"history/pages"}},
	{"status ignored in lists", onQuery(func(q *history.DeliveryQuery) { q.Status = "" }), checks{"history/by status"}},
	{"malformed cursor taken for none", func(s store) store { return anyCursor{s} }, checks{"history/malformed cursor"}},
	{"oldest first", onPage(func(_ history.DeliveryQuery, page []sender.Delivery) []sender.Delivery {
		slices.Reverse(page)
		return page
	}), checks{"history/list"}},
	{"version dropped", onDelivery(func(d *sender.Delivery) { d.Version = 0 }), checks{"history/a delivery in full"}},
	{"ids compared loosely", func(s store) store { return idsTrimmed{s} }, checks{"history/unknown", "redeliver/unknown"}},
	{"all attempts are read", func(s store) store { return attemptsAll{s} }, checks{"history/some attempts"}},
	{"attempts up to a number", func(s store) store { return attemptsUpTo{s} }, checks{"history/some attempts"}},
	{"facts without the attempt that succeeded", func(s store) store { return factsWithout{s} }, checks{"history/some attempts"}},
	{"owner ignored in lists", onQuery(func(q *history.DeliveryQuery) { q.Subscriber = "" }), checks{"query/deliveries"}},
	{"type ignored in lists", onQuery(func(q *history.DeliveryQuery) { q.EventType = "" }), checks{"query/deliveries", "query/many candidates"}},
	{"object ignored in lists", onQuery(func(q *history.DeliveryQuery) { q.Object = sender.Object{} }), checks{"query/deliveries"}},
	{"class ignored in lists", onQuery(func(q *history.DeliveryQuery) { q.Class = "" }), checks{"query/deliveries"}},
	{"Since is exclusive in lists", onQuery(func(q *history.DeliveryQuery) { q.Since = after(q.Since) }), checks{"query/deliveries"}},
	{"Until is inclusive in lists", onQuery(func(q *history.DeliveryQuery) { q.Until = after(q.Until) }), checks{"query/deliveries"}},
	{"a time of 1970 is taken for none", onQuery(func(q *history.DeliveryQuery) {
		if !q.Until.IsZero() && q.Until.Unix() == 0 {
			q.Until = time.Time{}
		}
	}), checks{"query/deliveries"}},
	{"events since 1970 are none", func(s store) store { return sinceEpoch{s} }, checks{"query/events"}},
	{"an event's body is given away", func(s store) store { return &bodyShared{store: s, all: map[string][]byte{}} }, checks{"history/own copies"}},
	{"a short page is the end", func(s store) store { return shortPageEnds{s} }, checks{"query/many candidates"}},
	{"events unfiltered", func(s store) store { return eventsUnfiltered{s} }, checks{"query/events", "query/many candidates"}},
	{"events hidden until they are expanded", func(s store) store { return unexpandedHidden{s} }, checks{"query/events, not expanded"}},
	{"events listed without the bodies that were asked for", onEvents(func(q *history.EventQuery) { q.Bytes = 0 }), checks{"query/events with bodies"}},
	{"a page of bodies is unbounded", onEvents(func(q *history.EventQuery) { q.Bytes *= 1000 }), checks{"query/events with bodies"}},
	{"the viewer of events is ignored", onEvents(func(q *history.EventQuery) { q.Viewer = "" }), checks{"query/events"}},
	{"events oldest first", func(s store) store { return eventsReversed{s} }, checks{"query/events"}},
	{"status of subscriptions ignored", onSubscriptions(func(q *sender.SubscriptionQuery) { q.Status = "" }), checks{"query/subscriptions"}},
	{"event without its body", func(s store) store { return bodiless{s} }, checks{"query/event"}},
	{"held counts as live", onCounts(func(c *history.Counts) { c.Live, c.Held = c.Live+c.Held, 0 }), checks{"query/counts", "random/seed 1"}},
	{"OldestDue forgotten", onCounts(func(c *history.Counts) { c.OldestDue = time.Time{} }), checks{"query/counts", "random/seed 1"}},
	{"counts once", func(s store) store { return &countsOnce{store: s} }, checks{"query/counts", "random/seed 1"}},
	{"lost results counted", func(s store) store { return &lostCounted{store: s} }, checks{"query/rollups"}},
	{"rollups include their end", func(s store) store { return rollupsToEnd{s} }, checks{"query/rollups"}},
	{"rollups of hours include their end", func(s store) store { return hoursToTheirEnd{s} }, checks{"query/rollups of hours"}},
	{"rollups of hours without the minutes that are not merged", func(s store) store { return mergedAlone{s} }, checks{"query/rollups of hours"}},
	{"figures of subscriptions the wrong way round", func(s store) store { return hoursReversed{s} }, checks{"query/rollups of subscriptions"}},
	{"figures of subscriptions include their end", func(s store) store { return hoursToEnd{s} }, checks{"query/rollups of subscriptions"}},
	{"lanes mixed up", onCounts(func(c *history.Counts) {
		c.Lanes[sender.LaneNew], c.Lanes[sender.LaneProbation] = c.Lanes[sender.LaneProbation], c.Lanes[sender.LaneNew]
	}), checks{"query/counts by lane"}},
	{"status code ignored in lists", onQuery(func(q *history.DeliveryQuery) { q.StatusCode = 0 }), checks{"query/status code"}},
	{"failing ones oldest first", onSubscriptions(func(q *sender.SubscriptionQuery) { q.Failing = false }), checks{"query/failing subscriptions"}},
	{"groups without their status codes", func(s store) store { return codeless{s} }, checks{"query/dead letters in groups"}},
	{"groups of notices acknowledged whole", func(s store) store { return acknowledgesAll{s} }, checks{"query/notices in groups"}},
	{"latency from the claim", onBatch(func(batch *dispatch.Batch) {
		batch.Results = slices.Clone(batch.Results)
		for i := range batch.Results {
			batch.Results[i].Published = batch.Results[i].StartedAt
		}
	}), checks{"query/rollups"}},
	{"turns not counted", onFacts(func(f *history.Facts) { f.Ahead = 0 }), checks{"query/facts"}},
	{"Single forgotten", onFacts(func(f *history.Facts) { f.Single = false }), checks{"query/facts"}},
	{"deleted reads as held", onFacts(func(f *history.Facts) { f.Status = sender.SubscriptionDisabled }), checks{"query/facts"}},
}

func rowRepeated(s store) store {
	last := map[sender.Status]sender.Delivery{}
	return onPage(func(q history.DeliveryQuery, page []sender.Delivery) []sender.Delivery {
		if q.Cursor != "" {
			page = append([]sender.Delivery{last[q.Status]}, page...)
		}
		if len(page) > 0 {
			last[q.Status] = page[len(page)-1]
		}
		return page
	})(s)
}

type anyCursor struct{ store }

func (b anyCursor) Deliveries(ctx context.Context, q history.DeliveryQuery) ([]sender.Delivery, string, error) {
	page, next, err := b.store.Deliveries(ctx, q)
	if errors.Is(err, sender.ErrInvalid) {
		q.Cursor = ""
		return b.store.Deliveries(ctx, q)
	}
	return page, next, err
}

type attemptsAll struct{ store }

func (b attemptsAll) Delivery(ctx context.Context, id string, _ history.AttemptQuery) (sender.Delivery, error) {
	return b.store.Delivery(ctx, id, history.AttemptQuery{Limit: history.MaxAttempts})
}

type attemptsUpTo struct{ store }

func (b attemptsUpTo) Delivery(ctx context.Context, id string, q history.AttemptQuery) (sender.Delivery, error) {
	if q.Before > 0 {
		q.Before++
	}
	return b.store.Delivery(ctx, id, q)
}

type factsWithout struct{ store }

func (b factsWithout) Facts(ctx context.Context, id string) (history.Facts, error) {
	f, err := b.store.Facts(ctx, id)
	if n := len(f.Delivery.Attempts); n > 2 { // the one that succeeded
		f.Delivery.Attempts = append(f.Delivery.Attempts[:1], f.Delivery.Attempts[n-1])
	}
	return f, err
}

type idsTrimmed struct{ store }

func (b idsTrimmed) Delivery(ctx context.Context, id string, q history.AttemptQuery) (sender.Delivery, error) {
	return b.store.Delivery(ctx, strings.TrimSpace(id), q)
}

func (b idsTrimmed) Redeliver(ctx context.Context, id string, notBefore time.Time) error {
	return b.store.Redeliver(ctx, strings.TrimSpace(id), notBefore)
}

// after is the next time that a store can distinguish from t.
func after(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(time.Microsecond)
}

type shortPageEnds struct{ store }

func (b shortPageEnds) Deliveries(ctx context.Context, q history.DeliveryQuery) ([]sender.Delivery, string, error) {
	page, next, err := b.store.Deliveries(ctx, q)
	if len(page) < q.Limit {
		next = ""
	}
	return page, next, err
}

type eventsUnfiltered struct{ store }

func (b eventsUnfiltered) Events(ctx context.Context, q history.EventQuery) ([]sender.StoredEvent, string, error) {
	return b.store.Events(ctx, history.EventQuery{Cursor: q.Cursor, Limit: q.Limit})
}

type unexpandedHidden struct{ store }

func (b unexpandedHidden) Events(ctx context.Context, q history.EventQuery) ([]sender.StoredEvent, string, error) {
	page, next, err := b.store.Events(ctx, q)
	if c, failed := b.Counts(ctx); failed == nil && q.Cursor == "" {
		page = page[min(int(c.Unexpanded), len(page)):]
	}
	return page, next, err
}

type eventsAsked struct {
	store
	change func(q *history.EventQuery)
}

func onEvents(change func(q *history.EventQuery)) func(s store) store {
	return func(s store) store { return eventsAsked{s, change} }
}

func (b eventsAsked) Events(ctx context.Context, q history.EventQuery) ([]sender.StoredEvent, string, error) {
	b.change(&q)
	return b.store.Events(ctx, q)
}

type eventsReversed struct{ store }

func (b eventsReversed) Events(ctx context.Context, q history.EventQuery) ([]sender.StoredEvent, string, error) {
	page, next, err := b.store.Events(ctx, q)
	slices.Reverse(page)
	return page, next, err
}

type bodiless struct{ store }

func (b bodiless) Event(ctx context.Context, id string) (sender.StoredEvent, error) {
	e, err := b.store.Event(ctx, id)
	e.Body = nil
	return e, err
}

type countsOnce struct {
	store
	first *history.Counts
}

func (b *countsOnce) Counts(ctx context.Context) (history.Counts, error) {
	if b.first == nil {
		c, err := b.store.Counts(ctx)
		b.first = &c
		return c, err
	}
	return *b.first, nil
}

type lostCounted struct {
	store
	lost int64
}

func (b *lostCounted) Step(ctx context.Context, p dispatch.ExpandParams, batch dispatch.Batch) (dispatch.Expanded, dispatch.Claims, error) {
	x, c, err := b.store.Step(ctx, p, batch)
	for _, r := range c.Recorded {
		if r.Lost {
			b.lost++
		}
	}
	return x, c, err
}

func (b *lostCounted) Rollups(ctx context.Context, from, to time.Time) ([]history.Rollup, error) {
	all, err := b.store.Rollups(ctx, from, to)
	for i := range all {
		all[i].Delivered += b.lost
	}
	return all, err
}

type hoursToTheirEnd struct{ store }

func (b hoursToTheirEnd) HourRollups(ctx context.Context, from, to time.Time) ([]history.Rollup, error) {
	return b.store.HourRollups(ctx, from, to.Add(time.Hour))
}

type mergedAlone struct{ store }

func (b mergedAlone) HourRollups(ctx context.Context, from, to time.Time) ([]history.Rollup, error) {
	all, err := b.store.HourRollups(ctx, from, to)
	return all[:max(0, len(all)-1)], err
}

type rollupsToEnd struct{ store }

func (b rollupsToEnd) Rollups(ctx context.Context, from, to time.Time) ([]history.Rollup, error) {
	return b.store.Rollups(ctx, from, after(to))
}

type otherCounts struct {
	store
	change func(*history.Counts)
}

func onCounts(change func(*history.Counts)) func(store) store {
	return func(s store) store { return otherCounts{s, change} }
}

func (b otherCounts) Counts(ctx context.Context) (history.Counts, error) {
	c, err := b.store.Counts(ctx)
	b.change(&c)
	return c, err
}

// hoursReversed returns figures in the opposite order.
type hoursReversed struct{ store }

func (s hoursReversed) SubscriptionRollups(ctx context.Context, ids []string, from, to time.Time) ([]history.SubscriptionRollup, error) {
	all, err := s.store.SubscriptionRollups(ctx, ids, from, to)
	slices.Reverse(all)
	return all, err
}

// hoursToEnd includes the hour in which the time ends.
type hoursToEnd struct{ store }

func (s hoursToEnd) SubscriptionRollups(ctx context.Context, ids []string, from, to time.Time) ([]history.SubscriptionRollup, error) {
	return s.store.SubscriptionRollups(ctx, ids, from, to.Add(time.Nanosecond))
}

// codeless tells no status codes of groups.
type codeless struct{ store }

func (s codeless) DeadLetterGroups(ctx context.Context, q history.DeadLetterQuery) (history.DeadLetterGroups, error) {
	g, err := s.store.DeadLetterGroups(ctx, q)
	for i := range g.Groups {
		g.Groups[i].StatusCode = 0
	}
	return g, err
}

// acknowledgesAll acknowledges what was made since a group was read, too.
type acknowledgesAll struct{ store }

func (s acknowledgesAll) AcknowledgeNotices(ctx context.Context, g history.NoticeGroup, limit int) (int, error) {
	g.Last = g.Last.Add(time.Hour)
	return s.store.AcknowledgeNotices(ctx, g, limit)
}

type sinceEpoch struct{ store }

func (b sinceEpoch) Events(ctx context.Context, q history.EventQuery) ([]sender.StoredEvent, string, error) {
	if !q.Since.IsZero() && q.Since.Unix() == 0 {
		return nil, "", nil
	}
	return b.store.Events(ctx, q)
}

// bodyShared remembers the bodies that it has read.
type bodyShared struct {
	store
	all map[string][]byte
}

func (b *bodyShared) Event(ctx context.Context, id string) (sender.StoredEvent, error) {
	e, err := b.store.Event(ctx, id)
	if known, ok := b.all[id]; ok {
		e.Body = known
	} else if err == nil {
		b.all[id] = e.Body
	}
	return e, err
}
