package storetest_test

import (
	"context"
	"slices"
	"time"

	"github.com/surehook/surehook/internal/newid"
	"github.com/surehook/surehook/sender"
)

type decideFunc = func(sender.Live, sender.Health, sender.Result, time.Time) sender.Decision

// copies are drafts with the same content, as other events about other objects.
func copies(drafts []sender.Draft) []sender.Draft {
	drafts = slices.Clone(drafts)
	for i := range drafts {
		drafts[i].ID = newid.New("evt_", time.Now())
		drafts[i].Object.ID, drafts[i].Key, drafts[i].Version = drafts[i].ID, "", 0
	}
	return drafts
}

func onDrafts(change func(*sender.Draft)) func(*broken, *harness) {
	return func(b *broken, _ *harness) {
		b.publishTx = func(ctx context.Context, tx tx, drafts []sender.Draft) ([]sender.Ref, error) {
			drafts = slices.Clone(drafts)
			for i := range drafts {
				change(&drafts[i])
			}
			return b.Store.PublishTx(ctx, tx, drafts)
		}
	}
}

func onClaim(change func(*sender.ClaimParams)) func(*broken, *harness) {
	return func(b *broken, _ *harness) {
		b.batch = func(ctx context.Context, batch sender.Batch) (sender.Claims, error) {
			change(&batch.Claim)
			return b.Store.RecordAndClaim(ctx, batch)
		}
	}
}

func onDecide(change func(decideFunc) decideFunc) func(*broken, *harness) {
	return func(b *broken, _ *harness) {
		b.batch = func(ctx context.Context, batch sender.Batch) (sender.Claims, error) {
			batch.Decide = change(batch.Decide)
			return b.Store.RecordAndClaim(ctx, batch)
		}
	}
}

// onDue stores another due time than was decided, and hides that from readers.
func onDue(change func(due, now time.Time) time.Time) func(*broken, *harness) {
	return func(b *broken, _ *harness) {
		b.batch = func(ctx context.Context, batch sender.Batch) (sender.Claims, error) {
			decided := map[sender.DeliveryKey]time.Time{}
			decide := batch.Decide
			batch.Decide = func(l sender.Live, h sender.Health, r sender.Result, now time.Time) sender.Decision {
				dec := decide(l, h, r, now)
				if dec.Status == sender.StatusAwaitingRetry {
					decided[l.Key] = dec.Due
					dec.Due = change(dec.Due, now)
				}
				return dec
			}
			c, err := b.Store.RecordAndClaim(ctx, batch)
			for i, r := range c.Recorded {
				if r.Decision.Status == sender.StatusAwaitingRetry {
					c.Recorded[i].Decision.Due = decided[batch.Results[i].Key]
				}
			}
			return c, err
		}
	}
}

func onDelivery(change func(*sender.Delivery)) func(*broken, *harness) {
	return func(b *broken, _ *harness) {
		b.delivery = func(ctx context.Context, id string) (sender.Delivery, error) {
			d, err := b.Store.Delivery(ctx, id)
			change(&d)
			return d, err
		}
	}
}

func onPage(change func(sender.DeliveryQuery, []sender.Delivery) []sender.Delivery) func(*broken, *harness) {
	return func(b *broken, _ *harness) {
		b.deliveries = func(ctx context.Context, q sender.DeliveryQuery) ([]sender.Delivery, string, error) {
			page, next, err := b.Store.Deliveries(ctx, q)
			return change(q, page), next, err
		}
	}
}

type stepFunc = func(limit int, announce announceFunc) (sender.ReplayStep, error)

func onStep(change func(step stepFunc, limit int, announce announceFunc) (sender.ReplayStep, error)) func(*broken, *harness) {
	return func(b *broken, _ *harness) {
		b.stepReplays = func(ctx context.Context, limit int, announce announceFunc) (sender.ReplayStep, error) {
			return change(func(limit int, announce announceFunc) (sender.ReplayStep, error) {
				return b.Store.StepReplays(ctx, limit, announce)
			}, limit, announce)
		}
	}
}

// onReplay stores another replay than was requested, and hides that from readers.
func onReplay(change func(r *sender.Replay, notBefore *time.Time)) func(*broken, *harness) {
	return func(b *broken, _ *harness) {
		all := map[string]sender.Replay{}
		shown := func(r sender.Replay) sender.Replay {
			r.Filter, r.Rate = all[r.ID].Filter, all[r.ID].Rate
			return r
		}
		b.createReplay = func(ctx context.Context, r sender.Replay, notBefore time.Time) (sender.Replay, error) {
			asked := r
			change(&r, &notBefore)
			made, err := b.Store.CreateReplay(ctx, r, notBefore)
			all[made.ID] = asked
			return shown(made), err
		}
		b.replay = func(ctx context.Context, id string) (sender.Replay, error) {
			r, err := b.Store.Replay(ctx, id)
			return shown(r), err
		}
	}
}
