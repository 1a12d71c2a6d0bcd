package replay

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
)

// Filter says which deliveries a replay sends again. Empty fields select
// all.
type Filter struct {
	// Status is StatusDeadLettered, which is the default, StatusDelivered or
	// StatusSuperseded.
	Status       sender.Status
	Subscription string // id
	Subscriber   string // the id of the subscriptions' owner
	EventType    string // exact, "prefix.*" or "*"
	// Since and Until bound when the event was published: at Since or later, and
	// before Until.
	Since, Until time.Time
	ErrorClass   sender.Class // of the last attempt
	StatusCode   int          `json:",omitzero"` // that the last attempt was answered with; 0: any

	// Groups, if there are any, select what belongs to one of them, and meets the other
	// conditions: up to 100.
	Groups []Group `json:",omitempty"`
}

// Group are the deliveries of a subscription whose last attempt ended in one way. Package
// history lists the dead letters in such groups.
type Group struct {
	Subscription string       // its id
	ErrorClass   sender.Class // "": success
	StatusCode   int          // 0: there was no answer
}

// Candidate is what a filter looks at: a delivery that has the status and has
// it since the replay was created, at least.
type Candidate struct {
	Subscription string
	Subscriber   string
	EventType    string
	Published    time.Time
	ErrorClass   sender.Class
	StatusCode   int // 0: there was no answer
}

// Selects is the one rule of what a filter selects, except by status.
func (f *Filter) Selects(c Candidate) bool {
	return (f.Subscription == "" || f.Subscription == c.Subscription) &&
		(f.Subscriber == "" || f.Subscriber == c.Subscriber) &&
		(f.EventType == "" || sender.TypeMatches(f.EventType, c.EventType)) &&
		!c.Published.Before(f.Since) &&
		(f.Until.IsZero() || c.Published.Before(f.Until)) &&
		(f.ErrorClass == sender.ClassNone || f.ErrorClass == c.ErrorClass) &&
		(f.StatusCode == 0 || f.StatusCode == c.StatusCode) &&
		(len(f.Groups) == 0 || slices.Contains(f.Groups, Group{c.Subscription, c.ErrorClass, c.StatusCode}))
}

// Names are the ids of the subscriptions that the filter names, each once; none: it selects
// of all. Stores call it.
func (f *Filter) Names() (ids []string) {
	if f.Subscription != "" {
		return []string{f.Subscription}
	}
	for _, g := range f.Groups {
		if !slices.Contains(ids, g.Subscription) {
			ids = append(ids, g.Subscription)
		}
	}
	return ids
}

// Status is a replay's.
type Status string

const (
	// Running: deliveries are admitted while the dispatchers have room.
	Running Status = "running"
	// Paused: no more are admitted until it is continued.
	Paused Status = "paused"
	// Cancelled: no more are admitted, ever. Those that were go on.
	Cancelled Status = "cancelled"
	// Finished: all have been admitted or skipped. Their attempts may still
	// be under way.
	Finished Status = "finished"
)

// Become reports whether a replay changes when it is asked to become running, paused or
// cancelled. It returns an error that matches sender.ErrStatus if it cannot.
func (s Status) Become(to Status) (changes bool, err error) {
	switch s {
	case to:
		return false, nil
	case Running, Paused:
		return true, nil
	}
	return false, fmt.Errorf("%w: the replay is %s already: create another one", sender.ErrStatus, s)
}

// Replay sends the deliveries again that matched a filter when it was created.
type Replay struct {
	ID     string
	Filter Filter
	Rate   float64 // deliveries a second; 0: as fast as the dispatchers have room
	By     string  // who asked for it, for people
	Reason string  // and why
	Status Status

	// Matched is how many deliveries it had to send when it was created, unless there is
	// More. Admitted are those that were made due again, and Skipped those that could not be.
	// Their subscription was deleted meanwhile, or they were redelivered by somebody else,
	// redacted or pruned, or have become too old. When the replay is finished the two make up
	// Matched. Before, they are no more than Matched, and only those of deleted subscriptions
	// and those that are too old are counted as skipped.
	Matched, Admitted, Skipped int64

	// TooOld is how many of those skipped came to their turn too late, since the replay was
	// paused or slow: by then their events were published longer ago than Retention.Reach. A
	// replay that was forced has none.
	TooOld int64

	// More tells that more may match than Matched says: not all were counted. Nobody can tell
	// then how much of the replay is done. It is false once the replay is finished.
	More bool

	CreatedAt  time.Time
	FinishedAt time.Time // zero: it is not finished
}

// Owner returns the id of the subscriber who is told that the replay is finished: the one
// that its filter names, or Operator.
func (r *Replay) Owner() string { return cmp.Or(r.Filter.Subscriber, sender.Operator) }

// FinishedNotice is the notice of a replay's end.
func (r *Replay) FinishedNotice() sender.Notice {
	detail := fmt.Sprintf("deliveries sent again: %d of %d; skipped: %d", r.Admitted, r.Matched, r.Skipped)
	if r.TooOld > 0 {
		detail += fmt.Sprintf(", %d of them because their events had become so old that receivers may have forgotten them", r.TooOld)
	}
	return sender.Notice{Kind: sender.NoticeReplayFinished, Replay: r.ID, Subscriber: r.Owner(), Detail: detail}
}

// Stepped keeps Matched from being less than what was admitted and skipped. Stores call it
// after each step.
func (r *Replay) Stepped() { r.Matched = max(r.Matched, r.Admitted+r.Skipped) }

// Finish makes a replay finished. Members that it neither admitted nor skipped are not
// there any more: they count as skipped too.
func (r *Replay) Finish(now time.Time) {
	r.Stepped()
	r.Status, r.FinishedAt, r.More = Finished, now, false
	r.Skipped = r.Matched - r.Admitted
}

// Query selects replays. Empty fields select all.
type Query struct {
	Subscriber string // that their filters name
	After      string // the id of the last one of the page before
	Limit      int    // 1 to 200; 0 means 50
}

// Preview tells what a replay would do.
type Preview struct {
	Count          int64
	Oldest, Newest time.Time // when the events were published; zero: there are none
	// Subscriptions are the up to ten with the most of them, those with more first.
	Subscriptions []Share
	// More tells, of PreviewSome, that only a part was looked at: there may be others.
	More bool
}

// Share is a subscription's part of a replay.
type Share struct {
	Subscription string
	Count        int64
}
