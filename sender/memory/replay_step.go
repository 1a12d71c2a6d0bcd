package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/replay"
	"github.com/surehook/surehook/sender/rules"
)

const (
	// replayAhead is how many deliveries of a replay may be admitted and not claimed yet.
	replayAhead = 1000
	// replayLook is how many deliveries are looked at in a step.
	replayLook = 1000
)

// StepReplays implements dispatch.Store.
func (s *Store) StepReplays(ctx context.Context, limit int, announce func(n sender.Notice) (sender.Draft, bool)) (out dispatch.ReplayStep, err error) {
	if limit <= 0 {
		return out, nil
	}
	err = s.inTx(ctx, func(tx *Tx) error {
		out = dispatch.ReplayStep{}
		w := &batch{Batch: &dispatch.Batch{Announce: announce}, tx: tx, now: s.now(), targets: map[int64]*dispatch.Target{}}
		err := w.stepReplays(limit, &out)
		out.Notices = w.notices
		return err
	})
	if err != nil {
		return dispatch.ReplayStep{}, err
	}
	return out, nil
}

func (w *batch) stepReplays(limit int, out *dispatch.ReplayStep) error {
	running := filter(w.tx.store.replays, func(r *replayRow) bool { return r.Status == replay.Running })
	slices.SortStableFunc(running, func(a, b *replayRow) int { return cmp.Compare(a.turn, b.turn) })
	look := replayLook
	for _, r := range running {
		if limit <= 0 || look <= 0 {
			out.More = true
			break
		}
		most, next := w.grant(r, limit)
		if most == 0 {
			if out.Next.IsZero() || next.Before(out.Next) {
				out.Next = next
			}
			continue
		}
		was := r.Replay
		look -= w.stepReplay(r, most, look)
		admitted := int(r.Admitted - was.Admitted)
		limit -= admitted
		w.spendReplay(r, admitted)
		if r.looked == len(r.members) {
			if err := w.finish(r, out); err != nil {
				return err
			}
		} else if most, next = w.grant(r, 1); most > 0 {
			out.More = true
		} else if out.Next.IsZero() || next.Before(out.Next) {
			out.Next = next
		}
		out.Admitted += admitted
		out.Skipped += int(r.Skipped - was.Skipped)
	}
	return nil
}

// grant returns how many deliveries of a replay may be admitted now, up to a number. If
// none may, it returns when to look again.
func (w *batch) grant(r *replayRow, most int) (granted int, next time.Time) {
	ahead := 0
	for _, sub := range w.tx.store.subscriptions {
		if sub.holds() {
			continue
		}
		for _, d := range sub.replayed.items {
			if d.live.replay == r.no {
				ahead++
			}
		}
	}
	most = min(most, replayAhead-ahead)
	if most <= 0 || r.Rate == 0 {
		return max(0, most), w.now
	}
	granted, _, _ = rules.TakeRate(r.Rate, r.rateAt, w.now, most)
	return granted, rules.ReplayAgain(r.Rate, r.rateAt, w.now)
}

func (w *batch) spendReplay(r *replayRow, admitted int) {
	s := w.tx.store
	set(w.tx, &s.served, s.served+1)
	set(w.tx, &r.turn, s.served)
	if r.Rate > 0 && admitted > 0 {
		_, next, _ := rules.TakeRate(r.Rate, r.rateAt, w.now, admitted)
		set(w.tx, &r.rateAt, next)
	}
}

// stepReplay looks at the next members of a replay, and admits up to most of them.
func (w *batch) stepReplay(r *replayRow, most, look int) (looked int) {
	now := r.Replay
	notBefore := rules.ReplayNotBefore(r.notBefore, r.CreatedAt, w.now)
	for _, d := range r.members[r.looked:] {
		if looked == look || most == 0 {
			break
		}
		looked++
		switch {
		case d.live != nil || d.ended != r.Filter.Status || d.endedAs > r.upTo || d.event.redacted || w.tx.store.deliveries[d.key()] != d:
			// It has left the set.
		case d.event.info.CreatedAt.Before(notBefore):
			now.Skipped++
			now.TooOld++
		case d.sub.deleted:
			now.Skipped++
		default:
			w.tx.revive(d, &live{due: w.now, number: len(d.attempts), single: d.ended == sender.StatusDelivered, replay: r.no})
			now.Admitted++
			most--
		}
	}
	now.Stepped()
	set(w.tx, &r.Replay, now)
	set(w.tx, &r.looked, r.looked+looked)
	return looked
}

func (w *batch) finish(r *replayRow, out *dispatch.ReplayStep) error {
	now := r.Replay
	now.Finish(w.now)
	set(w.tx, &r.Replay, now)
	set(w.tx, &r.endedAt, w.now)
	out.Finished = append(out.Finished, copiedReplay(now))
	return w.notify(now.FinishedNotice())
}
