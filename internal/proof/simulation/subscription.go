package simulation

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/signing"
)

// owner is a subscriber, with the secrets that it knows.
type owner struct {
	id      string
	secrets []validSecret // the oldest first
}

// validSecret is a secret while the sender signs with it.
type validSecret struct {
	secret      signing.Secret
	from, until time.Time // until zero: it is the newest
}

func (w *world) addOwner(id string) error {
	_, secret, err := w.registry.CreateSubscriber(w.ctx, sender.NewSubscriber{ID: id})
	w.owners = append(w.owners, &owner{id: id, secrets: []validSecret{{secret: secret, from: w.now}}})
	return err
}

// subscription is a subscription, with its endpoint and its receiver.
type subscription struct {
	w        *world
	id       string
	name     string
	owner    *owner
	types    []string
	parts    []int // of the events that its filter selects; nil: it has none
	settings sender.Settings
	pinned   string // to a payload version, as it began
	upgraded bool   // to the newer one
	ordering
	replayed bool                      // its superseded deliveries were, those too that nobody had claimed
	status   sender.SubscriptionStatus // as it should be
	resumes  []resumed
	warnedAt time.Time // for the last time before the end
	endpoint
}

func (w *world) addSubscription(i int) error {
	s := &subscription{w: w, owner: w.owners[w.rand.IntN(len(w.owners))], name: fmt.Sprint("s", i), status: sender.SubscriptionActive}
	s.types = [][]string{{"*"}, {"thing.changed"}, {"thing.*"}, {"thing.changed", "other.changed"}}[w.rand.IntN(4)]
	n := sender.NewSubscription{Subscriber: s.owner.id, URL: "https://" + s.name + ".example.com/hook", EventTypes: s.types}
	if w.rand.IntN(4) == 0 {
		n.Settings.MaxInFlight = 1 + w.rand.IntN(3)
	}
	if w.rand.IntN(4) == 0 {
		n.Settings.Timeout = time.Second
	}
	if w.rand.IntN(6) == 0 {
		n.Settings.Rate = float64(1 + w.rand.IntN(50))
	}
	s.pinned = []string{olderVersion, newerVersion}[w.rand.IntN(2)]
	n.Settings.PayloadVersion = s.pinned
	s.drawParts()
	n.Filter = s.filter(s.pinned)
	w.drawOrder(&n.Settings)
	w.drawPolicy(&n.Settings)
	s.settings = n.Settings
	s.noteOrder()
	got, err := w.registry.Subscribe(w.ctx, n)
	if err != nil {
		return err
	}
	s.id = got.ID
	w.subs, w.subByID[s.id] = append(w.subs, s), s
	s.endpoint.s = s
	return s.endpoint.open()
}

// asks tells whether an event is for a subscription, whatever its filter says.
func (s *subscription) asks(e *event) bool {
	if e.only != nil || e.to != nil && e.to != s.owner {
		return e.only == s
	}
	return slices.ContainsFunc(s.types, func(t string) bool {
		prefix, all := cutWildcard(t)
		return t == e.kind || all && len(e.kind) >= len(prefix) && e.kind[:len(prefix)] == prefix
	})
}

func cutWildcard(pattern string) (prefix string, ok bool) {
	if last := len(pattern) - 1; pattern[last] == '*' {
		return pattern[:last], true
	}
	return pattern, false
}

// known returns the secrets with which an owner's endpoints verify, including older secrets
// as long as the sender may sign with them.
func (o *owner) keys(now time.Time) (keys []signing.Key) {
	for i, s := range o.secrets {
		if s.until.IsZero() || s.until.Add(time.Hour).After(now) {
			keys = append(keys, signing.Key{ID: strconv.Itoa(i), Secret: s.secret})
		}
	}
	return keys
}
