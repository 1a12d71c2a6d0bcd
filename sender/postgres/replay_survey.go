package postgres

import (
	"context"
	"math"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/replay"
	"github.com/surehook/surehook/sender/rules"
)

// surveyed is a part of a set that is surveyed: what it has of one subscription, or of all.
type surveyed struct {
	replaySet
	// agedTo is 0, or the last event whose dead letters are looked at, in the order of the
	// events. The position is one of those then.
	agedTo int64
}

// survey counts what a filter selects from a set, looking at up to most deliveries; 0: at
// all. It reads in short transactions: one snapshot for all of it would keep every table
// from being vacuumed.
func (c *core) survey(ctx context.Context, set replaySet, most int) (rules.Survey, error) {
	return c.surveyPart(ctx, surveyed{replaySet: set}, most)
}

// surveyAged counts what a filter selects from those members of a set whose events were
// published before its Until.
func (c *core) surveyAged(ctx context.Context, set replaySet, f replay.Filter, most int) (rules.Survey, error) {
	aged := surveyed{replaySet: set}
	aged.filter = f
	var first, last int64
	err := c.read(ctx, func(w *work) (err error) {
		first, last, err = w.positions(f.Since, f.Until)
		return err
	})
	if err != nil || first > last {
		return rules.Survey{}, err
	}
	if f.Status == sender.StatusDelivered {
		aged.boundary = min(aged.boundary, last)
	} else {
		aged.at, aged.agedTo = position{first - 1, math.MaxInt64}, last
	}
	return c.surveyPart(ctx, aged, most)
}

// surveyPart surveys each subscription's part of a set by itself.
func (c *core) surveyPart(ctx context.Context, whole surveyed, most int) (rules.Survey, error) {
	var of []int64
	err := c.read(ctx, func(w *work) (err error) {
		of, err = w.subscriptionsOf(&whole.replaySet)
		return err
	})
	if err != nil {
		return rules.Survey{}, err
	}
	parts := []*surveyed{&whole}
	if of != nil {
		parts = nil
		for _, no := range of {
			part := whole
			part.subscription = no
			parts = append(parts, &part)
		}
	}
	return rules.TakeSurvey(parts, most, func(some []*surveyed, each int, s *rules.Survey) ([]int, error) {
		var lists [][]replayed
		err := c.read(ctx, func(w *work) (err error) {
			lists, err = w.surveyed(some, each)
			return err
		})
		looked := make([]int, len(lists))
		for i, list := range lists {
			looked[i] = len(list)
			for j := range list {
				if some[i].selects(&list[j]) {
					s.Add(list[j].Candidate)
				}
				some[i].at = list[j].position
			}
		}
		return looked, err
	})
}

// surveyed returns the next deliveries of some parts, up to each of each.
func (w *work) surveyed(some []*surveyed, each int) ([][]replayed, error) {
	p := some[0]
	if p.subscription == 0 {
		q := w.following(&p.replaySet, each)
		if p.agedTo != 0 {
			q = w.query(selectReplayAged, p.at.no, p.agedTo, each, string(p.filter.Status), p.boundary, p.at.subscription)
		}
		found, err := w.replayed(q)
		return [][]replayed{found}, err
	}
	of := column(some, func(p *surveyed) int64 { return p.subscription })
	after := column(some, func(p *surveyed) int64 { return p.after(p.subscription) })
	q := w.followingOf(&p.replaySet, of, after, each, each*len(some))
	if p.agedTo != 0 {
		q = w.query(selectReplayAgedOf, of, after, each, each*len(some), string(p.filter.Status), p.boundary, p.agedTo)
	}
	found, err := w.replayed(q)
	return split(found, of), err
}
