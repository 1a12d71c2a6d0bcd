package dispatch

import (
	"context"
	"time"
)

// JoinHooks returns hooks that call all of the given ones, in their order: metrics and
// traces, say. Each AttemptStart gets the context of the one before. A panic in one does
// not keep the following ones from being called.
func JoinHooks(all ...Hooks) Hooks {
	var j Hooks
	for _, h := range all {
		j.AttemptStart = startBoth(j.AttemptStart, h.AttemptStart)
		j.AttemptEnd = endBoth(j.AttemptEnd, h.AttemptEnd)
		j.PutOff = both(j.PutOff, h.PutOff)
		j.Stepped = both(j.Stepped, h.Stepped)
		j.TakenOver = both(j.TakenOver, h.TakenOver)
		j.Recorded = both(j.Recorded, h.Recorded)
		j.ReplayFinished = both(j.ReplayFinished, h.ReplayFinished)
		j.Expanded = both(j.Expanded, h.Expanded)
		j.Noticed = both(j.Noticed, h.Noticed)
		j.NetworkDown = both(j.NetworkDown, h.NetworkDown)
		j.NetworkUp = both(j.NetworkUp, h.NetworkUp)
		j.ProxyDown = proxyBoth(j.ProxyDown, h.ProxyDown)
		j.ProxyUp = proxyBoth(j.ProxyUp, h.ProxyUp)
		j.Pruned = both(j.Pruned, h.Pruned)
	}
	return j
}

func both[T any](first, second func(context.Context, T)) func(context.Context, T) {
	if first == nil {
		return second
	}
	if second == nil {
		return first
	}
	return func(ctx context.Context, v T) {
		defer second(ctx, v)
		first(ctx, v)
	}
}

// startBoth has the second hook called with the first one's context, if it returned one.
func startBoth(first, second func(context.Context, *Claimed) context.Context) func(context.Context, *Claimed) context.Context {
	if first == nil {
		return second
	}
	if second == nil {
		return first
	}
	return func(ctx context.Context, c *Claimed) (out context.Context) {
		out = ctx
		next := func() {
			if given := second(out, c); given != nil {
				out = given
			}
		}
		defer next()
		if given := first(ctx, c); given != nil {
			out = given
		}
		return out
	}
}

func endBoth(first, second func(context.Context, *Claimed, *Result)) func(context.Context, *Claimed, *Result) {
	if first == nil {
		return second
	}
	if second == nil {
		return first
	}
	return func(ctx context.Context, c *Claimed, r *Result) {
		defer second(ctx, c, r)
		first(ctx, c, r)
	}
}

func proxyBoth(first, second func(context.Context, string, time.Time)) func(context.Context, string, time.Time) {
	if first == nil {
		return second
	}
	if second == nil {
		return first
	}
	return func(ctx context.Context, proxy string, since time.Time) {
		defer second(ctx, proxy, since)
		first(ctx, proxy, since)
	}
}
