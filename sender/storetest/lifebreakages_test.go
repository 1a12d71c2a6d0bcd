//go:build !race

package storetest_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
)

// lifeBreakages break how a store changes, holds, resumes, closes and limits
// subscriptions, and how it stores notices.
var lifeBreakages = []breakage{
	{"filter not updated", func(s store) store { return filterKept{s} }, checks{"life/update", "life/update, what is asked for no more", "random/seed 1"}},
	{"a new filter reaches back", func(s store) store { return &filterReachesBack{store: s} }, checks{"life/update, what is asked for anew", "life/update, asked for again"}},
	{"settings not updated", func(s store) store { return settingsKept{s} }, checks{"life/update", "life/update, target", "rate/in flight, changed"}},
	{"figures forgotten", func(s store) store { return noFigures{s} }, checks{"life/figures"}},
	{"Ref without its delivery", func(s store) store { return refAlone{s} }, checks{"life/id of an addressed event's delivery", "random/seed 1"}},
	{"settings erased too early", func(s store) store { return closeErases{s} }, checks{"life/settings erased"}},
	{"hold ignored", func(s store) store { return unheld{s} }, checks{"life/hold", "life/hold, status", "random/seed 1"}},
	{"hold cancels", func(s store) store { return holdCancels{s} }, checks{"life/hold", "life/resume, all", "random/seed 1"}},
	{"hold ends attempts in flight", func(s store) store { return heldInFlight{newInFlightLost(s)} }, checks{"life/hold, in flight", "life/hold, in flight and fails"}},
	{"NextDue speaks of what is held", func(s store) store { return heldIsDue{s} }, checks{"life/hold, NextDue"}},
	{"disabled is paused", func(s store) store { return disabledPaused{s} }, checks{"life/hold, refused"}},
	{"resume takes all, always", onResume(func(r *sender.Resume) { r.None, r.Since = false, time.Time{} }), checks{"life/resume, none", "life/resume, since", "life/resume, not expanded yet", "random/seed 1"}},
	{"Since is exclusive", onResume(func(r *sender.Resume) { r.Since = r.Since.Add(time.Microsecond) }), checks{"life/resume, since"}},
	{"retention ignored", onResume(func(r *sender.Resume) { r.NotBefore = time.Time{} }), checks{"life/resume, retention", "life/resume, retention of what is not expanded yet"}},
	{"NotBefore is exclusive", onResume(func(r *sender.Resume) {
		if !r.NotBefore.IsZero() {
			r.NotBefore = r.NotBefore.Add(time.Microsecond)
		}
	}), checks{"life/resume, retention"}},
	{"resume knows only what is expanded", func(s store) store { return &resumedTwice{store: s} }, checks{"life/resume, not expanded yet", "life/resume, again and again"}},
	{"resume of an active one", func(s store) store { return resumesActive{s} }, checks{"life/resume, active"}},
	{"resume of a paused one ends its failing time", func(s store) store { return resumeHeals{s} }, checks{"life/resume, health"}},
	{"close deletes", func(s store) store { return closeDeletes{s} }, checks{"life/close", "life/close, ends", "random/seed 2"}},
	{"close ignored", func(s store) store { return unclosed{s} }, checks{"life/close", "life/close, ends", "life/close, held"}},
	{"sweep ends only deliveries", func(s store) store { return unswept{s} }, checks{"life/close, ends", "life/close, redelivered", "life/delete subscriber, what is still to be sent"}},
	{"subscriber not deleted", func(s store) store { return subscriberKept{s} }, checks{"life/delete subscriber", "life/delete subscriber, held subscriptions", "random/seed 2"}},
	{"a deleted operator gets nothing more", func(s store) store { return operatorDropped{s} }, checks{"life/delete subscriber, the operator"}},
	{"a deletion misses what is made meanwhile", func(s store) store { return &deletesEarlier{store: s} }, checks{"life/delete subscriber, while it gets a subscription"}},
	{"secrets kept", func(s store) store { return &secretsKept{store: s, kept: map[int64]sender.SealedKeyring{}} }, checks{"life/delete subscriber, what is still to be sent"}},
	{"secrets destroyed too early", func(s store) store { return &secretsLost{store: s} }, checks{"life/delete subscriber, what is still to be sent"}},
	{"keyrings of the first only", func(s store) store { return firstKeyring{s} }, checks{"secrets/of several"}},
	{"keyrings mixed up", func(s store) store { return keyringsMixed{s} }, checks{"secrets/of several"}},
	{"uncounted counts", onDecision(func(dec *dispatch.Decision) { dec.Uncounted = false }), checks{"record/uncounted", "random/seed 1"}},
	{"standstill forgotten", onDecision(func(dec *dispatch.Decision) { dec.Stands = 0 }), checks{"record/stood", "random/seed 3"}},
	{"Disable ignored", onDecision(func(dec *dispatch.Decision) { dec.Disable = "" }), checks{"life/disabled by a decision", "life/disabled by a decision, lost attempt", "random/seed 3"}},
	{"notices dropped", onDecision(func(dec *dispatch.Decision) { dec.Notices = nil }), checks{"notice/stored", "notice/of a lost attempt", "random/seed 1"}},
	{"the owner is always told", onDecision(func(dec *dispatch.Decision) {
		dec.Notices = slices.Clone(dec.Notices)
		for i := range dec.Notices {
			dec.Notices[i].Subscriber = ""
		}
	}), checks{"notice/stored"}},
	{"policies of their own ignored", onLive(func(l *dispatch.Live) { l.Own = nil }), checks{"life/policy of its own"}},
	{"410 never stops", onLive(func(l *dispatch.Live) { l.GoneStops = false }), checks{"life/policy of its own", "life/stopped by 410"}},
	{"what was answered with 410 is given up", onDecision(func(dec *dispatch.Decision) {
		if dec.Disable == sender.DisabledByGone {
			dec.Status = sender.StatusDeadLettered
		}
	}), checks{"life/stopped by 410"}},
	{"410 stops what is closing", onLive(func(l *dispatch.Live) { l.GoneStops = l.GoneStops || l.Own != nil }), checks{"life/policy of its own", "life/stopped by 410, closing"}},
	{"notices of a disabling that was none", func(s store) store { return disablingHidden{s} }, checks{"life/disabled by a decision, held or closing", "life/disabled by a decision, within a batch"}},
	{"notices of the batch dropped", onBatch(func(batch *dispatch.Batch) { batch.Notices = nil }), checks{"notice/of the batch"}},
	{"notices not announced", onBatch(func(batch *dispatch.Batch) { batch.Announce = nil }), checks{"notice/announced"}},
	{"announced to everyone", onBatch(func(batch *dispatch.Batch) {
		announce := batch.Announce
		if announce == nil {
			return
		}
		batch.Announce = func(n sender.Notice) (sender.Draft, bool) {
			d, ok := announce(n)
			d.Subscriber = ""
			return d, ok
		}
	}), checks{"notice/announced"}},
	{"notices' events look like others", onLive(func(l *dispatch.Live) { l.Notice = false }), checks{"notice/announced"}},
	{"MaxInFlight ignored", onSettings(func(set *sender.Settings) { set.MaxInFlight = 0 }), checks{"rate/in flight", "rate/in flight, lost", "rate/in flight, given back"}},
	{"MaxInFlight for each claim", inFlightByClaim, checks{"rate/in flight", "rate/in flight, bounds"}},
	{"Rate ignored", onSettings(func(set *sender.Settings) { set.Rate = 0 }), checks{"rate/a second", "rate/a second, slow", "rate/a second, saved up", "rate/a second, changed"}},
	{"Rate halved", onSettings(func(set *sender.Settings) { set.Rate /= 2 }), checks{"rate/a second", "rate/a second, slow"}},
	{"NextDue forgets the rate", onClaims(func(c *dispatch.Claims) {
		if c.NextDue.After(c.Now) {
			c.NextDue = c.NextDue.Add(time.Second)
		}
	}), checks{"rate/a second"}},
}

type filterKept struct{ store }

func (b filterKept) UpdateSubscriptionTx(ctx context.Context, tx tx, s sender.Subscription) error {
	if old, err := b.store.SubscriptionTx(ctx, tx, sender.SubscriptionKey{ID: s.ID}); err == nil {
		s.EventTypes = old.EventTypes
	}
	return b.store.UpdateSubscriptionTx(ctx, tx, s)
}

type filterReachesBack struct {
	store
	published []sender.Draft
}

func (b *filterReachesBack) PublishTx(ctx context.Context, tx tx, drafts []sender.Draft) ([]sender.Ref, error) {
	b.published = append(b.published, drafts...)
	return b.store.PublishTx(ctx, tx, drafts)
}

func (b *filterReachesBack) UpdateSubscriptionTx(ctx context.Context, tx tx, s sender.Subscription) error {
	old, err := b.store.SubscriptionTx(ctx, tx, sender.SubscriptionKey{ID: s.ID})
	if err != nil {
		return err
	}
	if err := b.store.UpdateSubscriptionTx(ctx, tx, s); err != nil {
		return err
	}
	for _, d := range copies(b.published) {
		if sender.Matches(s, d.Type, d.Subscriber, d.Subscription, d.About) && !sender.Matches(old, d.Type, d.Subscriber, d.Subscription, d.About) {
			d.Subscriber, d.Subscription = s.Subscriber, s.ID
			if _, err := b.store.PublishTx(ctx, tx, []sender.Draft{d}); err != nil {
				return err
			}
		}
	}
	return nil
}

type settingsKept struct{ store }

func (b settingsKept) UpdateSubscriptionTx(ctx context.Context, tx tx, s sender.Subscription) error {
	if old, err := b.store.SubscriptionTx(ctx, tx, sender.SubscriptionKey{ID: s.ID}); err == nil {
		s.Settings = old.Settings
	}
	return b.store.UpdateSubscriptionTx(ctx, tx, s)
}

type noFigures struct{ store }

func (b noFigures) SubscriptionTx(ctx context.Context, tx tx, key sender.SubscriptionKey) (sender.Subscription, error) {
	s, err := b.store.SubscriptionTx(ctx, tx, key)
	s.Backlog, s.DeadLettered = 0, 0
	return s, err
}

type refAlone struct{ store }

func (b refAlone) PublishTx(ctx context.Context, tx tx, drafts []sender.Draft) ([]sender.Ref, error) {
	refs, err := b.store.PublishTx(ctx, tx, drafts)
	for i := range refs {
		refs[i].Delivery = ""
	}
	return refs, err
}

type unheld struct{ store }

func (unheld) HoldSubscriptionTx(context.Context, tx, string, sender.SubscriptionStatus, string) error {
	return nil
}

type holdCancels struct{ store }

func (b holdCancels) HoldSubscriptionTx(ctx context.Context, tx tx, id string, status sender.SubscriptionStatus, reason string) error {
	return errors.Join(b.store.HoldSubscriptionTx(ctx, tx, id, status, reason),
		b.store.ResumeSubscriptionTx(ctx, tx, id, sender.Resume{None: true}),
		b.store.HoldSubscriptionTx(ctx, tx, id, status, reason))
}

type heldInFlight struct{ inFlightLost }

func (b heldInFlight) HoldSubscriptionTx(ctx context.Context, tx tx, id string, status sender.SubscriptionStatus, reason string) error {
	b.ended[id] = true
	return b.store.HoldSubscriptionTx(ctx, tx, id, status, reason)
}

type heldIsDue struct{ store }

func (b heldIsDue) Step(ctx context.Context, p dispatch.ExpandParams, batch dispatch.Batch) (dispatch.Expanded, dispatch.Claims, error) {
	x, c, err := b.store.Step(ctx, p, batch)
	page, _, err2 := b.store.Deliveries(ctx, history.DeliveryQuery{Status: sender.StatusHeld})
	if len(page) > 0 {
		c.NextDue = c.Now
	}
	return x, c, errors.Join(err, err2)
}

type disabledPaused struct{ store }

func (b disabledPaused) HoldSubscriptionTx(ctx context.Context, tx tx, id string, status sender.SubscriptionStatus, reason string) error {
	if err := b.store.HoldSubscriptionTx(ctx, tx, id, status, reason); !errors.Is(err, sender.ErrStatus) {
		return err
	}
	return nil
}

type resumedTwice struct {
	store
	waiting []sender.Draft
}

func (b *resumedTwice) PublishTx(ctx context.Context, tx tx, drafts []sender.Draft) ([]sender.Ref, error) {
	b.waiting = append(b.waiting, drafts...)
	return b.store.PublishTx(ctx, tx, drafts)
}

func (b *resumedTwice) Step(ctx context.Context, p dispatch.ExpandParams, batch dispatch.Batch) (dispatch.Expanded, dispatch.Claims, error) {
	x, c, err := b.store.Step(ctx, p, batch)
	b.waiting = b.waiting[min(x.Events, len(b.waiting)):]
	return x, c, err
}

func (b *resumedTwice) ResumeSubscriptionTx(ctx context.Context, tx tx, id string, r sender.Resume) error {
	s, err := b.store.SubscriptionTx(ctx, tx, sender.SubscriptionKey{ID: id})
	again := copies(b.waiting)
	for i := range again {
		again[i].Subscriber, again[i].Subscription = s.Subscriber, s.ID
	}
	err = errors.Join(err, b.store.ResumeSubscriptionTx(ctx, tx, id, r))
	if err == nil {
		_, err = b.store.PublishTx(ctx, tx, again)
	}
	return err
}

type resumesActive struct{ store }

func (b resumesActive) ResumeSubscriptionTx(ctx context.Context, tx tx, id string, r sender.Resume) error {
	_ = b.store.HoldSubscriptionTx(ctx, tx, id, sender.SubscriptionPaused, "")
	return b.store.ResumeSubscriptionTx(ctx, tx, id, r)
}

type resumeHeals struct{ store }

func (b resumeHeals) ResumeSubscriptionTx(ctx context.Context, tx tx, id string, r sender.Resume) error {
	if s, err := b.store.SubscriptionTx(ctx, tx, sender.SubscriptionKey{ID: id}); err == nil && s.Status == sender.SubscriptionPaused {
		_ = b.store.HoldSubscriptionTx(ctx, tx, id, sender.SubscriptionDisabled, "")
	}
	return b.store.ResumeSubscriptionTx(ctx, tx, id, r)
}

type closeDeletes struct{ store }

func (b closeDeletes) CloseSubscriptionTx(ctx context.Context, tx tx, id string) error {
	return b.store.DeleteSubscriptionTx(ctx, tx, id)
}

// closeErases erases the settings of what is closing.
type closeErases struct{ store }

func (b closeErases) CloseSubscriptionTx(ctx context.Context, tx tx, id string) error {
	s, err := b.store.SubscriptionTx(ctx, tx, sender.SubscriptionKey{ID: id})
	if err != nil {
		return err
	}
	s.Settings = sender.Settings{}
	if err := b.store.UpdateSubscriptionTx(ctx, tx, s); err != nil {
		return err
	}
	return b.store.CloseSubscriptionTx(ctx, tx, id)
}

type unclosed struct{ store }

func (unclosed) CloseSubscriptionTx(context.Context, tx, string) error { return nil }

type unswept struct{ store }

func (unswept) Sweep(context.Context, dispatch.SweepParams) (dispatch.Swept, error) {
	return dispatch.Swept{}, nil
}

type subscriberKept struct{ store }

func (subscriberKept) DeleteSubscriberTx(context.Context, tx, string) error { return nil }

// operatorDropped has the closing subscriptions of a deleted operator ask for nothing.
type operatorDropped struct{ store }

func (b operatorDropped) DeleteSubscriberTx(ctx context.Context, tx tx, id string) error {
	list, err := b.store.SubscriptionsTx(ctx, tx, id, "", 100)
	if err == nil {
		err = b.store.DeleteSubscriberTx(ctx, tx, id)
	}
	for _, s := range list {
		if s.EventTypes = []string{}; id == sender.Operator && err == nil {
			err = b.store.UpdateSubscriptionTx(ctx, tx, s)
		}
	}
	return err
}

type secretsKept struct {
	store
	kept map[int64]sender.SealedKeyring
}

func (b *secretsKept) Keyrings(ctx context.Context, numbers []int64) (map[int64]sender.SealedKeyring, error) {
	found, err := b.store.Keyrings(ctx, numbers)
	maps.Copy(b.kept, found)
	return b.kept, err
}

type secretsLost struct {
	store
	deleted bool
}

func (b *secretsLost) DeleteSubscriberTx(ctx context.Context, tx tx, id string) error {
	b.deleted = true
	return b.store.DeleteSubscriberTx(ctx, tx, id)
}

func (b *secretsLost) Keyrings(ctx context.Context, numbers []int64) (map[int64]sender.SealedKeyring, error) {
	if b.deleted {
		return nil, nil
	}
	return b.store.Keyrings(ctx, numbers)
}

type firstKeyring struct{ store }

func (b firstKeyring) Keyrings(ctx context.Context, numbers []int64) (map[int64]sender.SealedKeyring, error) {
	return b.store.Keyrings(ctx, numbers[:min(len(numbers), 1)])
}

type keyringsMixed struct{ store }

func (b keyringsMixed) Keyrings(ctx context.Context, numbers []int64) (map[int64]sender.SealedKeyring, error) {
	found, err := b.store.Keyrings(ctx, numbers)
	for _, no := range numbers {
		if k, ok := found[no]; ok {
			k.Secrets = found[slices.Max(slices.Collect(maps.Keys(found)))].Secrets
			found[no] = k
		}
	}
	return found, err
}

type disablingHidden struct{ store }

func (b disablingHidden) Step(ctx context.Context, p dispatch.ExpandParams, batch dispatch.Batch) (dispatch.Expanded, dispatch.Claims, error) {
	decide := batch.Decide
	batch.Decide = func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
		dec := decide(l, h, r, now)
		for _, n := range dec.Notices {
			if n.Kind == sender.NoticeDisabled {
				dec.Notices = append(slices.Clone(dec.Notices), sender.Notice{Kind: "hidden"})
			}
		}
		return dec
	}
	x, c, err := b.store.Step(ctx, p, batch)
	c.Notices = slices.DeleteFunc(c.Notices, func(n sender.Notice) bool { return n.Kind == sender.NoticeDisabled })
	for i := range c.Notices {
		if c.Notices[i].Kind == "hidden" {
			c.Notices[i].Kind = sender.NoticeDisabled
		}
	}
	return x, c, err
}

func inFlightByClaim(s store) store {
	most := 0
	s = onSettings(func(set *sender.Settings) { most, set.MaxInFlight = set.MaxInFlight, 0 })(s)
	return onClaim(func(p *dispatch.ClaimParams) {
		for i := range p.Lanes {
			p.Lanes[i].PerSubscription = min(p.Lanes[i].PerSubscription, max(most, 1))
		}
	})(s)
}

// otherSettings stores other settings than those given.
type otherSettings struct {
	store
	change func(*sender.Settings)
}

func onSettings(change func(*sender.Settings)) func(store) store {
	return func(s store) store { return otherSettings{s, change} }
}

func (b otherSettings) CreateSubscriptionTx(ctx context.Context, tx tx, s sender.Subscription) error {
	b.change(&s.Settings)
	return b.store.CreateSubscriptionTx(ctx, tx, s)
}

func (b otherSettings) UpdateSubscriptionTx(ctx context.Context, tx tx, s sender.Subscription) error {
	b.change(&s.Settings)
	return b.store.UpdateSubscriptionTx(ctx, tx, s)
}

// deletesEarlier deletes no subscriber who has got a subscription since the transaction was
// asked for.
type deletesEarlier struct {
	store
	overlooking
}

func (b *deletesEarlier) InTx(ctx context.Context, fn func(tx) error) error {
	return b.inTx(ctx, b.store, fn)
}

func (b *deletesEarlier) CreateSubscriptionTx(ctx context.Context, tx tx, s sender.Subscription) error {
	b.note(s.Subscriber)
	return b.store.CreateSubscriptionTx(ctx, tx, s)
}

func (b *deletesEarlier) DeleteSubscriberTx(ctx context.Context, tx tx, id string) error {
	if b.overlooks(id) {
		return nil
	}
	return b.store.DeleteSubscriberTx(ctx, tx, id)
}
