//go:build !race

package storetest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// publishBreakages break publishing, expanding and matching.
var publishBreakages = []breakage{
	{"a notice goes to whom it tells of", onDrafts(func(d *sender.Draft) { d.About = "" }), checks{"notice/announced, and whom it tells of"}},
	{"everything made twice", func(s store) store { return twice{s} }, checks{"expand/in chunks", "expand/by several at a time"}},
	{"chunks not bounded", onExpand(func(p *dispatch.ExpandParams) { *p = dispatch.ExpandParams{Events: p.Events, Deliveries: 1 << 30} }), checks{"expand/in chunks"}},
	{"expansions not told of", onExpanded(func(x *dispatch.Expanded) { *x = dispatch.Expanded{} }), checks{"expand/in a step"}},
	{"More forgotten", onExpanded(func(x *dispatch.Expanded) { x.More = false }), checks{"expand/in chunks"}},
	{"older events for new subscriptions", func(s store) store { return &olderToo{store: s} }, checks{"matching/nothing older than the subscription", "random/seed 1"}},
	{"filter ignored", func(s store) store { return everyType{s} }, checks{"matching/as Matches says"}},
	{"content ignored", func(s store) store { return everyContent{s} }, checks{"filter/is stored", "filter/decides by content", "filter/large bodies", "filter/in chunks", "filter/update, rolled back", "filter/changed all the time", "filter/held"}},
	{"content of a new filter ignored", func(s store) store { return firstFilter{s} }, checks{"filter/is stored", "filter/the one that is stored at the expansion"}},
	{"payload versions ignored", onExpand(func(p *dispatch.ExpandParams) { p.Convert = nil }), checks{"filter/by the payload version", "random/seed 1"}},
	{"filters decide by what was published", onExpand(func(p *dispatch.ExpandParams) {
		p.Convert = func(_, from, _ string, data json.RawMessage) (string, json.RawMessage, error) { return from, data, nil }
	}), checks{"filter/by the payload version", "random/seed 1"}},
	{"filter asked of what is addressed", onDrafts(func(d *sender.Draft) { d.Subscription = "" }), checks{"filter/not of what is addressed"}},
	{"addressee ignored", onDrafts(func(d *sender.Draft) { d.Subscriber, d.Subscription = "", "" }), checks{"matching/as Matches says"}},
	{"roll-back of InTx leaks", func(s store) store { return inTxCommits{s} }, checks{"publish/rolled back leaves nothing", "registry/rolled back", "transaction/runs again", "life/hold, rolled back", "life/resume, rolled back", "life/close, rolled back", "random/seed 1"}},
	{"roll-back of the caller leaks", func(s store) store { return callerCommits{s} }, checks{"publish/rolled back leaves nothing"}},
	{"version does not rise", func(s store) store { return versionOne{s} }, checks{"publish/versions rise by one", "publish/versions of concurrent publishers"}},
	{"old version taken", func(s store) store { return oldVersionTaken{s} }, checks{"publish/versions given", "publish/refused version leaves no trace"}},
	{"refused version keeps its key", func(s store) store { return keyOfRefused{s} }, checks{"publish/refused version takes no key"}},
	{"key ignored", onDrafts(func(d *sender.Draft) { d.Key = "" }), checks{"publish/key makes a duplicate", "publish/key with another content"}},
	{"key's content ignored", onDrafts(func(d *sender.Draft) { d.KeyHash = [32]byte{} }), checks{"publish/key with another content"}},
	{"key looked up before it is taken", func(s store) store { return &keyLookedUp{store: s} }, checks{"publish/key of two at a time"}},
	{"key's scope ignored", onDrafts(func(d *sender.Draft) { d.KeyScope = "" }), checks{"publish/key belongs to its scope"}},
	{"nobody to tell is an error", onDrafts(func(d *sender.Draft) { d.IfSubscriberExists = false }), checks{"publish/dropped without its subscriber"}},
	{"nobody to tell is everybody", func(s store) store { return toEveryone{s} }, checks{"publish/dropped without its subscriber"}},
	{"dropped whatever is not found", func(s store) store { return dropsUnfound{s} }, checks{"publish/dropped only for its subscriber"}},
	{"body altered", onClaimed(func(c *dispatch.Claimed) { c.Body = bytes.ToValidUTF8(c.Body, []byte("?")) }), checks{"publish/body keeps its bytes"}},
	{"body altered in the history", onDelivery(func(d *sender.Delivery) { d.Body = bytes.TrimSpace(d.Body) }), checks{"publish/body keeps its bytes"}},
	{"trace context lost", onDrafts(func(d *sender.Draft) { d.Traceparent = "" }), checks{"publish/traceparent is kept"}},
	{"trace context lost on the way to the wire", onClaimed(func(c *dispatch.Claimed) { c.Event.Traceparent = "" }), checks{"publish/traceparent is kept"}},
	{"object ids normalised", onDrafts(func(d *sender.Draft) { d.Object.ID = strings.ToLower(d.Object.ID) }), checks{"publish/odd object ids"}},
}

type twice struct{ store }

func (b twice) PublishTx(ctx context.Context, tx tx, drafts []sender.Draft) ([]sender.Ref, error) {
	refs, err := b.store.PublishTx(ctx, tx, drafts)
	if err == nil {
		_, err = b.store.PublishTx(ctx, tx, copies(drafts))
	}
	return refs, err
}

type olderToo struct {
	store
	all []sender.Draft
}

func (b *olderToo) PublishTx(ctx context.Context, tx tx, drafts []sender.Draft) ([]sender.Ref, error) {
	b.all = append(b.all, drafts...)
	return b.store.PublishTx(ctx, tx, drafts)
}

func (b *olderToo) CreateSubscriptionTx(ctx context.Context, tx tx, s sender.Subscription) error {
	if err := b.store.CreateSubscriptionTx(ctx, tx, s); err != nil {
		return err
	}
	again := copies(b.all)
	for i := range again {
		again[i].Subscriber, again[i].Subscription = s.Subscriber, s.ID
	}
	_, err := b.store.PublishTx(ctx, tx, again)
	return err
}

type everyType struct{ store }

func (b everyType) CreateSubscriptionTx(ctx context.Context, tx tx, s sender.Subscription) error {
	s.EventTypes = []string{"*"}
	return b.store.CreateSubscriptionTx(ctx, tx, s)
}

type everyContent struct{ store }

func (b everyContent) CreateSubscriptionTx(ctx context.Context, tx tx, s sender.Subscription) error {
	s.Filter = nil
	return b.store.CreateSubscriptionTx(ctx, tx, s)
}

type firstFilter struct{ store }

func (b firstFilter) UpdateSubscriptionTx(ctx context.Context, tx tx, s sender.Subscription) error {
	was, err := b.store.SubscriptionTx(ctx, tx, sender.SubscriptionKey{ID: s.ID})
	if err != nil {
		return err
	}
	s.Filter = was.Filter
	return b.store.UpdateSubscriptionTx(ctx, tx, s)
}

type inTxCommits struct{ store }

func (b inTxCommits) InTx(ctx context.Context, fn func(tx) error) error {
	var failed error
	if err := b.store.InTx(ctx, func(tx tx) error { failed = fn(tx); return nil }); err != nil {
		return err
	}
	return failed
}

type callerCommits struct{ store }

func (callerCommits) rollBack(tx tx) error { return tx.Commit() }

type toEveryone struct{ store }

func (b toEveryone) PublishTx(ctx context.Context, tx tx, drafts []sender.Draft) ([]sender.Ref, error) {
	refs, err := b.store.PublishTx(ctx, tx, drafts)
	for i, ref := range refs {
		if err == nil && ref.Dropped {
			d := drafts[i]
			d.Subscriber, d.Subscription = "", ""
			_, err = b.store.PublishTx(ctx, tx, []sender.Draft{d})
		}
	}
	return refs, err
}

type dropsUnfound struct{ store }

func (b dropsUnfound) PublishTx(ctx context.Context, tx tx, drafts []sender.Draft) ([]sender.Ref, error) {
	refs, err := b.store.PublishTx(ctx, tx, drafts)
	if len(drafts) == 1 && drafts[0].IfSubscriberExists && errors.Is(err, sender.ErrNotFound) {
		return []sender.Ref{{Dropped: true}}, nil
	}
	return refs, err
}

type versionOne struct{ store }

func (b versionOne) PublishTx(ctx context.Context, tx tx, drafts []sender.Draft) ([]sender.Ref, error) {
	refs, err := b.store.PublishTx(ctx, tx, drafts)
	for i := range refs {
		refs[i].Version = 1
	}
	return refs, err
}

type oldVersionTaken struct{ store }

func (b oldVersionTaken) PublishTx(ctx context.Context, tx tx, drafts []sender.Draft) ([]sender.Ref, error) {
	refs, err := b.store.PublishTx(ctx, tx, drafts)
	if errors.Is(err, sender.ErrVersion) {
		for i := range drafts {
			drafts[i].Version = 0
		}
		return b.store.PublishTx(ctx, tx, drafts)
	}
	return refs, err
}

type keyOfRefused struct{ store }

func (b keyOfRefused) PublishTx(ctx context.Context, tx tx, drafts []sender.Draft) ([]sender.Ref, error) {
	refs, err := b.store.PublishTx(ctx, tx, drafts)
	if errors.Is(err, sender.ErrVersion) && drafts[0].Key != "" {
		taken := drafts[0]
		taken.Object.ID, taken.Version = "another", 0
		if _, err := b.store.PublishTx(ctx, tx, []sender.Draft{taken}); err != nil {
			return nil, err
		}
	}
	return refs, err
}

// keyLookedUp publishes under a key that was not taken when its transaction was asked for,
// whatever has happened since.
type keyLookedUp struct {
	store
	overlooking
}

func (b *keyLookedUp) InTx(ctx context.Context, fn func(tx) error) error {
	return b.inTx(ctx, b.store, fn)
}

func (b *keyLookedUp) PublishTx(ctx context.Context, tx tx, drafts []sender.Draft) ([]sender.Ref, error) {
	drafts = slices.Clone(drafts)
	for i := range drafts {
		if key := drafts[i].Key; key != "" && b.overlooks(key) {
			drafts[i].Key = ""
		} else {
			b.note(key)
		}
	}
	return b.store.PublishTx(ctx, tx, drafts)
}
