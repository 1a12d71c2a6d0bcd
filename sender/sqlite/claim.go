package sqlite

import (
	"cmp"
	"database/sql"
	"slices"

	"github.com/surehook/surehook/sender"
)

const (
	selectDueTurns = `SELECT subscriber, next_due, turn FROM surehook_turns
		WHERE lane = ?1 AND next_due IS NOT NULL AND next_due <= ?5 AND (next_due, turn, subscriber) > (?2, ?3, ?4)
		ORDER BY next_due, turn, subscriber LIMIT ?6`
	// updateTurns stands subscribers where their subscriptions are, but not before
	// ?2, and numbers their turns from ?1 on; 0: they had none.
	updateTurns = `UPDATE surehook_turns SET turn = CASE WHEN ?1 = 0 THEN turn ELSE ?1 + j.key END,
		next_due = max(?2, (SELECT min(h.next_due) FROM surehook_heads h
			WHERE h.lane = surehook_turns.lane AND h.subscriber = surehook_turns.subscriber AND h.next_due IS NOT NULL))
		FROM json_each(?4) j WHERE surehook_turns.lane = ?3 AND surehook_turns.subscriber = j.value`
)

// claim lets those who have work due in a lane take turns, each of one delivery,
// until the slots are used or nobody who may have more has work due. The first to
// have a turn are those who waited longest. A turn that ends a lost attempt without
// starting another uses a slot too, so that a claim's work is bounded by its slots.
type claim struct {
	*batch
	lane   sender.Lane
	params sender.LaneParams
	lost   map[int64][]sender.DeliveryKey // leases that have ended, by subscription

	read   place       // how far subscribers were read
	noMore bool        // all that are due were read
	ahead  []*claimant // read, and without a turn yet
	line   []*claimant // had a turn, and may have another
	looked []*claimant // all whose subscriptions were looked at
	queues []*queue    // likewise
}

// place is how far something was read in the order in which it is due.
type place struct{ due, turn, no int64 }

var beginning = place{due: -1 << 63}

// claimant is a subscriber in its turns.
type claimant struct {
	subscriber int64
	room       int
	served     int64 // the last turn
	looked     bool

	read   place
	noMore bool
	ahead  []*queue
	line   []*queue
}

func (b *batch) claimAll() error {
	slots := 0
	for lane := range b.Claim.Lanes {
		slots = max(slots, b.Claim.Lanes[lane].Slots)
	}
	if slots == 0 {
		return nil
	}
	lost, err := b.lostLeases()
	if err != nil {
		return err
	}
	for lane := range b.Claim.Lanes {
		c := claim{batch: b, lane: sender.Lane(lane), params: b.Claim.Lanes[lane], lost: lost, read: beginning}
		if err := c.run(); err != nil {
			return err
		}
	}
	return b.readEvents()
}

// lostLeases makes the heads due of the leases that have ended, and returns these
// by subscription. Those of deleted subscriptions are left to Sweep.
func (b *batch) lostLeases() (map[int64][]sender.DeliveryKey, error) {
	lost := map[int64][]sender.DeliveryKey{}
	for i := range b.leases.all {
		le := &b.leases.all[i]
		if le.number == 0 || le.end > b.now {
			continue
		}
		no, isNews := le.key.Subscription, !le.known
		if isNews {
			le.known, b.leases.dirty = true, true
		}
		sub, err := b.known.subscription(b.work, no)
		if err != nil {
			return nil, err
		}
		if sub.state != stateActive {
			continue
		}
		lost[no] = append(lost[no], le.key)
		if isNews {
			h, err := b.headOf(no)
			if err != nil {
				return nil, err
			}
			h.lower(le.end)
		}
	}
	return lost, b.heads.store()
}

func (c *claim) run() error {
	for slots := c.params.Slots; slots > 0; {
		s, err := c.next(slots)
		if err != nil {
			return err
		}
		if s == nil {
			break
		}
		q, err := c.nextOf(s, slots)
		if err != nil {
			return err
		}
		if q == nil {
			continue // nothing is due that it may have
		}
		slots--
		c.turn++
		s.served, q.head.turn = c.turn, c.turn
		claimed, err := c.take(q)
		if err != nil {
			return err
		}
		if claimed {
			s.room--
			q.room--
		}
		if q.room > 0 {
			s.line = append(s.line, q)
		}
		if s.room > 0 {
			c.line = append(c.line, s)
		}
	}
	return c.end()
}

// next returns the subscriber whose turn it is, or nil.
func (c *claim) next(slots int) (*claimant, error) {
	limit := slots + len(c.params.SubscriberRoom)
	for len(c.ahead) == 0 && !c.noMore {
		n := 0
		err := c.each(func(rows *sql.Rows) (bool, error) {
			n++
			err := rows.Scan(&c.read.no, &c.read.due, &c.read.turn)
			if room := allowed(c.params.SubscriberRoom, c.read.no, c.params.PerSubscriber); room > 0 {
				c.ahead = append(c.ahead, &claimant{subscriber: c.read.no, room: room, read: beginning})
			}
			return true, err
		}, selectDueTurns, c.lane, c.read.due, c.read.turn, c.read.no, c.now, limit)
		if err != nil {
			return nil, err
		}
		c.noMore = n < limit
	}
	s := pop(&c.ahead, &c.line)
	if s != nil && !s.looked {
		s.looked = true
		c.looked = append(c.looked, s)
	}
	return s, nil
}

// nextOf returns the one of a subscriber's subscriptions whose turn it is, or nil.
func (c *claim) nextOf(s *claimant, slots int) (*queue, error) {
	// What each will have if all go on as they began: how much to read at once.
	share := min(slots, s.room)/(len(c.ahead)+len(c.line)+1) + 1
	for {
		if err := c.readHeads(s, share); err != nil {
			return nil, err
		}
		q := pop(&s.ahead, &s.line)
		if q == nil {
			return nil, nil
		}
		if !q.looked {
			q.looked = true
			c.queues = append(c.queues, q)
		}
		some, err := c.fill(q, share/(len(s.ahead)+len(s.line)+1)+1)
		if err != nil {
			return nil, err
		}
		if some {
			return q, nil
		}
	}
}

// readHeads reads subscriptions that are due, unless there are some that have not
// had a turn.
func (c *claim) readHeads(s *claimant, share int) error {
	limit := share + len(c.Claim.SubscriptionRoom)
	for len(s.ahead) == 0 && !s.noMore {
		n := 0
		err := c.each(func(rows *sql.Rows) (bool, error) {
			n++
			h, err := scanHead(rows)
			s.read = place{h.nextDue, h.turn, h.subscription}
			if room := allowed(c.Claim.SubscriptionRoom, h.subscription, c.params.PerSubscription); err == nil && room > 0 {
				s.ahead = append(s.ahead, newQueue(c.heads.put(h), room, c.lost[h.subscription]))
			}
			return true, err
		}, selectDueHeads, c.lane, s.subscriber, s.read.due, s.read.turn, s.read.no, c.now, limit)
		if err != nil {
			return err
		}
		s.noMore = n < limit
	}
	return nil
}

func allowed(known map[int64]int, no int64, others int) int {
	if n, ok := known[no]; ok {
		return n
	}
	return others
}

// pop takes the first of ahead or, if there is none, of line; nil if both are
// empty.
func pop[T any](ahead, line *[]*T) *T {
	for _, from := range []*[]*T{ahead, line} {
		if len(*from) > 0 {
			first := (*from)[0]
			*from = (*from)[1:]
			return first
		}
	}
	return nil
}

// end stands everyone where they belong now: who was served at the tail, in that
// order, and who had nothing due after all where something will be.
func (c *claim) end() error {
	for _, q := range c.queues {
		if err := c.endQueue(q); err != nil {
			return err
		}
	}
	if err := c.heads.store(); err != nil {
		return err
	}
	slices.SortFunc(c.looked, func(a, b *claimant) int { return cmp.Compare(a.served, b.served) })
	var idle, served []int64
	for _, s := range c.looked {
		if s.served == 0 {
			idle = append(idle, s.subscriber)
		} else {
			served = append(served, s.subscriber)
		}
	}
	if len(idle) > 0 {
		if err := c.execs(updateTurns, 0, 0, c.lane, list(idle)); err != nil {
			return err
		}
	}
	if len(served) == 0 {
		return nil
	}
	first := c.turn + 1
	c.turn += int64(len(served))
	c.leases.dirty = true // the number of turns is stored beside them
	return c.execs(updateTurns, first, c.now, c.lane, list(served))
}
