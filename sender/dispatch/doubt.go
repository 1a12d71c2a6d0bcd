package dispatch

import (
	"context"
	"time"
)

// doubtBatch bounds how many deliveries are given back at a time that were claimed by steps
// whose answers were lost.
const doubtBatch = 256

// doubt is the token of a claim whose step has failed: it may have been committed, or may
// still be. The process begins no attempt of it, so it gives the claim's leases back as
// soon as it finds them.
type doubt struct {
	token int64
	until time.Time // its leases have ended by then
}

// doubt notes the claim of a failed step. Under mu.
func (x *presence) doubt(token int64) {
	x.doubts = append(x.doubts, doubt{token, x.p.d.now().Add(x.p.d.cfg.Lease)})
}

// doubtful returns the tokens to look for.
func (x *presence) doubtful() (tokens []int64) {
	now := x.p.d.now()
	x.mu.Lock()
	defer x.mu.Unlock()
	for len(x.doubts) > 0 && !x.doubts[0].until.After(now) {
		x.doubts = x.doubts[1:]
	}
	for _, d := range x.doubts {
		tokens = append(tokens, d.token)
	}
	return tokens
}

// resolve makes the pump give back the leases of doubtful claims, and reports whether there
// are any. It looks for the same tokens again, because the commit of a lost connection can
// come late.
func (x *presence) resolve(ctx context.Context) (found bool) {
	tokens := x.doubtful()
	if len(tokens) == 0 {
		return false
	}
	ctx, cancel := x.within(ctx)
	defer cancel()
	leases, err := x.p.d.store.LeasedUnder(ctx, tokens, doubtBatch)
	if err != nil && ctx.Err() == nil {
		x.p.d.cfg.Logger.ErrorContext(ctx, "deliveries that a failed step may have claimed could not be looked for; the claims end with their leases unless another try succeeds", "error", err)
	}
	return err == nil && x.p.giveBackLater(leases)
}

// giveBackLater makes the next step give back these leases, and reports whether there are
// any. If the step has some to give back already, these may be the same: they are found again.
func (p *pump) giveBackLater(leases []Release) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.back) == 0 {
		for _, l := range leases {
			p.back = append(p.back, givenBack{a: &attempt{Claimed: Claimed{Key: l.Key, Token: l.Token}}})
		}
	}
	if len(leases) > 0 {
		p.signal()
	}
	return len(leases) > 0
}
