package main

import (
	"context"
	"database/sql"
	"errors"

	"github.com/surehook/surehook/sender"
)

// challenged has a callback URL prove that its owner wants the events, if -challenge says
// so. No transaction may be open: it waits for a stranger's endpoint. at is where in the
// request the URL stands, and subscription the id that the challenge names, which need not
// be stored yet.
func (s *service) challenged(ctx context.Context, owner, subscription, url, at string) error {
	if s.challenger == nil || url == "" {
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

// challengedOnce is once for a request about a callback URL, which challenge has prove itself
// before. A repeat is answered without asking again, and by what is read here: whatever comes
// to once was challenged, so an answer that is forgotten meanwhile lets no URL pass.
func challengedOnce[B any](ctx context.Context, s *service, c caller, key string, request any, challenge func() error, do func(tx *sql.Tx) (B, error)) (body B, err error) {
	if s.challenger != nil {
		body, repeat, err := answered[B](ctx, s.answers, c, key, request)
		if err != nil || repeat {
			return body, err
		}
		if err := challenge(); err != nil {
			return body, err
		}
	}
	return once(ctx, s.answers, c, key, request, do)
}
