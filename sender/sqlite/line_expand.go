package sqlite

import (
	"database/sql"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/rules"
)

// lineUp brings new deliveries of subscriptions with an order into the lines of their
// objects. It keeps those in e.made that are out, and counts in fresh how many of each
// subscription these are.
func (e *expansion) lineUp(touched []int64, fresh map[int64]int) error {
	orders := map[int64]sender.Order{}
	for _, no := range touched {
		sub, err := e.registry.subscription(e.work, no)
		if err != nil {
			return err
		}
		if order := sub.Settings.Order; order != sender.OrderRelaxed && !e.heads.by[no].missing {
			orders[no] = order
		}
	}
	if len(orders) == 0 {
		return nil
	}
	var keys []dispatch.DeliveryKey
	out := e.made[:0]
	for i := 0; i < len(e.made); i += newPending.columns {
		k := dispatch.DeliveryKey{Subscription: e.made[i].(int64), Event: e.made[i+1].(int64)}
		if orders[k.Subscription] != sender.OrderRelaxed {
			keys = append(keys, k)
			fresh[k.Subscription]--
		} else {
			out = append(out, e.made[i], e.made[i+1])
		}
	}
	e.made = out
	l := lining{expansion: e, orders: orders, fresh: fresh, by: map[lineKey]int64{}}
	if err := l.all(keys); err != nil {
		return err
	}
	return e.execMany(newLined, l.rows, e.now)
}

// lining is a lineUp at work.
type lining struct {
	*expansion
	orders map[int64]sender.Order
	fresh  map[int64]int
	lines  map[lineKey]rules.Line // as they were before
	by     map[lineKey]int64      // the last event of each line that was met
	rows   []any                  // of newLined
}

func (l *lining) all(keys []dispatch.DeliveryKey) error {
	objects, err := l.objects(keys)
	if err != nil {
		return err
	}
	over := map[*head][]live{}    // superseded within this step
	newest := map[lineKey]int64{} // of this step
	var stored []lineKey
	for _, k := range keys {
		key := lineKey{k.Subscription, objects[k.Event]}
		if newest[key] == 0 && l.heads.by[k.Subscription].lined > 0 {
			stored = append(stored, key)
		}
		newest[key] = k.Event
	}
	if l.lines, err = l.linesOf(stored); err != nil {
		return err
	}
	for _, k := range keys {
		key := lineKey{k.Subscription, objects[k.Event]}
		h := l.heads.by[k.Subscription]
		// A delivery that a resume has skipped ends at once.
		if k.Event <= h.skippedTo || l.orders[k.Subscription] == sender.OrderLatest && newest[key] > k.Event {
			over[h] = append(over[h], live{event: k.Event, subscription: k.Subscription})
		} else if err = l.one(h, key, k.Event); err != nil {
			return err
		}
	}
	for h, some := range over {
		if err := l.overtake(h, some); err != nil {
			return err
		}
	}
	return nil
}

// objects returns the numbers of the events' objects.
func (l *lining) objects(keys []dispatch.DeliveryKey) (map[int64]int64, error) {
	var events []int64
	objects := map[int64]int64{}
	for _, k := range keys {
		if _, there := objects[k.Event]; !there {
			objects[k.Event] = 0
			events = append(events, k.Event)
		}
	}
	var event, no int64
	columns := []any{numberOf(&event), numberOf(&no)}
	err := l.each(func(rows *sql.Rows) (bool, error) {
		err := rows.Scan(columns...)
		objects[event] = no
		return true, err
	}, selectObjects, list(events))
	for i := 0; err == nil && i < len(events); i++ {
		if objects[events[i]] == 0 {
			objects[events[i]], err = l.objectNo(events[i])
		}
	}
	return objects, err
}

// one brings a new delivery, of a newer event than all in its line, into it.
func (l *lining) one(h *head, key lineKey, event int64) (err error) {
	if l.by[key] == 0 { // else there is one before it
		line := l.lines[key]
		e := line.Enter(l.orders[key.subscription], event)
		switch {
		case e.Superseded: // its version was given, and its event came late
			return l.endAll(h, []live{{event: event, subscription: h.subscription}}, rules.Superseded)
		case e.Supersedes:
			var halts bool
			halts, err = l.supersede(h, key, &line, event)
			e.Behind = e.Behind || halts
		case e.Displaces:
			err = l.displace(h, line.Out)
		}
		if err != nil {
			return err
		}
		if !e.Behind {
			l.made = append(l.made, key.subscription, event)
			l.fresh[key.subscription]++
		} else if err = l.stay(h, &line, event, rankFresh); err != nil {
			return err
		}
	} else {
		h.behind++
	}
	h.lined++
	l.by[key] = event
	l.rows = append(l.rows, key.subscription, key.object, event)
	return nil
}
