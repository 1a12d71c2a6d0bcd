// Package pass has what the stores' passes over all that they keep have in common: in
// which order they go, and the cursors by which a batch follows another.
package pass

import (
	"fmt"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/internal/cursor"
)

// Prune is one batch of a pass that removes what is old.
type Prune struct {
	sender.PruneParams
	At  sender.DeliveryKey // behind which delivery or event the step goes on; a step moves it
	Out sender.Pruned

	step int64
}

// Step removes what it finds first behind the place, if it was before a time, and
// returns whether it may have left some.
type Step func(before time.Time) (more bool, err error)

// Steps are a pass. Those of deliveries come before that of their events.
type Steps struct{ DeadLetters, Cancelled, Delivered, Events, Notices, Rollups, Subscriptions, Objects Step }

const pruneSteps = 8

// NewPrune goes on at the cursor. The error matches sender.ErrInvalid.
func NewPrune(params sender.PruneParams) (*Prune, error) {
	if params.Limit < 1 {
		return nil, fmt.Errorf("%w limit %d: it must be at least 1", sender.ErrInvalid, params.Limit)
	}
	p := &Prune{PruneParams: params}
	if params.Cursor != "" && (!cursor.ReadDecimal(params.Cursor, &p.step, &p.At.Event, &p.At.Subscription) || p.step >= pruneSteps) {
		return nil, errCursor
	}
	return p, nil
}

var errCursor = fmt.Errorf("%w cursor: it must be one that a batch before came with", sender.ErrInvalid)

// Run makes the batch: the first step that has something to remove. What nothing is to
// be removed of, by a zero time, is passed over.
func (p *Prune) Run(steps Steps) (sender.Pruned, error) {
	all := [pruneSteps]struct {
		before time.Time
		run    Step
	}{
		{p.DeadLetters, steps.DeadLetters},
		{p.Delivered, steps.Cancelled},
		{p.Delivered, steps.Delivered},
		{p.Events, steps.Events},
		{p.Notices, steps.Notices},
		{p.Rollups, steps.Rollups},
		{p.Events, steps.Subscriptions},
		{p.Objects, steps.Objects},
	}
	for ; p.step < pruneSteps; p.next() {
		step := all[p.step]
		if step.before.IsZero() {
			continue
		}
		more, err := step.run(step.before)
		if err != nil {
			return sender.Pruned{}, err
		}
		if !more {
			if p.removed() == 0 || p.step+1 == pruneSteps {
				continue
			}
			p.next()
		}
		p.Out.Cursor = cursor.Decimal(p.step, p.At.Event, p.At.Subscription)
		break
	}
	return p.Out, nil
}

func (p *Prune) next() { p.step, p.At = p.step+1, sender.DeliveryKey{} }

func (p *Prune) removed() int {
	return p.Out.Deliveries + p.Out.DeadLetters + p.Out.Events + p.Out.Notices + p.Out.Rollups + p.Out.Subscriptions + p.Out.Objects
}
