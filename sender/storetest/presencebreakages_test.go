package storetest_test

import (
	"context"
	"errors"

	"github.com/surehook/surehook/sender"
)

// presenceBreakages break how a store treats processes that are gone.
var presenceBreakages = map[string]breakage{
	"takes over although it lives": {[]string{"presence/it lives"}, func(b *broken, _ *harness) {
		b.takeOver = func(ctx context.Context, p sender.Presence) (int, error) {
			known, err := b.Store.Present(ctx)
			for _, k := range known {
				if k.Process == p.Process {
					p.Beat = k.Beat
				}
			}
			n, err2 := b.Store.TakeOver(ctx, p)
			return n, errors.Join(err, err2)
		}
	}},
	"takes over what others hold": {[]string{"presence/others' leases"}, func(b *broken, _ *harness) {
		b.takeOver = func(ctx context.Context, p sender.Presence) (int, error) {
			known, err := b.Store.Present(ctx)
			n, err2 := b.Store.TakeOver(ctx, p)
			for _, other := range known {
				if other.Process != p.Process {
					_, err3 := b.Store.TakeOver(ctx, other)
					_, err4 := b.Store.Beat(ctx, other)
					err = errors.Join(err, err3, err4)
				}
			}
			return n, errors.Join(err, err2)
		}
	}},
	"what is taken over is due when its lease ends": {[]string{"presence/taken over", "presence/others' leases"}, func(b *broken, _ *harness) {
		b.takeOver = func(ctx context.Context, p sender.Presence) (int, error) { return 7, b.Store.Leave(ctx, p) }
	}},
	"who was taken over stays known": {[]string{"presence/taken over", "presence/others' leases"}, func(b *broken, _ *harness) {
		b.takeOver = func(ctx context.Context, p sender.Presence) (int, error) {
			n, err := b.Store.TakeOver(ctx, p)
			_, err2 := b.Store.Beat(ctx, p)
			return n, errors.Join(err, err2)
		}
	}},
	"only one lost claim is found": {[]string{"presence/a claim whose answer was lost"}, func(b *broken, _ *harness) {
		b.leasedUnder = func(ctx context.Context, tokens []int64, limit int) ([]sender.Release, error) {
			return b.Store.LeasedUnder(ctx, tokens[:min(1, len(tokens))], limit)
		}
	}},
	"lost claims are found without a limit": {[]string{"presence/a claim whose answer was lost"}, func(b *broken, _ *harness) {
		b.leasedUnder = func(ctx context.Context, tokens []int64, _ int) ([]sender.Release, error) {
			return b.Store.LeasedUnder(ctx, tokens, 1000)
		}
	}},
	"a lost claim is found after it was given back": {[]string{"presence/a claim whose answer was lost"}, func(b *broken, _ *harness) {
		var before []sender.Release
		b.leasedUnder = func(ctx context.Context, tokens []int64, limit int) ([]sender.Release, error) {
			found, err := b.Store.LeasedUnder(ctx, tokens, limit)
			if len(found) == 0 && len(tokens) > 0 {
				return before, err
			}
			before = found
			return found, err
		}
	}},
	"leases are nobody's":          {[]string{"presence/taken over", "presence/results of one that was taken over"}, onClaim(func(p *sender.ClaimParams) { p.By.Process++ })},
	"a claim's beat is not stored": {[]string{"presence/a claim says it too", "presence/taken over"}, onClaim(func(p *sender.ClaimParams) { p.By.Beat = 0 })},
	"a look counts as a beat": {[]string{"presence/a claim says it too"}, func(b *broken, _ *harness) {
		b.batch = func(ctx context.Context, batch sender.Batch) (sender.Claims, error) {
			c, err := b.Store.RecordAndClaim(ctx, batch)
			if batch.Claim.By.Beat != 0 {
				_, err2 := b.Store.Beat(ctx, batch.Claim.By)
				err = errors.Join(err, err2)
			}
			return c, err
		}
	}},
	"a beat only makes known": {[]string{"presence/known", "presence/it lives"}, func(b *broken, _ *harness) {
		b.beat = func(ctx context.Context, p sender.Presence) ([]sender.Presence, error) {
			known, err := b.Store.Present(ctx)
			for _, k := range known {
				if k.Process == p.Process {
					return known, err
				}
			}
			return b.Store.Beat(ctx, p)
		}
	}},
}
