package sender

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/surehook/surehook/internal/guard"
	"github.com/surehook/surehook/internal/ident"
	"github.com/surehook/surehook/internal/newid"
	"github.com/surehook/surehook/internal/pagesize"
	"github.com/surehook/surehook/signing"
)

// RegistryConfig adjusts a Registry. A nil config and zero fields mean the
// defaults.
type RegistryConfig struct {
	// Network says which addresses callback URLs may name. Give the Dispatcher
	// the same.
	Network Network

	// MaxTimeout is the longest Settings.Timeout that a subscription may have. The
	// default is 10 s, like a Dispatcher's; at most 30 s.
	MaxTimeout time.Duration

	// Proxies are the names that a subscription may have in Settings.Proxy: those
	// of the Dispatcher's Proxies, or some of them.
	Proxies []string

	// Challenger, if set, makes sure of every callback URL before it is registered:
	// see challenge.New, and Challenger for one of your own.
	Challenger Challenger

	// Schemes are those by which deliveries are signed. A secret with which none of them can
	// sign is refused. The default is signing.DefaultSchemes. Give the Dispatcher the same.
	Schemes []signing.Scheme

	// Retention says how far back events may be sent again without force: see Resume.
	// Give the Dispatcher the same.
	Retention Retention

	// PayloadVersion is what new subscriptions are pinned to, and the newest that one can be
	// pinned to: the newest date of the catalogue. Empty: there is no catalogue, and
	// subscriptions are pinned to nothing. See Settings.PayloadVersion.
	PayloadVersion string

	// Facts are the event types of which each event counts: the catalogue's (see
	// catalogue.Catalogue.Facts). A subscription cannot ask for one of them with
	// OrderLatest, which would end older ones undelivered. One that does so already stays
	// as it is. The default is none.
	Facts []string

	// OwnPolicies say which retry schedules, horizons and times until disabling subscriptions
	// may have of their own. The default is none. Give the Dispatcher the same, as
	// Policy.Own.
	OwnPolicies PolicyBounds

	// Now is the clock of CreatedAt and of the ids. The default is time.Now.
	Now func() time.Time
}

// Network says which addresses may be called. The zero value allows globally
// routable ones alone, over https.
type Network struct {
	// AllowPrivateNetworks lets callback URLs lead to loopback, private and all
	// other addresses, and use http: for development, and for services whose
	// subscribers are inside. Anyone who may register a URL can then make this
	// process send requests into its own network. The addresses of clouds' metadata
	// services, such as 169.254.169.254 and fd00:ec2::254, stay closed, unless Allow
	// has them.
	AllowPrivateNetworks bool

	// Allow lists networks that may be called although they are not globally
	// routable, or are metadata services; Deny those that may not, whatever else is
	// said, such as one's own public addresses. An address is judged in this order:
	// Deny, Allow, the metadata services, AllowPrivateNetworks, and whether it is
	// globally routable.
	Allow, Deny []netip.Prefix
}

// NewSubscriber asks for a subscriber.
type NewSubscriber struct {
	// ID is letters, digits, hyphens and underscores, up to 128. Empty: made up.
	ID string
	// Secret is its signing secret, of the texts that signing.ParseSecret reads. Zero:
	// generated.
	Secret signing.Secret
}

// Registry keeps subscribers and their subscriptions. It is safe for concurrent
// use. The methods that end in Tx run in the caller's transaction.
//
// It does not ask who calls: a method that is given a subscription's id works on that one,
// whoever owns it. A service must check that Subscription.Subscriber is the customer who
// asks.
type Registry[Tx any] struct {
	store      Store[Tx]
	keys       *Keys
	keeps      Retention
	network    guard.Policy
	limits     settingsLimits
	challenger Challenger
	schemes    []signing.Scheme
	now        func() time.Time

	inReadTx func(ctx context.Context, fn func(tx Tx) error) error // for what only reads
}

// NewRegistry returns a Registry on a store, which seals the secrets with keys.
func NewRegistry[Tx any](store Store[Tx], keys *Keys, cfg *RegistryConfig) (*Registry[Tx], error) {
	var c RegistryConfig
	if cfg != nil {
		c = *cfg
	}
	var errs []error
	if store == nil {
		errs = append(errs, errors.New("sender: NewRegistry needs a store"))
	}
	if keys == nil {
		errs = append(errs, errors.New("sender: NewRegistry needs keys to seal secrets with: see NewKeys"))
	}
	if err := guard.Policy(c.Network).Validate(); err != nil {
		errs = append(errs, fmt.Errorf("sender: RegistryConfig.Network: %w", err))
	}
	if c.MaxTimeout == 0 {
		c.MaxTimeout = DefaultTimeout
	}
	if c.MaxTimeout < minTimeout || c.MaxTimeout > MaxTimeout {
		errs = append(errs, fmt.Errorf("sender: RegistryConfig.MaxTimeout is %v: it must be from %v to %v", c.MaxTimeout, minTimeout, MaxTimeout))
	}
	for _, name := range c.Proxies {
		if err := ident.ProxyName(name); err != nil {
			errs = append(errs, fmt.Errorf("sender: RegistryConfig.Proxies: %w", err))
		}
	}
	if c.PayloadVersion != "" {
		if err := checkPayloadVersion(c.PayloadVersion); err != nil {
			errs = append(errs, fmt.Errorf("sender: RegistryConfig.PayloadVersion: %w", err))
		}
	}
	for _, name := range c.Facts {
		if err := ident.Type(name); err != nil {
			errs = append(errs, fmt.Errorf("sender: RegistryConfig.Facts: %q: %w", name, err))
		}
	}
	if c.Schemes == nil {
		c.Schemes = signing.DefaultSchemes()
	}
	if len(c.Schemes) == 0 || slices.Contains(c.Schemes, nil) {
		errs = append(errs, errors.New("sender: RegistryConfig.Schemes is empty, or holds a nil scheme: leave it out for signing.DefaultSchemes"))
	}
	c.Retention = c.Retention.WithDefaults()
	errs = append(errs, c.Retention.Problems(c.OwnPolicies.Horizon())...)
	errs = append(errs, c.OwnPolicies.Problems()...)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	r := &Registry[Tx]{
		store: store, keys: keys, keeps: c.Retention, network: guard.Policy(c.Network), now: c.Now, challenger: c.Challenger, schemes: slices.Clone(c.Schemes),
		limits: settingsLimits{timeout: c.MaxTimeout, proxies: slices.Clone(c.Proxies), payloadVersion: c.PayloadVersion, facts: slices.Clone(c.Facts), policies: c.OwnPolicies},
	}
	if r.now == nil {
		r.now = time.Now
	}
	r.inReadTx = store.InTx
	if reader, ok := store.(Reader[Tx]); ok {
		r.inReadTx = reader.InReadTx
	}
	return r, nil
}

// CreateSubscriber registers a subscriber and returns it with its secret, which
// the owner needs to verify what it receives. ErrExists: the id is or was in
// use. ErrInvalid: the id is not of the form that is asked for (a FieldError), or the secret
// cannot sign.
func (r *Registry[Tx]) CreateSubscriber(ctx context.Context, n NewSubscriber) (s Subscriber, secret signing.Secret, err error) {
	err = r.store.InTx(ctx, func(tx Tx) error {
		s, secret, err = r.CreateSubscriberTx(ctx, tx, n)
		return err
	})
	return s, secret, err
}

// CreateSubscriberTx is CreateSubscriber in the caller's transaction, which goes on after
// ErrExists: so a caller can ask for a subscriber that may be there already.
func (r *Registry[Tx]) CreateSubscriberTx(ctx context.Context, tx Tx, n NewSubscriber) (Subscriber, signing.Secret, error) {
	now := r.now()
	if n.ID == "" {
		n.ID = newid.New("sub_", now)
	}
	if err := ident.EventID(n.ID); err != nil {
		return Subscriber{}, signing.Secret{}, &FieldError{Field: "id", Reason: strings.TrimPrefix(err.Error(), "event "), before: "subscriber: "}
	}
	secret, err := r.newSecret(n.Secret, now)
	if err != nil {
		return Subscriber{}, signing.Secret{}, fmt.Errorf("%w subscriber: secret: %w", ErrInvalid, err)
	}
	s := Subscriber{ID: n.ID, CreatedAt: now.UTC().Truncate(time.Microsecond)}
	sealed := r.keys.sealSecret(n.ID, newid.New("sec_", now), secret)
	if err := r.store.CreateSubscriberTx(ctx, tx, s, []SealedSecret{sealed}); err != nil {
		return Subscriber{}, signing.Secret{}, err
	}
	return s, secret, nil
}

// newSecret returns the given secret, or a generated one if there is none.
func (r *Registry[Tx]) newSecret(given signing.Secret, now time.Time) (signing.Secret, error) {
	if given != (signing.Secret{}) {
		return given, r.canSign(given, now)
	}
	secret := signing.GenerateSecret()
	if err := r.canSign(secret, now); err != nil {
		return signing.Secret{}, fmt.Errorf("a generated one does not suit the schemes, so it must be given: %w", err)
	}
	return secret, nil
}

// canSign refuses what would make every delivery impossible, such as a public key. It looks
// at the secret as it will be when it was sealed and opened.
func (r *Registry[Tx]) canSign(secret signing.Secret, now time.Time) error {
	secret, err := signing.ParseSecret(secret.Reveal())
	if err != nil {
		return fmt.Errorf("it must be one that signing.ParseSecret reads: %w", err)
	}
	keyring, err := signing.NewKeyring(signing.Key{ID: "new", Secret: secret})
	if err != nil {
		return err
	}
	// A scheme may want headers that only a delivery has.
	if err := signing.Sign(http.Header{}, r.schemes, "evt_1", now, nil, keyring); errors.Is(err, signing.ErrSecretUnsuited) {
		return err
	}
	return nil
}

// Subscriber returns a subscriber, or ErrNotFound.
func (r *Registry[Tx]) Subscriber(ctx context.Context, id string) (s Subscriber, err error) {
	err = r.inReadTx(ctx, func(tx Tx) error {
		s, err = r.store.SubscriberTx(ctx, tx, id)
		return err
	})
	return s, err
}

// Keyring opens a subscriber's secrets, or returns ErrNotFound or ErrSealed.
func (r *Registry[Tx]) Keyring(ctx context.Context, subscriber string) (*signing.Keyring, error) {
	var sealed SealedKeyring
	err := r.inReadTx(ctx, func(tx Tx) (err error) {
		sealed, err = r.store.SubscriberKeyringTx(ctx, tx, subscriber)
		return err
	})
	if err != nil {
		return nil, err
	}
	return r.keys.Keyring(sealed)
}

// Subscription returns a subscription, or ErrNotFound.
func (r *Registry[Tx]) Subscription(ctx context.Context, id string) (s Subscription, err error) {
	err = r.inReadTx(ctx, func(tx Tx) error {
		s, err = r.store.SubscriptionTx(ctx, tx, SubscriptionKey{ID: id})
		return err
	})
	return s, err
}

// maxListed is how many subscriptions Subscriptions reads at once.
const maxListed = 1000

// Subscriptions lists subscriptions, except implicit ones, oldest first: up to
// limit (1 to 200; 0 means 50) after the one with the id after. If subscriber is not
// empty, its own only. History.Subscriptions lists implicit ones too. ErrInvalid: the
// limit, or a text that can be no id. ErrNotFound: there never was a subscription with the
// id after, or it was pruned.
func (r *Registry[Tx]) Subscriptions(ctx context.Context, subscriber, after string, limit int) (list []Subscription, err error) {
	limit, err = pagesize.Of(ErrInvalid, limit)
	if err := errors.Join(append(ident.AllStorable(ErrInvalid, ident.Text{Name: "subscriber", Text: subscriber}, ident.Text{Name: "after", Text: after}), err)...); err != nil {
		return nil, err
	}
	err = r.inReadTx(ctx, func(tx Tx) error {
		list = nil
		from := after
		// Pages grow, since there may be a thousand implicit ones for each other.
		for size := limit; len(list) < limit; size = min(2*size, maxListed) {
			page, err := r.store.SubscriptionsTx(ctx, tx, subscriber, from, size)
			if err != nil {
				return err
			}
			for _, s := range page {
				if !s.Implicit && len(list) < limit {
					list = append(list, s)
				}
			}
			if len(page) < size {
				return nil
			}
			from = page[len(page)-1].ID
		}
		return nil
	})
	return list, err
}

// Unsubscribe deletes a subscription. Its deliveries that have not ended are cancelled. Its
// records stay readable. Its settings are erased once no attempt is in flight, with the
// sealed values of its headers and its client certificate. ErrNotFound: no such
// subscription.
func (r *Registry[Tx]) Unsubscribe(ctx context.Context, id string) error {
	return r.store.InTx(ctx, func(tx Tx) error { return r.UnsubscribeTx(ctx, tx, id) })
}

// UnsubscribeTx is Unsubscribe in the caller's transaction.
func (r *Registry[Tx]) UnsubscribeTx(ctx context.Context, tx Tx, id string) error {
	return r.store.DeleteSubscriptionTx(ctx, tx, id)
}
