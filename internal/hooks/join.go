// Package hooks joins the optional functions that the sending and the receiving side call.
package hooks

import "context"

// Start returns a function that calls both, in their order. The second one gets the
// context that the first one returned, unless that is nil. A panic in the first does not
// keep the second from being called. If one is nil, Start returns the other.
func Start[T any](first, second func(context.Context, T) context.Context) func(context.Context, T) context.Context {
	if first == nil {
		return second
	}
	if second == nil {
		return first
	}
	return func(ctx context.Context, v T) (out context.Context) {
		out = ctx
		next := func() {
			if given := second(out, v); given != nil {
				out = given
			}
		}
		defer next()
		if given := first(ctx, v); given != nil {
			out = given
		}
		return out
	}
}

// Both returns a function that calls both, in their order. A panic in the first does not
// keep the second from being called. If one is nil, Both returns the other.
func Both[T any](first, second func(context.Context, T)) func(context.Context, T) {
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

// Both2 is Both for functions of two values.
func Both2[T, U any](first, second func(context.Context, T, U)) func(context.Context, T, U) {
	if first == nil {
		return second
	}
	if second == nil {
		return first
	}
	return func(ctx context.Context, v T, w U) {
		defer second(ctx, v, w)
		first(ctx, v, w)
	}
}
