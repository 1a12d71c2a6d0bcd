package storetest_test

import (
	"context"
	"slices"

	"github.com/surehook/surehook/sender"
)

// fed is a store with another feed.
type fed struct {
	sender.Store[tx]
	feed  func(ctx context.Context, q sender.FeedQuery) (sender.FeedPage, error)
	event func(ctx context.Context, viewer, id string) (sender.StoredEvent, error)
}

func (f *fed) Feed(ctx context.Context, q sender.FeedQuery) (sender.FeedPage, error) {
	if f.feed != nil {
		return f.feed(ctx, q)
	}
	return f.Store.Feed(ctx, q)
}

func (f *fed) FeedEvent(ctx context.Context, viewer, id string) (sender.StoredEvent, error) {
	if f.event != nil {
		return f.event(ctx, viewer, id)
	}
	return f.Store.FeedEvent(ctx, viewer, id)
}

func onFeedQuery(change func(*sender.FeedQuery)) func(*broken, *harness) {
	return onFeed(change, func(*sender.FeedPage) {})
}

func onFeedPage(change func(*sender.FeedPage)) func(*broken, *harness) {
	return onFeed(func(*sender.FeedQuery) {}, change)
}

func onFeed(asked func(*sender.FeedQuery), answered func(*sender.FeedPage)) func(*broken, *harness) {
	return func(b *broken, h *harness) {
		h.Store = &fed{Store: b, feed: func(ctx context.Context, q sender.FeedQuery) (sender.FeedPage, error) {
			asked(&q)
			p, err := b.Feed(ctx, q)
			answered(&p)
			return p, err
		}}
	}
}

// feedBreakages break the feed.
var feedBreakages = map[string]breakage{
	"feed shows all to everyone": {[]string{"feed/viewers", "feed/many candidates"}, onFeedQuery(func(q *sender.FeedQuery) { q.Viewer = sender.Operator })},
	"feed leaves out the rest": {[]string{"feed/viewers"}, onFeedPage(func(p *sender.FeedPage) {
		p.Events = slices.DeleteFunc(p.Events, func(e sender.FeedEvent) bool { return e.Subscriber == "" })
	})},
	"feed goes to the head":           {[]string{"feed/order", "feed/bounded", "feed/many candidates"}, onFeedPage(func(p *sender.FeedPage) { p.Last = p.Head })},
	"feed without a bound":            {[]string{"feed/bounded"}, onFeedQuery(func(q *sender.FeedQuery) { q.Bytes = 0 })},
	"feed is all heads":               {[]string{"feed/order"}, onFeedQuery(func(q *sender.FeedQuery) { q.Heads = true })},
	"feed has no heads":               {[]string{"feed/order"}, onFeedQuery(func(q *sender.FeedQuery) { q.Heads = false })},
	"feed forgets what was pruned":    {[]string{"feed/pruned"}, onFeedPage(func(p *sender.FeedPage) { p.Pruned = 0 })},
	"feed claims that all was pruned": {[]string{"feed/pruned"}, onFeedPage(func(p *sender.FeedPage) { p.Pruned = p.Head })},
	"feed shows no redacted events": {[]string{"feed/redacted"}, onFeedPage(func(p *sender.FeedPage) {
		p.Events = slices.DeleteFunc(p.Events, func(e sender.FeedEvent) bool { return e.Redacted })
	})},
	"feed newest first":    {[]string{"feed/order"}, onFeedPage(func(p *sender.FeedPage) { slices.Reverse(p.Events) })},
	"feed takes any limit": {[]string{"feed/refused"}, onFeedQuery(func(q *sender.FeedQuery) { q.Limit = min(max(q.Limit, 1), sender.MaxFeedPage) })},
	"nobody sees all of the feed": {[]string{"feed/refused"}, onFeedQuery(func(q *sender.FeedQuery) {
		if q.Viewer == "" {
			q.Viewer = sender.Operator
		}
	})},
	"any event by its id": {[]string{"feed/event"}, func(b *broken, h *harness) {
		h.Store = &fed{Store: b, event: func(ctx context.Context, _, id string) (sender.StoredEvent, error) { return b.Event(ctx, id) }}
	}},
	// As a sequence does: it also counts events that are rolled back or commit
	// late.
	"feed up to what was written": {[]string{"feed/rolled back"}, func(b *broken, h *harness) {
		written := int64(0)
		b.publishTx = func(ctx context.Context, tx tx, drafts []sender.Draft) ([]sender.Ref, error) {
			written += int64(len(drafts))
			return b.Store.PublishTx(ctx, tx, drafts)
		}
		onFeedPage(func(p *sender.FeedPage) { p.Last, p.Head = max(p.Last, written), max(p.Head, written) })(b, h)
	}},
}
