package postgres

import (
	"context"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/rules"
)

const (
	// replayAhead is how many deliveries of a replay may be admitted and not claimed yet.
	replayAhead = 1000
	// replaysAtOnce is how many replays have a turn in one step.
	replaysAtOnce = 16
)

const (
	// nextReplay reads when to look at a replay next; NULL: none is running.
	nextReplay = `SELECT {now}, (SELECT next_at FROM surehook_replays WHERE status = 'running' ORDER BY next_at, turn LIMIT 1)`
	// lockReplays skips the replays that somebody else is stepping. The statement after it
	// sees all that the locked ones have admitted.
	lockReplays = `SELECT no FROM surehook_replays WHERE status = 'running' AND next_at <= $1 ORDER BY next_at, turn LIMIT $2 FOR UPDATE SKIP LOCKED`
	// selectLocked also counts how many deliveries of each are admitted and not claimed,
	// without those that were held since.
	selectLocked = `SELECT ` + replayColumns + `, (SELECT count(*) FROM (
			SELECT 1 FROM surehook_waiting w JOIN surehook_subscriptions s ON s.no = w.subscription
			WHERE w.replay = r.no AND w.replay <> 0 AND w.rank = 1 AND s.status IN ('active', 'closing') LIMIT $1) a)
		FROM surehook_replays r WHERE r.no = ANY($2) ORDER BY r.next_at, r.turn`

	anyBlocked = `SELECT EXISTS (SELECT 1 FROM surehook_replays WHERE status = 'running' AND blocked_at IS NOT NULL)`
	// lookAgain skips the replays that somebody is stepping.
	lookAgain = `UPDATE surehook_replays SET next_at = $1 WHERE no IN (
			SELECT no FROM surehook_replays WHERE status = 'running' AND blocked_at IS NOT NULL ORDER BY no FOR UPDATE SKIP LOCKED)`

	moveReplays = `UPDATE surehook_replays r SET at = u.at, at_subscription = u.at_subscription, rate_at = u.rate_at, next_at = u.next_at, blocked_at = u.blocked_at,
			turn = u.turn, status = u.status, matched = u.matched, more = u.more, admitted = u.admitted, skipped = u.skipped, too_old = u.too_old, finished_at = u.finished_at, ended_at = u.finished_at
		FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::timestamptz[], $5::timestamptz[], $6::timestamptz[], $7::bigint[], $8::text[],
			$9::bigint[], $10::boolean[], $11::bigint[], $12::bigint[], $13::bigint[], $14::timestamptz[])
		AS u(no, at, at_subscription, rate_at, next_at, blocked_at, turn, status, matched, more, admitted, skipped, too_old, finished_at) WHERE r.no = u.no`
)

// StepReplays implements dispatch.Store. A replay that another process is
// stepping is left to it.
func (c *core) StepReplays(ctx context.Context, limit int, announce func(n sender.Notice) (sender.Draft, bool)) (out dispatch.ReplayStep, err error) {
	if limit <= 0 {
		return out, nil
	}
	var now, next timestamp
	if err := c.dispatching().readOne(ctx, nextReplay, nil, &now, &next); err != nil || next == none || next > now {
		out.Next = next.time()
		return out, fail("looking for replays", err)
	}
	err = c.dispatching().batch(ctx, dispatch.Batch{Announce: announce}, func(b *batch) error {
		s := stepping{batch: b, done: map[dispatch.DeliveryKey]bool{}}
		err := s.step(limit)
		out = s.out
		out.Notices = b.out.Notices
		return fail("replaying", err)
	})
	if err != nil {
		return dispatch.ReplayStep{}, err
	}
	return out, nil
}

// EndReplayPauses implements dispatch.ReplayPauses.
func (c *core) EndReplayPauses(ctx context.Context) (some bool, err error) {
	err = c.dispatching().readOne(ctx, anyBlocked, nil, &some)
	if err == nil && some {
		err = c.dispatching().write(ctx, func(w *work) error { return w.execs(lookAgain, w.now) })
	}
	return some, fail("looking for replays", err)
}

// stepping is a step of replays at work.
type stepping struct {
	*batch
	out  dispatch.ReplayStep
	all  []*replayPart
	done map[dispatch.DeliveryKey]bool // what was admitted
}

// replayPart is a replay's part of a step.
type replayPart struct {
	replayRow
	most     int         // how many it may admit
	chosen   []*replayed // the deliveries that it selects
	atEnd    bool        // nothing comes after it
	admitted int
}

func (s *stepping) step(limit int) error {
	nos, err := s.numbers(lockReplays, s.now, replaysAtOnce)
	if err != nil {
		return err
	}
	all, err := s.parts(limit, nos)
	if err != nil {
		return err
	}
	var waiting []*replayPart
	for _, t := range all {
		if t.most > 0 {
			s.all = append(s.all, t)
		} else {
			waiting = append(waiting, t)
		}
	}
	if err := s.choose(limit); err != nil {
		return err
	}
	if err := s.admitAll(); err != nil {
		return err
	}
	if err := s.move(waiting); err != nil {
		return err
	}
	return s.later(len(nos) > 0)
}

// parts returns the locked replays, in turn, with how many each may admit.
func (s *stepping) parts(limit int, nos []int64) (all []*replayPart, err error) {
	err = s.each(func(rows rows) (bool, error) {
		var ahead int
		r, err := scanReplay(rows, &ahead)
		if err != nil {
			return false, err
		}
		t := &replayPart{replayRow: r, most: min(limit, replayAhead-ahead)}
		all = append(all, t)
		if t.most <= 0 {
			if t.blockedAt == none {
				t.blockedAt = s.now
			}
			t.nextAt = s.now.plus(rules.ReplayPause(s.now.time().Sub(t.blockedAt.time())))
			return true, nil
		}
		t.blockedAt = none
		if r.Rate > 0 {
			granted, _, _ := rules.TakeRate(r.Rate, r.rateAt.time(), s.now.time(), t.most)
			if t.most = granted; t.most == 0 {
				t.nextAt = timestampOf(rules.ReplayAgain(r.Rate, r.rateAt.time(), s.now.time()))
			}
		}
		return true, nil
	}, selectLocked, replayAhead, nos)
	return all, err
}

// choose looks at the next deliveries of the replays, and advances their positions, which
// move stores.
func (s *stepping) choose(limit int) error {
	look := replayLook
	for i, t := range s.all {
		if limit <= 0 || look <= 0 {
			s.all = s.all[:i]
			return nil
		}
		looked, err := s.look(t, min(t.most, limit), look)
		if err != nil {
			return err
		}
		look -= looked
		limit -= len(t.chosen)
	}
	return nil
}

// look looks at the next deliveries of a replay, up to a number, until it has chosen most of
// them.
func (s *stepping) look(t *replayPart, most, number int) (looked int, err error) {
	notBefore := rules.ReplayNotBefore(t.notBefore.time(), t.CreatedAt, s.now.time())
	for looked < number && len(t.chosen) < most && !t.atEnd {
		found, more, err := s.next(&t.set, rules.ReplayLook(most-len(t.chosen), looked, number))
		if err != nil {
			return 0, err
		}
		passed := 0
		for i := range found {
			c := &found[i]
			selected := t.set.selects(c)
			if selected && c.Published.Before(notBefore) {
				t.Skipped++
				t.TooOld++
				s.out.Skipped++
				selected = false
			}
			if selected {
				if len(t.chosen) == most {
					break
				}
				t.chosen = append(t.chosen, c)
			}
			t.set.at = c.position
			passed++
		}
		t.atEnd = passed == len(found) && !more
		looked += passed
	}
	return looked, nil
}

// move stores how far the replays are, and when to look at them and at the waiting ones
// again, and ends those that are done.
func (s *stepping) move(waiting []*replayPart) error {
	var finished, delivered []*replayRow
	for _, t := range s.all {
		t.nextAt = s.now
		if t.Rate > 0 && t.admitted > 0 {
			_, at, _ := rules.TakeRate(t.Rate, t.rateAt.time(), s.now.time(), t.admitted)
			t.rateAt = timestampOf(at)
		}
		if t.Rate > 0 && t.admitted == t.most {
			t.nextAt = timestampOf(rules.ReplayAgain(t.Rate, t.rateAt.time(), s.now.time()))
		}
		t.Stepped()
		if t.atEnd {
			skipped := t.Skipped
			t.Finish(s.now.time())
			s.out.Skipped += int(t.Skipped - skipped)
			finished = append(finished, &t.replayRow)
			s.out.Finished = append(s.out.Finished, t.Replay)
		}
		if t.Filter.Status == sender.StatusDelivered {
			delivered = append(delivered, &t.replayRow)
		}
	}
	all := append(waiting, s.all...)
	if len(all) == 0 {
		return nil
	}
	err := s.execs(moveReplays,
		column(all, func(t *replayPart) int64 { return t.no }),
		column(all, func(t *replayPart) int64 { return t.set.at.no }),
		column(all, func(t *replayPart) int64 { return t.set.at.subscription }),
		column(all, func(t *replayPart) timestamp { return t.rateAt }),
		column(all, func(t *replayPart) timestamp { return t.nextAt }),
		column(all, func(t *replayPart) timestamp { return t.blockedAt }),
		column(all, func(*replayPart) int64 { return s.core.turns.Add(1) }),
		column(all, func(t *replayPart) string { return string(t.Status) }),
		column(all, func(t *replayPart) int64 { return t.Matched }),
		column(all, func(t *replayPart) bool { return t.More }),
		column(all, func(t *replayPart) int64 { return t.Admitted }),
		column(all, func(t *replayPart) int64 { return t.Skipped }),
		column(all, func(t *replayPart) int64 { return t.TooOld }),
		column(all, func(t *replayPart) timestamp { return timestampOf(t.FinishedAt) }))
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

// later sets when another step can get on. If somebody else is stepping all due replays,
// that is soon, but not at once.
func (s *stepping) later(stepped bool) error {
	var now, next timestamp
	if err := s.row(nextReplay).Scan(&now, &next); err != nil {
		return err
	}
	s.out.Next = next.time()
	if stepped && next != none && next <= s.now {
		s.out.More, s.out.Next = true, time.Time{}
	}
	return nil
}
