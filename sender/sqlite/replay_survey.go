package sqlite

import (
	"context"

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
// all. It reads in short transactions: the WAL cannot be begun anew while a snapshot is
// held.
func (s *Store) survey(ctx context.Context, set replaySet, most int) (rules.Survey, error) {
	return s.surveyPart(ctx, surveyed{replaySet: set}, most)
}

// surveyAged counts what a filter selects from those members of a set whose events were
// published before its Until.
func (s *Store) surveyAged(ctx context.Context, set replaySet, f replay.Filter, most int) (rules.Survey, error) {
	aged := surveyed{replaySet: set}
	aged.filter = f
	var first, last int64
	err := s.read(ctx, func(w *work) (err error) {
		first, last, err = w.between(f.Since, f.Until)
		return err
	})
	if err != nil || first > last || last == 0 {
		return rules.Survey{}, err
	}
	if f.Status == sender.StatusDelivered {
		aged.boundary = min(aged.boundary, last)
	} else {
		aged.at, aged.agedTo = position{first - 1, never}, last
	}
	return s.surveyPart(ctx, aged, most)
}

// surveyPart surveys each subscription's part of a set by itself.
func (s *Store) surveyPart(ctx context.Context, whole surveyed, most int) (rules.Survey, error) {
	var of []int64
	err := s.read(ctx, func(w *work) (err error) {
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
	return rules.TakeSurvey(parts, most, func(some []*surveyed, each int, survey *rules.Survey) ([]int, error) {
		var lists [][]replayed
		err := s.read(ctx, func(w *work) (err error) {
			lists, err = w.surveyed(some, each)
			return err
		})
		looked := make([]int, len(lists))
		for i, list := range lists {
			looked[i] = len(list)
			for j := range list {
				if some[i].selects(&list[j]) {
					survey.Add(list[j].Candidate)
				}
				some[i].at = list[j].position
			}
		}
		return looked, err
	})
}

// surveyed returns the next deliveries of some parts, up to each of each.
func (w *work) surveyed(some []*surveyed, each int) ([][]replayed, error) {
	p, aged := some[0], some[0].agedTo != 0
	var found []replayed
	var err error
	if p.subscription == 0 {
		if aged {
			found, err = w.replayed(selectReplayAged, p.at.no, p.agedTo, each, string(p.filter.Status), p.boundary, p.at.subscription)
		} else {
			found, err = w.following(&p.replaySet, each)
		}
		return [][]replayed{found}, err
	}
	from := make([]position, len(some))
	for i, p := range some {
		from[i] = p.after(p.subscription)
	}
	if aged {
		found, err = w.replayed(selectReplayAgedOf, pairs(from), each, each*len(some), string(p.filter.Status), p.boundary, p.agedTo)
	} else {
		found, err = w.followingOf(&p.replaySet, from, each, each*len(some))
	}
	return split(found, from), err
}
