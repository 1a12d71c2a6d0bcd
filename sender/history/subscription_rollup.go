package history

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/surehook/surehook/internal/ident"
	"github.com/surehook/surehook/sender"
)

// Bounds of one call of SubscriptionRollups.
const (
	maxSubscriptionRollups     = 35 * 24 * time.Hour // the time
	maxRollupSubscriptions     = 200                 // the subscriptions
	maxRollupSubscriptionHours = 50_000              // the two together: subscriptions × hours
)

// SubscriptionRollup is what happened to a subscription in an hour. It is a figure to
// watch, not an account. A process keeps its counts in memory, and writes what has changed
// within about ten seconds and at its end, so those of a process that was killed can be
// missing.
type SubscriptionRollup struct {
	Subscription string    `json:"-"` // its id
	Hour         time.Time `json:"-"` // when it began, UTC

	Deliveries int64 `json:",omitzero"` // made for it

	// Attempts that ended, each counted once, as in Rollup.
	Delivered    int64 `json:",omitzero"` // answered with 2xx in time
	DeadLettered int64 `json:",omitzero"` // the delivery was dead-lettered by it
	Interrupted  int64 `json:",omitzero"` // it was lost, and the delivery was not dead-lettered
	Failed       int64 `json:",omitzero"` // failed otherwise: the delivery mostly awaits a retry

	// Failures are the attempts that failed, by class.
	Failures map[sender.Class]int64 `json:",omitempty"`

	// Succeeded are deliveries that became delivered, and FirstTry those of them whose
	// first attempt did it. One that was delivered before, and is sent once more, is not
	// counted.
	Succeeded int64 `json:",omitzero"`
	FirstTry  int64 `json:",omitzero"`

	// Duration is how long the attempts took that were not interrupted.
	Duration SparseLatency `json:",omitzero"`
}

// Attempts is how many ended.
func (r *SubscriptionRollup) Attempts() int64 {
	return r.Delivered + r.DeadLettered + r.Interrupted + r.Failed
}

// Merge adds what happened in another hour, or to another subscription. Hour becomes the
// earlier of the two, and Subscription stays.
func (r *SubscriptionRollup) Merge(other *SubscriptionRollup) {
	r.Hour = earlier(r.Hour, other.Hour)
	r.Deliveries += other.Deliveries
	r.Delivered += other.Delivered
	r.DeadLettered += other.DeadLettered
	r.Interrupted += other.Interrupted
	r.Failed += other.Failed
	r.Succeeded += other.Succeeded
	r.FirstTry += other.FirstTry
	mergeFailures(&r.Failures, other.Failures)
	r.Duration.Merge(&other.Duration)
}

// Clone returns a copy that shares nothing.
func (r *SubscriptionRollup) Clone() SubscriptionRollup {
	c := *r
	c.Failures, c.Duration = maps.Clone(r.Failures), r.Duration.Clone()
	return c
}

// SubscriptionRollups returns the figures of the subscriptions with these ids in the hours
// that began at from or later and before to. They are sorted by subscription in the order
// of the ids, then by hour, oldest first. Hours in which nothing happened are left out,
// and so are ids that nobody has. The result has what other processes count within about
// ten seconds. ErrInvalid: to is not after from, or the ids or the time are too many for
// one call: at most 200 ids, 35 days, and 50,000 hours of subscriptions together.
func (h *History) SubscriptionRollups(ctx context.Context, ids []string, from, to time.Time) ([]SubscriptionRollup, error) {
	ids = distinct(ids)
	if err := checkSubscriptionRollups(ids, from, to); err != nil || len(ids) == 0 {
		return nil, err
	}
	return h.store.SubscriptionRollups(ctx, ids, from, to)
}

func checkSubscriptionRollups(ids []string, from, to time.Time) error {
	var errs []error
	if err := checkSpan(from, to, maxSubscriptionRollups); err != nil {
		errs = append(errs, err)
	}
	if len(ids) > maxRollupSubscriptions {
		errs = append(errs, fmt.Errorf("%w subscriptions: %d are asked for: at most %d may be in one call", sender.ErrInvalid, len(ids), maxRollupSubscriptions))
	}
	if hours := int64(to.Sub(from)/time.Hour) + 1; len(errs) == 0 && int64(len(ids))*hours > maxRollupSubscriptionHours {
		errs = append(errs, fmt.Errorf("%w subscriptions and times: %d subscriptions in %d hours are %d figures: ask for at most %d", sender.ErrInvalid,
			len(ids), hours, int64(len(ids))*hours, maxRollupSubscriptionHours))
	}
	for _, id := range ids {
		errs = append(errs, ident.AllStorable(sender.ErrInvalid, ident.Text{Name: "subscription", Text: id})...)
	}
	return errors.Join(errs...)
}

// SubscriptionRollups is [History.SubscriptionRollups] of the subscriber's subscriptions.
// Ids of another's are left out, but count among those of one call.
func (o *Owned) SubscriptionRollups(ctx context.Context, ids []string, from, to time.Time) ([]SubscriptionRollup, error) {
	if o.subscriber == "" {
		return nil, errNobody
	}
	ids = distinct(ids)
	if err := checkSubscriptionRollups(ids, from, to); err != nil {
		return nil, err
	}
	var own []string
	for _, id := range ids {
		page, _, err := o.all.Subscriptions(ctx, sender.SubscriptionQuery{ID: id, Subscriber: o.subscriber, Implicit: true, Limit: 1})
		if err != nil {
			return nil, err
		}
		if len(page) > 0 {
			own = append(own, id)
		}
	}
	return o.all.SubscriptionRollups(ctx, own, from, to)
}

// distinct returns the texts in their order, each once.
func distinct(texts []string) (each []string) {
	seen := make(map[string]bool, len(texts))
	for _, text := range texts {
		if !seen[text] {
			seen[text] = true
			each = append(each, text)
		}
	}
	return each
}
