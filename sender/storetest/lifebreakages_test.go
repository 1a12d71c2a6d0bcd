package storetest_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
)

// lifeBreakages break how a store changes, holds, resumes, closes and limits
// subscriptions, and how it stores notices.
var lifeBreakages = map[string]breakage{
	"filter not updated": {[]string{"life/update", "life/update, what is asked for no more", "random/seed 1"}, func(b *broken, _ *harness) {
		b.updateTx = func(ctx context.Context, tx tx, s sender.Subscription) error {
			if old, err := b.Store.SubscriptionTx(ctx, tx, s.ID); err == nil {
				s.EventTypes = old.EventTypes
			}
			return b.Store.UpdateSubscriptionTx(ctx, tx, s)
		}
	}},
	"a new filter reaches back": {[]string{"life/update, what is asked for anew", "life/update, asked for again"}, func(b *broken, _ *harness) {
		var published []sender.Draft
		b.publishTx = func(ctx context.Context, tx tx, drafts []sender.Draft) ([]sender.Ref, error) {
			published = append(published, drafts...)
			return b.Store.PublishTx(ctx, tx, drafts)
		}
		b.updateTx = func(ctx context.Context, tx tx, s sender.Subscription) error {
			old, err := b.Store.SubscriptionTx(ctx, tx, s.ID)
			if err != nil {
				return err
			}
			if err := b.Store.UpdateSubscriptionTx(ctx, tx, s); err != nil {
				return err
			}
			for _, d := range copies(published) {
				if sender.Matches(s, d.Type, d.Subscriber, d.Subscription, d.About) && !sender.Matches(old, d.Type, d.Subscriber, d.Subscription, d.About) {
					d.Subscriber, d.Subscription = s.Subscriber, s.ID
					if _, err := b.Store.PublishTx(ctx, tx, []sender.Draft{d}); err != nil {
						return err
					}
				}
			}
			return nil
		}
	}},
	"settings not updated": {[]string{"life/update", "life/update, target", "rate/in flight, changed"}, func(b *broken, _ *harness) {
		b.updateTx = func(ctx context.Context, tx tx, s sender.Subscription) error {
			if old, err := b.Store.SubscriptionTx(ctx, tx, s.ID); err == nil {
				s.Settings = old.Settings
			}
			return b.Store.UpdateSubscriptionTx(ctx, tx, s)
		}
	}},
	"figures forgotten": {[]string{"life/figures"}, func(b *broken, _ *harness) {
		b.subscriptionTx = func(ctx context.Context, tx tx, id string) (sender.Subscription, error) {
			s, err := b.Store.SubscriptionTx(ctx, tx, id)
			s.Backlog, s.DeadLettered = 0, 0
			return s, err
		}
	}},
	"Ref without its delivery": {[]string{"life/id of an addressed event's delivery", "random/seed 1"}, func(b *broken, _ *harness) {
		b.publishTx = func(ctx context.Context, tx tx, drafts []sender.Draft) ([]sender.Ref, error) {
			refs, err := b.Store.PublishTx(ctx, tx, drafts)
			for i := range refs {
				refs[i].Delivery = ""
			}
			return refs, err
		}
	}},
	"hold ignored": {[]string{"life/hold", "life/hold, status", "random/seed 1"}, func(b *broken, _ *harness) {
		b.holdTx = func(context.Context, tx, string, sender.SubscriptionStatus, string) error { return nil }
	}},
	"hold cancels": {[]string{"life/hold", "life/resume, all", "random/seed 1"}, func(b *broken, _ *harness) {
		b.holdTx = func(ctx context.Context, tx tx, id string, status sender.SubscriptionStatus, reason string) error {
			return errors.Join(b.Store.HoldSubscriptionTx(ctx, tx, id, status, reason),
				b.Store.ResumeSubscriptionTx(ctx, tx, id, sender.Resume{None: true}),
				b.Store.HoldSubscriptionTx(ctx, tx, id, status, reason))
		}
	}},
	"hold ends attempts in flight": {[]string{"life/hold, in flight", "life/hold, in flight and fails"}, func(b *broken, _ *harness) {
		subscription, held := map[sender.DeliveryKey]string{}, map[string]bool{}
		b.holdTx = func(ctx context.Context, tx tx, id string, status sender.SubscriptionStatus, reason string) error {
			held[id] = true
			return b.Store.HoldSubscriptionTx(ctx, tx, id, status, reason)
		}
		b.batch = func(ctx context.Context, batch sender.Batch) (sender.Claims, error) {
			batch.Results = slices.Clone(batch.Results)
			for i, r := range batch.Results {
				if held[subscription[r.Key]] {
					batch.Results[i].Token = 0
				}
			}
			c, err := b.Store.RecordAndClaim(ctx, batch)
			for _, d := range c.Claimed {
				subscription[d.Key] = d.Target.Subscription
			}
			return c, err
		}
	}},
	"NextDue speaks of what is held": {[]string{"life/hold, NextDue"}, func(b *broken, _ *harness) {
		b.batch = func(ctx context.Context, batch sender.Batch) (sender.Claims, error) {
			c, err := b.Store.RecordAndClaim(ctx, batch)
			page, _, err2 := b.Store.Deliveries(ctx, sender.DeliveryQuery{Status: sender.StatusHeld})
			if len(page) > 0 {
				c.NextDue = c.Now
			}
			return c, errors.Join(err, err2)
		}
	}},
	"disabled is paused": {[]string{"life/hold, refused"}, func(b *broken, _ *harness) {
		b.holdTx = func(ctx context.Context, tx tx, id string, status sender.SubscriptionStatus, reason string) error {
			if err := b.Store.HoldSubscriptionTx(ctx, tx, id, status, reason); !errors.Is(err, sender.ErrStatus) {
				return err
			}
			return nil
		}
	}},
	"resume takes all, always": {[]string{"life/resume, none", "life/resume, since", "life/resume, not expanded yet", "random/seed 1"}, onResume(func(r *sender.Resume) { r.None, r.Since = false, time.Time{} })},
	"Since is exclusive":       {[]string{"life/resume, since"}, onResume(func(r *sender.Resume) { r.Since = r.Since.Add(time.Microsecond) })},
	"retention ignored": {[]string{"life/resume, retention", "life/resume, retention of what is not expanded yet"},
		onResume(func(r *sender.Resume) { r.NotBefore = time.Time{} })},
	"NotBefore is exclusive": {[]string{"life/resume, retention"}, onResume(func(r *sender.Resume) {
		if !r.NotBefore.IsZero() {
			r.NotBefore = r.NotBefore.Add(time.Microsecond)
		}
	})},
	"resume knows only what is expanded": {[]string{"life/resume, not expanded yet", "life/resume, again and again"}, func(b *broken, _ *harness) {
		var waiting []sender.Draft
		b.publishTx = func(ctx context.Context, tx tx, drafts []sender.Draft) ([]sender.Ref, error) {
			waiting = append(waiting, drafts...)
			return b.Store.PublishTx(ctx, tx, drafts)
		}
		b.expand = func(ctx context.Context, p sender.ExpandParams) (sender.Expanded, error) {
			x, err := b.Store.Expand(ctx, p)
			waiting = waiting[min(x.Events, len(waiting)):]
			return x, err
		}
		b.resumeTx = func(ctx context.Context, tx tx, id string, r sender.Resume) error {
			s, err := b.Store.SubscriptionTx(ctx, tx, id)
			again := copies(waiting)
			for i := range again {
				again[i].Subscriber, again[i].Subscription = s.Subscriber, s.ID
			}
			err = errors.Join(err, b.Store.ResumeSubscriptionTx(ctx, tx, id, r))
			if err == nil {
				_, err = b.Store.PublishTx(ctx, tx, again)
			}
			return err
		}
	}},
	"resume of an active one": {[]string{"life/resume, active"}, func(b *broken, _ *harness) {
		b.resumeTx = func(ctx context.Context, tx tx, id string, r sender.Resume) error {
			_ = b.Store.HoldSubscriptionTx(ctx, tx, id, sender.SubscriptionPaused, "")
			return b.Store.ResumeSubscriptionTx(ctx, tx, id, r)
		}
	}},
	"resume of a paused one ends its failing time": {[]string{"life/resume, health"}, func(b *broken, _ *harness) {
		b.resumeTx = func(ctx context.Context, tx tx, id string, r sender.Resume) error {
			if s, err := b.Store.SubscriptionTx(ctx, tx, id); err == nil && s.Status == sender.SubscriptionPaused {
				_ = b.Store.HoldSubscriptionTx(ctx, tx, id, sender.SubscriptionDisabled, "")
			}
			return b.Store.ResumeSubscriptionTx(ctx, tx, id, r)
		}
	}},
	"close deletes": {[]string{"life/close", "life/close, ends", "random/seed 1"}, func(b *broken, _ *harness) {
		b.closeTx = func(ctx context.Context, tx tx, id string) error { return b.Store.DeleteSubscriptionTx(ctx, tx, id) }
	}},
	"close ignored": {[]string{"life/close", "life/close, ends", "life/close, held"}, func(b *broken, _ *harness) {
		b.closeTx = func(context.Context, tx, string) error { return nil }
	}},
	"sweep ends only deliveries": {[]string{"life/close, ends", "life/close, redelivered", "life/delete subscriber, what is still to be sent"}, func(b *broken, _ *harness) {
		b.sweep = func(context.Context, int) (int, error) { return 0, nil }
	}},
	"subscriber not deleted": {[]string{"life/delete subscriber", "life/delete subscriber, held subscriptions", "random/seed 1"}, func(b *broken, _ *harness) {
		b.noSubscriberTx = func(context.Context, tx, string) error { return nil }
	}},
	"secrets kept": {[]string{"life/delete subscriber, what is still to be sent"}, func(b *broken, _ *harness) {
		kept := map[int64]sender.SealedKeyring{}
		b.keyrings = func(ctx context.Context, numbers []int64) (map[int64]sender.SealedKeyring, error) {
			found, err := b.Store.Keyrings(ctx, numbers)
			maps.Copy(kept, found)
			return kept, err
		}
	}},
	"secrets destroyed too early": {[]string{"life/delete subscriber, what is still to be sent"}, func(b *broken, _ *harness) {
		deleted := false
		b.noSubscriberTx = func(ctx context.Context, tx tx, id string) error {
			deleted = true
			return b.Store.DeleteSubscriberTx(ctx, tx, id)
		}
		b.keyrings = func(ctx context.Context, numbers []int64) (map[int64]sender.SealedKeyring, error) {
			if deleted {
				return nil, nil
			}
			return b.Store.Keyrings(ctx, numbers)
		}
	}},
	"keyrings of the first only": {[]string{"secrets/of several"}, func(b *broken, _ *harness) {
		b.keyrings = func(ctx context.Context, numbers []int64) (map[int64]sender.SealedKeyring, error) {
			return b.Store.Keyrings(ctx, numbers[:min(len(numbers), 1)])
		}
	}},
	"keyrings mixed up": {[]string{"secrets/of several"}, func(b *broken, _ *harness) {
		b.keyrings = func(ctx context.Context, numbers []int64) (map[int64]sender.SealedKeyring, error) {
			found, err := b.Store.Keyrings(ctx, numbers)
			for _, no := range numbers {
				if k, ok := found[no]; ok {
					k.Secrets = found[slices.Max(slices.Collect(maps.Keys(found)))].Secrets
					found[no] = k
				}
			}
			return found, err
		}
	}},
	"uncounted counts":     {[]string{"record/uncounted", "random/seed 1"}, onDecision(func(dec *sender.Decision) { dec.Uncounted = false })},
	"standstill forgotten": {[]string{"record/stood", "random/seed 1"}, onDecision(func(dec *sender.Decision) { dec.Stands = 0 })},
	"Disable ignored":      {[]string{"life/disabled by a decision", "life/disabled by a decision, lost attempt", "random/seed 1"}, onDecision(func(dec *sender.Decision) { dec.Disable = "" })},
	"notices dropped":      {[]string{"notice/stored", "notice/of a lost attempt", "random/seed 1"}, onDecision(func(dec *sender.Decision) { dec.Notices = nil })},
	"the owner is always told": {[]string{"notice/stored"}, onDecision(func(dec *sender.Decision) {
		dec.Notices = slices.Clone(dec.Notices)
		for i := range dec.Notices {
			dec.Notices[i].Subscriber = ""
		}
	})},
	"notices of a disabling that was none": {[]string{"life/disabled by a decision, held or closing", "life/disabled by a decision, within a batch"}, func(b *broken, _ *harness) {
		b.batch = func(ctx context.Context, batch sender.Batch) (sender.Claims, error) {
			decide := batch.Decide
			batch.Decide = func(l sender.Live, h sender.Health, r sender.Result, now time.Time) sender.Decision {
				dec := decide(l, h, r, now)
				for _, n := range dec.Notices {
					if n.Kind == sender.NoticeDisabled {
						dec.Notices = append(slices.Clone(dec.Notices), sender.Notice{Kind: "hidden"})
					}
				}
				return dec
			}
			c, err := b.Store.RecordAndClaim(ctx, batch)
			c.Notices = slices.DeleteFunc(c.Notices, func(n sender.Notice) bool { return n.Kind == sender.NoticeDisabled })
			for i := range c.Notices {
				if c.Notices[i].Kind == "hidden" {
					c.Notices[i].Kind = sender.NoticeDisabled
				}
			}
			return c, err
		}
	}},
	"notices of the batch dropped": {[]string{"notice/of the batch"}, onBatch(func(batch *sender.Batch) { batch.Notices = nil })},
	"notices not announced":        {[]string{"notice/announced"}, onBatch(func(batch *sender.Batch) { batch.Announce = nil })},
	"announced to everyone": {[]string{"notice/announced"}, onBatch(func(batch *sender.Batch) {
		announce := batch.Announce
		if announce == nil {
			return
		}
		batch.Announce = func(n sender.Notice) (sender.Draft, bool) {
			d, ok := announce(n)
			d.Subscriber = ""
			return d, ok
		}
	})},
	"notices' events look like others": {[]string{"notice/announced"}, onDecide(func(decide decideFunc) decideFunc {
		return func(l sender.Live, h sender.Health, r sender.Result, now time.Time) sender.Decision {
			l.Notice = false
			return decide(l, h, r, now)
		}
	})},
	"MaxInFlight ignored": {[]string{"rate/in flight", "rate/in flight, lost"}, onSettings(func(set *sender.Settings) { set.MaxInFlight = 0 })},
	"MaxInFlight for each claim": {[]string{"rate/in flight", "rate/in flight, bounds"}, func(b *broken, h *harness) {
		most := 0
		onSettings(func(set *sender.Settings) { most, set.MaxInFlight = set.MaxInFlight, 0 })(b, h)
		onClaim(func(p *sender.ClaimParams) {
			for i := range p.Lanes {
				p.Lanes[i].PerSubscription = min(p.Lanes[i].PerSubscription, max(most, 1))
			}
		})(b, h)
	}},
	"Rate ignored": {[]string{"rate/a second", "rate/a second, slow", "rate/a second, saved up", "rate/a second, changed"}, onSettings(func(set *sender.Settings) { set.Rate = 0 })},
	"Rate halved":  {[]string{"rate/a second", "rate/a second, slow"}, onSettings(func(set *sender.Settings) { set.Rate /= 2 })},
	"NextDue forgets the rate": {[]string{"rate/a second"}, func(b *broken, _ *harness) {
		b.batch = func(ctx context.Context, batch sender.Batch) (sender.Claims, error) {
			c, err := b.Store.RecordAndClaim(ctx, batch)
			if c.NextDue.After(c.Now) {
				c.NextDue = c.NextDue.Add(time.Second)
			}
			return c, err
		}
	}},
}

func onResume(change func(*sender.Resume)) func(*broken, *harness) {
	return func(b *broken, _ *harness) {
		b.resumeTx = func(ctx context.Context, tx tx, id string, r sender.Resume) error {
			change(&r)
			return b.Store.ResumeSubscriptionTx(ctx, tx, id, r)
		}
	}
}

func onBatch(change func(*sender.Batch)) func(*broken, *harness) {
	return func(b *broken, _ *harness) {
		b.batch = func(ctx context.Context, batch sender.Batch) (sender.Claims, error) {
			change(&batch)
			return b.Store.RecordAndClaim(ctx, batch)
		}
	}
}

func onDecision(change func(*sender.Decision)) func(*broken, *harness) {
	return onDecide(func(decide decideFunc) decideFunc {
		return func(l sender.Live, h sender.Health, r sender.Result, now time.Time) sender.Decision {
			dec := decide(l, h, r, now)
			change(&dec)
			return dec
		}
	})
}

// onSettings stores other settings than those given.
func onSettings(change func(*sender.Settings)) func(*broken, *harness) {
	return func(b *broken, _ *harness) {
		b.createTx = func(ctx context.Context, tx tx, s sender.Subscription) error {
			change(&s.Settings)
			return b.Store.CreateSubscriptionTx(ctx, tx, s)
		}
		b.updateTx = func(ctx context.Context, tx tx, s sender.Subscription) error {
			change(&s.Settings)
			return b.Store.UpdateSubscriptionTx(ctx, tx, s)
		}
	}
}
