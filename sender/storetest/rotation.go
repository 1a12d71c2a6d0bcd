package storetest

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/signing"
)

const (
	rotationOverlap = 8 // hours
	rotationFrom    = 4 // when the new secret signs, where it signs later
)

// rotated is an owner whose secret is replaced while events go to its endpoint.
type rotated struct {
	id      string
	schemes []signing.Scheme // of its verifier; nil: the defaults
	later   bool             // the new secret signs later
	skew    time.Duration    // of its clock
	learns  int              // how many hours after the rotation it gets the new secret

	known []signing.Secret
}

// rotatedOwners are the endpoints of a run, by their hosts. It is their transport.
type rotatedOwners struct {
	mu      sync.Mutex
	now     time.Time // the store's
	owners  map[string]*rotated
	taken   int
	refused []string
}

// RoundTrip answers like a receiver: with 401 to what it cannot verify.
func (r *rotatedOwners) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	o, status := r.owners[req.URL.Host], http.StatusNoContent
	if err := o.verify(signing.Message{Method: req.Method, Header: req.Header, Body: body}, r.now.Add(o.skew)); err != nil {
		status = http.StatusUnauthorized
		r.refused = append(r.refused, fmt.Sprintf("%s, who learns after %d hours: %v", o.id, o.learns, err))
	} else {
		r.taken++
	}
	return &http.Response{StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
}

func (o *rotated) verify(m signing.Message, now time.Time) error {
	keys := make([]signing.Key, len(o.known))
	for i, s := range o.known {
		keys[i].Secret = s
	}
	ring, err := signing.NewKeyring(keys...)
	if err != nil {
		return err
	}
	v, err := signing.NewVerifier(ring, &signing.VerifierConfig{Schemes: o.schemes, Now: func() time.Time { return now }})
	if err != nil {
		return err
	}
	_, err = v.Verify(m)
	return err
}

// hour is what happens to an owner's secrets in an hour of a rotation.
func (o *rotated) hour(hour int, fresh signing.Secret) {
	old := o.known[0]
	switch {
	case hour < o.learns:
	case o.schemes == nil, hour > rotationFrom:
		o.known = []signing.Secret{fresh} // it needs no other one any more
	default:
		o.known = []signing.Secret{old, fresh}
	}
}

// secretsRotated rotates through a Registry on one store, and dispatches on another.
func secretsRotated(w *world) {
	keys, err := sender.NewKeys(sender.SealingKey{ID: "k", Key: bytes.Repeat([]byte{1}, 32)})
	w.noError(err, "making keys")
	all := &rotatedOwners{now: w.now(), owners: map[string]*rotated{}}
	reg, err := sender.NewRegistry(w.Store, keys, &sender.RegistryConfig{Now: func() time.Time { return all.now }})
	w.noError(err, "making a registry")
	pub, err := sender.NewPublisher(w.Store, nil)
	w.noError(err, "making a publisher")
	d, err := dispatch.New(forDispatcher(w.other().Store), keys, &dispatch.Config{UnguardedTransport: all, Logger: slog.New(slog.DiscardHandler)})
	w.noError(err, "making a dispatcher")
	for i, o := range []*rotated{
		{learns: 0, skew: 290 * time.Second}, {learns: 4}, {learns: 7, skew: -290 * time.Second}, {later: true, learns: 2},
		{schemes: []signing.Scheme{signing.TimestampBody{}}, later: true, learns: 0, skew: -290 * time.Second},
		{schemes: []signing.Scheme{signing.TimestampBody{}}, later: true, learns: 2},
		{schemes: []signing.Scheme{signing.TimestampBody{}}, later: true, learns: 3, skew: 290 * time.Second},
	} {
		o.id = w.name("sub_")
		_, secret, err := reg.CreateSubscriber(w.ctx, sender.NewSubscriber{ID: o.id})
		w.noError(err, "creating a subscriber")
		host := fmt.Sprintf("owner-%d.example.com", i)
		_, err = reg.Subscribe(w.ctx, sender.NewSubscription{Subscriber: o.id, URL: "https://" + host + "/", EventTypes: []string{"thing.*"}})
		w.noError(err, "subscribing")
		o.known, all.owners[host] = []signing.Secret{secret}, o
	}
	published := 0
	for range 2 {
		fresh := map[string]signing.Secret{}
		for hour := range rotationOverlap + 1 {
			for _, o := range all.owners {
				if hour == 0 {
					rotation := &sender.Rotation{Overlap: rotationOverlap * time.Hour}
					if o.later {
						rotation.SignFrom = all.now.Add(rotationFrom * time.Hour)
					}
					fresh[o.id], _, err = reg.RotateSecret(w.ctx, o.id, rotation)
					w.noError(err, "rotating a secret")
				}
				o.hour(hour, fresh[o.id])
			}
			published++
			_, err := pub.Publish(w.ctx, sender.Event{Type: "thing.changed", Object: sender.Object{Type: "thing", ID: fmt.Sprint(published)}})
			w.noError(err, "publishing")
			_, err = d.RunOnce(w.ctx)
			w.noError(err, "dispatching")
			w.equal(all.refused, []string(nil), "refused with 401 in hour %d of a rotation", hour)
			w.Advance(time.Hour)
			all.now = w.now()
		}
	}
	w.equal(all.taken, published*len(all.owners), "deliveries taken")
}

// secretsRotatedAtOnce rotates through Registries on two stores.
func secretsRotatedAtOnce(w *world) {
	keys, err := sender.NewKeys(sender.SealingKey{ID: "k", Key: bytes.Repeat([]byte{1}, 32)})
	w.noError(err, "making keys")
	now := w.now()
	var regs []*sender.Registry[any]
	for _, store := range []Store[any]{w.Store, w.other().Store} {
		reg, err := sender.NewRegistry(store, keys, &sender.RegistryConfig{Now: func() time.Time { return now }})
		w.noError(err, "making a registry")
		regs = append(regs, reg)
	}
	owner := w.name("sub_")
	_, _, err = regs[0].CreateSubscriber(w.ctx, sender.NewSubscriber{ID: owner})
	w.noError(err, "creating a subscriber")
	newest := func() (id string, valid int) {
		list, err := regs[0].Secrets(w.ctx, owner)
		w.noError(err, "listing secrets")
		return list[0].ID, len(list)
	}
	first, _ := newest()
	made := make([]signing.Secret, 6)
	errs := make([]error, len(made))
	var all sync.WaitGroup
	for i := range made {
		all.Go(func() {
			made[i], _, errs[i] = regs[i%2].RotateSecret(w.ctx, owner, &sender.Rotation{IfNewest: first})
		})
	}
	all.Wait()
	for i, err := range errs {
		if err != nil {
			w.errorIs(err, sender.ErrNotNewest, "rotating at a time with others")
			w.equal(made[i], signing.Secret{}, "secret of a rotation that was refused")
		}
	}
	made = slices.DeleteFunc(made, func(s signing.Secret) bool { return s == signing.Secret{} })
	w.equal(len(made), 1, "secrets made by forms of one page")
	signs, err := regs[1].SigningSecret(w.ctx, owner)
	w.noError(err, "reading the secret that signs")
	w.equal(signs.Reveal(), made[0].Reveal(), "the secret that signs")

	second, valid := newest()
	w.equal(valid, 2, "valid secrets after a rotation")
	w.errorIs(regs[1].RetireBefore(w.ctx, owner, first), sender.ErrNotNewest, "retiring before one that is not the newest")
	_, valid = newest()
	w.equal(valid, 2, "valid secrets after nothing was retired")
	for range 2 { // there is nothing left to end
		w.noError(regs[1].RetireBefore(w.ctx, owner, second), "retiring before the newest")
		_, valid = newest()
		w.equal(valid, 1, "valid secrets after those before the newest were retired")
	}
}
