package sender

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/surehook/surehook/internal/ident"
	"github.com/surehook/surehook/internal/newid"
)

// Callback is the address of an event for one callback URL alone. Nobody has registered
// that URL: somebody gave it with a request, to learn of the request's end.
//
// Its deliveries are those of an implicit subscription that stands for all callback URLs
// of a subscriber at one origin (scheme, host and port). So they share its bounds and its
// payload version, which is the newest at the first of them until Registry.Update raises it.
// Their failures are counted together, and the owner can pause and resume all of them.
type Callback struct {
	Subscriber   string // its id, whose secret signs
	Subscription string // the id of the implicit one
	URL          string // as it is posted to
}

// Event returns e addressed to the callback.
func (c Callback) Event(e Event) Event {
	e.Subscriber, e.Subscription, e.URL = c.Subscriber, c.Subscription, c.URL
	return e
}

// Callback checks a callback URL as Subscribe does, without a challenge, and finds or makes
// the implicit subscription of its subscriber and origin. Events can be published to it
// from then on. ErrInvalid: the URL is refused, and why, as a *FieldError; ErrNotFound: no
// such subscriber.
func (r *Registry[Tx]) Callback(ctx context.Context, subscriber, rawURL string) (c Callback, err error) {
	err = r.store.InTx(ctx, func(tx Tx) error {
		c, err = r.CallbackTx(ctx, tx, subscriber, rawURL)
		return err
	})
	return c, err
}

// CallbackTx is Callback in the caller's transaction, in which the event can be
// published at once. The first one of an origin keeps others of the same subscriber
// and origin waiting until its transaction ends.
func (r *Registry[Tx]) CallbackTx(ctx context.Context, tx Tx, subscriber, rawURL string) (Callback, error) {
	u, err := r.network.CheckURL(rawURL)
	if err != nil {
		return Callback{}, refuseURL("callback", r.network, rawURL, err)
	}
	origin := (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/"}).String()
	c := Callback{Subscriber: subscriber, URL: u.String()}
	// Another one can be made, or closed, between the two.
	for range 3 {
		s, err := r.store.SubscriptionTx(ctx, tx, SubscriptionKey{Subscriber: subscriber, Origin: origin})
		if errors.Is(err, ErrNotFound) {
			now := r.now()
			s = Subscription{
				ID: newid.New(subscriptionPrefix, now), Subscriber: subscriber, URL: origin, EventTypes: []string{}, Implicit: true, Settings: Settings{PayloadVersion: r.limits.payloadVersion},
				Status: SubscriptionActive, CreatedAt: now.UTC().Truncate(time.Microsecond),
			}
			err = r.store.CreateSubscriptionTx(ctx, tx, s)
		}
		if err == nil {
			c.Subscription = s.ID
			return c, nil
		}
		if !errors.Is(err, ErrExists) {
			return Callback{}, err
		}
	}
	return Callback{}, fmt.Errorf("%w: the implicit subscription of subscriber %q for %s", ErrRetryTx, subscriber, origin)
}

// checkURL refuses what could not be posted to. The registry and the dispatcher say which
// addresses may be called.
func (e *Event) checkURL() error {
	if e.Subscription == "" {
		return errors.New("url is given without a subscription: only what is addressed to one can be posted elsewhere")
	}
	if err := ident.Storable("url", e.URL); err != nil {
		return err
	}
	u, err := url.Parse(e.URL)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.Fragment != "" || strings.ContainsAny(e.URL, " \t\r\n") {
		return errors.New("url is not one that can be posted to: take that of a Callback")
	}
	return nil
}
