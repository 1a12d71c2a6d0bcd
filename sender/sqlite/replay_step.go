package sqlite

import (
	"context"
	"database/sql"
	"errors"
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
	// nextReplay reads when to look at a replay next.
	nextReplay    = `SELECT next_at FROM surehook_replays WHERE status = 'running' ORDER BY next_at, turn LIMIT 1`
	selectRunning = `SELECT ` + replayColumns + ` FROM surehook_replays WHERE status = 'running' AND next_at <= ? ORDER BY next_at, turn LIMIT ? + 0`
	// countAhead does not count deliveries that were held after they were admitted.
	countAhead = `SELECT count(*) FROM (SELECT 1 FROM surehook_waiting w CROSS JOIN surehook_heads h ON h.subscription = w.subscription
		WHERE w.replay = ? + 0 AND w.rank = 1 AND h.open = 1 LIMIT ? + 0)`
	anyBlocked = `SELECT EXISTS (SELECT 1 FROM surehook_replays WHERE status = 'running' AND blocked_at > 0)`
	lookAgain  = `UPDATE surehook_replays SET next_at = ? WHERE status = 'running' AND blocked_at > 0`
	moveReplay = `UPDATE surehook_replays SET position = ?, position_in = ?, rate_at = ?, next_at = ?, blocked_at = ?, turn = ?, matched = ?, more = ?, admitted = ?, skipped = ?, too_old = ? WHERE no = ?`

	insertLate = `INSERT OR IGNORE INTO surehook_replay_late (replay, event, subscription)
		SELECT no, ?1, ?2 FROM surehook_replays WHERE no = ?3 AND boundary >= ?1 AND (position, position_in) < (?1, ?2)`
	deleteLate = `DELETE FROM surehook_replay_late WHERE replay = ? AND (event, subscription) <= (?, ?)`
)

// StepReplays implements dispatch.Store.
func (s *Store) StepReplays(ctx context.Context, limit int, announce func(n sender.Notice) (sender.Draft, bool)) (out dispatch.ReplayStep, err error) {
	if limit <= 0 {
		return out, nil
	}
	var next int64
	err = s.read(ctx, func(w *work) (err error) {
		next, err = w.nextReplay()
		return err
	})
	if err != nil || next == 0 || next > s.now() {
		out.Next = timeOf(next)
		return out, fail("looking for replays", err)
	}
	err = s.write(ctx, func(w *work) error {
		k, err := s.registry(w)
		if err != nil {
			return fail("reading the registry", err)
		}
		out = dispatch.ReplayStep{}
		b := batch{work: w, Batch: dispatch.Batch{Announce: announce}, store: s, registry: k, now: s.now(), heads: newHeads(w)}
		err = b.stepReplays(limit, &out)
		out.Notices = b.out.Notices
		return fail("replaying", err)
	})
	if err != nil {
		return dispatch.ReplayStep{}, err
	}
	return out, nil
}

// EndReplayPauses implements dispatch.ReplayPauses.
func (s *Store) EndReplayPauses(ctx context.Context) (some bool, err error) {
	err = s.read(ctx, func(w *work) error { return w.row(anyBlocked).Scan(&some) })
	if err == nil && some {
		err = s.write(ctx, func(w *work) error { return w.execs(lookAgain, s.now()) })
	}
	return some, fail("looking for replays", err)
}

// nextReplay returns when to look at a replay next; 0: none is running.
func (w *work) nextReplay() (at int64, err error) {
	err = w.row(nextReplay).Scan(&at)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return at, err
}

// able is a replay that may admit up to most deliveries now.
type able struct {
	replayRow
	most int
}

// turns returns the running replays that may go on, in turn. For the others it stores
// when to look at them again.
func (b *batch) turns(limit int) (rs []able, err error) {
	running, err := b.replays(selectRunning, b.now, replaysAtOnce)
	if err != nil {
		return nil, err
	}
	for i := range running {
		r := able{replayRow: running[i], most: limit}
		var ahead int
		if err := b.row(countAhead, r.no, replayAhead).Scan(&ahead); err != nil {
			return nil, err
		}
		r.most = min(r.most, replayAhead-ahead)
		if r.most <= 0 {
			if r.blockedAt == 0 {
				r.blockedAt = b.now
			}
			r.nextAt = b.now + rules.ReplayPause(time.Duration(b.now-r.blockedAt)*time.Microsecond).Microseconds()
		} else {
			r.blockedAt = 0
		}
		if r.most > 0 && r.Rate > 0 {
			granted, _, _ := rules.TakeRate(r.Rate, timeOf(r.rateAt), timeOf(b.now), r.most)
			if r.most = granted; granted == 0 {
				r.nextAt = micros(rules.ReplayAgain(r.Rate, timeOf(r.rateAt), timeOf(b.now)))
			}
		}
		if r.most > 0 {
			rs = append(rs, r)
		} else if err := b.moveReplay(&r); err != nil {
			return nil, err
		}
	}
	return rs, nil
}

func (b *batch) stepReplays(limit int, out *dispatch.ReplayStep) error {
	rs, err := b.turns(limit)
	if err != nil {
		return err
	}
	look := replayLook
	for i := range rs {
		r := &rs[i]
		if limit <= 0 || look <= 0 {
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
	next, err := b.nextReplay()
	if err != nil {
		return err
	}
	if out.More = next != 0 && next <= b.now; !out.More {
		out.Next = timeOf(next)
	}
	return b.storeHeads()
}

// stepReplay looks at the next deliveries of a replay, and admits up to most of them.
func (b *batch) stepReplay(r *able, most, look int, out *dispatch.ReplayStep) (looked int, err error) {
	admitted, atEnd := 0, false
	for looked < look && admitted < most && !atEnd {
		found, more, err := b.next(&r.set, rules.ReplayLook(most-admitted, looked, look))
		if err != nil {
			return 0, err
		}
		n, passed, err := b.admitOf(r, found, most-admitted)
		if err != nil {
			return 0, err
		}
		admitted, looked, atEnd = admitted+n, looked+passed, passed == len(found) && !more
	}
	r.Admitted += int64(admitted)
	r.Stepped()
	if atEnd {
		r.Finish(timeOf(b.now))
	}
	r.nextAt = b.now
	if r.Rate > 0 && admitted > 0 {
		_, at, _ := rules.TakeRate(r.Rate, timeOf(r.rateAt), timeOf(b.now), admitted)
		r.rateAt = micros(at)
	}
	if r.Rate > 0 && admitted == r.most {
		r.nextAt = micros(rules.ReplayAgain(r.Rate, timeOf(r.rateAt), timeOf(b.now)))
	}
	if err := b.moveReplay(r); err != nil || !atEnd {
		return looked, err
	}
	if err := b.endReplay(&r.replayRow, b.now); err != nil {
		return 0, err
	}
	out.Finished = append(out.Finished, r.Replay)
	return looked, b.notify(r.FinishedNotice())
}

// admitOf admits up to most of the deliveries that a replay looks at, and returns how many,
// and how many it has passed.
func (b *batch) admitOf(r *able, found []replayed, most int) (admitted, passed int, err error) {
	notBefore := rules.ReplayNotBefore(timeOf(r.notBefore), r.CreatedAt, timeOf(b.now))
	for i := range found {
		c := &found[i]
		selected := r.set.selects(c)
		if selected && c.Published.Before(notBefore) {
			r.Skipped++
			r.TooOld++
			selected = false
		}
		if selected {
			if admitted == most {
				break
			}
			ok, err := b.admit(r, c)
			if err != nil {
				return 0, 0, err
			}
			if ok {
				admitted++
			} else {
				r.Skipped++
			}
		}
		r.set.at = c.position
		passed++
	}
	return admitted, passed, nil
}

// moveReplay stores how far a replay is, and when to look at it again.
func (b *batch) moveReplay(r *able) error {
	at := r.set.at
	if r.Filter.Status == sender.StatusDelivered {
		if err := b.execs(deleteLate, r.no, at.no, at.subscription); err != nil {
			return err
		}
	}
	return b.execs(moveReplay, at.no, at.subscription, r.rateAt, r.nextAt, r.blockedAt, b.store.turns.Add(1), r.Matched, r.More, r.Admitted, r.Skipped, r.TooOld, r.no)
}

// admit makes a delivery of a replay due again, unless its subscription is deleted.
func (b *batch) admit(r *able, c *replayed) (ok bool, err error) {
	k := dispatch.DeliveryKey{Event: c.event, Subscription: c.position.subscription}
	sub, err := b.registry.subscription(b.work, k.Subscription)
	if err != nil || sub.gone() || sub.status == statusMissing {
		return false, err
	}
	h, err := b.heads.any(k.Subscription)
	if err != nil || h.missing {
		return false, err
	}
	d := waits{live: live{subscription: k.Subscription, event: k.Event, single: r.Filter.Status == sender.StatusDelivered}, due: b.now, replay: r.no}
	if !d.single {
		if err := b.execs(deleteEnd, k.Subscription, k.Event); err != nil {
			return false, err
		}
	}
	if r.Filter.Status == sender.StatusDeadLettered {
		h.dead--
		if err := b.freeFrom(h, k.Event); err != nil {
			return false, err
		}
	}
	if err := b.row(lastNumber, k.Event, k.Subscription).Scan(&d.number); err != nil {
		return false, err
	}
	// A held delivery is claimed in the order of the events when it is resumed, whatever
	// its rank. It does not count as admitted and not claimed.
	if d.rank = rankReplay; !h.open {
		d.rank = rankFresh
	}
	return true, b.sendAgain(h, sub, &d)
}

// delivered notes that a delivery is delivered from now on. It is too late for the sets
// of replays of delivered deliveries that were created before.
func (b *batch) delivered(l *live) (err error) {
	if b.registry == nil {
		if b.registry, err = b.store.registry(b.work); err != nil {
			return err
		}
	}
	for _, no := range b.registry.replays {
		if err := b.execs(insertLate, l.event, l.subscription, no); err != nil {
			return err
		}
	}
	return nil
}
