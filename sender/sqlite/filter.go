package sqlite

import (
	"context"
	"database/sql"

	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/filter"
	"github.com/surehook/surehook/sender/rules"
)

// Filters are asked about bodies. A small body is read while others wait for the write lock, as
// a claim does: with its event if filters ask for most of them lately, since a statement for each
// costs several times what a filter does, and otherwise when it is needed. Large ones are read before a step takes the lock: an
// expansion that comes to an event with a large body, and to subscriptions with filters, stops
// there, and leaves it with those behind it to the next step.

const (
	smallBody  = 2048    // bytes; see dueColumns and selectNewBodies
	aheadBytes = 4 << 20 // of the bodies that are read for one step, if they are several
)

// selectEventBody reads a body as it was published: filters do not see payload versions.
const selectEventBody = `SELECT body FROM surehook_events WHERE seq = ?1`

// undecided are large events that subscriptions with filters may get.
type undecided struct {
	events []int64
	asked  map[dispatch.DeliveryKey]*filter.Filter
}

// decided is what filters say of an event.
type decided struct {
	body []byte
	by   map[int64]decision // by subscriptions
}

type decision struct {
	filter *filter.Filter
	wants  bool
}

// decideAhead asks the filters about the events that the last expansion has left. Nobody
// waits for it.
func (s *Store) decideAhead(ctx context.Context, p dispatch.ExpandParams) (map[int64]*decided, error) {
	if p.Events <= 0 {
		return nil, nil
	}
	left := s.undecided.Swap(nil)
	if left == nil {
		return nil, nil
	}
	all := make(map[int64]*decided, len(left.events))
	err := s.read(ctx, func(w *work) error {
		return w.each(func(rows *sql.Rows) (bool, error) {
			var seq int64
			d := &decided{by: map[int64]decision{}}
			err := rows.Scan(&seq, &d.body)
			all[seq] = d
			return true, err
		}, selectBodies, list(left.events))
	})
	if err != nil {
		return nil, err
	}
	for k, f := range left.asked {
		if d := all[k.Event]; d != nil {
			d.by[k.Subscription] = decision{f, rules.Wants(f, false, d.body)}
		}
	}
	return all, nil
}

// mustWait tells whether an event is decided in the next step.
func (e *expansion) mustWait(ev *newEvent) bool {
	if ev.size <= smallBody || e.ahead[ev.seq] != nil {
		return false
	}
	for _, a := range ev.found {
		if a.filtered {
			return true
		}
	}
	return false
}

// leave notes for the next step which events, from one that must wait on, it has to decide:
// about as many as it can expand.
func (e *expansion) leave(events []*newEvent, limit int) error {
	e.undecided = &undecided{asked: map[dispatch.DeliveryKey]*filter.Filter{}}
	var size int64
	asked := 0
	for i, ev := range events {
		if i > 0 {
			if err := e.match(ev, limit); err != nil {
				return err
			}
		}
		if asked += len(ev.found); i > 0 && asked > e.p.Deliveries {
			return nil
		}
		if !e.mustWait(ev) {
			continue
		}
		if size += ev.size; len(e.undecided.events) > 0 && size > aheadBytes {
			return nil
		}
		e.undecided.events = append(e.undecided.events, ev.seq)
		for _, a := range ev.found {
			if !a.filtered {
				continue
			}
			sub, err := e.registry.subscription(e.work, a.subscription)
			if err != nil {
				return err
			}
			e.undecided.asked[dispatch.DeliveryKey{Event: ev.seq, Subscription: a.subscription}] = sub.filter
		}
	}
	return nil
}

// wants tells whether the filter of a subscription matches an event. What was decided before
// the transaction counts if the filter is still the same: the body never changes, unless it
// is redacted, and then nothing is expanded.
func (e *expansion) wants(ev *newEvent, subscription int64) (bool, error) {
	sub, err := e.registry.subscription(e.work, subscription)
	if err != nil {
		return false, err
	}
	if d := e.ahead[ev.seq]; d != nil {
		if known, ok := d.by[subscription]; ok && known.filter.Equal(sub.filter) {
			return known.wants, nil
		}
		ev.body = d.body
	}
	if ev.body == nil {
		if err := e.row(selectEventBody, ev.seq).Scan(&ev.body); err != nil {
			return false, err
		}
	}
	return rules.Wants(sub.filter, false, ev.body), nil
}
