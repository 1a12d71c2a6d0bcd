package scenario_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"

	dedup "github.com/surehook/surehook/dedup/memory"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/replay"
	"github.com/surehook/surehook/signing"
)

// pick returns one of the subscriptions that fit, or nil.
func (y *year[Tx]) pick(fits func(s *yearSub) bool) *yearSub {
	var some []*yearSub
	for _, s := range y.subs {
		if fits(s) {
			some = append(some, s)
		}
	}
	if len(some) == 0 {
		return nil
	}
	return some[y.rand.IntN(len(some))]
}

func is(statuses ...sender.SubscriptionStatus) func(s *yearSub) bool {
	return func(s *yearSub) bool { return slices.Contains(statuses, s.status) }
}

func (y *year[Tx]) pickOwner() *yearOwner {
	var some []*yearOwner
	for _, o := range y.owners {
		if !o.deleted {
			some = append(some, o)
		}
	}
	return some[y.rand.IntN(len(some))]
}

func (y *year[Tx]) name(prefix string) string {
	y.made++
	return fmt.Sprintf("%s%d", prefix, y.made)
}

func (y *year[Tx]) createSubscriber() {
	live := 0
	for _, o := range y.owners {
		if !o.deleted {
			live++
		}
	}
	if live >= yearSubscribers {
		return
	}
	o := &yearOwner{id: y.name("sub_")}
	_, secret, err := y.reg.CreateSubscriber(y.ctx(), sender.NewSubscriber{ID: o.id})
	require.NoError(y.t, err)
	o.valid, o.known = []yearSecret{{secret: secret}}, []signing.Secret{secret}
	y.owners = append(y.owners, o)
}

func (y *year[Tx]) deleteSubscriber() {
	o := y.pickOwner()
	if o == y.owners[0] || len(y.owners) < 3 {
		return
	}
	y.expand() // so that the model knows which events were committed before
	require.NoError(y.t, y.reg.DeleteSubscriber(y.ctx(), o.id))
	o.deleted = true
	for _, s := range y.subs {
		switch {
		case s.owner != o:
		case s.status == sender.SubscriptionActive:
			s.status = sender.SubscriptionClosing
		case s.status == sender.SubscriptionPaused, s.status == sender.SubscriptionDisabled:
			s.status = ""
		}
	}
}

func (y *year[Tx]) subscribe() {
	live := 0
	for _, s := range y.subs {
		if s.status != "" {
			live++
		}
	}
	if live >= yearSubscriptions {
		return
	}
	s := &yearSub{
		owner: y.pickOwner(), status: sender.SubscriptionActive, markers: dedup.New(),
		applied: map[string]int{}, version: map[string]int64{}, acked: map[string]bool{}, bodies: map[string][]byte{},
	}
	host := y.name("host-") + ".example.com"
	got, err := y.reg.Subscribe(y.ctx(), sender.NewSubscription{Subscriber: s.owner.id, URL: "https://" + host + "/"})
	require.NoError(y.t, err)
	s.id = got.ID
	y.hosts[host] = s
	y.subs = append(y.subs, s)
	y.verify(s)
}

// verify gives a subscription's receiver the owner's secrets.
func (y *year[Tx]) verify(s *yearSub) {
	var keys []signing.Key
	for i, secret := range s.owner.known {
		keys = append(keys, signing.Key{ID: strconv.Itoa(i), Secret: secret})
	}
	keyring, err := signing.NewKeyring(keys...)
	require.NoError(y.t, err)
	verifier, err := signing.NewVerifier(keyring, &signing.VerifierConfig{Now: y.clock.Now})
	require.NoError(y.t, err)
	rcv, err := receiver.New(verifier, s.markers.InTx, s.markers, "default", &receiver.Config{Now: y.clock.Now, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(y.t, err)
	s.rcv = rcv.Handler(receiver.State(func(_ context.Context, _ *dedup.Tx, ev receiver.Event) error {
		s.applied[ev.ID]++
		if ev.Version <= s.version[ev.Object.Type+"/"+ev.Object.ID] {
			y.t.Errorf("version %d of %s was applied after %d", ev.Version, ev.Object.ID, s.version[ev.Object.Type+"/"+ev.Object.ID])
		}
		s.version[ev.Object.Type+"/"+ev.Object.ID] = ev.Version
		return nil
	}))
}

func (y *year[Tx]) unsubscribe() {
	if s := y.pick(is(sender.SubscriptionActive, sender.SubscriptionPaused, sender.SubscriptionDisabled)); s != nil {
		require.NoError(y.t, y.reg.Unsubscribe(y.ctx(), s.id))
		s.status = ""
	}
}

func (y *year[Tx]) close() {
	if s := y.pick(is(sender.SubscriptionActive, sender.SubscriptionPaused)); s != nil {
		y.expand()
		require.NoError(y.t, y.reg.Close(y.ctx(), s.id))
		if s.status == sender.SubscriptionActive {
			s.status = sender.SubscriptionClosing
		} else {
			s.status = ""
		}
	}
}

func (y *year[Tx]) move() {
	if s := y.pick(is(sender.SubscriptionActive, sender.SubscriptionPaused)); s != nil {
		host := y.name("host-") + ".example.com"
		url := "https://" + host + "/moved"
		_, err := y.reg.Update(y.ctx(), s.id, sender.SubscriptionChange{URL: &url})
		require.NoError(y.t, err)
		for old, of := range y.hosts {
			if of == s {
				delete(y.hosts, old)
			}
		}
		y.hosts[host] = s
	}
}

func (y *year[Tx]) pause() {
	if s := y.pick(is(sender.SubscriptionActive)); s != nil {
		require.NoError(y.t, y.reg.Pause(y.ctx(), s.id))
		s.status = sender.SubscriptionPaused
	}
}

func (y *year[Tx]) disable() {
	if s := y.pick(is(sender.SubscriptionActive)); s != nil {
		require.NoError(y.t, y.reg.Disable(y.ctx(), s.id, "the operator says so"))
		s.status = sender.SubscriptionDisabled
	}
}

func (y *year[Tx]) resume() {
	s := y.pick(is(sender.SubscriptionPaused, sender.SubscriptionDisabled))
	if s == nil {
		return
	}
	y.look(s)
	var take sender.Resume
	switch y.rand.IntN(4) {
	case 0:
		take.None = true
	case 1:
		take.Since = y.clock.now.Add(-time.Duration(y.rand.IntN(100)) * time.Hour)
	}
	y.say("take %+v", take)
	y.counts[fmt.Sprintf("resumes none=%v since=%v", take.None, !take.Since.IsZero())]++
	y.expand()
	err := y.reg.Resume(y.ctx(), s.id, take)
	if refused := (*sender.RetentionError)(nil); errors.As(err, &refused) {
		require.Greater(y.t, y.clock.now.Sub(refused.Published), yearReach)
		y.counts["resumes refused for retention"]++
		take.Force = true
		err = y.reg.Resume(y.ctx(), s.id, take)
	}
	require.NoError(y.t, err)
	for _, d := range y.deliveries {
		if d.sub != s || terminal(d.status) && d.hurried.Before(y.clock.now) && d.status != sender.StatusDelivered {
			continue
		}
		d.hurry(y.clock.now)
		if e := y.event(d.event); d.status != sender.StatusDelivered && (take.None || !take.Since.IsZero() && e.Before(take.Since)) {
			d.status = sender.StatusCancelled // as check finds it
		}
	}
	if s.status == sender.SubscriptionDisabled {
		s.streak, s.failingSince, s.warned = 0, time.Time{}, 0
	}
	s.status = sender.SubscriptionActive
}

// event returns the time at which an event was published.
func (y *year[Tx]) event(id string) time.Time {
	for _, e := range y.events {
		if e.id == id {
			return e.at
		}
	}
	return time.Time{}
}

func (y *year[Tx]) outage() {
	if s := y.pick(func(s *yearSub) bool { return s.outage == "" && s.status != "" }); s != nil {
		s.outage = []string{"500", "500", "breaks", "applies and breaks", "redirects"}[y.rand.IntN(5)]
		y.say("it %s", s.outage)
	}
}

func (y *year[Tx]) recover() {
	if s := y.pick(func(s *yearSub) bool { return s.outage != "" }); s != nil {
		s.outage = ""
	}
}

// learn gives an owner's secrets to the owner's subscriptions.
func (y *year[Tx]) learn(o *yearOwner, secrets ...signing.Secret) {
	o.known = secrets
	for _, s := range y.subs {
		if s.owner == o {
			y.verify(s)
		}
	}
}

func (y *year[Tx]) rotate() {
	o := y.pickOwner()
	y.expire(o)
	if len(o.valid) > 2 {
		return
	}
	secret, until, err := y.reg.RotateSecret(y.ctx(), o.id, &sender.Rotation{Overlap: 48 * time.Hour})
	require.NoError(y.t, err)
	require.Equal(y.t, y.clock.now.Add(48*time.Hour), until)
	o.valid[len(o.valid)-1].until = until
	o.valid = append(o.valid, yearSecret{secret: secret})
	y.learn(o, append(slices.Clone(o.known), secret)...)
}

func (y *year[Tx]) expire(o *yearOwner) {
	o.valid = slices.DeleteFunc(o.valid, func(s yearSecret) bool { return !s.until.IsZero() && !s.until.After(y.clock.now) })
	var known []signing.Secret
	for _, s := range o.valid {
		known = append(known, s.secret)
	}
	y.learn(o, known...)
}

func (y *year[Tx]) retire() {
	o := y.pickOwner()
	require.NoError(y.t, y.reg.RetireSecret(y.ctx(), o.id))
	o.valid = o.valid[len(o.valid)-1:]
	y.learn(o, o.valid[0].secret)
}

func (y *year[Tx]) revoke() {
	o := y.pickOwner()
	secret, err := y.reg.RevokeSecret(y.ctx(), o.id, signing.Secret{})
	require.NoError(y.t, err)
	o.valid = []yearSecret{{secret: secret}}
	y.learn(o, secret)
}

// rewrap seals everything under a new key, and forgets the old one.
func (y *year[Tx]) rewrap() {
	id := y.name("k")
	y.sealing = append(y.sealing, sender.SealingKey{ID: id, Key: bytes.Repeat([]byte{byte(y.made)}, 32)})
	y.open()
	_, err := y.reg.Rewrap(y.ctx())
	require.NoError(y.t, err)
	y.sealing = y.sealing[len(y.sealing)-1:]
	y.open()
}

func (y *year[Tx]) redeliver() {
	if len(y.deliveries) == 0 {
		return
	}
	d := y.deliveries[y.rand.IntN(len(y.deliveries))]
	if y.rand.IntN(2) == 0 { // the more interesting ones
		for _, other := range y.deliveries {
			if other.status == sender.StatusDeadLettered && other.sub.status != "" {
				d = other
			}
		}
	}
	y.checkDelivery(d)
	err := y.history.Redeliver(y.ctx(), d.id)
	if age := y.clock.now.Sub(y.event(d.event)); errors.Is(err, sender.ErrRetention) && !d.notice {
		require.Greater(y.t, age, yearReach)
		y.counts["refused for retention"]++
		err = y.history.RedeliverForced(y.ctx(), d.id)
	}
	switch {
	case errors.Is(err, sender.ErrRetention):
		return
	case d.pruned:
		require.ErrorIs(y.t, err, sender.ErrNotFound)
	case d.status == sender.StatusCancelled || d.sub.status == "":
		require.Error(y.t, err, "a delivery that is %s was redelivered", d.status)
	default:
		if errors.Is(err, sender.ErrCancelled) && d.sub.status == sender.SubscriptionClosing {
			return // it has come to its end
		}
		require.NoError(y.t, err)
		y.say("%s, which is %s", d.id, d.status)
		y.counts["redeliveries of "+string(d.status)]++
		d.hurry(y.clock.now)
	}
}

// replay replays a subscription's deliveries of one final status.
func (y *year[Tx]) replay() {
	s := y.pick(func(s *yearSub) bool { return s.status != "" && s.status != sender.SubscriptionClosing })
	if s == nil {
		return
	}
	y.look(s)
	n := replay.Request{Filter: replay.Filter{Subscription: s.id}, By: "somebody"}
	want := sender.StatusDeadLettered
	if y.rand.IntN(3) == 0 {
		want = sender.StatusDelivered
		n.Filter.Since = y.clock.now.Add(-time.Duration(y.rand.IntN(72)) * time.Hour)
	}
	n.Filter.Status = want
	var set []*yearDelivery
	for _, d := range y.deliveries {
		if d.sub == s && d.status == want && !d.pruned && !d.notice && !y.event(d.event).Before(n.Filter.Since) {
			set = append(set, d)
		}
	}
	preview, err := y.replays.Preview(y.ctx(), n.Filter)
	require.NoError(y.t, err)
	r, err := y.replays.Create(y.ctx(), n)
	if errors.Is(err, sender.ErrRetention) {
		require.Greater(y.t, y.clock.now.Sub(preview.Oldest), yearReach)
		n.Force = true
		r, err = y.replays.Create(y.ctx(), n)
	}
	require.NoError(y.t, err)
	require.Equal(y.t, preview.Count, r.Matched)
	require.GreaterOrEqual(y.t, r.Matched, int64(len(set)), "besides, there are notices")
	y.say("of %d that are %s", r.Matched, want)
	y.counts["replays"]++
	y.counts["replayed"] += int(r.Matched)
	if y.rand.IntN(4) == 0 {
		_, err = y.replays.Cancel(y.ctx(), r.ID)
		require.NoError(y.t, err)
		return
	}
	y.running = append(y.running, r.ID)
	for _, d := range y.deliveries {
		if d.sub == s && d.status == want {
			d.hurry(y.clock.now)
		}
	}
}

func (y *year[Tx]) prune() {
	p, err := y.disp.Prune(y.ctx())
	require.NoError(y.t, err)
	y.counts["pruned records"] += p.Deliveries
	y.counts["pruned events"] += p.Events
}

func (y *year[Tx]) sendTest() {
	if s := y.pick(is(sender.SubscriptionActive)); s != nil {
		ref, err := y.reg.SendTest(y.ctx(), s.id)
		require.NoError(y.t, err)
		y.events = append(y.events, &yearEvent{id: ref.ID, object: s.id, version: ref.Version, at: y.clock.now, audience: []*yearSub{s}})
	}
}
