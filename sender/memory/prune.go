package memory

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/internal/hourly"
	"github.com/surehook/surehook/sender/rules"
)

// lookAtMost is how many deliveries and events a batch looks at, in limits.
const lookAtMost = 4

// Prune implements dispatch.Store. A pass goes over the events, then over the
// notices and the rollups; its cursor is the number of the event to go on with.
func (s *Store) Prune(ctx context.Context, p dispatch.PruneParams) (out dispatch.Pruned, err error) {
	from, err := parsePassCursor(p.Cursor, p.Limit)
	if err != nil {
		return out, err
	}
	err = s.inTx(ctx, func(tx *Tx) error {
		w := &pruning{PruneParams: p, tx: tx, events: map[*event]struct{}{}, deliveries: map[*delivery]struct{}{}}
		next, more := w.look(from)
		if !more {
			more = w.lookAtNotices()
		}
		if !more {
			more = w.removeReplays()
		}
		if !more {
			more = w.removeRollups()
		}
		if !more {
			more = w.removeSubscriptionRollups()
		}
		w.remove()
		if !more {
			more = w.removeSubscriptions()
		}
		if !more {
			more = w.forgetObjects()
		}
		out = w.out
		if more {
			out.Cursor = rules.Decimal(next)
		}
		return nil
	})
	if err != nil {
		return dispatch.Pruned{}, err
	}
	return out, nil
}

func parsePassCursor(text string, limit int) (no int64, err error) {
	if limit < 1 {
		return 0, fmt.Errorf("%w limit %d: it must be at least 1", sender.ErrInvalid, limit)
	}
	if text != "" && (!rules.ReadDecimal(text, &no) || no < 1) {
		return 0, fmt.Errorf("%w cursor: it must be one that a batch before came with", sender.ErrInvalid)
	}
	return no, nil
}

// pruning is one batch of Prune at work.
type pruning struct {
	dispatch.PruneParams
	tx         *Tx
	out        dispatch.Pruned
	looked     int
	events     map[*event]struct{}
	deliveries map[*delivery]struct{}
	notices    map[*notice]struct{}
}

func (w *pruning) full() bool {
	return len(w.events)+len(w.deliveries)+len(w.notices)+w.out.Rollups+w.out.SubscriptionRollups+w.out.Subscriptions+w.out.Replays+w.out.Objects >= w.Limit
}

// look finds old deliveries and events, from the event with a number on. It returns the
// number to go on with, and whether there may be more.
func (w *pruning) look(from int64) (next int64, more bool) {
	s := w.tx.store
	for _, e := range s.events[min(s.after(from-1), s.expanding):s.expanding] { // the batches before may have looked at all
		remaining := 0
		for _, d := range e.deliveries {
			if w.full() {
				return e.no, true
			}
			if w.looked++; w.goes(d) {
				w.deliveries[d] = struct{}{}
			} else {
				remaining++
			}
		}
		if w.full() || w.looked >= lookAtMost*w.Limit {
			// The event itself is looked at again, unless it stays.
			if remaining > 0 {
				return e.no + 1, true
			}
			return e.no, true
		}
		if w.looked++; remaining == 0 && e.info.CreatedAt.Before(w.Events) {
			w.events[e] = struct{}{}
			w.out.Events++
		}
	}
	return s.last + 1, false
}

func (w *pruning) goes(d *delivery) bool {
	switch {
	case d.live != nil:
		return false
	case d.ended == sender.StatusDeadLettered:
		if !d.endedAt.Before(w.DeadLetters) {
			return false
		}
		w.out.DeadLetters++
		return true
	case d.ended == sender.StatusDelivered && !d.attempts[len(d.attempts)-1].StartedAt.Before(w.Delivered),
		(d.ended == sender.StatusCancelled || d.ended == sender.StatusSuperseded) && !d.endedAt.Before(w.Delivered):
		return false
	}
	w.out.Deliveries++
	return true
}

func (w *pruning) lookAtNotices() (more bool) {
	w.notices = map[*notice]struct{}{}
	for _, n := range w.tx.store.notices {
		if !n.AcknowledgedAt.IsZero() && n.AcknowledgedAt.Before(w.PruneParams.Notices) {
			if w.full() {
				return true
			}
			w.notices[n] = struct{}{}
			w.out.Notices++
		}
	}
	return false
}

func (w *pruning) removeRollups() (more bool) {
	for _, minute := range slices.SortedFunc(maps.Keys(w.tx.store.rollups), time.Time.Compare) {
		if !minute.Before(w.PruneParams.Rollups) {
			break
		}
		if w.full() {
			return true
		}
		deleteKey(w.tx, w.tx.store.rollups, minute)
		w.out.Rollups++
	}
	return false
}

func (w *pruning) removeSubscriptionRollups() (more bool) {
	keys := slices.SortedFunc(maps.Keys(w.tx.store.hours), func(a, b hourly.Key) int {
		return cmp.Or(a.Hour.Compare(b.Hour), cmp.Compare(a.Subscription, b.Subscription))
	})
	for _, k := range keys {
		if !k.Hour.Before(w.PruneParams.SubscriptionRollups) {
			break
		}
		if w.full() {
			return true
		}
		deleteKey(w.tx, w.tx.store.hours, k)
		w.out.SubscriptionRollups++
	}
	return false
}

// removeReplays removes the replays that ended long ago.
func (w *pruning) removeReplays() (more bool) {
	tx, s := w.tx, w.tx.store
	gone := map[*replayRow]struct{}{}
	for _, r := range s.replays {
		if r.endedAt.IsZero() || !r.endedAt.Before(w.PruneParams.Events) {
			continue
		}
		if more = w.full(); more {
			break
		}
		gone[r] = struct{}{}
		w.out.Replays++
	}
	set(tx, &s.replays, without(s.replays, gone))
	return more
}

// removeSubscriptions removes old subscriptions. Their numbers stay taken: the store's
// list is by number.
func (w *pruning) removeSubscriptions() (more bool) {
	tx, s := w.tx, w.tx.store
	gone := map[*subscription]struct{}{}
	for _, sub := range s.swept {
		if len(sub.deliveries) > 0 || !sub.sweptAt.Before(w.PruneParams.Events) {
			continue
		}
		if more = w.full(); more {
			break
		}
		gone[sub] = struct{}{}
		w.out.Subscriptions++
		deleteKey(tx, s.subscription, sub.ID)
		set(tx, &sub.owner.subscriptions, filter(sub.owner.subscriptions, func(other *subscription) bool { return other != sub }))
	}
	set(tx, &s.swept, without(s.swept, gone))
	return more
}

func (w *pruning) remove() {
	tx, s := w.tx, w.tx.store
	for d := range w.deliveries {
		deleteKey(tx, s.deliveries, d.key())
		set(tx, &d.event.deliveries, without(d.event.deliveries, w.deliveries))
		set(tx, &d.sub.deliveries, without(d.sub.deliveries, w.deliveries))
		if d.ended == sender.StatusDeadLettered {
			set(tx, &d.sub.DeadLettered, d.sub.DeadLettered-1)
		}
	}
	if len(w.events) > 0 {
		w.markForgettable()
		set(tx, &s.expanding, s.expanding-len(w.events))
		set(tx, &s.events, without(s.events, w.events))
		for e := range w.events {
			set(tx, &s.pruned, max(s.pruned, e.no))
			deleteKey(tx, s.eventByID, e.info.ID)
			if e.key != (key{}) {
				deleteKey(tx, s.published, e.key)
			}
		}
	}
	if len(w.notices) > 0 {
		set(tx, &s.notices, without(s.notices, w.notices))
		for n := range w.notices {
			deleteKey(tx, s.notifying, n.ID)
		}
	}
}

// without returns a new list, so that a roll-back has the old one.
func without[T comparable](list []T, gone map[T]struct{}) []T {
	return filter(list, func(x T) bool {
		_, goes := gone[x]
		return !goes
	})
}

// after returns the index of the first event with a number above no.
func (s *Store) after(no int64) int {
	i, _ := slices.BinarySearchFunc(s.events, no, func(e *event, no int64) int {
		if e.no <= no {
			return -1
		}
		return 1
	})
	return i
}

// expanded returns the number of the last event up to which all are expanded whole. No
// event after it is missing.
func (s *Store) expanded() int64 { return s.last - int64(len(s.events)-s.expanding) }
