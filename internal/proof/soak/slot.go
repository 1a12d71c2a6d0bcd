package soak

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/signing"
)

// temper is the way in which an endpoint fails: the chance of each fault, in per cent.
type temper struct {
	status, retryAfter, reset, hang, lost, slow int
	refused                                     bool // its URL leads to a closed port
	rate                                        float64
	atOnce                                      int
}

// tempers are the tempers of the endpoints that stay for a whole cycle.
var tempers = []struct {
	name, types string
	temper
}{
	{"steady", "a.*", temper{status: 3}},
	{"busy", "b.*", temper{status: 10, retryAfter: 20, rate: 200}},
	{"broken", "a.x", temper{status: 60, reset: 10}},
	{"resetting", "b.*", temper{reset: 40, lost: 10}},
	{"hanging", "a.*", temper{hang: 15, slow: 15, atOnce: 4}},
	{"forgetful", "*", temper{lost: 40}}, // loses answers after the commit
	{"moving", "b.x", temper{refused: true}},
	{"notices", "delivery.*,subscription.*,network.*,replay.*", temper{status: 10}},
}

// passingTemper is the temper of the endpoints that come and go.
var passingTemper = temper{status: 15, retryAfter: 5, reset: 5, hang: 3, lost: 10}

// slot is a callback URL, the subscription that has it, and the receiver behind it.
type slot struct {
	name  string
	owner *owner
	types []string
	temper
	url     string
	passing bool // it comes and goes

	mu           sync.Mutex
	rng          *rand.Rand
	subscription string
	began, made  time.Time // the subscription's making
	left, gone   time.Time // its closing
	at           bool      // closed at once: pending deliveries are cancelled
	resumes      []span
	replays      []span
	shears       []shear
}

// shear is a resume that skips the held events from before a time.
type shear struct{ before, ended time.Time } // ended is zero while it goes on

// owner is a subscriber, with the secrets of its receivers.
type owner struct {
	id   string
	mu   sync.Mutex
	keys []signing.Key
	ring *signing.Keyring
}

// trust makes the receivers verify with one more secret, and with the one before it.
func (o *owner) trust(secret signing.Secret) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.keys = append(o.keys, signing.Key{ID: secret.Fingerprint(), Secret: secret})
	if len(o.keys) > 2 {
		o.keys = o.keys[1:]
	}
	ring, err := signing.NewKeyring(o.keys...)
	if err != nil {
		return err
	}
	o.ring = ring
	return nil
}

func (o *owner) keyring() *signing.Keyring {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ring
}

// matches is the witness's own rule for a subscription's filter.
func (s *slot) matches(e *event) bool {
	if e.to != "" && e.to != s.owner.id {
		return false
	}
	return slices.ContainsFunc(s.types, func(t string) bool {
		prefix, wild := strings.CutSuffix(t, "*")
		return t == e.kind || wild && strings.HasPrefix(e.kind, prefix)
	})
}

// due tells whether a subscription must have a delivery of an event, and whether it
// may. A subscription that was made or closed during the publish may have one.
func (s *slot) due(e *event) (must, may bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.matches(e) || s.made.IsZero() {
		return false, s.matches(e)
	}
	may = s.began.Before(e.acked) && (s.gone.IsZero() || e.began.Before(s.gone))
	must = s.made.Before(e.began) && !s.at && (s.left.IsZero() || e.acked.Before(s.left))
	return must, may
}

// draw draws the fate of the next request.
func (s *slot) draw() fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.rng.IntN(100)
	for _, f := range []struct {
		fault fault
		of    int
	}{
		{failing, s.status}, {asking, s.retryAfter}, {resetting, s.reset}, {hanging, s.hang}, {losing, s.lost}, {crawling, s.slow},
	} {
		if n < f.of {
			return f.fault
		}
		n -= f.of
	}
	return none
}

// act runs an operator's act, and notes its time in a list.
func (s *slot) act(list *[]span, do func() error) error {
	s.mu.Lock()
	*list = append(*list, span{from: time.Now()})
	at := len(*list) - 1
	s.mu.Unlock()
	err := do()
	s.mu.Lock()
	(*list)[at].to = time.Now()
	s.mu.Unlock()
	return err
}

// shear runs a resume that does not take everything: it takes nothing, or the events
// since a time. If it fails, and may have had an effect, its span stays open.
func (s *slot) shear(since time.Time, do func() error) error {
	s.mu.Lock()
	s.shears = append(s.shears, shear{before: time.Now().Add(time.Hour)})
	at := len(s.shears) - 1
	s.mu.Unlock()
	err := do()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch now := time.Now(); {
	case errors.Is(err, sender.ErrRetention):
		s.shears[at] = shear{ended: now}
	case err == nil && since.IsZero():
		s.shears[at] = shear{now, now}
	case err == nil:
		s.shears[at] = shear{since, now}
	}
	return err
}

// cancelled tells whether an operator has cancelled a delivery: by ending the
// subscription at once, or by a resume that skips the events before a time. A delivery
// that was attempted more than a lease after such a resume was not among the held ones.
func (s *slot) cancelled(d *sender.Delivery, lease time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at || slices.ContainsFunc(s.shears, func(x shear) bool {
		return !d.CreatedAt.After(x.before.Add(time.Millisecond)) &&
			(len(d.Attempts) == 0 || x.ended.IsZero() || !d.Attempts[len(d.Attempts)-1].StartedAt.After(x.ended.Add(lease)))
	})
}

// sheared lists the times of resumes that have skipped events.
func (s *slot) sheared() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := "never"
	for i, x := range s.shears {
		if i == 0 {
			text = "at"
		}
		text += fmt.Sprintf(" %s (before %s)", x.ended.Format("15:04:05.000"), x.before.Format("15:04:05.000"))
	}
	return text
}

// replayed tells whether a replay of deliveries with a status was under way.
func (s *slot) replayed(of sender.Status, from, to time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.replays, func(a span) bool { return a.what == string(of) && a.overlaps(from, to) })
}

func (s *slot) endReplay(at int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replays[at].to = time.Now()
}

// acted tells whether an act of the list overlaps a time.
func (s *slot) acted(list *[]span, from, to time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(*list, func(a span) bool { return a.overlaps(from, to) })
}

type fault int

const (
	none      fault = iota
	failing         // 5xx, before or after the receiver
	asking          // 429 with Retry-After
	resetting       // the connection is reset
	hanging         // no answer within the timeout
	losing          // the answer is lost after the commit
	crawling        // the answer's body drips
)
