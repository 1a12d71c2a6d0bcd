package main

import (
	"context"
	"errors"

	"github.com/surehook/surehook/sender"
)

// challenged has a callback URL prove that its owner wants the events, if -challenge says
// so. No transaction may be open: it waits for a stranger's endpoint. at is where in the
// request the URL stands, and subscription the id that the challenge names, which need not
// be stored yet.
func (s *service) challenged(ctx context.Context, owner, subscription, url, at string) error {
	if s.challenger == nil {
		return nil
	}
	keyring, err := s.registry.Keyring(ctx, owner)
	if err != nil {
		return err
	}
	err = s.challenger.Challenge(ctx, sender.Challenge{Subscriber: owner, Subscription: subscription, URL: url, Keyring: keyring})
	if errors.Is(err, sender.ErrChallenge) {
		return invalid(at, "the URL must answer a POST of the type webhook.challenge, signed with the subscriber's secret, with 2xx and the token that it carries: "+plain(err))
	}
	if errors.Is(err, sender.ErrInvalid) {
		return nil // the registry refuses such a URL, and says all that is wrong
	}
	return err
}

// challengedOnce is challenged, for a request that can be repeated: a repeat is answered
// without asking again, unless the first one's answer is about to be forgotten.
func (s *service) challengedOnce(ctx context.Context, c caller, key, owner, url, at string) error {
	if s.challenger == nil || url == "" {
		return nil
	}
	known, err := s.answers.known(ctx, c, key)
	if err != nil || known {
		return err
	}
	return s.challenged(ctx, owner, newID("wsub_"), url, at)
}
