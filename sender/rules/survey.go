package rules

import (
	"cmp"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/replay"
)

// Survey counts what the filter of a replay selects, for its preview, and before it is
// created. The zero value has counted none. It is for one goroutine.
type Survey struct {
	preview replay.Preview
	by      map[string]int64
}

// Add counts one that the filter selects.
func (s *Survey) Add(c replay.Candidate) {
	p := &s.preview
	if p.Count == 0 || c.Published.Before(p.Oldest) {
		p.Oldest = c.Published
	}
	if c.Published.After(p.Newest) {
		p.Newest = c.Published
	}
	p.Count++
	if s.by == nil {
		s.by = map[string]int64{}
	}
	s.by[c.Subscription]++
}

// surveyLook is how many deliveries a survey looks at in one go.
const surveyLook = 1000

// TakeSurvey surveys a set of deliveries in parts, such as those of its subscriptions. It
// looks at up to most of them; 0: at all. It goes round the parts, some of them in one go.
// read looks at the next deliveries of these parts, up to each of every part, and adds
// those that the filter selects to the survey. It returns at how many of each part it has
// looked; fewer than each were the part's last ones.
func TakeSurvey[P any](parts []*P, most int, read func(some []*P, each int, s *Survey) (looked []int, err error)) (s Survey, err error) {
	for left := most; len(parts) > 0; {
		look := surveyLook
		if most > 0 {
			look = min(look, left)
		}
		if look <= 0 {
			s.preview.More = true
			break
		}
		some := parts[:min(len(parts), max(1, look/leastAhead))]
		each := look / len(some)
		looked, err := read(some, each, &s)
		if err != nil {
			return s, err
		}
		parts = slices.Clone(parts[len(some):])
		for i, n := range looked {
			left -= n
			if n == each {
				parts = append(parts, some[i])
			}
		}
	}
	return s, nil
}

// Within returns a *sender.RetentionError if what was counted includes an event that was
// published before a time. Zero: no time.
func (s *Survey) Within(notBefore time.Time) error { return Within(s.preview.Oldest, notBefore) }

// Aged tells whether the members of a replay whose events were published before a time
// must be surveyed apart. They must if this survey, which is of all members, has not come
// to its end: it may not have met them. Aged returns the filter that selects them.
// NoneAged decides on the survey of these.
func (s *Survey) Aged(f replay.Filter, notBefore time.Time) (aged replay.Filter, must bool) {
	if f.Until.IsZero() || notBefore.Before(f.Until) {
		f.Until = notBefore
	}
	return f, s.preview.More && f.Since.Before(f.Until)
}

// NoneAged returns a *sender.RetentionError unless this survey, which is of what was
// published before a time, has looked at all, and found none.
func (s *Survey) NoneAged(notBefore time.Time) error {
	if s.preview.More && s.preview.Count == 0 {
		return &sender.RetentionError{NotBefore: notBefore}
	}
	return s.Within(notBefore)
}

// previewShares is how many subscriptions a preview names.
const previewShares = 10

// Preview is what was counted.
func (s *Survey) Preview() replay.Preview {
	p := s.preview
	p.Subscriptions = nil
	for id, n := range s.by {
		p.Subscriptions = append(p.Subscriptions, replay.Share{Subscription: id, Count: n})
	}
	slices.SortFunc(p.Subscriptions, func(a, b replay.Share) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Subscription, b.Subscription))
	})
	p.Subscriptions = p.Subscriptions[:min(previewShares, len(p.Subscriptions))]
	return p
}

// Counted fills in Matched and More of a replay that is created now.
func (s *Survey) Counted(r *replay.Replay) { r.Matched, r.More = s.preview.Count, s.preview.More }
