package soak

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/surehook/surehook/sender"
)

// subscribe registers a subscription that will not stay.
func (o *operator) subscribe(ctx context.Context) error {
	if len(o.living(func(s *slot) bool { return s.passing })) >= atMostPassing {
		return nil
	}
	o.made++
	types := [][]string{{"a.*"}, {"b.*"}, {"*"}, {"a.x", "b.y"}}
	s := &slot{
		name: fmt.Sprintf("passing-%d-%d", o.number, o.made), owner: o.owners[o.rng.IntN(len(o.owners))],
		types: types[o.rng.IntN(len(types))], temper: passingTemper, passing: true,
	}
	o.w.count("operator: subscribe")
	return o.join(ctx, s)
}

// join makes a slot and its subscription.
func (c *cycle) join(ctx context.Context, s *slot) error {
	c.ends.add(s)
	url := s.url
	if s.refused {
		url = c.ends.closed + s.name
	}
	began := time.Now()
	c.w.makes("surehook_subscriptions")
	sub, err := c.registry.Subscribe(ctx, sender.NewSubscription{
		Subscriber: s.owner.id, URL: url, EventTypes: s.types, Settings: sender.Settings{Rate: s.rate, MaxInFlight: s.atOnce},
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subscription, s.began, s.made = sub.ID, began, time.Now()
	return nil
}

// leave closes a subscription, or deletes it at once.
func (o *operator) leave(ctx context.Context) error {
	s := o.one(func(s *slot) bool { return s.passing })
	if s == nil {
		return nil
	}
	atOnce := o.rng.IntN(4) == 0
	s.mu.Lock()
	s.left, s.at = time.Now(), atOnce
	s.mu.Unlock()
	var err error
	if atOnce {
		o.w.count("operator: unsubscribe")
		err = o.registry.Unsubscribe(ctx, s.subscription)
	} else {
		o.w.count("operator: close")
		err = o.registry.Close(ctx, s.subscription)
	}
	if err != nil {
		return err
	}
	_, gone := o.registry.Subscription(ctx, s.subscription)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = time.Now()
	// Its failures had disabled it meanwhile, or it had nothing left.
	s.at = s.at || errors.Is(gone, sender.ErrNotFound)
	return nil
}
