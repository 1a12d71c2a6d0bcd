package simulation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/replay"
)

// resumed is a resume that was committed.
type resumed struct {
	at   time.Time
	take sender.Resume
}

// skipped tells whether a resume has skipped an event.
func (w *world) skipped(e *event, s *subscription) bool {
	return slices.ContainsFunc(s.resumes, func(r resumed) bool { return r.leaves(e) })
}

func (r resumed) leaves(e *event) bool {
	return !e.at.After(r.at) && (r.take.None || e.created.Before(r.take.Since))
}

// operate makes an act of an owner or of the operator, which may come at any time.
func (w *world) operate() {
	if !w.fault(operated) {
		return
	}
	s := w.subs[w.rand.IntN(len(w.subs))]
	if w.floods {
		w.floods = false
		w.flood(s)
		return
	}
	switch w.rand.IntN(13) {
	case 0:
		w.hold(s, sender.SubscriptionPaused, func() error { return w.registry.Pause(w.ctx, s.id) })
	case 1:
		w.hold(s, sender.SubscriptionDisabled, func() error { return w.registry.Disable(w.ctx, s.id, "the operator says so") })
	case 2, 3:
		take := sender.Resume{Force: true}
		switch w.rand.IntN(6) {
		case 0:
			take.None = true
		case 1:
			take.Since = w.now.Add(-w.between(time.Second, w.lasts))
		}
		w.resume(s, take)
	case 4:
		w.rotate(s.owner)
	case 5, 6:
		if len(w.deliveries) > 0 {
			w.redeliver(w.deliveries[w.rand.IntN(len(w.deliveries))])
		}
	case 7:
		w.replay(s)
	case 8:
		w.upgrade(s)
	case 9, 10:
		w.reorder(s)
	case 11, 12:
		w.passOver()
	}
	w.hint()
}

// hold pauses or disables a subscription.
func (w *world) hold(s *subscription, to sender.SubscriptionStatus, do func() error) {
	err := do()
	switch {
	case errors.Is(err, sender.ErrStatus) && s.status == sender.SubscriptionDisabled:
		return
	case err != nil:
		w.fail(err)
	}
	w.say("%s is made %s", s.name, to)
	s.status = to
	w.lookAt(s)
}

// resume makes a subscription active.
func (w *world) resume(s *subscription, take sender.Resume) {
	w.fail(w.registry.Resume(w.ctx, s.id, take))
	if s.status == sender.SubscriptionActive {
		return
	}
	w.say("%s is resumed, none: %v, since %v", s.name, take.None, take.Since.Sub(begins))
	s.status = sender.SubscriptionActive
	r := resumed{w.now, take}
	s.resumes = append(s.resumes, r)
	for _, d := range w.deliveries {
		if d.sub != s || !d.live && !d.replayable {
			continue
		}
		d.hurry()
		left := r.leaves(d.event)
		d.mayCancel = d.mayCancel || left
		w.look(d)
		if left && d.live && d.leased == nil {
			w.violated("I1", "%s is %s, and its subscription was resumed without it", d.name, d.status)
		}
	}
}

// lookAt looks at the deliveries of a subscription that have not ended.
func (w *world) lookAt(s *subscription) {
	for _, d := range w.deliveries {
		if d.sub == s && d.live {
			w.look(d)
		}
	}
}

// rotate gives an owner a new secret. The owner's endpoints learn of it later.
func (w *world) rotate(o *owner) {
	if w.rand.IntN(4) == 0 {
		w.fail(w.registry.RetireSecret(w.ctx, o.id))
		for i := range o.secrets[:len(o.secrets)-1] {
			if s := &o.secrets[i]; s.until.IsZero() || s.until.After(w.now) {
				s.until = w.now
			}
		}
		return
	}
	valid := 0
	for _, s := range o.secrets {
		if s.until.IsZero() || s.until.After(w.now) {
			valid++
		}
	}
	if valid > 3 {
		return
	}
	secret, until, err := w.registry.RotateSecret(w.ctx, o.id, &sender.Rotation{Overlap: 48 * time.Hour})
	if err != nil {
		w.fail(err)
		return
	}
	w.say("%s has a new secret", o.id)
	o.secrets[len(o.secrets)-1].until = until
	o.secrets = append(o.secrets, validSecret{secret: secret, from: w.now})
	w.at(w.between(time.Second, time.Hour), func() {
		for _, s := range w.subs {
			if s.owner == o {
				w.fail(s.open())
			}
		}
	})
}

func (w *world) redeliver(d *delivery) {
	err := w.history.Redeliver(w.ctx, d.id)
	if errors.Is(err, sender.ErrNotFound) {
		w.look(d)
		if !d.gone {
			w.violated("I1", "%s cannot be redelivered, and is there", d.name)
		}
		return
	}
	if errors.Is(err, sender.ErrCancelled) && d.mayCancel {
		return
	}
	w.fail(err)
	d.say("is redelivered, and was %s", d.status)
	d.redeliver = true
	d.hurry()
	w.look(d)
	if d.status == sender.StatusSuperseded { // at once: a newer version has not ended
		d.redeliver = false
	}
}

// fewCounted has replays look at a few deliveries when they are created, as if there were
// many.
type fewCounted struct{ replay.Store }

func (s fewCounted) CreateReplay(ctx context.Context, r replay.Replay, b replay.Bounds) (replay.Replay, error) {
	b.Look = 3
	return s.Store.CreateReplay(ctx, r, b)
}

// lookAtReplays checks the figures of the newest replays.
func (w *world) lookAtReplays() {
	all, err := w.replays.List(w.ctx, replay.Query{Limit: 10})
	w.fail(err)
	for _, r := range all {
		done, over := r.Admitted+r.Skipped, r.Status == replay.Finished
		if done > r.Matched || over && (done != r.Matched || r.More) {
			w.fail(fmt.Errorf("%s has admitted %d and skipped %d of %d (more: %v), and is %s", r.ID, r.Admitted, r.Skipped, r.Matched, r.More, r.Status))
		}
	}
}

// replay replays a subscription's deliveries of one final status.
func (w *world) replay(s *subscription) {
	n := replay.Request{Filter: replay.Filter{Subscription: s.id}, Force: true}
	if w.rand.IntN(2) == 0 {
		n.Filter.Status = sender.StatusDelivered
		n.Filter.Since = w.now.Add(-w.between(time.Second, w.lasts/4))
	} else if s.settings.Order == sender.OrderLatest && w.rand.IntN(3) == 0 {
		n.Filter.Status = sender.StatusSuperseded
		s.replayed = true
	}
	if w.rand.IntN(3) == 0 {
		n.Rate = 1
	}
	w.lookAt(s) // some may be superseded
	w.lookAtReplays()
	r, err := w.replays.Create(w.ctx, n)
	if err != nil {
		w.fail(err)
		return
	}
	w.say("%d of %s are replayed", r.Matched, s.name)
	for _, d := range w.deliveries {
		if d.sub == s && !d.live && !d.gone && (d.status != sender.StatusSuperseded || n.Filter.Status == sender.StatusSuperseded) {
			d.replayable = true
		}
	}
	if w.rand.IntN(4) == 0 {
		w.at(w.between(time.Millisecond, time.Minute), func() {
			if _, err := w.replays.Cancel(w.ctx, r.ID); !errors.Is(err, sender.ErrStatus) { // it may be finished
				w.fail(err)
			}
		})
	}
}
