package sqlite

import (
	"fmt"
	"time"

	"github.com/surehook/surehook/sender"
)

// recordAll records the results of the batch. Targets and events of what it
// recorded are left to the caller, who has them.
func (b *batch) recordAll() error {
	if len(b.Results) == 0 {
		return nil
	}
	var subscriptions []int64
	seen := map[int64]bool{}
	for i := range b.Results {
		if no := b.Results[i].Key.Subscription; !seen[no] {
			seen[no] = true
			subscriptions = append(subscriptions, no)
		}
	}
	if err := b.heads.load(subscriptions); err != nil {
		return err
	}
	b.claims.Recorded = make([]sender.Recorded, len(b.Results))
	for i := range b.Results {
		r, out := &b.Results[i], &b.claims.Recorded[i]
		le := b.leases.find(r.Key)
		if le == nil || le.number != r.Token {
			out.Lost = true
			continue
		}
		var err error
		if out.Decision, err = b.settle(le, r, false); err != nil {
			return err
		}
	}
	return nil
}

// settle takes a lease away, stores its attempt and what is decided of the
// delivery. With again, what is due at once is left to the caller to claim.
func (b *batch) settle(le *lease, r *sender.Result, again bool) (dec sender.Decision, err error) {
	sub, err := b.known.subscription(b.work, le.key.Subscription)
	if err != nil {
		return dec, err
	}
	h, err := b.headOf(le.key.Subscription)
	if err != nil {
		return dec, err
	}
	was := b.leases.remove(le)
	if sub.state == stateActive {
		dec = b.Decide(sender.Live{
			Key: was.key, Number: int(was.number), Tries: int(was.tries), First: timeOf(was.first), Single: was.single,
		}, h.health, *r, b.claims.Now)
	} else {
		dec = sender.Decision{Status: ofDeleted(was.single, r.Class), Health: h.health}
	}
	a := sender.Attempt{
		Number: int(was.number), StartedAt: r.StartedAt, Duration: r.Duration,
		StatusCode: r.StatusCode, Class: r.Class, Error: r.Error, Snippet: r.Snippet,
	}
	switch dec.Status {
	case sender.StatusDelivered:
	case sender.StatusAwaitingRetry:
		a.NextAttemptAt = dec.Due
		if due := dec.Due.UnixMicro(); !again || due > b.now {
			h.lower(due)
			err = b.wait(h, waiting{key: was.key, due: due, number: was.number, tries: was.tries, first: was.first, single: was.single})
		}
	case sender.StatusDeadLettered, sender.StatusCancelled:
		err = b.end(was.key, dec.Status)
	default:
		err = fmt.Errorf("%w decision: status %q: it must be delivered, awaiting_retry or dead_lettered", sender.ErrInvalid, dec.Status)
	}
	if err == nil && int(dec.Health.Lane) >= sender.Lanes {
		err = fmt.Errorf("%w decision: lane %d: there are %d", sender.ErrInvalid, dec.Health.Lane, sender.Lanes)
	}
	if err != nil {
		return dec, err
	}
	if dec.Health != h.health {
		h.health = stored(dec.Health)
	}
	b.attempts[was.key.Subscription] = append(b.attempts[was.key.Subscription], attempt{event: was.key.Event, Attempt: a})
	return dec, nil
}

// stored is what a health reads as once it was stored.
func stored(h sender.Health) sender.Health {
	for _, t := range []*time.Time{&h.FailingSince, &h.LastSuccess, &h.LastFailure} {
		*t = timeOf(micros(*t))
	}
	return h
}

// ofDeleted is what an attempt makes of a delivery whose subscription is gone.
func ofDeleted(single bool, class sender.Class) sender.Status {
	if class == sender.ClassNone || single {
		return sender.StatusDelivered // a single one was delivered before
	}
	return sender.StatusCancelled
}

// interrupted is the result of an attempt whose own is not to be expected.
func interrupted(le *lease, chance float64) sender.Result {
	return sender.Result{
		Key: le.key, Token: le.number, Number: int(le.number), StartedAt: timeOf(le.claimedAt), Class: sender.ClassInterrupted,
		Error: "the lease ended without a result: whether the request arrived is not known", Chance: chance,
	}
}
