package postgres

import (
	"slices"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/rules"
)

// lineUp brings new deliveries of subscriptions with an order into the lines of their
// objects. It keeps those in e.made that are out. The heads are locked.
func (e *expansion) lineUp() error {
	if e == nil {
		return nil
	}
	var lined []made
	rest := e.made[:0]
	for _, m := range e.made {
		if b := e.batch; b.subs[m.Subscription].Settings.Order != sender.OrderRelaxed && !b.heads.by[m.Subscription].missing {
			lined = append(lined, m)
		} else {
			rest = append(rest, m)
		}
	}
	if len(lined) == 0 {
		return nil
	}
	e.made = rest
	l := lining{expansion: e, lines: map[lineKey]rules.Line{}, newest: map[lineKey]int64{}, supersedes: map[lineKey]int64{}}
	return l.all(lined)
}

// lining is a lineUp at work.
type lining struct {
	*expansion
	names      map[int64]string
	lines      map[lineKey]rules.Line // as they are
	newest     map[lineKey]int64      // of this step
	supersedes map[lineKey]int64
	rows       []lineRow
	displaced  []dispatch.DeliveryKey
}

func (l *lining) key(m made) lineKey { return lineKey{m.Subscription, l.names[m.of.event]} }

func (l *lining) all(lined []made) error {
	if err := l.readNames(lined); err != nil {
		return err
	}
	var unread []lineKey
	for _, m := range lined {
		k := l.key(m)
		if l.newest[k] == 0 && l.heads.by[k.subscription].lined > 0 {
			unread = append(unread, k)
		}
		l.newest[k] = m.Event
	}
	lines, err := l.readLines(unread)
	if err != nil {
		return err
	}
	l.lines = lines
	for _, m := range lined {
		l.one(m, l.key(m))
	}
	halted, err := l.supersede(l.supersedes, l.lines)
	if err != nil {
		return err
	}
	l.putBehind(halted)
	for _, k := range l.displaced {
		if err := l.displace(l.heads.by[k.Subscription], k.Event); err != nil {
			return err
		}
	}
	return l.putInLines(l.rows)
}

// putBehind puts behind the newest of lines that halt.
func (l *lining) putBehind(halted map[lineKey]bool) {
	if len(halted) == 0 {
		return
	}
	for i := range l.rows {
		row := &l.rows[i]
		row.behind = row.behind || halted[lineKey{row.subscription, row.object}]
	}
	l.made = slices.DeleteFunc(l.made, func(m made) bool { return halted[l.key(m)] })
}

// readNames finds the objects of events, most of which were read already if they are few.
func (l *lining) readNames(lined []made) error {
	l.names = map[int64]string{}
	var unread []int64
	for _, no := range distinct(column(lined, func(m made) int64 { return m.of.event })) {
		if e, ok := l.early.get(no); ok {
			l.names[no] = nameOf(e.Event.Object)
		} else {
			unread = append(unread, no)
		}
	}
	if len(unread) == 0 {
		return nil
	}
	return l.each(func(r rows) (bool, error) {
		var no int64
		var name string
		err := r.Scan(&no, &name)
		l.names[no] = name
		return true, err
	}, selectNames, unread)
}

// one decides about a new delivery.
func (l *lining) one(m made, k lineKey) {
	order := l.subs[k.subscription].Settings.Order
	line := l.lines[k]
	e := line.Enter(order, m.Event)
	if e.Superseded || order == sender.OrderLatest && m.Event < l.newest[k] {
		l.ends = append(l.ends, ended{m.Event, m.Subscription, sender.StatusSuperseded, sender.ClassNone})
		return
	}
	if e.Supersedes {
		l.supersedes[k] = m.Event
	}
	if e.Displaces {
		l.displaced = append(l.displaced, dispatch.DeliveryKey{Event: line.Out, Subscription: k.subscription})
	}
	row := lineRow{waits: waits{live: live{subscription: m.Subscription, event: m.Event, notice: m.of.notice, bytes: m.of.bytes}, due: l.now}, object: k.object, place: placeNew, no: m.of.event, behind: e.Behind, before: line.Out}
	if !e.Behind {
		line.Out, line.Leased = m.Event, false
		l.made = append(l.made, m)
	}
	if line.First == 0 || line.First > m.Event {
		line.First, line.Dead = m.Event, false
	}
	line.Newest = max(line.Newest, m.Event)
	l.lines[k] = line
	l.rows = append(l.rows, row)
}
