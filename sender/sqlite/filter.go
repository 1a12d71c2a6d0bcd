package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"

	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/internal/fanout"
	"github.com/surehook/surehook/sender/rules"
)

// Filters are asked about bodies. A small body is read while others wait for the write
// lock, as in a claim. It is read with its event if filters asked for most of them lately,
// else with all that an expansion needs: a statement for each costs several times what a
// filter does. In the first case its filters are asked while further events are read.
// Large bodies are read before a step takes the lock. An expansion that comes to an event
// with a large body, and to subscriptions with filters, stops there, and leaves it with
// those behind it to the next step. It also stops at a subscription with a filter that
// gets an older payload version, which is made before a step takes the lock, too.

const (
	smallBody  = 2048    // bytes; see dueColumns and selectNewBodies
	aheadBytes = 4 << 20 // of the bodies that are read for one step, if they are several

	askedAtOnce = 32 // filters, by one goroutine: to start one for each would cost more than these
	askedEarly  = 64 // subscriptions that an event matches: newEvent.wanted has as many bits
)

const selectEventBody = `SELECT body FROM surehook_events WHERE seq = ?1`

// undecided are events that subscriptions with filters may get, and that are large, or must be
// made in another payload version.
type undecided struct {
	types map[int64]string // the events, by their numbers
	asked map[dispatch.DeliveryKey]rules.Asked
}

// decided is what filters say of an event.
type decided struct {
	content *rules.Content
	by      map[int64]decision // by subscriptions
}

type decision struct {
	asked rules.Asked
	wants bool
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
	all := make(map[int64]*decided, len(left.types))
	err := s.read(ctx, func(w *work) error {
		return w.each(func(rows *sql.Rows) (bool, error) {
			var seq int64
			d := &decided{content: &rules.Content{Convert: p.Convert}, by: map[int64]decision{}}
			err := rows.Scan(&seq, &d.content.Body)
			d.content.Type = left.types[seq]
			all[seq] = d
			return true, err
		}, selectBodies, list(slices.Collect(maps.Keys(left.types))))
	})
	if err != nil {
		return nil, err
	}
	for k, asked := range left.asked {
		if d := all[k.Event]; d != nil {
			d.by[k.Subscription] = decision{asked, d.content.Wants(asked, false)}
		}
	}
	return all, nil
}

// mustWait tells whether an event is decided in the next step.
func (e *expansion) mustWait(ev *newEvent) (bool, error) {
	if e.ahead[ev.seq] != nil {
		return false, nil
	}
	for _, a := range ev.found {
		if !a.filtered {
			continue
		}
		if ev.size > smallBody {
			return true, nil
		}
		if e.p.Convert == nil {
			return false, nil
		}
		if err := e.readContent(ev); err != nil {
			return false, err
		}
		if !ev.content.Older("") { // there is no older version
			return false, nil
		}
		sub, err := e.registry.subscription(e.work, a.subscription)
		if err != nil || ev.content.Older(sub.asked.Pinned) {
			return true, err
		}
	}
	return false, nil
}

// leave notes for the next step which of the events that are left it has to decide: about as
// many as it can expand. The first of them must wait.
func (e *expansion) leave() error {
	e.undecided = &undecided{types: map[int64]string{}, asked: map[dispatch.DeliveryKey]rules.Asked{}}
	var size int64
	asked := 0
	for i, ev := range e.left {
		if i > 0 {
			if err := e.match(ev, e.plan.Look()); err != nil {
				return err
			}
		}
		if asked += len(ev.found); i > 0 && asked > e.p.Deliveries {
			return nil
		}
		wait, err := e.mustWait(ev)
		if err != nil {
			return err
		}
		if !wait {
			continue
		}
		if size += ev.size; len(e.undecided.types) > 0 && size > aheadBytes {
			return nil
		}
		e.undecided.types[ev.seq] = ev.eventType
		for _, a := range ev.found {
			if !a.filtered {
				continue
			}
			sub, err := e.registry.subscription(e.work, a.subscription)
			if err != nil {
				return err
			}
			e.undecided.asked[dispatch.DeliveryKey{Event: ev.seq, Subscription: a.subscription}] = sub.asked
		}
	}
	return nil
}

// askedOf is what one of the subscriptions that an event matches asks of its content.
type askedOf struct {
	ev    *newEvent
	at    int // in ev.found
	asked rules.Asked
}

// askEarly has the filters asked about a small event whose body came with it, while the
// next events are read: others wait for the write lock, and a filter takes the processor
// for longer than all else that an event needs.
func (e *expansion) askEarly(ev *newEvent) error {
	if ev.body == nil || e.ahead[ev.seq] != nil || len(ev.found) > askedEarly {
		return nil
	}
	for i, a := range ev.found {
		if !a.filtered {
			continue
		}
		sub, err := e.registry.subscription(e.work, a.subscription)
		if err != nil {
			return err
		}
		e.asks = append(e.asks, askedOf{ev, i, sub.asked})
	}
	ev.decided = true
	if len(e.asks) >= askedAtOnce {
		asks := e.asks
		e.asks = make([]askedOf, 0, len(asks))
		e.early.Go(func() { e.answer(asks) })
	}
	return nil
}

// answer asks filters. The questions about one event stand together, and no other goroutine
// has any of them.
func (e *expansion) answer(asks []askedOf) {
	var content rules.Content
	var ev *newEvent
	for _, a := range asks {
		if a.ev != ev {
			ev = a.ev
			content = rules.Content{Type: ev.eventType, Body: ev.body, Convert: e.p.Convert}
		}
		if content.Wants(a.asked, false) {
			ev.wanted |= 1 << a.at
		}
	}
}

// wants tells whether the filter of a subscription matches an event. A decision from before
// the transaction counts if the filter is still the same. The body never changes, unless it is
// redacted, and then nothing is expanded.
func (e *expansion) wants(ev *newEvent, subscription int64) (bool, error) {
	sub, err := e.registry.subscription(e.work, subscription)
	if err != nil {
		return false, err
	}
	if d := e.ahead[ev.seq]; d != nil {
		if known, ok := d.by[subscription]; ok && known.asked.Equal(sub.asked) {
			return known.wants, nil
		}
		ev.content = d.content
	}
	if err := e.readContent(ev); err != nil {
		return false, err
	}
	return ev.content.Wants(sub.asked, false), nil
}

// readBodies reads the bodies that filters will be asked about, unless they are there.
func (e *expansion) readBodies(makes []fanout.Make) error {
	needed := map[int64]*newEvent{}
	for _, m := range makes {
		ev := e.all[m.At]
		if ev.body == nil && ev.content == nil && !ev.decided && e.ahead[ev.seq] == nil && slices.ContainsFunc(ev.found[:m.Most], func(a match) bool { return a.filtered }) {
			needed[ev.seq] = ev
		}
	}
	if len(needed) == 0 {
		return nil
	}
	return e.each(func(rows *sql.Rows) (bool, error) {
		var seq int64
		var body sql.RawBytes
		err := rows.Scan(numberOf(&seq), &body)
		if err == nil {
			needed[seq].body = e.copied(body)
		}
		return true, err
	}, selectBodies, list(slices.Sorted(maps.Keys(needed))))
}

// copied copies a body for this expansion, into memory that the next one uses again: new
// memory for each body would cost more than the filters.
func (e *expansion) copied(body []byte) []byte {
	if len(body) == 0 {
		return nil
	}
	all := append(e.batch.store.filtered, body...)
	e.batch.store.filtered = all
	return all[len(all)-len(body):]
}

// newBody scans a body, if it was read with its event.
type newBody struct {
	e  *expansion
	to *[]byte
}

// Scan implements sql.Scanner.
func (b newBody) Scan(v any) error {
	switch body := v.(type) {
	case nil:
		*b.to = nil
	case []byte:
		*b.to = b.e.copied(body)
	case string:
		*b.to = b.e.copied([]byte(body))
	default:
		return fmt.Errorf("a column that must be a blob has a %T", v)
	}
	return nil
}

// readContent reads what filters are asked about, unless it is there.
func (e *expansion) readContent(ev *newEvent) error {
	if ev.content != nil {
		return nil
	}
	if ev.body == nil {
		if err := e.row(selectEventBody, ev.seq).Scan(&ev.body); err != nil {
			return err
		}
	}
	ev.content = &rules.Content{Type: ev.eventType, Body: ev.body, Convert: e.p.Convert}
	return nil
}
