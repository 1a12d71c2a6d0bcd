//go:build !race

package storetest_test

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// recordBreakages break how results and releases are told from late ones, and recorded.
var recordBreakages = []breakage{
	{"token ignored", func(s store) store { return &tokenIgnored{store: s, present: map[dispatch.DeliveryKey]int64{}} }, checks{"record/token", "record/too late", "several processes/slower than its lease", "random/seed 1"}},
	{"health dropped", onDecide(func(decide decideFunc, l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
		dec := decide(l, h, r, now)
		dec.Health = h
		return dec
	}), checks{"record/health within a batch", "fairness/lanes"}},
	{"health not handed on within a batch", onBatch(func(batch *dispatch.Batch) {
		first := map[int64]sender.Health{}
		decide := batch.Decide
		batch.Decide = func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
			if _, ok := first[l.Key.Subscription]; !ok {
				first[l.Key.Subscription] = h
			}
			return decide(l, first[l.Key.Subscription], r, now)
		}
	}), checks{"record/health within a batch"}},
	{"snippet dropped", onDelivery(func(d *sender.Delivery) {
		for i := range d.Attempts {
			d.Attempts[i].Snippet = nil
		}
	}), checks{"record/attempts in full"}},
	{"headers dropped", onDelivery(func(d *sender.Delivery) {
		for i := range d.Attempts {
			d.Attempts[i].Headers = ""
		}
	}), checks{"record/attempts in full", "redaction/of an object"}},
	{"headers of successes dropped", onDelivery(func(d *sender.Delivery) {
		for i := range d.Attempts {
			if d.Attempts[i].Class == sender.ClassNone {
				d.Attempts[i].Headers = ""
			}
		}
	}), checks{"redaction/of an object"}},
	{"the number is the token", func(s store) store {
		return &numberIsToken{store: s, tokens: map[numbered]int64{}, numbers: map[int64]int64{}}
	}, checks{"record/a number given twice"}},
	{"release repeated by its number", func(s store) store {
		return &releasedByNumber{store: s, present: map[dispatch.DeliveryKey]dispatch.Claimed{}, numbers: map[int64]int{}}
	}, checks{"record/a number given twice"}},
	{"release uses up the number", func(s store) store { return releaseRecorded{s} }, checks{"record/released"}},
	{"released at once, always", func(s store) store { return releasedAtOnce{s} }, checks{"record/released", "redeliver/pending"}},
	{"the schedule runs on while a delivery is put off", onLive(func(l *dispatch.Live) { l.Stood = 0 }), checks{"record/released"}},
	{"late results dropped", func(s store) store { return &lateDropped{store: s, at: map[dispatch.DeliveryKey]time.Time{}} }, checks{"record/late, but not lost"}},
}

type tokenIgnored struct {
	store
	present map[dispatch.DeliveryKey]int64
}

func (b *tokenIgnored) Step(ctx context.Context, p dispatch.ExpandParams, batch dispatch.Batch) (dispatch.Expanded, dispatch.Claims, error) {
	batch.Results = slices.Clone(batch.Results)
	for i, r := range batch.Results {
		batch.Results[i].Token = b.present[r.Key]
	}
	x, c, err := b.store.Step(ctx, p, batch)
	for _, d := range c.Claimed {
		b.present[d.Key] = d.Token
	}
	return x, c, err
}

type numbered struct {
	dispatch.DeliveryKey
	number int64
}

type numberIsToken struct {
	store
	tokens  map[numbered]int64
	numbers map[int64]int64
}

func (b *numberIsToken) Step(ctx context.Context, p dispatch.ExpandParams, batch dispatch.Batch) (dispatch.Expanded, dispatch.Claims, error) {
	batch.Results = slices.Clone(batch.Results)
	for i, r := range batch.Results {
		batch.Results[i].Token = b.tokens[numbered{r.Key, b.numbers[r.Token]}]
	}
	x, c, err := b.store.Step(ctx, p, batch)
	for _, d := range c.Claimed {
		b.tokens[numbered{d.Key, int64(d.Number)}], b.numbers[d.Token] = d.Token, int64(d.Number)
	}
	return x, c, err
}

type releasedByNumber struct {
	store
	present map[dispatch.DeliveryKey]dispatch.Claimed
	numbers map[int64]int
}

func (b *releasedByNumber) Step(ctx context.Context, p dispatch.ExpandParams, batch dispatch.Batch) (dispatch.Expanded, dispatch.Claims, error) {
	x, c, err := b.store.Step(ctx, p, batch)
	for _, d := range c.Claimed {
		b.present[d.Key], b.numbers[d.Token] = d, d.Number
	}
	return x, c, err
}

func (b *releasedByNumber) Release(ctx context.Context, rs []dispatch.Release) error {
	rs = slices.Clone(rs)
	for i, r := range rs {
		if p := b.present[r.Key]; p.Number == b.numbers[r.Token] {
			rs[i].Token = p.Token
		}
	}
	return b.store.Release(ctx, rs)
}

type releaseRecorded struct{ store }

func (b releaseRecorded) Release(ctx context.Context, rs []dispatch.Release) error {
	var results []dispatch.Result
	for _, r := range rs {
		results = append(results, dispatch.Result{Key: r.Key, Token: r.Token, Number: 1, Class: sender.ClassInterrupted})
	}
	_, _, err := b.store.Step(ctx, dispatch.ExpandParams{}, dispatch.Batch{Results: results, Decide: func(_ dispatch.Live, h sender.Health, _ dispatch.Result, now time.Time) dispatch.Decision {
		return dispatch.Decision{Status: sender.StatusAwaitingRetry, Due: now, Health: h}
	}})
	return err
}

type releasedAtOnce struct{ store }

func (b releasedAtOnce) Release(ctx context.Context, rs []dispatch.Release) error {
	for i := range rs {
		rs[i].Due = time.Time{}
	}
	return b.store.Release(ctx, rs)
}

type lateDropped struct {
	store
	at map[dispatch.DeliveryKey]time.Time
}

func (b *lateDropped) Step(ctx context.Context, p dispatch.ExpandParams, batch dispatch.Batch) (dispatch.Expanded, dispatch.Claims, error) {
	now, err := timeOf(ctx, b.store)
	batch.Results = losing(batch.Results, func(r dispatch.Result) bool { return now.Sub(b.at[r.Key]) > time.Minute })
	x, c, failed := b.store.Step(ctx, p, batch)
	for _, d := range c.Claimed {
		b.at[d.Key] = d.At
	}
	return x, c, errors.Join(err, failed)
}
