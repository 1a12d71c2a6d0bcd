//go:build !race

package storetest_test

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/surehook/surehook/internal/newid"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
)

type (
	announceFunc = func(n sender.Notice) (sender.Draft, bool)
	decideFunc   = func(dispatch.Live, sender.Health, dispatch.Result, time.Time) dispatch.Decision
)

// copies are drafts with the same content, as other events about other objects.
func copies(drafts []sender.Draft) []sender.Draft {
	drafts = slices.Clone(drafts)
	for i := range drafts {
		drafts[i].ID = newid.New("evt_", time.Now())
		drafts[i].Object.ID, drafts[i].Key, drafts[i].Version = drafts[i].ID, "", 0
	}
	return drafts
}

// otherDrafts publishes other drafts than those given.
type otherDrafts struct {
	store
	change func(*sender.Draft)
}

func onDrafts(change func(*sender.Draft)) func(store) store {
	return func(s store) store { return otherDrafts{s, change} }
}

func (b otherDrafts) PublishTx(ctx context.Context, tx tx, drafts []sender.Draft) ([]sender.Ref, error) {
	drafts = slices.Clone(drafts)
	for i := range drafts {
		b.change(&drafts[i])
	}
	return b.store.PublishTx(ctx, tx, drafts)
}

// otherStep takes another step than it is asked for, or tells of another than it has taken.
type otherStep struct {
	store
	ask    func(*dispatch.ExpandParams, *dispatch.Batch)
	answer func(*dispatch.Expanded, *dispatch.Claims)
}

func (b otherStep) Step(ctx context.Context, p dispatch.ExpandParams, batch dispatch.Batch) (dispatch.Expanded, dispatch.Claims, error) {
	b.ask(&p, &batch)
	x, c, err := b.store.Step(ctx, p, batch)
	b.answer(&x, &c)
	return x, c, err
}

func onStep(ask func(*dispatch.ExpandParams, *dispatch.Batch)) func(store) store {
	return func(s store) store { return otherStep{s, ask, func(*dispatch.Expanded, *dispatch.Claims) {}} }
}

func onStepped(answer func(*dispatch.Expanded, *dispatch.Claims)) func(store) store {
	return func(s store) store { return otherStep{s, func(*dispatch.ExpandParams, *dispatch.Batch) {}, answer} }
}

// onExpand leaves a step that is to expand nothing as it is.
func onExpand(change func(*dispatch.ExpandParams)) func(store) store {
	return onStep(func(p *dispatch.ExpandParams, _ *dispatch.Batch) {
		if p.Events > 0 {
			change(p)
		}
	})
}

func onExpanded(change func(*dispatch.Expanded)) func(store) store {
	return onStepped(func(x *dispatch.Expanded, _ *dispatch.Claims) { change(x) })
}

func onBatch(change func(*dispatch.Batch)) func(store) store {
	return onStep(func(_ *dispatch.ExpandParams, batch *dispatch.Batch) { change(batch) })
}

func onClaim(change func(*dispatch.ClaimParams)) func(store) store {
	return onBatch(func(batch *dispatch.Batch) { change(&batch.Claim) })
}

func onClaims(change func(*dispatch.Claims)) func(store) store {
	return onStepped(func(_ *dispatch.Expanded, c *dispatch.Claims) { change(c) })
}

func onClaimed(change func(*dispatch.Claimed)) func(store) store {
	return onClaims(func(c *dispatch.Claims) {
		for i := range c.Claimed {
			change(&c.Claimed[i])
		}
	})
}

func onDecide(other func(decide decideFunc, l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision) func(store) store {
	return onBatch(func(batch *dispatch.Batch) {
		decide := batch.Decide
		batch.Decide = func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
			return other(decide, l, h, r, now)
		}
	})
}

func onLive(change func(*dispatch.Live)) func(store) store {
	return onDecide(func(decide decideFunc, l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
		change(&l)
		return decide(l, h, r, now)
	})
}

func onDecision(change func(*dispatch.Decision)) func(store) store {
	return onDecide(func(decide decideFunc, l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
		dec := decide(l, h, r, now)
		change(&dec)
		return dec
	})
}

// losing are results, of which some come too late.
func losing(results []dispatch.Result, late func(dispatch.Result) bool) []dispatch.Result {
	results = slices.Clone(results)
	for i, r := range results {
		if late(r) {
			results[i].Token = 0
		}
	}
	return results
}

// inFlightLost drops the results of subscriptions that have ended.
type inFlightLost struct {
	store
	subscription map[dispatch.DeliveryKey]string
	ended        map[string]bool
}

func newInFlightLost(s store) inFlightLost {
	return inFlightLost{s, map[dispatch.DeliveryKey]string{}, map[string]bool{}}
}

func (b inFlightLost) Step(ctx context.Context, p dispatch.ExpandParams, batch dispatch.Batch) (dispatch.Expanded, dispatch.Claims, error) {
	batch.Results = losing(batch.Results, func(r dispatch.Result) bool { return b.ended[b.subscription[r.Key]] })
	x, c, err := b.store.Step(ctx, p, batch)
	for _, d := range c.Claimed {
		b.subscription[d.Key] = d.Target.Subscription
	}
	return x, c, err
}

// otherDue stores another due time than was decided, and hides that from readers.
type otherDue struct {
	store
	change func(due, now time.Time) time.Time
}

func onDue(change func(due, now time.Time) time.Time) func(store) store {
	return func(s store) store { return otherDue{s, change} }
}

func (b otherDue) Step(ctx context.Context, p dispatch.ExpandParams, batch dispatch.Batch) (dispatch.Expanded, dispatch.Claims, error) {
	decided := map[dispatch.DeliveryKey]time.Time{}
	decide := batch.Decide
	batch.Decide = func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
		dec := decide(l, h, r, now)
		if dec.Status == sender.StatusAwaitingRetry {
			decided[l.Key] = dec.Due
			dec.Due = b.change(dec.Due, now)
		}
		return dec
	}
	x, c, err := b.store.Step(ctx, p, batch)
	for i, r := range c.Recorded {
		if r.Decision.Status == sender.StatusAwaitingRetry {
			c.Recorded[i].Decision.Due = decided[batch.Results[i].Key]
		}
	}
	return x, c, err
}

type otherDelivery struct {
	store
	change func(*sender.Delivery)
}

func onDelivery(change func(*sender.Delivery)) func(store) store {
	return func(s store) store { return otherDelivery{s, change} }
}

func (b otherDelivery) Delivery(ctx context.Context, id string, q history.AttemptQuery) (sender.Delivery, error) {
	d, err := b.store.Delivery(ctx, id, q)
	b.change(&d)
	return d, err
}

// otherPage lists other deliveries than those asked for, or others than there are.
type otherPage struct {
	store
	ask    func(*history.DeliveryQuery)
	answer func(history.DeliveryQuery, []sender.Delivery) []sender.Delivery
}

func onQuery(change func(*history.DeliveryQuery)) func(store) store {
	same := func(_ history.DeliveryQuery, page []sender.Delivery) []sender.Delivery { return page }
	return func(s store) store { return otherPage{s, change, same} }
}

func onPage(change func(history.DeliveryQuery, []sender.Delivery) []sender.Delivery) func(store) store {
	return func(s store) store { return otherPage{s, func(*history.DeliveryQuery) {}, change} }
}

func (b otherPage) Deliveries(ctx context.Context, q history.DeliveryQuery) ([]sender.Delivery, string, error) {
	b.ask(&q)
	page, next, err := b.store.Deliveries(ctx, q)
	return b.answer(q, page), next, err
}

type otherResume struct {
	store
	change func(*sender.Resume)
}

func onResume(change func(*sender.Resume)) func(store) store {
	return func(s store) store { return otherResume{s, change} }
}

func (b otherResume) ResumeSubscriptionTx(ctx context.Context, tx tx, id string, r sender.Resume) error {
	b.change(&r)
	return b.store.ResumeSubscriptionTx(ctx, tx, id, r)
}

// otherSubscriptions lists other subscriptions than those asked for.
type otherSubscriptions struct {
	store
	change func(*sender.SubscriptionQuery)
}

func onSubscriptions(change func(*sender.SubscriptionQuery)) func(store) store {
	return func(s store) store { return otherSubscriptions{s, change} }
}

func (b otherSubscriptions) Subscriptions(ctx context.Context, q sender.SubscriptionQuery) ([]sender.Subscription, string, error) {
	b.change(&q)
	return b.store.Subscriptions(ctx, q)
}

type otherFacts struct {
	store
	change func(*history.Facts)
}

func onFacts(change func(*history.Facts)) func(store) store {
	return func(s store) store { return otherFacts{s, change} }
}

func (b otherFacts) Facts(ctx context.Context, id string) (history.Facts, error) {
	f, err := b.store.Facts(ctx, id)
	b.change(&f)
	return f, err
}

// overlooking is what a store overlooks that does not lock what it looks up: what was noted
// in transactions that had not ended when the present one was asked for.
type overlooking struct {
	mu           sync.Mutex
	open         []string
	ended, known map[string]bool
}

func (o *overlooking) inTx(ctx context.Context, s store, fn func(tx) error) error {
	o.mu.Lock()
	known := maps.Clone(o.ended)
	o.mu.Unlock()
	return s.InTx(ctx, func(tx tx) error {
		o.mu.Lock()
		if o.ended == nil {
			o.ended = map[string]bool{}
		}
		for _, name := range o.open {
			o.ended[name] = true
		}
		o.open, o.known = nil, known
		o.mu.Unlock()
		return fn(tx)
	})
}

func (o *overlooking) note(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open = append(o.open, name)
}

func (o *overlooking) overlooks(name string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ended[name] && !o.known[name]
}
