//go:build !race

package storetest_test

import (
	"context"
	"slices"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/feed"
)

// feedBreakages break the feed.
var feedBreakages = []breakage{
	{"feed shows all to everyone", onFeedQuery(func(q *feed.StoreQuery) { q.Viewer = sender.Operator }), checks{"feed/viewers", "feed/many candidates"}},
	{"feed leaves out the rest", onFeedPage(func(p *feed.StorePage) {
		p.Events = slices.DeleteFunc(p.Events, func(e feed.Item) bool { return e.Subscriber == "" })
	}), checks{"feed/viewers"}},
	{"feed goes to the head", onFeedPage(func(p *feed.StorePage) { p.Last = p.Head }), checks{"feed/order", "feed/bounded", "feed/many candidates"}},
	{"feed without a bound", onFeedQuery(func(q *feed.StoreQuery) { q.Bytes = 0 }), checks{"feed/bounded"}},
	{"feed is all heads", onFeedQuery(func(q *feed.StoreQuery) { q.Heads = true }), checks{"feed/order"}},
	{"feed has no heads", onFeedQuery(func(q *feed.StoreQuery) { q.Heads = false }), checks{"feed/order"}},
	{"feed forgets what was pruned", onFeedPage(func(p *feed.StorePage) { p.Pruned = 0 }), checks{"feed/pruned"}},
	{"feed claims that all was pruned", onFeedPage(func(p *feed.StorePage) { p.Pruned = p.Head }), checks{"feed/pruned"}},
	{"feed shows no redacted events", onFeedPage(func(p *feed.StorePage) {
		p.Events = slices.DeleteFunc(p.Events, func(e feed.Item) bool { return e.Redacted })
	}), checks{"feed/redacted"}},
	{"feed newest first", onFeedPage(func(p *feed.StorePage) { slices.Reverse(p.Events) }), checks{"feed/order"}},
	{"feed takes any limit", onFeedQuery(func(q *feed.StoreQuery) { q.Limit = min(max(q.Limit, 1), feed.MaxPage) }), checks{"feed/refused"}},
	{"nobody sees all of the feed", onFeedQuery(func(q *feed.StoreQuery) {
		if q.Viewer == "" {
			q.Viewer = sender.Operator
		}
	}), checks{"feed/refused"}},
	{"event for everyone", func(s store) store { return forEveryone{s} }, checks{"feed/event", "query/event"}},
	{"feed up to what was written", func(s store) store { return &fedAhead{store: s} }, checks{"feed/rolled back"}},
}

// forEveryone does not say to whom an event is addressed.
type forEveryone struct{ store }

func (b forEveryone) Event(ctx context.Context, id string) (sender.StoredEvent, error) {
	e, err := b.store.Event(ctx, id)
	e.Subscriber = ""
	return e, err
}

// fedAhead numbers events as a sequence does: it also counts those that are rolled back or
// commit late.
type fedAhead struct {
	store
	written int64
}

func (b *fedAhead) PublishTx(ctx context.Context, tx tx, drafts []sender.Draft) ([]sender.Ref, error) {
	b.written += int64(len(drafts))
	return b.store.PublishTx(ctx, tx, drafts)
}

func (b *fedAhead) Feed(ctx context.Context, q feed.StoreQuery) (feed.StorePage, error) {
	page, err := b.store.Feed(ctx, q)
	page.Last, page.Head = max(page.Last, b.written), max(page.Head, b.written)
	return page, err
}

// otherFeed is asked for something else, or answers with something else.
type otherFeed struct {
	store
	ask    func(*feed.StoreQuery)
	answer func(*feed.StorePage)
}

func onFeedQuery(change func(*feed.StoreQuery)) func(store) store {
	return func(s store) store { return otherFeed{s, change, func(*feed.StorePage) {}} }
}

func onFeedPage(change func(*feed.StorePage)) func(store) store {
	return func(s store) store { return otherFeed{s, func(*feed.StoreQuery) {}, change} }
}

func (b otherFeed) Feed(ctx context.Context, q feed.StoreQuery) (feed.StorePage, error) {
	b.ask(&q)
	page, err := b.store.Feed(ctx, q)
	b.answer(&page)
	return page, err
}
