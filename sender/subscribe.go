package sender

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"time"

	"github.com/surehook/surehook/internal/ident"
	"github.com/surehook/surehook/internal/newid"
	"github.com/surehook/surehook/sender/filter"
)

// Bounds of a subscription.
const (
	maxEventTypes  = 100
	maxDescription = 1024
)

// NewSubscription asks for a subscription.
type NewSubscription struct {
	// ID is the id that it gets: "wsub_" and letters, digits, hyphens and underscores, up to
	// 128 bytes in all. Empty: one is drawn.
	//
	// A caller who gives one can ask again: for a request that may come twice, for a form
	// that is sent twice, or at each start of a program. While the subscriber has a
	// subscription with that id, Subscribe changes nothing, challenges nobody and returns
	// that subscription as it is now, even if other settings are asked for. If that matters,
	// compare, and call Update. ErrExists: the id is that of another subscriber's
	// subscription, or of an implicit, a closing or a deleted one.
	ID string
	// Subscriber is the id of its owner. The Operator's subscriptions get the
	// events of all subscribers.
	Subscriber string
	// URL is where events are posted to. Its form and any literal address are
	// checked now; the address that is dialled is checked at every attempt. Its
	// name is not looked up now.
	URL string
	// EventTypes are exact types, "prefix.*" or "*", up to 100. Nil means "*". A list that is
	// not nil must not be empty: to ask for nothing would be a mistake, and to take it for
	// everything a worse one.
	EventTypes []string
	// Filter asks for some of the events of these types, by their content: an expression as
	// package filter has it, such as {"data.status": "paid"}. It sees the data that the
	// subscription gets: in the version of Settings.PayloadVersion. "": all of them.
	Filter      string
	Description string // up to 1024 bytes of UTF-8 without NUL
	// Settings adjust how its deliveries are posted. SealedCertificate must be
	// empty: give ClientCertificate.
	Settings Settings
	// ClientCertificate, if not nil, is shown to its endpoint, which must be https.
	// It is sealed like a secret.
	ClientCertificate *ClientCertificate
}

// Subscribe registers a callback URL. It gets the events that are committed after it. If
// the configuration has a Challenger, the URL is challenged first, outside of any
// transaction, and registered only if it answers. ErrInvalid: the id, the URL, the filter,
// the settings or the certificate are refused, with a *FieldError for each of them that
// says why. ErrNotFound: no such subscriber. ErrExists: the id is in use, or was, see
// NewSubscription.ID. ErrChallenge: the URL did not answer as it must (see
// challenge.Error). ErrProxy: the URL could not be asked.
func (r *Registry[Tx]) Subscribe(ctx context.Context, n NewSubscription) (Subscription, error) {
	asked, err := r.subscription(n)
	if err != nil {
		return Subscription{}, err
	}
	if n.ID != "" && r.challenger != nil {
		was, err := r.Subscription(ctx, n.ID)
		if err == nil && asked.registeredAs(&was) {
			return was, nil
		}
		if err != nil && !errors.Is(err, ErrNotFound) {
			return Subscription{}, err
		}
	}
	if err := r.challenge(ctx, asked); err != nil {
		return Subscription{}, err
	}
	var s Subscription
	err = r.store.InTx(ctx, func(tx Tx) (err error) {
		s, err = r.register(ctx, tx, asked, n.ID != "")
		return err
	})
	if err != nil {
		return Subscription{}, err
	}
	return s, nil
}

// SubscribeTx is Subscribe in the caller's transaction. It challenges nobody, even
// if the configuration has a Challenger: a transaction must not wait for a
// stranger's endpoint.
func (r *Registry[Tx]) SubscribeTx(ctx context.Context, tx Tx, n NewSubscription) (Subscription, error) {
	s, err := r.subscription(n)
	if err != nil {
		return Subscription{}, err
	}
	return r.register(ctx, tx, s, n.ID != "")
}

// register stores a subscription. If the caller has given its id, and the subscriber has one
// with that id, it returns that one.
func (r *Registry[Tx]) register(ctx context.Context, tx Tx, s Subscription, given bool) (Subscription, error) {
	err := r.store.CreateSubscriptionTx(ctx, tx, s)
	if err == nil {
		return s, nil
	}
	if !given || !errors.Is(err, ErrExists) {
		return Subscription{}, err
	}
	was, missing := r.store.SubscriptionTx(ctx, tx, SubscriptionKey{ID: s.ID})
	switch {
	case missing == nil && s.registeredAs(&was):
		return was, nil
	case missing != nil && !errors.Is(missing, ErrNotFound):
		return Subscription{}, missing
	}
	return Subscription{}, err
}

// registeredAs tells whether a subscription with the id of one that is asked for is what
// the same subscriber has registered before.
func (s *Subscription) registeredAs(was *Subscription) bool {
	return was.Subscriber == s.Subscriber && !was.Implicit && was.Status != SubscriptionClosing
}

// challenge makes sure of a subscription as it is to be, before it is stored. No
// transaction may be open.
func (r *Registry[Tx]) challenge(ctx context.Context, s Subscription) error {
	if r.challenger == nil {
		return nil
	}
	if err := s.Settings.Unreadable(); err != nil {
		return fmt.Errorf("%w (subscription %q)", err, s.ID)
	}
	keyring, err := r.Keyring(ctx, s.Subscriber)
	if err != nil {
		return err
	}
	header, err := r.keys.Headers(s.ID, s.Settings.Headers)
	if err != nil {
		return err
	}
	c := Challenge{Subscriber: s.Subscriber, Subscription: s.ID, URL: s.URL, Settings: s.Settings, Keyring: keyring, Header: header}
	if len(s.Settings.SealedCertificate) > 0 {
		if c.Certificate, err = r.keys.Certificate(s.ID, s.Settings.SealedCertificate); err != nil {
			return err
		}
	}
	return r.challenger.Challenge(ctx, c)
}

// subscription makes what is asked for.
func (r *Registry[Tx]) subscription(n NewSubscription) (Subscription, error) {
	now := r.now()
	id := n.ID
	if id == "" {
		id = newid.New(subscriptionPrefix, now)
	}
	s, err := r.validated(n, Subscription{ID: id, Subscriber: n.Subscriber, Status: SubscriptionActive, CreatedAt: now.UTC().Truncate(time.Microsecond)})
	if err := errors.Join(checkSubscriptionID(id), err); err != nil {
		return Subscription{}, err
	}
	return s, nil
}

// subscriptionPrefix begins the ids of subscriptions.
const subscriptionPrefix = "wsub_"

func checkSubscriptionID(id string) error {
	if err := ident.PrefixedID(subscriptionPrefix, id); err != nil {
		return refuseField("id", "id: ", "it %v", err)
	}
	return nil
}

// validated returns s with what n asks for, or an error that says all that is wrong with
// that. The subscription keeps its certificate, unless another one is given.
func (r *Registry[Tx]) validated(n NewSubscription, s Subscription) (Subscription, error) {
	var errs []error
	u, err := r.network.CheckURL(n.URL)
	if err != nil {
		errs = append(errs, refuseURL("subscription", r.network, n.URL, err))
	}
	types, err := checkEventTypes(n.EventTypes)
	if err != nil {
		errs = append(errs, err)
	}
	if !s.Implicit && !(n.Settings.Order == s.Settings.Order && slices.Equal(types, s.EventTypes)) {
		if err := r.limits.checkFacts(types, n.Settings.Order); err != nil {
			errs = append(errs, err)
		}
	}
	f, filterErr := checkFilter(n.Filter, s.Implicit)
	errs = append(errs, filterErr...)
	if len(n.Description) > maxDescription {
		errs = append(errs, refuseField("description", "description: ", "it has %d bytes, at most %d are allowed", len(n.Description), maxDescription))
	}
	if err := ident.Storable("description", n.Description); err != nil {
		errs = append(errs, refuseField("description", "", "%v", err))
	}
	if err := n.Settings.Unreadable(); err != nil { // they are those of another subscription
		errs = append(errs, fmt.Errorf("%w subscription: settings: %w", ErrInvalid, err))
	}
	// Limits that have become narrower must not keep an owner from changing anything else. The
	// dispatcher keeps to its own.
	if err := n.Settings.besides(&s.Settings).check(r.limits); err != nil {
		errs = append(errs, err)
	}
	if !n.Settings.samePolicy(&s.Settings) {
		if err := r.limits.policies.check(&n.Settings); err != nil {
			errs = append(errs, err)
		}
	}
	pinned, err := r.limits.pinned(n.Settings.PayloadVersion, s.Settings.PayloadVersion, s.URL == "")
	if err != nil {
		errs = append(errs, err)
	}
	n.Settings.PayloadVersion = pinned
	if err := r.keys.checkSealed(n.Settings.Headers, s); err != nil {
		errs = append(errs, err)
	}
	certificate, certificateErrs := r.sealedCertificate(n, s, u)
	errs = append(errs, certificateErrs...)
	if err := errors.Join(errs...); err != nil {
		return Subscription{}, err
	}
	s.URL, s.EventTypes, s.Filter, s.Description, s.Settings = u.String(), types, f, n.Description, n.Settings.normalised()
	s.Settings.SealedCertificate = certificate
	r.keys.sealHeaders(s.ID, s.Settings.Headers)
	return s, nil
}

// sealedCertificate returns the client certificate that a subscription is to have, sealed:
// the given one, or the one that it has. u is the subscription's URL, or nil if that is
// refused.
func (r *Registry[Tx]) sealedCertificate(n NewSubscription, s Subscription, u *url.URL) (certificate []byte, errs []error) {
	if len(n.Settings.SealedCertificate) > 0 {
		errs = append(errs, refuseField("client_certificate", "settings: ", "a sealed certificate belongs to the subscription that it was sealed for: give ClientCertificate"))
	}
	certificate = s.Settings.SealedCertificate
	if n.ClientCertificate != nil {
		text, err := n.ClientCertificate.text(r.now())
		if err != nil {
			errs = append(errs, err)
		} else {
			certificate = r.keys.sealCertificate(s.ID, text)
		}
	}
	if (n.ClientCertificate != nil || certificate != nil) && u != nil && u.Scheme != "https" {
		errs = append(errs, refuseField("client_certificate", "client certificate: ", "the URL must be https"))
	}
	return certificate, errs
}

func checkEventTypes(types []string) ([]string, error) {
	if types == nil {
		return []string{"*"}, nil
	}
	if len(types) == 0 {
		return nil, refuseField("event_types", "event types: ", `the list is empty: name one or more, or "*" for all`)
	}
	if len(types) > maxEventTypes {
		return nil, refuseField("event_types", "", `it asks for %d event types: at most %d are allowed; "prefix.*" covers many`, len(types), maxEventTypes)
	}
	var errs []error
	for _, asked := range types {
		if err := ident.TypePattern(asked); err != nil {
			errs = append(errs, refuseField("event_types", "", `event type %q: it must be an exact type, "prefix.*" or "*": %v`, asked, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	types = slices.Clone(types)
	slices.Sort(types)
	return slices.Compact(types), nil
}

// checkFilter reads the filter of a subscription, and says all that is wrong with it.
func checkFilter(text string, implicit bool) (f *filter.Filter, errs []error) {
	if text == "" {
		return nil, nil
	}
	if implicit {
		return nil, []error{refuseField("filter", "filter: ", "an implicit subscription has none: it gets what is addressed to it")}
	}
	f, err := filter.Parse([]byte(text))
	if err == nil {
		return f, nil
	}
	wrong := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok { // it is how Parse joins them
		wrong = joined.Unwrap()
	}
	for _, each := range wrong {
		errs = append(errs, refuseField("filter", "filter: ", "%v", each))
	}
	return nil, errs
}

// LogValue shows the settings as Settings.LogValue does, and nothing of the certificate.
func (n NewSubscription) LogValue() slog.Value {
	return slog.StringValue(fmt.Sprint(n))
}

// Format writes all fields with their names, whatever the verb: with one that does not
// suit a field, fmt would write that without asking it.
func (n NewSubscription) Format(f fmt.State, _ rune) {
	type plain NewSubscription
	_, _ = fmt.Fprintf(f, "%+v", plain(n))
}
