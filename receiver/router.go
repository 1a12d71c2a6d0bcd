package receiver

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Unknown is the treatment of events whose type no route matches.
type Unknown int

const (
	// IgnoreUnknown answers 200 with the result [Ignored] and stores nothing: no marker,
	// and no version. A version would make older events stale that the application does
	// want.
	IgnoreUnknown Unknown = iota
	// RefuseUnknown answers 501, so that the sender keeps the event and tries again:
	// for consumers that are about to learn the type.
	RefuseUnknown
	// KeepUnknown sets the event aside as a dead letter and answers 200, so that
	// [Receiver.ApplyDeadLetter] can apply it later. Without a store for dead letters
	// it is refused.
	KeepUnknown
)

// ErrUnknownType says that no route matches the event's type.
var ErrUnknownType = errors.New("receiver: no route matches the event's type")

// errIgnored ends the transaction of an event that is answered with Ignored.
var errIgnored = fmt.Errorf("%w, and it is to be ignored", ErrUnknownType)

// RouterConfig has the optional settings of a Router. The zero value and nil are valid.
type RouterConfig struct {
	// Unknown is the treatment of events that no route matches.
	// Defaults to IgnoreUnknown.
	Unknown Unknown

	// Strict refuses data that has a field which the route's type has not, and an
	// event without data; either is set aside like all data that does not fit.
	// Defaults to being lenient, as senders add fields without asking.
	Strict bool
}

// Router makes one function of several, by the types of events:
//
//	routes, err := receiver.Router(
//		receiver.On("invoice.paid", func(ctx context.Context, tx *sql.Tx, ev receiver.Typed[Invoice]) error { … }),
//		receiver.OnState("subscriber.*", fetchSubscriber, storeSubscriber),
//	)
//	http.Handle("POST /webhooks", rcv.Handler(routes))
//
// It reports every problem at once: no routes, patterns that are malformed or that are
// there twice, routes without a function. Events that none of them matches are ignored;
// [NewRouter] can treat them otherwise.
//
// The result may be used wherever a HandlerFunc is taken. It may be wrapped in another
// HandlerFunc that passes its errors on.
func Router[Tx any](routes ...Route[Tx]) (HandlerFunc[Tx], error) {
	return NewRouter(routes, nil)
}

// NewRouter is [Router] with a configuration. A nil cfg means all defaults.
func NewRouter[Tx any](routes []Route[Tx], cfg *RouterConfig) (HandlerFunc[Tx], error) {
	var c RouterConfig
	if cfg != nil {
		c = *cfg
	}
	r := router[Tx]{exact: map[string]HandlerFunc[Tx]{}, prefix: map[string]HandlerFunc[Tx]{}}
	var problems []error
	if len(routes) == 0 {
		problems = append(problems, errors.New("receiver: the router has no routes: give at least one, made with On or OnState"))
	}
	seen := make(map[string]bool, len(routes))
	for _, route := range routes {
		problems = append(problems, route.check())
		if seen[route.pattern] {
			problems = append(problems, fmt.Errorf("receiver: two routes have the pattern %q: which of them counts is never guessed", route.pattern))
		}
		seen[route.pattern] = true
	}
	switch c.Unknown {
	case IgnoreUnknown:
		r.rest = unknown[Tx](errIgnored)
	case RefuseUnknown:
		r.rest = unknown[Tx](ErrUnknownType)
	case KeepUnknown:
		r.rest = unknown[Tx](Permanent(ErrUnknownType))
	default:
		problems = append(problems, fmt.Errorf("receiver: RouterConfig.Unknown is %d: it must be IgnoreUnknown, RefuseUnknown or KeepUnknown", c.Unknown))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	for _, route := range routes {
		r.add(route.pattern, route.handler(c.Strict))
	}
	return r.apply, nil
}

func unknown[Tx any](err error) HandlerFunc[Tx] {
	return func(context.Context, Tx, Event) error { return err }
}

type router[Tx any] struct {
	exact  map[string]HandlerFunc[Tx]
	prefix map[string]HandlerFunc[Tx] // without its ".*"
	rest   HandlerFunc[Tx]
}

func (r *router[Tx]) add(pattern string, h HandlerFunc[Tx]) {
	prefix, ok := strings.CutSuffix(pattern, ".*")
	switch {
	case pattern == "*":
		r.rest = h
	case ok:
		r.prefix[prefix] = h
	default:
		r.exact[pattern] = h
	}
}

func (r *router[Tx]) apply(ctx context.Context, tx Tx, ev Event) error {
	return r.find(ev.Type)(ctx, tx, ev)
}

func (r *router[Tx]) find(eventType string) HandlerFunc[Tx] {
	if h, ok := r.exact[eventType]; ok {
		return h
	}
	for prefix := eventType; ; {
		dot := strings.LastIndexByte(prefix, '.')
		if dot < 0 {
			return r.rest
		}
		prefix = prefix[:dot]
		if h, ok := r.prefix[prefix]; ok {
			return h
		}
	}
}
