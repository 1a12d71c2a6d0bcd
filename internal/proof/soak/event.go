package soak

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// outcome is a publisher's knowledge of an event that it published.
type outcome int

const (
	trying    outcome = iota // it has not heard yet
	committed                // it was acknowledged
	undone                   // it rolled back
	unknown                  // it will never know
)

// event is an event of a publisher, who puts a nonce in it, or of the library itself
// (notices, completed jobs, tests), without a nonce.
type event struct {
	nonce   uint64
	outcome outcome
	id      string
	version int64
	kind    string // its type
	object  sender.Object
	to      string // the subscriber that it is for; "": everyone
	began   time.Time
	acked   time.Time

	sum     [sha256.Size]byte // of the body, once it was seen
	seen    bool
	inFeed  int
	wires   map[string]*wire // by slot
	told    map[string]*told // by subscription
	again   []span           // redelivered, by subscription id in span.what
	changes bool             // it was published with a change of the application's own
	checked bool             // all its deliveries have ended, as they must
	done    map[string]int   // by slot: the number of posts after which the delivery had ended in order. Its record may be pruned
	ended   bool             // all had once: a post or a result that came later has it looked at again
	alive   time.Time        // when some had not, and not since all had
	last    string           // one of them, when it was last seen
	resent  bool             // all of them had been delivered before, so they are kept no longer if the redelivery is called off
	looked  time.Time        // when it was last looked at, or last began to need it
	gap     bool             // it was not looked at for so long that ended deliveries may have been pruned
}

// wire has the posts of one delivery.
type wire struct{ posts []*post }

// post is one POST as the endpoint saw it.
type post struct {
	number     int
	at         time.Time
	signed     int64 // the timestamp
	accepted   bool  // the receiver answered 2xx
	status     int   // the answered post, if there was one
	retryAfter time.Duration
	answered   time.Time // when it was observed answered
}

// unchecked makes an event be looked at again.
func (e *event) unchecked() {
	if e.checked {
		e.checked, e.looked = false, time.Now()
	}
}

// stillAlive notes that some deliveries have not ended, one of them, and whether all of
// them had been delivered before.
func (w *witness) stillAlive(e *event, last string, resent bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e.alive, e.last, e.resent = time.Now(), last, resent
}

// told is the dispatchers' hooks' report of a delivery.
type told struct {
	lost []dispatch.Result
	end  int // number of the last attempt that was decided to be final
}

// span is a time during which an operator's act took place.
type span struct {
	what     string
	from, to time.Time // to is zero while it goes on
}

func (s span) overlaps(from, to time.Time) bool {
	return !s.from.After(to) && (s.to.IsZero() || !s.to.Before(from))
}

// snapshot copies the witness's records of an event. The library knows all posts of a
// copy that was made before it was read. A copy that was made after that has all posts
// that the library can have known.
func (w *witness) snapshot(e *event) event {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := *e
	s.again, s.done = slices.Clone(e.again), maps.Clone(e.done)
	s.wires, s.told = map[string]*wire{}, map[string]*told{}
	for slot, d := range e.wires {
		copied := &wire{}
		for _, p := range d.posts {
			q := *p
			copied.posts = append(copied.posts, &q)
		}
		s.wires[slot] = copied
	}
	for subscription, t := range e.told {
		s.told[subscription] = &told{lost: slices.Clone(t.lost), end: t.end}
	}
	return s
}

// highest is the highest number that was posted to a slot; no two posts have the same.
func (e *event) highest(slot string) (n int) {
	if d := e.wires[slot]; d != nil {
		for _, p := range d.posts {
			n = max(n, p.number, len(d.posts))
		}
	}
	return n
}

// describe describes the witness's records of a delivery.
func (e *event) describe(slot string) string {
	text := fmt.Sprintf("event %s to %s", e.id, slot)
	if d := e.wires[slot]; d != nil {
		for _, p := range d.posts {
			text += fmt.Sprintf("; post %d at %s", p.number, p.at.Format("15:04:05.000"))
		}
	}
	return text
}
