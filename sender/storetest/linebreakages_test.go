//go:build !race

package storetest_test

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/replay"
)

// lineBreakages break the lines of objects.
var lineBreakages = []breakage{
	{"no order", onSettings(func(set *sender.Settings) { set.Order = sender.OrderRelaxed }), checks{
		"line/in order", "line/a dead letter that holds", "line/sent again", "line/lost and released", "line/resumed", "line/redacted in flight", "line/reads",
		"line/latest", "line/latest, failed", "line/latest, in one step", "line/latest, held", "line/latest, sent again", "line/another order", "line/changed to the latest",
	}},
	{"objects wait for each other", onClaim(func(p *dispatch.ClaimParams) {
		for lane := range p.Lanes {
			p.Lanes[lane].PerSubscription = min(p.Lanes[lane].PerSubscription, 1)
		}
	}), checks{"line/in order", "line/latest", "line/resumed"}},
	{"the order of objects is the latest", onOrder(sender.OrderObject, sender.OrderLatest), checks{"line/in order", "line/a dead letter", "line/bounds", "line/ended otherwise", "line/reads"}},
	{"the latest order is that of objects", onOrder(sender.OrderLatest, sender.OrderObject), checks{"line/latest", "line/latest, failed", "line/latest, in one step", "line/latest, held", "line/latest, sent again", "line/changed to the latest", "line/superseded, pruned"}},

	{"bounds of an order untold", onLive(func(l *dispatch.Live) { l.HoldTries, l.HoldFor = 0, 0 }), checks{"line/bounds"}},
	{"bounds without an order", onLive(func(l *dispatch.Live) { l.HoldTries, l.HoldFor = 3, time.Hour }), checks{"line/bounds"}},

	{"each dead letter holds back", onSettings(func(set *sender.Settings) { set.HoldDead = true }), checks{"line/a dead letter"}},
	{"no dead letter holds back", onSettings(func(set *sender.Settings) { set.HoldDead = false }), checks{"line/a dead letter that holds", "line/a dead letter that holds no more"}},
	{"a dead letter holds back in silence", onFacts(func(f *history.Facts) { f.HoldsBack = false }), checks{"line/a dead letter that holds"}},
	{"a dead letter behind which one waits is none", onFacts(func(f *history.Facts) { f.BehindDead = false }), checks{"line/a dead letter that holds"}},
	{"anything is passed over", func(s store) store { return passesAnything{s} }, checks{"line/a dead letter that holds", "random/seed 1"}},
	{"nothing is passed over", func(s store) store { return passesNothing{s} }, checks{"line/a dead letter that holds", "random/seed 3"}},
	{"what is too old is passed over", func(s store) store { return passesOld{s} }, checks{"line/a dead letter that holds", "random/seed 3"}},
	{"a dead letter holds back for ever", func(s store) store { return settingsKept{s} }, checks{"line/a dead letter that holds no more", "random/seed 1"}},
	{"no dead letter is freed", func(s store) store { return frees{s} }, checks{"line/a dead letter that holds no more", "line/changed to the latest, long", "random/seed 1"}},

	{"what is too old goes on", onSweep(func(p *dispatch.SweepParams) { p.NotBefore = time.Time{} }), checks{"line/too old to go on", "line/too old to go on, of several dead letters"}},
	{"what is too old goes on once some has ended", func(s store) store { return sweepsOnce{s, new(atomic.Int64)} }, checks{"line/too old to go on, in parts"}},
	{"a deletion takes all of a sweep", onSweep(func(p *dispatch.SweepParams) { p.Limit = min(p.Limit, 3) }), checks{"line/too old to go on, beside a deletion"}},
	{"what is too old ends in silence", onSwept(func(out *dispatch.Swept) { out.Notices = nil }), checks{"line/too old to go on", "line/too old to go on, in parts"}},
	{"what is too old is dead-lettered whatever the order", func(s store) store { return sweepsOrdered{s} }, checks{"line/too old to go on, of the latest order"}},
	{"what was delivered before is told of", onSwept(func(out *dispatch.Swept) {
		if out.Ended > 0 && out.Notices == nil {
			out.Notices = []sender.Notice{{Kind: sender.NoticeDeadLettered}}
		}
	}), checks{"line/too old to go on, delivered before"}},
	{"a resume takes what is too old", onResume(func(r *sender.Resume) { r.NotBefore = time.Time{} }), checks{"line/too old to go on, held"}},

	{"a redelivery is in no line", func(s store) store { return redeliversRelaxed{s} }, checks{"line/sent again"}},
	{"a lost version lets the next one go", onDecide(func(decide decideFunc, l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
		if r.Class == sender.ClassInterrupted {
			return dispatch.Decision{Status: sender.StatusDeadLettered, Health: h}
		}
		return decide(l, h, r, now)
	}), checks{"line/lost and released"}},
	{"a released version lets the next one go", func(s store) store { return releasedEnds{s} }, checks{"line/lost and released"}},

	{"a resume skips nothing in a line", onResume(func(r *sender.Resume) { *r = sender.Resume{} }), checks{"line/resumed"}},
	{"a resume skips all of a line", onResume(func(r *sender.Resume) { r.None = true }), checks{"line/resumed"}},
	{"the end of a subscription leaves its lines", func(s store) store { return closesOnly{s} }, checks{"line/ended otherwise"}},
	{"a redaction leaves what is behind", func(s store) store { return redactsFirst{s} }, checks{"line/ended otherwise"}},

	{"nobody says what one waits for", onFacts(func(f *history.Facts) { f.Behind = "" }), checks{"line/a dead letter that holds", "line/sent again", "line/reads"}},
	{"what is behind is due", func(s store) store {
		return onFacts(func(f *history.Facts) {
			if f.Behind != "" {
				f.Delivery.NextAttemptAt = f.Now
			}
		})(s)
	}, checks{"line/reads"}},
	{"what is behind does not count", onCounts(func(c *history.Counts) { c.Live = min(c.Live, 2) }), checks{"line/reads"}},

	{"a held backlog supersedes nothing", func(s store) store { return heldByObject{s} }, checks{"line/latest, held"}},
	{"a failure leaves its line", onDecision(func(d *dispatch.Decision) {
		if d.Status == sender.StatusAwaitingRetry {
			d.Status = sender.StatusDeadLettered
		}
	}), checks{"line/in order", "line/latest, failed"}},
	{"superseded for good", func(s store) store { return supersededForGood{s} }, checks{"line/latest, sent again"}},
	{"superseded ones are in no replay", onReplay(func(r *replay.Replay, _ *time.Time) {
		if r.Filter.Status == sender.StatusSuperseded {
			r.Filter.Status = sender.StatusDeadLettered
		}
	}), checks{"line/latest, sent again"}},
	{"the order stays", func(s store) store { return settingsKept{s} }, checks{"line/another order"}},
	{"a line keeps the order that it began with", func(s store) store { return latestLater{s} }, checks{"line/changed to the latest", "line/changed to the latest, long"}},
	{"what is cancelled reads as superseded", onDelivery(func(d *sender.Delivery) {
		if d.Status == sender.StatusCancelled {
			d.Status = sender.StatusSuperseded
		}
	}), checks{"line/cancelled, not superseded", "line/skipped in part"}},
	{"what was superseded is kept", onPrune(func(p *dispatch.PruneParams) { p.Delivered = time.Time{} }), checks{"line/superseded, pruned"}},
}

// onOrder stores another order in place of one.
func onOrder(one, other sender.Order) func(store) store {
	return onSettings(func(set *sender.Settings) {
		if set.Order == one {
			set.Order, set.HoldTries, set.HoldFor, set.HoldDead = other, 0, 0, false
		}
	})
}

type passesAnything struct{ store }

func (b passesAnything) PassOver(ctx context.Context, id string, notBefore time.Time) error {
	if err := b.store.PassOver(ctx, id, notBefore); !errors.Is(err, sender.ErrStatus) {
		return err
	}
	return nil
}

type passesNothing struct{ store }

func (b passesNothing) PassOver(ctx context.Context, id string, _ time.Time) error {
	f, err := b.store.Facts(ctx, id)
	if err == nil && !f.HoldsBack {
		err = sender.ErrStatus
	}
	return err
}

// passesOld passes over whatever is behind.
type passesOld struct{ store }

func (b passesOld) PassOver(ctx context.Context, id string, _ time.Time) error {
	return b.store.PassOver(ctx, id, time.Time{})
}

// frees sweeps nothing.
type frees struct{ store }

func (frees) Sweep(context.Context, dispatch.SweepParams) (dispatch.Swept, error) {
	return dispatch.Swept{}, nil
}

// sweeps sweeps by other parameters, or tells of another result.
type sweeps struct {
	store
	ask    func(*dispatch.SweepParams)
	answer func(*dispatch.Swept)
}

func (b sweeps) Sweep(ctx context.Context, p dispatch.SweepParams) (dispatch.Swept, error) {
	b.ask(&p)
	out, err := b.store.Sweep(ctx, p)
	b.answer(&out)
	return out, err
}

func onSweep(ask func(*dispatch.SweepParams)) func(store) store {
	return func(s store) store { return sweeps{s, ask, func(*dispatch.Swept) {}} }
}

func onSwept(answer func(*dispatch.Swept)) func(store) store {
	return func(s store) store { return sweeps{s, func(*dispatch.SweepParams) {}, answer} }
}

// sweepsOnce heeds the first NotBefore alone.
type sweepsOnce struct {
	store
	swept *atomic.Int64
}

func (b sweepsOnce) Sweep(ctx context.Context, p dispatch.SweepParams) (dispatch.Swept, error) {
	if b.swept.Add(1) > 1 {
		p.NotBefore = time.Time{}
	}
	return b.store.Sweep(ctx, p)
}

// sweepsOrdered sweeps as if no subscription wanted the latest alone.
type sweepsOrdered struct{ store }

func (b sweepsOrdered) Sweep(ctx context.Context, p dispatch.SweepParams) (dispatch.Swept, error) {
	var changed []string
	err := b.store.InTx(ctx, func(tx tx) error {
		all, err := b.store.SubscriptionsTx(ctx, tx, "", "", 100)
		for _, s := range all {
			if s.Settings.Order == sender.OrderLatest {
				_, orderErr := setOrder(ctx, b.store, tx, s.ID, sender.OrderObject)
				changed, err = append(changed, s.ID), errors.Join(err, orderErr)
			}
		}
		return err
	})
	out, sweepErr := b.store.Sweep(ctx, p)
	return out, errors.Join(err, sweepErr, b.store.InTx(ctx, func(tx tx) (err error) {
		for _, id := range changed {
			_, orderErr := setOrder(ctx, b.store, tx, id, sender.OrderLatest)
			err = errors.Join(err, orderErr)
		}
		return err
	}))
}

// setOrder gives a subscription another order, and returns its settings as they were.
func setOrder(ctx context.Context, s store, tx tx, id string, order sender.Order) (was sender.Settings, err error) {
	sub, err := s.SubscriptionTx(ctx, tx, sender.SubscriptionKey{ID: id})
	if err != nil {
		return was, err
	}
	was, sub.Settings = sub.Settings, sender.Settings{Order: order}
	return was, s.UpdateSubscriptionTx(ctx, tx, sub)
}

// redeliversRelaxed redelivers as if the subscription had no order.
type redeliversRelaxed struct{ store }

func (b redeliversRelaxed) Redeliver(ctx context.Context, id string, notBefore time.Time) error {
	d, err := b.store.Delivery(ctx, id, history.AttemptQuery{})
	if err != nil {
		return err
	}
	var was sender.Settings
	err = b.store.InTx(ctx, func(tx tx) (err error) {
		was, err = setOrder(ctx, b.store, tx, d.Subscription, sender.OrderRelaxed)
		return err
	})
	return errors.Join(err, b.store.Redeliver(ctx, id, notBefore), b.store.InTx(ctx, func(tx tx) error {
		_, err := setOrder(ctx, b.store, tx, d.Subscription, was.Order)
		return err
	}))
}

// releasedEnds dead-letters what is released.
type releasedEnds struct{ store }

func (b releasedEnds) Release(ctx context.Context, rs []dispatch.Release) error {
	batch := dispatch.Batch{Decide: func(_ dispatch.Live, h sender.Health, _ dispatch.Result, _ time.Time) dispatch.Decision {
		return dispatch.Decision{Status: sender.StatusDeadLettered, Health: h}
	}}
	for _, r := range rs {
		batch.Results = append(batch.Results, dispatch.Result{Key: r.Key, Token: r.Token, Class: sender.ClassInterrupted})
	}
	_, _, err := b.store.Step(ctx, dispatch.ExpandParams{}, batch)
	return err
}

// closesOnly closes subscriptions that are to be deleted.
type closesOnly struct{ store }

func (b closesOnly) DeleteSubscriptionTx(ctx context.Context, tx tx, id string) error {
	return b.store.CloseSubscriptionTx(ctx, tx, id)
}

// redactsFirst tells of a redaction that has ended one delivery of each object alone.
type redactsFirst struct{ store }

func (b redactsFirst) Redact(ctx context.Context, p history.RedactParams) (history.Redacted, error) {
	r, err := b.store.Redact(ctx, p)
	r.Deliveries = min(r.Deliveries, 1)
	return r, err
}

// heldByObject keeps the order of objects in what it holds.
type heldByObject struct{ store }

func (b heldByObject) HoldSubscriptionTx(ctx context.Context, tx tx, id string, status sender.SubscriptionStatus, reason string) error {
	_, err := setOrder(ctx, b.store, tx, id, sender.OrderObject)
	return errors.Join(err, b.store.HoldSubscriptionTx(ctx, tx, id, status, reason))
}

// supersededForGood does nothing with what is superseded.
type supersededForGood struct{ store }

func (b supersededForGood) Redeliver(ctx context.Context, id string, notBefore time.Time) error {
	if d, err := b.store.Delivery(ctx, id, history.AttemptQuery{}); err != nil || d.Status == sender.StatusSuperseded {
		return err
	}
	return b.store.Redeliver(ctx, id, notBefore)
}

// latestLater leaves subscriptions in the order of objects that change to the latest.
type latestLater struct{ store }

func (b latestLater) UpdateSubscriptionTx(ctx context.Context, tx tx, s sender.Subscription) error {
	if s.Settings.Order == sender.OrderLatest {
		s.Settings.Order = sender.OrderObject
	}
	return b.store.UpdateSubscriptionTx(ctx, tx, s)
}
