package memory

import (
	"context"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/rules"
)

// holds tells whether the live deliveries of a subscription are held.
func (sub *subscription) holds() bool {
	return sub.Status == sender.SubscriptionPaused || sub.Status == sender.SubscriptionDisabled
}

// HoldSubscriptionTx implements sender.Store.
func (s *Store) HoldSubscriptionTx(ctx context.Context, tx *Tx, id string, status sender.SubscriptionStatus, reason string) error {
	return s.in(ctx, tx, func() error {
		sub, err := s.find(id)
		if err != nil {
			return err
		}
		if hold, err := rules.Hold(id, sub.Status, status); !hold {
			return err
		}
		tx.hold(sub, status, reason, s.now())
		return nil
	})
}

func (tx *Tx) hold(sub *subscription, status sender.SubscriptionStatus, reason string, now time.Time) {
	tx.change(sub, func() { set(tx, &sub.Status, status) })
	set(tx, &sub.heldSince, now)
	if status == sender.SubscriptionDisabled {
		set(tx, &sub.DisabledAt, now)
		set(tx, &sub.DisabledReason, reason)
	}
}

// skip is a resume that skips events that were committed before it and are not expanded
// yet.
type skip struct {
	sender.Resume
	upTo int64 // the number of the last of them
}

// skips tells whether a resume of the subscription has skipped an event that was not
// expanded yet.
func (sub *subscription) skips(e *event) bool {
	return slices.ContainsFunc(sub.skipped, func(k skip) bool { return e.no <= k.upTo && !takes(k.Resume, e) })
}

func takes(r sender.Resume, e *event) bool {
	return !r.None && !e.info.CreatedAt.Before(r.Since)
}

// ResumeSubscriptionTx implements sender.Store. It looks at every live
// delivery of the subscription.
func (s *Store) ResumeSubscriptionTx(ctx context.Context, tx *Tx, id string, r sender.Resume) error {
	return s.in(ctx, tx, func() error {
		sub, err := s.find(id)
		if err != nil {
			return err
		}
		if resume, err := rules.Resume(id, sub.Status); !resume {
			return err
		}
		held := sub.all()
		if err := s.checkRetention(sub, held, r); err != nil {
			return err
		}
		now := s.now()
		for _, d := range slices.Backward(held) { // so that what is behind in a line need not come out before it ends
			tx.resume(d, takes(r, d.event), now)
		}
		waiting := filter(sub.skipped, func(k skip) bool { return k.upTo > s.expanded() })
		set(tx, &sub.skipped, append(waiting, skip{Resume: r, upTo: s.last}))
		tx.change(sub, func() {
			if sub.Status == sender.SubscriptionDisabled {
				set(tx, &sub.Health, rules.Recovered(sub.Health))
				set(tx, &sub.DisabledAt, time.Time{})
				set(tx, &sub.DisabledReason, "")
			}
			set(tx, &sub.Status, sender.SubscriptionActive)
			set(tx, &sub.heldSince, time.Time{})
		})
		tx.wake = true
		return nil
	})
}

// checkRetention refuses a resume that would send events that are too old.
func (s *Store) checkRetention(sub *subscription, held []*delivery, r sender.Resume) error {
	if r.NotBefore.IsZero() {
		return nil
	}
	var oldest *event
	look := func(e *event) {
		if takes(r, e) && (oldest == nil || e.info.CreatedAt.Before(oldest.info.CreatedAt)) {
			oldest = e
		}
	}
	for _, d := range held {
		look(d.event)
	}
	for _, e := range s.events[s.expanding:] {
		if !e.expandedFor(sub) && !e.redacted && sub.gets(e) && !sub.skips(e) {
			look(e)
		}
	}
	if oldest == nil {
		return nil
	}
	return rules.Within(oldest.info.CreatedAt, r.NotBefore)
}

// resume makes a live delivery due if it is taken, and else cancels it. An attempt in
// flight goes on to its end.
func (tx *Tx) resume(d *delivery, taken bool, now time.Time) {
	switch {
	case taken:
		row := d.live.renewed(now)
		row.resumed = !row.leased.IsZero()
		tx.setLive(d, row)
	case d.live.leased.IsZero():
		tx.end(d, rules.Cancelled(d.live.single))
	default:
		row := *d.live
		row.dropped = true
		tx.setLive(d, &row)
		if dropped := &tx.store.dropped; !slices.Contains(*dropped, d) {
			set(tx, dropped, append(*dropped, d))
		}
	}
}
