package dispatch

import (
	"context"
	"time"
)

// doubtBatch bounds how much is given back at a time of what was claimed by steps whose
// answers were lost.
const doubtBatch = 256

// doubt is the token of a claim that may have been committed, or may still be: the step
// has failed. Nothing is begun of it, so what it has leased is given back as soon as it
// is found.
type doubt struct {
	token int64
	until time.Time // then its leases have ended by themselves
}

// doubt notes such a claim. Under mu.
func (x *presence) doubt(token int64) {
	x.doubts = append(x.doubts, doubt{token, x.p.d.now().Add(x.p.d.cfg.Lease)})
}

// doubtful are the tokens to look for.
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

// resolve has the pump give back what such claims have leased, and reports whether there
// is something. What was found once is looked for again: the commit of a connection that
// was lost can come late.
func (x *presence) resolve(ctx context.Context) (found bool) {
	tokens := x.doubtful()
	if len(tokens) == 0 {
		return false
	}
	ctx, cancel := x.within(ctx)
	defer cancel()
	leases, err := x.p.d.store.LeasedUnder(ctx, tokens, doubtBatch)
	if err != nil && ctx.Err() == nil {
		x.p.d.cfg.Logger.ErrorContext(ctx, "what was claimed by a step that failed could not be looked for; it ends with its leases unless another try succeeds", "error", err)
	}
	return err == nil && x.p.giveBackLater(leases)
}

// giveBackLater has the next step give back what was found, unless one is to give back
// already.
func (p *pump) giveBackLater(leases []Release) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(leases) == 0 || len(p.back) > 0 {
		return false
	}
	for _, l := range leases {
		p.back = append(p.back, givenBack{a: &attempt{Claimed: Claimed{Key: l.Key, Token: l.Token}}})
	}
	p.signal()
	return true
}
