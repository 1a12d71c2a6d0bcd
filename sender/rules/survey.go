package rules

import (
	"cmp"
	"slices"
	"time"

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

// Partly notes that there may be others than those that were looked at.
func (s *Survey) Partly() { s.preview.More = true }

// Within returns a *sender.RetentionError if what was counted includes an event that was
// published before a time. Zero: no time.
func (s *Survey) Within(notBefore time.Time) error { return Within(s.preview.Oldest, notBefore) }

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
