package surehook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/catalogue"
	"github.com/surehook/surehook/sender/challenge"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/replay"
	"github.com/surehook/surehook/signing"
)

// Store is what a Sender needs of a database. sender/postgres, sender/sqlite and
// sender/memory have it.
type Store[Tx any] interface {
	sender.Store[Tx]
	dispatch.Store
	history.Store
	replay.Store
}

// Sender is the sending side of a service: its parts, which agree with each other. It
// starts nothing until Run. The methods of the Publisher are its own: Publish, PublishMany,
// PublishTx, PublishManyTx, InTx and Wake. It is safe for concurrent use.
type Sender[Tx any] struct {
	*sender.Publisher[Tx]
	Registry   *sender.Registry[Tx]
	Dispatcher *dispatch.Dispatcher
	History    *history.History
	Replays    *replay.Replays
}

// SenderConfig adjusts a Sender. A nil config and zero fields mean the defaults of the
// parts.
type SenderConfig struct {
	// OlderKeys open the secrets that they have sealed: see [sender.Registry.Rewrap].
	OlderKeys []sender.SealingKey

	// Network says which addresses may be called. It is checked when a URL is registered,
	// and at every dial.
	Network sender.Network

	// Retention says how long records are kept, and how far back events may be sent again.
	Retention sender.Retention

	// Timeout bounds an attempt and a challenge, and is the most that a subscription's
	// Settings.Timeout may ask for. The default is 10 s, the most is 30 s.
	Timeout time.Duration

	// Proxies are the HTTP proxies that a subscription's Settings.Proxy can name: see
	// [dispatch.Config].
	Proxies sender.Proxies

	// Schemes sign deliveries and challenges. A secret with which none of them can sign is
	// refused when it is given. The default is signing.DefaultSchemes.
	Schemes []signing.Scheme

	// UserAgent is the header's value. The default is "surehook".
	UserAgent string

	// Logger gets what an operator should know: see [dispatch.Config]. The default is
	// slog.Default().
	Logger *slog.Logger

	// Now is the clock of ids, of OccurredAt and of the reach. Leases and schedules go by
	// the database's clock. The default is time.Now.
	Now func() time.Time

	// Challenge has every callback URL prove, before it is registered, that its owner wants
	// the events: see package challenge.
	Challenge bool

	// Challenger makes sure of every callback URL in a way of its own, such as by a list of
	// owners, before it is registered. With it, Challenge must be false. The default is nil.
	Challenger sender.Challenger

	// MaxBodyBytes bounds an event's body, also in an older payload version. The default is
	// 1 MiB.
	MaxBodyBytes int

	// Traceparent returns the trace context of a publish: see [sender.PublisherConfig]. It
	// goes to receivers only with [dispatch.Config].Traceparent, in Dispatch.
	Traceparent func(ctx context.Context) string

	// Catalogue has the service's event types. Events are published in the newest version of
	// their type's data, and new subscriptions are pinned to it: see [sender.Settings]. An
	// event in a version that its type does not have is refused, and so is a subscription that
	// asks for a fact in the order OrderLatest: see [sender.RegistryConfig].Facts. All
	// processes on one database have the same catalogue, or while it is deployed the one before.
	Catalogue *catalogue.Catalogue

	// OwnPolicies say which retry schedules, horizons and times until disabling subscriptions
	// may have of their own: see [sender.Settings]. The default is none.
	OwnPolicies sender.PolicyBounds

	// PublishCheck refuses payloads: see [sender.PublisherConfig].Check.
	PublishCheck func(ctx context.Context, p sender.Payload) error

	// RequireSubscriber refuses events that name no subscriber, so that none goes to all by
	// mistake: see [sender.PublisherConfig].
	RequireSubscriber bool

	// PublishHooks are called at each publish.
	PublishHooks sender.PublishHooks

	// Dispatch has what only the Dispatcher needs: Policy, Slots, MaxDelay, Hooks, Notifier
	// and so on. A field that SenderConfig has too must be zero in it.
	Dispatch dispatch.Config
}

// NewSender returns a Sender on a store. key seals the customers' secrets at rest. It
// touches no database. The error has all that is wrong with what it is given, or else all that
// the parts refuse.
func NewSender[Tx any](store Store[Tx], key sender.SealingKey, cfg *SenderConfig) (*Sender[Tx], error) {
	var c SenderConfig
	if cfg != nil {
		c = *cfg
	}
	problems := c.overlaps()
	if c.Challenge && c.Challenger != nil {
		problems = append(problems, errors.New("surehook: SenderConfig.Challenge and SenderConfig.Challenger are both set: leave out Challenge, for the Challenger takes its place"))
	}
	if store == nil {
		problems = append(problems, errors.New("surehook: NewSender needs a store: see the packages sender/postgres and sender/sqlite"))
	}
	keys, err := sender.NewKeys(key, c.OlderKeys...)
	if err := errors.Join(append(problems, err)...); err != nil {
		return nil, err
	}

	d := c.Dispatch
	d.Network, d.Retention, d.Timeout, d.Proxies = c.Network, c.Retention, c.Timeout, c.Proxies
	d.Schemes, d.UserAgent, d.Logger, d.Policy.Own, d.MaxBodyBytes = c.Schemes, c.UserAgent, c.Logger, c.OwnPolicies, c.MaxBodyBytes
	h := history.Config{Retention: c.Retention, Now: c.Now}
	if c.Catalogue != nil {
		d.Convert, h.Convert = c.Catalogue.Convert, c.Catalogue.Convert
	}
	s := &Sender[Tx]{}
	var errs [6]error
	s.Dispatcher, errs[0] = dispatch.New(store, keys, &d)
	p := sender.PublisherConfig{
		MaxBodyBytes: c.MaxBodyBytes, Now: c.Now, Traceparent: c.Traceparent, Check: c.PublishCheck, RequireSubscriber: c.RequireSubscriber, Hooks: c.PublishHooks,
	}
	if c.Catalogue != nil {
		p.PayloadVersion, p.Check = c.Catalogue.PayloadVersion, c.checkPayload
	}
	s.Publisher, errs[1] = sender.NewPublisher(store, &p)
	s.History, errs[2] = history.New(store, &h)
	s.Replays, errs[3] = replay.New(store, &replay.Config{Retention: c.Retention, Now: c.Now})
	r := sender.RegistryConfig{
		Network: c.Network, MaxTimeout: c.Timeout, Proxies: slices.Sorted(maps.Keys(c.Proxies)), Retention: c.Retention, Now: c.Now, OwnPolicies: c.OwnPolicies, Challenger: c.Challenger,
		Schemes: c.Schemes,
	}
	if c.Catalogue != nil {
		r.PayloadVersion, r.Facts = c.Catalogue.Newest(), c.Catalogue.Facts()
	}
	if c.Challenge {
		r.Challenger, errs[4] = challenge.New(&challenge.Config{
			Network: c.Network, Timeout: c.Timeout, Proxies: c.Proxies, UnguardedTransport: d.UnguardedTransport, Schemes: c.Schemes, UserAgent: c.UserAgent,
		})
	}
	s.Registry, errs[5] = sender.NewRegistry(store, keys, &r)
	if err := joined(errs[:]); err != nil {
		return nil, err
	}
	return s, nil
}

// checkPayload refuses a payload version that could not be delivered, and then what
// PublishCheck does.
func (c *SenderConfig) checkPayload(ctx context.Context, p sender.Payload) error {
	if err := c.Catalogue.CheckVersion(p.Type, p.Version); err != nil {
		return err
	}
	if c.PublishCheck == nil {
		return nil
	}
	return c.PublishCheck(ctx, p)
}

// Run delivers until ctx ends, then drains. It returns at once if a key or a migration is
// missing: see [dispatch.Dispatcher.Run]. Any number of processes may run; one that only
// publishes does not call it.
func (s *Sender[Tx]) Run(ctx context.Context) error { return s.Dispatcher.Run(ctx) }

// overlaps refuses settings of Dispatch that all parts share: each is given once.
func (c *SenderConfig) overlaps() (errs []error) {
	d := &c.Dispatch
	for _, shared := range []struct {
		field string
		set   bool   // in Dispatch
		as    string // the field of SenderConfig; "": it has the same name
	}{
		{"Network", !reflect.ValueOf(d.Network).IsZero(), ""},
		{"Retention", d.Retention != sender.Retention{}, ""},
		{"Timeout", d.Timeout != 0, ""},
		{"Proxies", d.Proxies != nil, ""},
		{"Schemes", d.Schemes != nil, ""},
		{"UserAgent", d.UserAgent != "", ""},
		{"Logger", d.Logger != nil, ""},
		{"Convert", d.Convert != nil, "Catalogue"},
		{"MaxBodyBytes", d.MaxBodyBytes != 0, ""},
		{"Policy.Own", d.Policy.Own != sender.PolicyBounds{}, "OwnPolicies"},
	} {
		if shared.set {
			errs = append(errs, fmt.Errorf("surehook: SenderConfig.Dispatch.%s is set: set SenderConfig.%s, which all parts share", shared.field, cmp.Or(shared.as, shared.field)))
		}
	}
	return errs
}

// joined are several parts' problems, each once.
func joined(errs []error) error {
	var all []error
	seen := map[string]bool{}
	for _, err := range errs {
		for _, problem := range problemsOf(err) {
			if text := problem.Error(); !seen[text] {
				seen[text] = true
				all = append(all, problem)
			}
		}
	}
	return errors.Join(all...)
}

// problemsOf takes apart what a part has joined by errors.Join.
func problemsOf(err error) (all []error) {
	if err == nil {
		return nil
	}
	many, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	if again := errors.Join(many.Unwrap()...); again == nil || again.Error() != err.Error() { // such as fmt.Errorf with two %w
		return []error{err}
	}
	for _, each := range many.Unwrap() {
		all = append(all, problemsOf(each)...)
	}
	return all
}
