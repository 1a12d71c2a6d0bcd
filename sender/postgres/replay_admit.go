package postgres

import (
	"maps"
	"slices"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/rules"
)

const (
	// takeDead takes dead letters that are unchanged. A number is never used twice.
	takeDead = `DELETE FROM surehook_ended x WHERE x.no = ANY($1) AND x.status IN ('dead_lettered', 'superseded') AND ` + keptOf + ` RETURNING 0::bigint, x.event, x.subscription, ` + numberOf + `, ` + eventOf
	// stillDelivered selects the members of replays of delivered deliveries that still are
	// members.
	stillDelivered = `SELECT x.replay, x.event, x.subscription, ` + numberOf + `, ` + eventOf + `
		FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS x(replay, event, subscription) WHERE ` + keptOf + ` AND ` + isDelivered
	keptOf   = `EXISTS (SELECT 1 FROM surehook_feed f JOIN surehook_events e ON e.no = f.event WHERE f.position = x.event AND length(e.body) > 0)`
	eventOf  = `(SELECT ARRAY[e.notice::int, octet_length(e.body)] FROM surehook_feed f JOIN surehook_events e ON e.no = f.event WHERE f.position = x.event)`
	numberOf = `(SELECT coalesce(max(a.number), 0) FROM surehook_attempts a WHERE a.event = x.event AND a.subscription = x.subscription)`
)

// admitAll makes the chosen deliveries due if they are still members when their heads are
// locked. A redaction of just now is found out at the claim.
func (s *stepping) admitAll() error {
	var subscriptions []int64
	for _, t := range s.all {
		for _, c := range t.chosen {
			subscriptions = append(subscriptions, c.position.subscription)
		}
	}
	if len(subscriptions) == 0 {
		return nil
	}
	if err := s.lock(subscriptions); err != nil {
		return err
	}
	for _, t := range s.all {
		t.chosen = slices.DeleteFunc(t.chosen, func(c *replayed) bool {
			sub := s.subs[c.position.subscription]
			gone := s.heads.by[c.position.subscription] == nil || sub.gone() || sub.status == statusMissing
			if gone {
				t.Skipped++
				s.out.Skipped++
			}
			return gone
		})
	}
	found, err := s.take()
	if err != nil {
		return err
	}
	objects, err := s.lineUp(found)
	if err != nil {
		return err
	}
	for _, t := range s.all {
		for _, c := range t.chosen {
			if err := s.admit(t, c, found, objects); err != nil {
				return err
			}
		}
	}
	return nil
}

// taken names a member of a replay: the delivery, and the replay if it is one of delivered
// deliveries. 0: the delivery was dead-lettered.
type taken struct {
	replay int64
	key    dispatch.DeliveryKey
}

// take finds which of the chosen deliveries are still members, and the numbers of their
// last attempts. It removes the dead letters from their table.
func (s *stepping) take() (map[taken]live, error) {
	var dead, replays, events, subscriptions []int64
	for _, t := range s.all {
		for _, c := range t.chosen {
			if t.Filter.Status != sender.StatusDelivered {
				dead = append(dead, c.no)
				continue
			}
			replays = append(replays, t.no)
			events = append(events, c.event)
			subscriptions = append(subscriptions, c.position.subscription)
		}
	}
	found := map[taken]live{}
	scan := func(r rows) error {
		var t taken
		var l live
		var event []int32
		err := r.Scan(&t.replay, &t.key.Event, &t.key.Subscription, &l.number, &event)
		if err == nil {
			l.event, l.subscription, l.notice, l.bytes = t.key.Event, t.key.Subscription, event[0] != 0, event[1]
			found[t] = l
		}
		return err
	}
	var qs []query
	if len(dead) > 0 {
		qs = append(qs, s.query(takeDead, distinct(dead)).rows(scan))
	}
	if len(replays) > 0 {
		qs = append(qs, s.query(stillDelivered, replays, events, subscriptions).rows(scan))
	}
	if len(qs) == 0 {
		return nil, nil
	}
	return found, s.send(qs...)
}

// lineUp takes those that were found out of the lines in which they may hold back others as
// dead letters. It reads the lines into which they come, and returns the objects of these, by
// the events. A trip for each delivery would keep the heads locked for long.
func (s *stepping) lineUp(found map[taken]live) (objects map[int64]string, err error) {
	var dead []dispatch.DeliveryKey
	var events []int64
	for t := range found {
		h := s.heads.by[t.key.Subscription]
		if t.replay == 0 && h.lined > 0 {
			dead = append(dead, t.key)
		}
		if s.ordered(t.key.Subscription) {
			events = append(events, t.key.Event)
		}
	}
	if _, err := s.free(dead); err != nil || len(events) == 0 {
		return nil, err
	}
	objects = map[int64]string{}
	err = s.each(func(r rows) (bool, error) {
		var event int64
		var object string
		err := r.Scan(&event, &object)
		objects[event] = object
		return true, err
	}, selectObjectsAt, distinct(events))
	if err != nil {
		return nil, err
	}
	s.linesAhead = map[lineKey]rules.Line{}
	for t := range found {
		if s.ordered(t.key.Subscription) {
			s.linesAhead[lineKey{t.key.Subscription, objects[t.key.Event]}] = rules.Line{}
		}
	}
	lines, err := s.readLines(slices.Collect(maps.Keys(s.linesAhead)))
	maps.Copy(s.linesAhead, lines)
	return objects, err
}

// ordered tells whether what is sent again to a subscription comes into a line.
func (s *stepping) ordered(subscription int64) bool {
	return s.subs[subscription].Settings.Order != sender.OrderRelaxed
}

// admit makes a delivery of a replay due again, if it is still a member, and no replay
// before this one took it.
func (s *stepping) admit(t *replayPart, c *replayed, found map[taken]live, objects map[int64]string) error {
	single := t.Filter.Status == sender.StatusDelivered
	is := taken{key: c.key()}
	if single {
		is.replay = t.no
	}
	l, ok := found[is]
	if !ok || s.done[is.key] {
		return nil
	}
	s.done[is.key] = true
	h := s.heads.by[c.position.subscription]
	if t.Filter.Status == sender.StatusDeadLettered {
		h.dead--
	}
	// Held deliveries are claimed in the order of the events when they are resumed,
	// whatever their rank, and do not count as admitted and not claimed.
	rank := rankReplay
	if !h.open {
		rank = rankFresh
	}
	l.single = single
	t.admitted++
	t.Admitted++
	s.out.Admitted++
	return s.sendAgain(h, s.subs[h.subscription], objects[l.event], waits{l, s.now, rank, t.no})
}
