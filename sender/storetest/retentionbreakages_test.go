//go:build !race

package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
)

// retentionBreakages break pruning and redaction.
var retentionBreakages = []breakage{
	{"pruned too early", onPrune(func(p *dispatch.PruneParams) { p.Delivered = p.Delivered.Add(2 * time.Hour) }), checks{"retention/delivered", "retention/cancelled", "random/seed 1"}},
	{"events pruned too early", onPrune(func(p *dispatch.PruneParams) { p.Events = p.Events.Add(2 * time.Hour) }), checks{"retention/events", "retention/ended replays", "random/seed 2"}},
	{"notices pruned too early", onPrune(func(p *dispatch.PruneParams) { p.Notices = p.Notices.Add(2 * time.Hour) }), checks{"retention/notices"}},
	{"dead letters are not set apart", onPrune(func(p *dispatch.PruneParams) { p.DeadLetters = p.Delivered }), checks{"retention/dead letters", "retention/times apart"}},
	{"dead letters for ever", onPrune(func(p *dispatch.PruneParams) { p.DeadLetters = time.Time{} }), checks{"retention/dead letters", "random/seed 3"}},
	{"events for ever", onPrune(func(p *dispatch.PruneParams) { p.Events = time.Time{} }), checks{"retention/events", "retention/held backlogs", "retention/ended replays"}},
	{"limit of pruning ignored", onPrune(func(p *dispatch.PruneParams) {
		if p.Limit > 0 {
			p.Limit = 1 << 20
		}
	}), checks{"retention/bounded", "retention/held backlogs"}},
	{"a pass ends with its first batch", onPruned(func(p *dispatch.Pruned) { p.Cursor = "" }), checks{"retention/bounded", "random/seed 3"}},
	{"malformed cursor of a pass taken for none", func(s store) store { return anyPassCursor{s} }, checks{"retention/malformed"}},
	{"unread notices pruned", func(s store) store { return unreadPruned{s} }, checks{"retention/notices"}},
	{"records counted from the publishing", func(s store) store { return &recordsByCreation{store: s} }, checks{"retention/delivered", "retention/sent again"}},
	{"held ones pruned", func(s store) store { return &heldPruned{store: s} }, checks{"retention/held backlogs", "random/seed 3"}},
	{"keys outlive their events", func(s store) store { return &keysKept{store: s, hashes: map[string][32]byte{}} }, checks{"retention/events"}},
	{"versions pruned", func(s store) store { return &versionsPruned{store: s, first: map[sender.Object]int64{}} }, checks{"retention/events"}},
	{"objects forgotten too early", onPrune(func(p *dispatch.PruneParams) {
		if !p.Objects.IsZero() {
			p.Objects = p.Objects.Add(2 * time.Hour)
		}
	}), checks{"retention/objects"}},
	{"objects for ever", onPrune(func(p *dispatch.PruneParams) { p.Objects = time.Time{} }), checks{"retention/objects", "random/seed 2"}},
	{"objects always forgotten", onPrune(func(p *dispatch.PruneParams) {
		if p.Objects.IsZero() {
			p.Objects = p.Events
		}
	}), checks{"retention/objects for ever"}},
	{"an object that was forgotten begins anew", func(s store) store { return &objectAnew{store: s} }, checks{"retention/objects"}},
	{"deleted subscriptions for ever", onPruned(func(p *dispatch.Pruned) { p.Subscriptions = 0 }), checks{"retention/subscriptions"}},
	{"bodies kept", onDelivery(func(d *sender.Delivery) {
		if d.Redacted {
			d.Body = []byte("body")
		}
	}), checks{"redaction/of an object", "redaction/of a subscriber"}},
	{"snippets kept", onDelivery(func(d *sender.Delivery) {
		for i := range d.Attempts {
			if d.Redacted && d.Attempts[i].Class != sender.ClassNone {
				d.Attempts[i].Snippet = []byte("no")
			}
		}
	}), checks{"redaction/of an object", "redaction/in flight", "random/seed 3"}},
	{"headers kept", onDelivery(func(d *sender.Delivery) {
		for i := range d.Attempts {
			if d.Redacted {
				d.Attempts[i].Headers = "A: b\n\n"
			}
		}
	}), checks{"redaction/of an object", "redaction/in flight"}},
	{"redaction not said", onDelivery(func(d *sender.Delivery) { d.Redacted = false }), checks{"redaction/of an object", "redaction/live ones are cancelled"}},
	{"redaction not said in lists", onPage(func(_ history.DeliveryQuery, page []sender.Delivery) []sender.Delivery {
		for i := range page {
			page[i].Redacted = false
		}
		return page
	}), checks{"redaction/of an object", "random/seed 2"}},
	{"redacted is redelivered", func(s store) store { return redelivers{s, sender.ErrRedacted} }, checks{"redaction/redeliver", "random/seed 1"}},
	{"redaction begins anew each time", func(s store) store { return redactsAnew{s} }, checks{"redaction/in batches"}},
	{"redaction cuts attempts off", func(s store) store { return &redactedInFlight{store: s} }, checks{"redaction/in flight", "random/seed 1"}},
	{"what is redacted is expanded first", func(s store) store { return redactsExpanded{s} }, checks{"redaction/not expanded", "random/seed 2"}},
	{"unknown subscriber taken for none", func(s store) store { return redactsUnknown{s} }, checks{"redaction/refused"}},
}

type redactsExpanded struct{ store }

func (b redactsExpanded) Redact(ctx context.Context, p history.RedactParams) (history.Redacted, error) {
	_, _, err := b.store.Step(ctx, dispatch.ExpandParams{Events: 1000, Deliveries: 1000}, dispatch.Batch{})
	got, failed := b.store.Redact(ctx, p)
	return got, errors.Join(err, failed)
}

type anyPassCursor struct{ store }

func (b anyPassCursor) Prune(ctx context.Context, p dispatch.PruneParams) (dispatch.Pruned, error) {
	got, err := b.store.Prune(ctx, p)
	if errors.Is(err, sender.ErrInvalid) && p.Limit > 0 {
		p.Cursor = ""
		return b.store.Prune(ctx, p)
	}
	return got, err
}

type unreadPruned struct{ store }

func (b unreadPruned) Prune(ctx context.Context, p dispatch.PruneParams) (dispatch.Pruned, error) {
	all, _, err := b.store.Notices(ctx, history.NoticeQuery{})
	for _, n := range all {
		if n.CreatedAt.Before(p.Notices) {
			_, failed := b.store.AcknowledgeNotice(ctx, n.ID, "")
			err = errors.Join(err, failed)
			p.Notices = p.Notices.Add(1000 * time.Hour)
		}
	}
	got, failed := b.store.Prune(ctx, p)
	return got, errors.Join(err, failed)
}

type recordsByCreation struct {
	store
	before time.Time
}

func (b *recordsByCreation) Prune(ctx context.Context, p dispatch.PruneParams) (dispatch.Pruned, error) {
	b.before = p.Delivered
	return b.store.Prune(ctx, p)
}

func (b *recordsByCreation) Delivery(ctx context.Context, id string, q history.AttemptQuery) (sender.Delivery, error) {
	d, err := b.store.Delivery(ctx, id, q)
	if err == nil && d.Status == sender.StatusDelivered && d.CreatedAt.Before(b.before) {
		return sender.Delivery{}, sender.ErrNotFound
	}
	return d, err
}

type heldPruned struct {
	store
	before time.Time
}

func (b *heldPruned) Prune(ctx context.Context, p dispatch.PruneParams) (dispatch.Pruned, error) {
	b.before = p.Delivered
	return b.store.Prune(ctx, p)
}

func (b *heldPruned) Deliveries(ctx context.Context, q history.DeliveryQuery) ([]sender.Delivery, string, error) {
	page, next, err := b.store.Deliveries(ctx, q)
	return slices.DeleteFunc(page, func(d sender.Delivery) bool {
		return d.Status == sender.StatusHeld && d.CreatedAt.Before(b.before)
	}), next, err
}

type keysKept struct {
	store
	hashes map[string][32]byte
}

func (b *keysKept) PublishTx(ctx context.Context, tx tx, drafts []sender.Draft) ([]sender.Ref, error) {
	for _, d := range drafts {
		if hash, known := b.hashes[d.Key]; known && hash != d.KeyHash {
			return nil, sender.ErrIdempotencyKey
		}
		if d.Key != "" {
			b.hashes[d.Key] = d.KeyHash
		}
	}
	return b.store.PublishTx(ctx, tx, drafts)
}

type versionsPruned struct {
	store
	first  map[sender.Object]int64 // the first version after a pass
	forget bool
}

func (b *versionsPruned) Prune(ctx context.Context, p dispatch.PruneParams) (dispatch.Pruned, error) {
	got, err := b.store.Prune(ctx, p)
	b.forget = b.forget || got.Events > 0
	return got, err
}

func (b *versionsPruned) PublishTx(ctx context.Context, tx tx, drafts []sender.Draft) ([]sender.Ref, error) {
	refs, err := b.store.PublishTx(ctx, tx, drafts)
	for i := range refs {
		if obj := drafts[i].Object; b.forget {
			b.first[obj] = min(refs[i].Version, max(b.first[obj], 1<<40))
			refs[i].Version -= b.first[obj] - 1
		}
	}
	return refs, err
}

type objectAnew struct {
	store
	forgotten bool
}

func (b *objectAnew) Prune(ctx context.Context, p dispatch.PruneParams) (dispatch.Pruned, error) {
	got, err := b.store.Prune(ctx, p)
	b.forgotten = b.forgotten || got.Objects > 0
	return got, err
}

func (b *objectAnew) PublishTx(ctx context.Context, tx tx, drafts []sender.Draft) ([]sender.Ref, error) {
	refs, err := b.store.PublishTx(ctx, tx, drafts)
	for i := range refs {
		if b.forgotten && drafts[i].Object.ID == "old" {
			refs[i].Version = 1
		}
	}
	return refs, err
}

type redactsAnew struct{ store }

func (b redactsAnew) Redact(ctx context.Context, p history.RedactParams) (history.Redacted, error) {
	if _, err := fmt.Sscanf(p.Cursor, "%d.", new(int)); err == nil {
		p.Cursor = ""
	}
	return b.store.Redact(ctx, p)
}

type redactedInFlight struct {
	store
	redacted bool
}

func (b *redactedInFlight) Redact(ctx context.Context, p history.RedactParams) (history.Redacted, error) {
	b.redacted = true
	return b.store.Redact(ctx, p)
}

func (b *redactedInFlight) Step(ctx context.Context, p dispatch.ExpandParams, batch dispatch.Batch) (dispatch.Expanded, dispatch.Claims, error) {
	batch.Results = losing(batch.Results, func(dispatch.Result) bool { return b.redacted })
	return b.store.Step(ctx, p, batch)
}

type redactsUnknown struct{ store }

func (b redactsUnknown) Redact(ctx context.Context, p history.RedactParams) (history.Redacted, error) {
	got, err := b.store.Redact(ctx, p)
	if errors.Is(err, sender.ErrNotFound) {
		return got, nil
	}
	return got, err
}

// otherPrune prunes something else, or tells of something else.
type otherPrune struct {
	store
	change func(*dispatch.PruneParams)
	tell   func(*dispatch.Pruned)
}

func onPrune(change func(*dispatch.PruneParams)) func(store) store {
	return func(s store) store { return otherPrune{s, change, func(*dispatch.Pruned) {}} }
}

func onPruned(change func(*dispatch.Pruned)) func(store) store {
	return func(s store) store { return otherPrune{s, func(*dispatch.PruneParams) {}, change} }
}

func (b otherPrune) Prune(ctx context.Context, p dispatch.PruneParams) (dispatch.Pruned, error) {
	b.change(&p)
	got, err := b.store.Prune(ctx, p)
	b.tell(&got)
	return got, err
}
