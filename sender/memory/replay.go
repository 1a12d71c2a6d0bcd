package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/surehook/surehook/internal/newid"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/replay"
	"github.com/surehook/surehook/sender/rules"
)

// replay is a replay, and how far it is.
type replayRow struct {
	replay.Replay
	no        int64       // from 1
	upTo      int64       // the last of the store's ends when it was created
	members   []*delivery // at that time, in the order in which they ended
	looked    int         // how many of them were looked at
	notBefore time.Time   // as it was created with
	rateAt    time.Time   // as rules.TakeRate takes it
	turn      int64       // when it was served last
	endedAt   time.Time   // when it was finished or cancelled; zero: it was neither
}

// copiedReplay returns a replay that shares no slice with the given one.
func copiedReplay(r replay.Replay) replay.Replay {
	r.Filter.Groups = slices.Clone(r.Filter.Groups)
	return r
}

// CreateReplay implements replay.Store.
func (s *Store) CreateReplay(ctx context.Context, n replay.Replay, b replay.Bounds) (out replay.Replay, err error) {
	err = s.inTx(ctx, func(tx *Tx) error {
		all, err := s.replayable(n.Filter)
		if err != nil {
			return err
		}
		counted := surveyOf(all, n.Filter, b.Look)
		if err := counted.Within(b.NotBefore); err != nil {
			return err
		}
		if f, must := counted.Aged(n.Filter, b.NotBefore); must {
			aged := surveyOf(filter(all, func(d *delivery) bool { return d.event.info.CreatedAt.Before(f.Until) }), f, b.Look)
			if err := aged.NoneAged(b.NotBefore); err != nil {
				return err
			}
		}
		unfinished := filter(s.replays, func(r *replayRow) bool {
			return r.Filter.Subscriber == n.Filter.Subscriber && (r.Status == replay.Running || r.Status == replay.Paused)
		})
		if err := b.Room(len(unfinished)); err != nil {
			return err
		}
		if n.ID != "" && slices.ContainsFunc(s.replays, func(r *replayRow) bool { return r.ID == n.ID }) {
			return fmt.Errorf("%w: replay %q", sender.ErrExists, n.ID)
		}
		now := s.now()
		r := &replayRow{
			Replay: copiedReplay(replay.Replay{
				ID: cmp.Or(n.ID, newid.New("rpl_", now)), Filter: n.Filter, Rate: n.Rate, By: n.By, Reason: n.Reason,
				Status: replay.Running, CreatedAt: now,
			}),
			no: s.lastReplay + 1, upTo: s.ends, notBefore: b.NotBefore,
			members: filter(all, func(d *delivery) bool { return n.Filter.Selects(d.candidate()) }),
		}
		counted.Counted(&r.Replay)
		set(tx, &s.lastReplay, r.no)
		set(tx, &s.replays, append(s.replays, r))
		tx.wake = true
		out = copiedReplay(r.Replay)
		return nil
	})
	return out, err
}

// PreviewReplay implements replay.Store.
func (s *Store) PreviewReplay(ctx context.Context, f replay.Filter, most int) (p replay.Preview, err error) {
	err = s.inTx(ctx, func(*Tx) error {
		all, err := s.replayable(f)
		counted := surveyOf(all, f, most)
		p = counted.Preview()
		return err
	})
	return p, err
}

// replayable returns the deliveries that a filter may select, by their status and by whose
// they are, in the order in which they ended.
func (s *Store) replayable(f replay.Filter) (all []*delivery, err error) {
	names := f.Names()
	for _, id := range names {
		if sub := s.subscription[id]; sub == nil || f.Subscriber != "" && sub.owner.ID != f.Subscriber {
			return nil, fmt.Errorf("%w: subscription %q", sender.ErrNotFound, id)
		}
	}
	if f.Subscriber != "" && s.subscriber[f.Subscriber] == nil {
		return nil, fmt.Errorf("%w: subscriber %q", sender.ErrNotFound, f.Subscriber)
	}
	for _, e := range s.events {
		if e.redacted {
			continue
		}
		for _, d := range e.deliveries {
			named := (len(names) == 0 || slices.Contains(names, d.sub.ID)) && (f.Subscriber == "" || d.sub.owner.ID == f.Subscriber)
			if named && d.live == nil && d.ended == f.Status {
				all = append(all, d)
			}
		}
	}
	slices.SortFunc(all, func(a, b *delivery) int { return cmp.Compare(a.endedAs, b.endedAs) })
	return all, nil
}

// surveyOf counts what a filter selects of the first of some deliveries.
func surveyOf(all []*delivery, f replay.Filter, most int) rules.Survey {
	survey, _ := rules.TakeSurvey([]*[]*delivery{&all}, most, func(parts []*[]*delivery, each int, survey *rules.Survey) ([]int, error) {
		next := (*parts[0])[:min(each, len(*parts[0]))]
		for _, d := range next {
			if c := d.candidate(); f.Selects(c) {
				survey.Add(c)
			}
		}
		*parts[0] = (*parts[0])[len(next):]
		return []int{len(next)}, nil
	})
	return survey
}

func (d *delivery) candidate() replay.Candidate {
	c := replay.Candidate{
		Subscription: d.sub.ID, Subscriber: d.sub.owner.ID, EventType: d.event.info.Type, Published: d.event.info.CreatedAt,
	}
	if n := len(d.attempts); n > 0 {
		c.ErrorClass, c.StatusCode = d.attempts[n-1].Class, d.attempts[n-1].StatusCode
	}
	return c
}

// Replay implements replay.Store.
func (s *Store) Replay(ctx context.Context, id string) (out replay.Replay, err error) {
	err = s.inTx(ctx, func(*Tx) error {
		r, err := s.replay(id)
		if err == nil {
			out = copiedReplay(r.Replay)
		}
		return err
	})
	return out, err
}

func (s *Store) replay(id string) (*replayRow, error) {
	for _, r := range s.replays {
		if r.ID == id {
			return r, nil
		}
	}
	return nil, fmt.Errorf("%w: replay %q", sender.ErrNotFound, id)
}

// Replays implements replay.Store.
func (s *Store) Replays(ctx context.Context, q replay.Query) (page []replay.Replay, err error) {
	err = s.inTx(ctx, func(*Tx) error {
		before := s.lastReplay + 1
		if q.After != "" {
			last, err := s.replay(q.After)
			if err != nil {
				return err
			}
			before = last.no
		}
		for _, r := range slices.Backward(s.replays) {
			if r.no < before && len(page) < q.Limit && (q.Subscriber == "" || r.Filter.Subscriber == q.Subscriber) {
				page = append(page, copiedReplay(r.Replay))
			}
		}
		return nil
	})
	return page, err
}

// SetReplayStatus implements replay.Store.
func (s *Store) SetReplayStatus(ctx context.Context, id string, to replay.Status) (out replay.Replay, err error) {
	switch to {
	case replay.Running, replay.Paused, replay.Cancelled:
	default:
		return out, fmt.Errorf("%w status %q: a replay can be made running, paused or cancelled", sender.ErrInvalid, to)
	}
	err = s.inTx(ctx, func(tx *Tx) error {
		r, err := s.replay(id)
		if err != nil {
			return err
		}
		changes, err := r.Status.Become(to)
		if err != nil {
			return err
		}
		if changes && to == replay.Cancelled {
			set(tx, &r.endedAt, s.now())
		}
		set(tx, &r.Status, to)
		tx.wake = true
		out = copiedReplay(r.Replay)
		return nil
	})
	return out, err
}
