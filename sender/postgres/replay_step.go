package postgres

import (
	"context"
	"time"

	"github.com/surehook/surehook/sender"
)

const (
	// replayAhead is how many of a replay may be admitted and not claimed yet.
	replayAhead = 1000
	// replaysAtOnce is how many replays have a turn in one step.
	replaysAtOnce = 16
)

const (
	// countAhead leaves out what was held after it was admitted.
	countAhead = `(SELECT count(*) FROM (SELECT 1 FROM surehook_waiting w JOIN surehook_subscriptions s ON s.no = w.subscription
		WHERE w.replay = r.no AND w.replay <> 0 AND w.rank = 1 AND s.status IN ('active', 'closing') LIMIT $1) a)`
	anyRunning    = `SELECT EXISTS (SELECT 1 FROM surehook_replays WHERE status = 'running')`
	selectRunning = `SELECT ` + replayColumns + `, ` + countAhead + ` FROM surehook_replays r WHERE r.status = 'running' ORDER BY r.turn`

	// lockReplays leaves those alone that somebody else is stepping. What these have
	// admitted is seen by the statement after it.
	lockReplays  = `SELECT r.no FROM surehook_replays r WHERE r.no = ANY($1) AND r.status = 'running' FOR UPDATE SKIP LOCKED`
	selectLocked = `SELECT ` + replayColumns + `, ` + countAhead + ` FROM surehook_replays r WHERE r.no = ANY($2) ORDER BY r.turn`

	moveReplays = `UPDATE surehook_replays r SET at = u.at, at_subscription = u.at_subscription, rate_at = u.rate_at, turn = u.turn, status = u.status,
			matched = u.matched, admitted = u.admitted, skipped = u.skipped, finished_at = u.finished_at
		FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::timestamptz[], $5::bigint[], $6::text[], $7::bigint[], $8::bigint[], $9::bigint[], $10::timestamptz[])
		AS u(no, at, at_subscription, rate_at, turn, status, matched, admitted, skipped, finished_at) WHERE r.no = u.no`
)

// StepReplays implements sender.ReplayStepper. A replay that another process is
// stepping is left to it.
func (c *core) StepReplays(ctx context.Context, limit int, announce func(n sender.Notice) (sender.Draft, bool)) (out sender.ReplayStep, err error) {
	if limit <= 0 {
		return out, nil
	}
	running := false
	if err := c.dispatching().readOne(ctx, anyRunning, nil, &running); err != nil || !running {
		return out, fail("looking for replays", err)
	}
	err = c.dispatching().batch(ctx, sender.Batch{Announce: announce}, func(b *batch) error {
		s := stepping{batch: b, done: map[sender.DeliveryKey]bool{}}
		err := s.step(limit)
		out = s.out
		out.Notices = b.out.Notices
		return fail("replaying", err)
	})
	if err != nil {
		return sender.ReplayStep{}, err
	}
	return out, nil
}

// stepping is a step at work.
type stepping struct {
	*batch
	out  sender.ReplayStep
	all  []*turn
	done map[sender.DeliveryKey]bool // what was admitted
}

// turn is a replay's part of a step.
type turn struct {
	replay
	most     int         // it may get on by so many
	chosen   []*replayed // what it selects
	atEnd    bool        // nothing comes after it
	admitted int
}

func (s *stepping) step(limit int) error {
	// Most often there are none that may get on: then nothing is locked.
	able, err := s.able(limit, selectRunning, replayAhead)
	if err != nil || len(able) == 0 {
		return err
	}
	nos := column(able, func(t *turn) int64 { return t.no })
	if nos, err = s.numbers(lockReplays, nos); err != nil {
		return err
	}
	if s.all, err = s.able(limit, selectLocked, replayAhead, nos); err != nil {
		return err
	}
	if len(nos) < len(able) { // somebody else may end before all is done
		s.later(s.now)
	}
	s.out.More = len(s.all) == replaysAtOnce // there may be others
	if err := s.choose(limit); err != nil {
		return err
	}
	if err := s.admitAll(); err != nil {
		return err
	}
	return s.move()
}

// later has the replays looked at again at a time, if not before.
func (s *stepping) later(at moment) {
	if s.out.Next.IsZero() || at.time().Before(s.out.Next) {
		s.out.Next = at.time()
	}
}

// able are the first of some replays that may get on, in turn. Next is set to when
// those may that may not.
func (s *stepping) able(limit int, query string, args ...any) (all []*turn, err error) {
	s.out.Next = time.Time{}
	err = s.each(func(rows rows) (bool, error) {
		var ahead int
		r, err := scanReplay(rows, &ahead)
		if err != nil {
			return false, err
		}
		t := &turn{replay: r, most: min(limit, replayAhead-ahead)}
		next := s.now
		if t.most > 0 && r.Rate > 0 {
			granted, _, again := sender.TakeRate(r.Rate, r.rateAt.time(), s.now.time(), t.most)
			t.most, next = granted, momentOf(again)
		}
		if t.most > 0 {
			all = append(all, t)
		} else {
			s.later(next)
		}
		return len(all) < replaysAtOnce, nil
	}, query, args...)
	return all, err
}

// choose looks at the next deliveries of the replays. How far these are is to be
// stored.
func (s *stepping) choose(limit int) error {
	look := replayLook
	for i, t := range s.all {
		if limit <= 0 || look <= 0 {
			s.out.More = true
			s.all = s.all[:i]
			return nil
		}
		found, err := s.next(&t.set, look)
		if err != nil {
			return err
		}
		most, looked := min(t.most, limit), 0
		for i := range found {
			c := &found[i]
			if t.set.selects(c) {
				if len(t.chosen) == most {
					break
				}
				t.chosen = append(t.chosen, c)
			}
			t.set.at = c.position
			looked++
		}
		t.atEnd = looked == len(found) && len(found) < look
		look -= looked
		limit -= len(t.chosen)
	}
	return nil
}

// move stores how far the replays are, and ends those that are at their ends.
func (s *stepping) move() error {
	var finished, delivered []*replay
	for _, t := range s.all {
		if t.Rate > 0 && t.admitted > 0 {
			_, at, _ := sender.TakeRate(t.Rate, t.rateAt.time(), s.now.time(), t.admitted)
			t.rateAt = momentOf(at)
		}
		if t.atEnd {
			t.Finish(s.now.time())
			finished = append(finished, &t.replay)
			s.out.Finished = append(s.out.Finished, t.Replay)
		} else {
			s.again(t)
		}
		if t.Filter.Status == sender.StatusDelivered {
			delivered = append(delivered, &t.replay)
		}
	}
	if len(s.all) == 0 {
		return nil
	}
	err := s.execs(moveReplays,
		column(s.all, func(t *turn) int64 { return t.no }),
		column(s.all, func(t *turn) int64 { return t.set.at.no }),
		column(s.all, func(t *turn) int64 { return t.set.at.subscription }),
		column(s.all, func(t *turn) moment { return t.rateAt }),
		column(s.all, func(*turn) int64 { return s.turns.Add(1) }),
		column(s.all, func(t *turn) string { return string(t.Status) }),
		column(s.all, func(t *turn) int64 { return t.Matched }),
		column(s.all, func(t *turn) int64 { return t.Admitted }),
		column(s.all, func(t *turn) int64 { return t.Skipped }),
		column(s.all, func(t *turn) moment { return momentOf(t.FinishedAt) }))
	if err != nil {
		return err
	}
	if err := s.forgetLate(delivered); err != nil {
		return err
	}
	for _, r := range finished {
		if err := s.notify(r.FinishedNotice()); err != nil {
			return err
		}
	}
	return nil
}

// again says when a replay may get on.
func (s *stepping) again(t *turn) {
	if t.Rate > 0 && t.admitted == t.most {
		_, _, again := sender.TakeRate(t.Rate, t.rateAt.time(), s.now.time(), 0)
		if next := momentOf(again); next > s.now {
			s.later(next)
			return
		}
	}
	s.out.More = true
}
