package sender

import (
	"context"
	"time"

	"github.com/surehook/surehook/internal/hooks"
)

// PublishHooks are optional functions that a Publisher calls, on the goroutine of its
// caller. With PublishTx and PublishManyTx the caller's transaction is open meanwhile, so
// they must not block. A panic in a hook goes on to the caller of the publish.
type PublishHooks struct {
	// PublishStart is called before events are validated and persisted. If it returns a
	// context that is not nil, the publish goes on with it, which can carry a trace's span.
	// The events may only be read, and only until PublishStart returns.
	PublishStart func(ctx context.Context, events []Event) context.Context

	// PublishEnd is called at the end of a publish, with the context that PublishStart has
	// returned. p may only be read, and only until PublishEnd returns. After PublishTx and
	// PublishManyTx nothing is committed yet.
	PublishEnd func(ctx context.Context, p *Published)
}

// Published is what became of a publish.
type Published struct {
	Events   []Event
	Refs     []Ref // one for each event; none if Err is set
	Err      error
	Duration time.Duration
}

// begin calls PublishStart, and returns the context and what to call at the end.
func (h *PublishHooks) begin(ctx context.Context, events []Event) (context.Context, func(refs []Ref, err error)) {
	if h.PublishStart != nil {
		if given := h.PublishStart(ctx, events); given != nil {
			ctx = given
		}
	}
	if h.PublishEnd == nil {
		return ctx, func([]Ref, error) {}
	}
	began := time.Now()
	return ctx, func(refs []Ref, err error) {
		h.PublishEnd(ctx, &Published{Events: events, Refs: refs, Err: err, Duration: time.Since(began)})
	}
}

// JoinPublishHooks returns hooks that call all of the given ones, in their order: metrics
// and traces, say. Each PublishStart gets the context of the one before. A panic in one
// does not keep the following ones from being called.
func JoinPublishHooks(all ...PublishHooks) PublishHooks {
	var joined PublishHooks
	for _, h := range all {
		joined.PublishStart = hooks.Start(joined.PublishStart, h.PublishStart)
		joined.PublishEnd = hooks.Both(joined.PublishEnd, h.PublishEnd)
	}
	return joined
}
