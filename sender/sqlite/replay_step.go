package sqlite

import (
	"context"

	"github.com/surehook/surehook/sender"
)

const (
	// replayAhead is how many of a replay may be admitted and not claimed yet.
	replayAhead = 1000
	// replaysAtOnce is how many replays have a turn in one step.
	replaysAtOnce = 16
)

const (
	selectRunning = `SELECT ` + replayColumns + ` FROM surehook_replays WHERE status = 'running' ORDER BY turn`
	// countAhead leaves out what was held after it was admitted.
	countAhead = `SELECT count(*) FROM (SELECT 1 FROM surehook_waiting w CROSS JOIN surehook_heads h ON h.subscription = w.subscription
		WHERE w.replay = ? AND w.rank = 1 AND h.open = 1 LIMIT ? + 0)`
	moveReplay = `UPDATE surehook_replays SET position = ?, position_in = ?, rate_at = ?, turn = ?, matched = ?, admitted = ?, skipped = ? WHERE no = ?`

	insertReplayed = `INSERT INTO surehook_waiting (subscription, event, due, number, tries, first_at, stood, single, epoch, rank, replay)
		VALUES (?, ?, ?, ?, 0, 0, 0, ?, ?, ?, ?)`

	selectLateReplays = `SELECT no FROM surehook_replays WHERE status_of = 'delivered' AND status IN ('running', 'paused')`
	insertLate        = `INSERT OR IGNORE INTO surehook_replay_late (replay, event, subscription)
		SELECT no, ?1, ?2 FROM surehook_replays WHERE no = ?3 AND boundary >= ?1 AND (position, position_in) < (?1, ?2)`
	deleteLate = `DELETE FROM surehook_replay_late WHERE replay = ? AND (event, subscription) <= (?, ?)`
)

// StepReplays implements sender.ReplayStepper.
func (s *Store) StepReplays(ctx context.Context, limit int, announce func(n sender.Notice) (sender.Draft, bool)) (out sender.ReplayStep, err error) {
	if limit <= 0 {
		return out, nil
	}
	able := false
	err = s.read(ctx, func(w *work) error {
		b := batch{work: w, now: s.now()}
		rs, err := b.turns(limit, &out)
		able = len(rs) > 0
		return err
	})
	if err != nil || !able {
		return out, fail("looking for replays", err)
	}
	out = sender.ReplayStep{}
	err = s.write(ctx, func(w *work) error {
		k, err := s.registry(w)
		if err != nil {
			return fail("reading the registry", err)
		}
		b := batch{work: w, Batch: sender.Batch{Announce: announce}, store: s, known: k, now: s.now(), heads: newHeads(w)}
		err = b.stepReplays(limit, &out)
		out.Notices = b.out.Notices
		return fail("replaying", err)
	})
	if err != nil {
		return sender.ReplayStep{}, err
	}
	return out, nil
}

// able is a replay that may get on, by up to so many.
type able struct {
	replay
	most int
}

// turns are the first of the running replays that may get on, in turn. Next is set
// to when those may that may not.
func (b *batch) turns(limit int, out *sender.ReplayStep) (rs []able, err error) {
	running, err := b.replays(selectRunning)
	if err != nil {
		return nil, err
	}
	for i := range running {
		if len(rs) == replaysAtOnce {
			break
		}
		r := able{replay: running[i], most: limit}
		var ahead int
		if err := b.row(countAhead, r.no, replayAhead).Scan(&ahead); err != nil {
			return nil, err
		}
		r.most = min(r.most, replayAhead-ahead)
		next := b.now
		if r.most > 0 && r.Rate > 0 {
			granted, _, again := sender.TakeRate(r.Rate, timeOf(r.rateAt), timeOf(b.now), r.most)
			r.most, next = granted, micros(again)
		}
		if r.most > 0 {
			rs = append(rs, r)
		} else if out.Next.IsZero() || timeOf(next).Before(out.Next) {
			out.Next = timeOf(next)
		}
	}
	return rs, nil
}

func (b *batch) stepReplays(limit int, out *sender.ReplayStep) error {
	rs, err := b.turns(limit, out)
	if err != nil {
		return err
	}
	out.More = len(rs) == replaysAtOnce // there may be others
	look := replayLook
	for i := range rs {
		r := &rs[i]
		if limit <= 0 || look <= 0 {
			out.More = true
			break
		}
		was := r.Replay
		looked, err := b.stepReplay(r, min(r.most, limit), look, out)
		if err != nil {
			return err
		}
		look -= looked
		limit -= int(r.Admitted - was.Admitted)
		out.Admitted += int(r.Admitted - was.Admitted)
		out.Skipped += int(r.Skipped - was.Skipped)
	}
	return b.heads.store()
}

// stepReplay looks at the next deliveries of a replay, and admits up to a number.
func (b *batch) stepReplay(r *able, most, look int, out *sender.ReplayStep) (looked int, err error) {
	found, err := b.next(&r.set, look)
	if err != nil {
		return 0, err
	}
	admitted := 0
	for i := range found {
		c := &found[i]
		if r.set.selects(c) {
			if admitted == most {
				break
			}
			ok, err := b.admit(r, c)
			if err != nil {
				return 0, err
			}
			if ok {
				admitted++
			} else {
				r.Skipped++
			}
		}
		r.set.at = c.position
		looked++
	}
	r.Admitted += int64(admitted)
	atEnd := looked == len(found) && len(found) < look
	if atEnd {
		r.Finish(timeOf(b.now))
	}
	if err := b.moveReplay(r, admitted); err != nil || !atEnd {
		b.again(r, admitted, out)
		return looked, err
	}
	if err := b.endReplay(&r.replay); err != nil {
		return 0, err
	}
	out.Finished = append(out.Finished, r.Replay)
	return looked, b.notify(r.FinishedNotice())
}

// again says when a replay may get on.
func (b *batch) again(r *able, admitted int, out *sender.ReplayStep) {
	if r.Rate > 0 && admitted == r.most {
		_, _, again := sender.TakeRate(r.Rate, timeOf(r.rateAt), timeOf(b.now), 0)
		if next := timeOf(b.now); again.After(next) {
			if out.Next.IsZero() || again.Before(out.Next) {
				out.Next = again
			}
			return
		}
	}
	out.More = true
}

func (b *batch) moveReplay(r *able, admitted int) error {
	if r.Rate > 0 && admitted > 0 {
		_, at, _ := sender.TakeRate(r.Rate, timeOf(r.rateAt), timeOf(b.now), admitted)
		r.rateAt = micros(at)
	}
	at := r.set.at
	if r.Filter.Status == sender.StatusDelivered {
		if err := b.execs(deleteLate, r.no, at.no, at.subscription); err != nil {
			return err
		}
	}
	return b.execs(moveReplay, at.no, at.subscription, r.rateAt, b.store.turns.Add(1), r.Matched, r.Admitted, r.Skipped, r.no)
}

// admit makes a delivery of a replay due again, unless its subscription is deleted.
func (b *batch) admit(r *able, c *replayed) (ok bool, err error) {
	k := sender.DeliveryKey{Event: c.event, Subscription: c.position.subscription}
	sub, err := b.known.subscription(b.work, k.Subscription)
	if err != nil || sub.gone() {
		return false, err
	}
	h, err := b.heads.one(k.Subscription)
	if err != nil {
		return false, err
	}
	single := r.Filter.Status == sender.StatusDelivered
	if !single {
		if err := b.execs(deleteEnd, k.Subscription, k.Event); err != nil {
			return false, err
		}
		h.dead--
	}
	var number int
	if err := b.row(lastNumber, k.Event, k.Subscription).Scan(&number); err != nil {
		return false, err
	}
	// What is held is claimed in the order of the events when it is resumed, whatever
	// its rank, and does not count as admitted and not claimed.
	rank := rankReplay
	if !h.open {
		rank = rankFresh
	}
	h.waiting++
	h.lower(b.now)
	return true, b.execs(insertReplayed, k.Subscription, k.Event, b.now, number, single, h.epoch, rank, r.no)
}

// delivered notes that a delivery became so, for the replays of delivered ones,
// whose sets it is too late for.
func (b *batch) delivered(l *live) (err error) {
	if b.known == nil {
		if b.known, err = b.store.registry(b.work); err != nil {
			return err
		}
	}
	for _, no := range b.known.replays {
		if err := b.execs(insertLate, l.event, l.subscription, no); err != nil {
			return err
		}
	}
	return nil
}
