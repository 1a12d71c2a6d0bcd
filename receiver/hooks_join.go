package receiver

import (
	"context"
	"net/http"
)

// JoinHooks returns hooks that call all of the given ones, in their order: metrics and
// traces, say. Each Start gets the context of the one before. A panic in one does not keep
// the following ones from being called.
func JoinHooks(all ...Hooks) Hooks {
	var j Hooks
	for _, h := range all {
		j.Start = startBoth(j.Start, h.Start)
		j.Verified = both(j.Verified, h.Verified)
		j.Applied = both(j.Applied, h.Applied)
		j.Duplicate = both(j.Duplicate, h.Duplicate)
		j.Stale = both(j.Stale, h.Stale)
		j.DeadLettered = bothWith(j.DeadLettered, h.DeadLettered)
		j.Reapplied = both(j.Reapplied, h.Reapplied)
		j.Ignored = both(j.Ignored, h.Ignored)
		j.Recorded = both(j.Recorded, h.Recorded)
		j.Challenged = both(j.Challenged, h.Challenged)
		j.Rejected = both(j.Rejected, h.Rejected)
		j.Failed = bothWith(j.Failed, h.Failed)
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

func bothWith[E error](first, second func(context.Context, Event, E)) func(context.Context, Event, E) {
	if first == nil {
		return second
	}
	if second == nil {
		return first
	}
	return func(ctx context.Context, ev Event, err E) {
		defer second(ctx, ev, err)
		first(ctx, ev, err)
	}
}

// startBoth has the second hook called with the first one's context, if it returned one.
func startBoth(first, second func(context.Context, http.Header) context.Context) func(context.Context, http.Header) context.Context {
	if first == nil {
		return second
	}
	if second == nil {
		return first
	}
	return func(ctx context.Context, header http.Header) (out context.Context) {
		out = ctx
		next := func() {
			if given := second(out, header); given != nil {
				out = given
			}
		}
		defer next()
		if given := first(ctx, header); given != nil {
			out = given
		}
		return out
	}
}
