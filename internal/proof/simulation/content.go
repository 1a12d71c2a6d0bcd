package simulation

import (
	"fmt"
	"slices"
	"strings"
)

// Some subscriptions have a filter over the content of events, which is written over the
// payload version that they are pinned to. It selects the same events in each version. So it is
// known which events a subscription gets, whenever it is pinned to another version, and another
// filter with that.

// parts is how many kinds of content there are.
const parts = 3

// newerData is the data of an event as it is published, and olderData in the older version.
type (
	newerData struct {
		N    int `json:"n"`
		Part int `json:"part"`
	}
	olderData struct {
		By    string `json:"by"`
		Third int    `json:"third"`
	}
)

// drawParts gives some subscriptions a filter.
func (s *subscription) drawParts() {
	if n := s.w.rand.IntN(8); n < 2 {
		s.parts = s.w.rand.Perm(parts)[:1+n]
		slices.Sort(s.parts)
	}
}

// filter is a subscription's filter over a payload version; "": it has none.
func (s *subscription) filter(version string) string {
	if s.parts == nil {
		return ""
	}
	field := "part"
	if version == olderVersion {
		field = "third"
	}
	return fmt.Sprintf(`{"data.%s":{"in":%s}}`, field, strings.Join(strings.Fields(fmt.Sprint(s.parts)), ","))
}

// gets tells whether a subscription must get an event.
func (s *subscription) gets(e *event) bool {
	return s.asks(e) && (s.parts == nil || e.only == s || !e.notice && slices.Contains(s.parts, e.part))
}

// mayGet tells whether a subscription gets an event, or may get it because its filter could not
// be asked: the older version was not to be made.
func (s *subscription) mayGet(e *event) bool {
	return s.gets(e) || s.asks(e) && !e.notice && s.pinned == olderVersion && s.w.odds[brokenConverter] > 0
}

// checkAsked checks that a subscription asks for what is delivered there.
func (w *world) checkAsked(d *delivery) {
	switch e, s := d.event, d.sub; {
	case e.notice && s.parts == nil, s.gets(e):
	case !s.mayGet(e):
		w.violated("I1", "%s is a delivery to a subscription that does not ask for it", d.name)
	default:
		w.counts["made without its filter"]++
	}
}

// countLeftOut counts what no delivery was made of because of filters. Those that were made are
// checked as they are claimed.
func (w *world) countLeftOut() {
	for _, s := range w.subs {
		for _, e := range w.events {
			if s.asks(e) && !s.mayGet(e) {
				w.counts[map[bool]string{true: "left out by a filter over the older version", false: "left out by a filter"}[s.pinned == olderVersion]]++
			}
		}
	}
}
