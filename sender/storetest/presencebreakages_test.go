//go:build !race

package storetest_test

import (
	"context"
	"errors"

	"github.com/surehook/surehook/sender/dispatch"
)

// presenceBreakages break how a store treats processes that are gone.
var presenceBreakages = []breakage{
	{"takes over although it lives", func(s store) store { return takesOverLiving{s} }, checks{"presence/it lives"}},
	{"takes over what others hold", func(s store) store { return takesOverAll{s} }, checks{"presence/others' leases"}},
	{"what is taken over is due when its lease ends", func(s store) store { return leaves{s} }, checks{"presence/taken over", "presence/others' leases"}},
	{"who was taken over stays known", func(s store) store { return staysKnown{s} }, checks{"presence/taken over", "presence/others' leases"}},
	{"only one lost claim is found", func(s store) store { return findsOne{s} }, checks{"presence/a claim whose answer was lost"}},
	{"lost claims are found without a limit", func(s store) store { return findsAll{s} }, checks{"presence/a claim whose answer was lost"}},
	{"a lost claim is found after it was given back", func(s store) store { return &findsAgain{store: s} }, checks{"presence/a claim whose answer was lost"}},
	{"leases are nobody's", onClaim(func(p *dispatch.ClaimParams) { p.By.Process++ }), checks{"presence/taken over", "presence/results of one that was taken over"}},
	{"a claim's beat is not stored", onClaim(func(p *dispatch.ClaimParams) { p.By.Beat = 0 }), checks{"presence/a claim says it too", "presence/taken over"}},
	{"a look counts as a beat", func(s store) store { return looksBeat{s} }, checks{"presence/a claim says it too"}},
	{"a beat only makes known", func(s store) store { return beatsOnce{s} }, checks{"presence/known", "presence/it lives"}},
}

type takesOverLiving struct{ store }

func (b takesOverLiving) TakeOver(ctx context.Context, p dispatch.Presence) (int, error) {
	known, err := b.store.Present(ctx)
	for _, k := range known {
		if k.Process == p.Process {
			p.Beat = k.Beat
		}
	}
	n, err2 := b.store.TakeOver(ctx, p)
	return n, errors.Join(err, err2)
}

type takesOverAll struct{ store }

func (b takesOverAll) TakeOver(ctx context.Context, p dispatch.Presence) (int, error) {
	known, err := b.store.Present(ctx)
	n, err2 := b.store.TakeOver(ctx, p)
	for _, other := range known {
		if other.Process != p.Process {
			_, err3 := b.store.TakeOver(ctx, other)
			_, err4 := b.store.Beat(ctx, other)
			err = errors.Join(err, err3, err4)
		}
	}
	return n, errors.Join(err, err2)
}

type leaves struct{ store }

func (b leaves) TakeOver(ctx context.Context, p dispatch.Presence) (int, error) {
	return 7, b.store.Leave(ctx, p)
}

type staysKnown struct{ store }

func (b staysKnown) TakeOver(ctx context.Context, p dispatch.Presence) (int, error) {
	n, err := b.store.TakeOver(ctx, p)
	_, err2 := b.store.Beat(ctx, p)
	return n, errors.Join(err, err2)
}

type findsOne struct{ store }

func (b findsOne) LeasedUnder(ctx context.Context, tokens []int64, limit int) ([]dispatch.Release, error) {
	return b.store.LeasedUnder(ctx, tokens[:min(1, len(tokens))], limit)
}

type findsAll struct{ store }

func (b findsAll) LeasedUnder(ctx context.Context, tokens []int64, _ int) ([]dispatch.Release, error) {
	return b.store.LeasedUnder(ctx, tokens, 1000)
}

type findsAgain struct {
	store
	before []dispatch.Release
}

func (b *findsAgain) LeasedUnder(ctx context.Context, tokens []int64, limit int) ([]dispatch.Release, error) {
	found, err := b.store.LeasedUnder(ctx, tokens, limit)
	if len(found) == 0 && len(tokens) > 0 {
		return b.before, err
	}
	b.before = found
	return found, err
}

type looksBeat struct{ store }

func (b looksBeat) Step(ctx context.Context, p dispatch.ExpandParams, batch dispatch.Batch) (dispatch.Expanded, dispatch.Claims, error) {
	x, c, err := b.store.Step(ctx, p, batch)
	if batch.Claim.By.Beat != 0 {
		_, err2 := b.store.Beat(ctx, batch.Claim.By)
		err = errors.Join(err, err2)
	}
	return x, c, err
}

type beatsOnce struct{ store }

func (b beatsOnce) Beat(ctx context.Context, p dispatch.Presence) ([]dispatch.Presence, error) {
	known, err := b.store.Present(ctx)
	for _, k := range known {
		if k.Process == p.Process {
			return known, err
		}
	}
	return b.store.Beat(ctx, p)
}
