package rules

import (
	"fmt"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// PrunePass is one batch of a pass that removes what is old: see dispatch.Store.Prune. The
// steps of a pass have an order, and the cursor of a batch leads to the next. It is for one
// goroutine.
type PrunePass struct {
	dispatch.PruneParams
	At  dispatch.DeliveryKey // behind which delivery or event the step goes on; a step moves it
	Out dispatch.Pruned

	step int64
}

// PruneStep removes what it finds first behind the place, if it was before a time, and
// returns whether it may have left some.
type PruneStep func(before time.Time) (more bool, err error)

// PruneSteps are a pass. Those of deliveries come before that of their events: nothing that
// is kept belongs to what is gone.
type PruneSteps struct{ DeadLetters, Cancelled, Delivered, Events, Notices, Replays, Rollups, SubscriptionRollups, Subscriptions, Objects PruneStep }

const pruneSteps = 10

// NewPrunePass goes on at the cursor. The error matches sender.ErrInvalid.
func NewPrunePass(params dispatch.PruneParams) (*PrunePass, error) {
	if params.Limit < 1 {
		return nil, fmt.Errorf("%w limit %d: it must be at least 1", sender.ErrInvalid, params.Limit)
	}
	p := &PrunePass{PruneParams: params}
	if params.Cursor != "" && (!ReadDecimal(params.Cursor, &p.step, &p.At.Event, &p.At.Subscription) || p.step >= pruneSteps) {
		return nil, errPassCursor
	}
	return p, nil
}

var errPassCursor = fmt.Errorf("%w cursor: it must be one that a batch before came with", sender.ErrInvalid)

// Run makes the batch: the first step that has something to remove. A kind whose time is
// zero is kept for ever, and is passed over. An error names the kind. The cursor beside it
// leads to the next step, so that the pass goes on with the other kinds.
func (p *PrunePass) Run(steps PruneSteps) (dispatch.Pruned, error) {
	all := [pruneSteps]struct {
		of     string
		before time.Time
		run    PruneStep
	}{
		{"dead letters", p.DeadLetters, steps.DeadLetters},
		{"cancelled deliveries", p.Delivered, steps.Cancelled},
		{"delivered deliveries", p.Delivered, steps.Delivered},
		{"events", p.Events, steps.Events},
		{"notices", p.Notices, steps.Notices},
		{"replays", p.Events, steps.Replays},
		{"figures", p.Rollups, steps.Rollups},
		{"figures of subscriptions", p.PruneParams.SubscriptionRollups, steps.SubscriptionRollups},
		{"subscriptions", p.Events, steps.Subscriptions},
		{"objects", p.Objects, steps.Objects},
	}
	for ; p.step < pruneSteps; p.next() {
		step := all[p.step]
		if step.before.IsZero() {
			continue
		}
		more, err := step.run(step.before)
		if err != nil {
			p.next()
			var out dispatch.Pruned
			if p.step < pruneSteps {
				out.Cursor = Decimal(p.step, p.At.Event, p.At.Subscription)
			}
			return out, fmt.Errorf("%s: %w", step.of, err)
		}
		if !more {
			if p.removed() == 0 || p.step+1 == pruneSteps {
				continue
			}
			p.next()
		}
		p.Out.Cursor = Decimal(p.step, p.At.Event, p.At.Subscription)
		break
	}
	return p.Out, nil
}

func (p *PrunePass) next() { p.step, p.At = p.step+1, dispatch.DeliveryKey{} }

func (p *PrunePass) removed() int {
	return p.Out.Deliveries + p.Out.DeadLetters + p.Out.Events + p.Out.Notices + p.Out.Rollups + p.Out.SubscriptionRollups + p.Out.Subscriptions + p.Out.Replays + p.Out.Objects
}
