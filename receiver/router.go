package receiver

import (
	"errors"
	"fmt"
	"strings"
)

// Unknown is the treatment of events whose type no route matches.
type Unknown int

const (
	// IgnoreUnknown answers 200 with the result [Ignored] and stores nothing: no marker,
	// and no version. A version would make older events stale that the application does
	// want. The log names each such type once, since a route may have been misspelt.
	IgnoreUnknown Unknown = iota
	// RefuseUnknown answers 501, so that the sender keeps the event and tries again:
	// for consumers that are about to learn the type.
	RefuseUnknown
	// KeepUnknown sets the event aside as a dead letter and answers 200, so that
	// [Receiver.ApplyDeadLetter] can apply it later. Nobody has said yet whether it is a
	// state, so it is kept even if its object has a newer version. Without a store for
	// dead letters it is refused.
	KeepUnknown
)

// ErrUnknownType says that no route matches the event's type.
var ErrUnknownType = errors.New("receiver: no route matches the event's type")

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

// Router makes one Work of several functions, by the types of events:
//
//	routes, err := receiver.Router(
//		receiver.OnFact("invoice.paid", func(ctx context.Context, tx *sql.Tx, ev receiver.Typed[Payment]) error { … }),
//		receiver.OnState("customer.*", storeCustomer),
//		receiver.OnThin("subscriber.*", fetchSubscriber, storeSubscriber),
//	)
//	http.Handle("POST /webhooks", rcv.Handler(routes))
//
// It reports every problem at once: no routes, patterns that are malformed or that are
// there twice, routes without a function. Events that none of them matches are ignored;
// [NewRouter] can treat them otherwise.
func Router[Tx any](routes ...Route[Tx]) (Work[Tx], error) {
	return NewRouter(routes, nil)
}

// NewRouter is [Router] with a configuration. A nil cfg means all defaults.
func NewRouter[Tx any](routes []Route[Tx], cfg *RouterConfig) (Work[Tx], error) {
	var c RouterConfig
	if cfg != nil {
		c = *cfg
	}
	r := &router[Tx]{exact: map[string]task[Tx]{}, prefix: map[string]task[Tx]{}}
	var problems []error
	if len(routes) == 0 {
		problems = append(problems, errors.New("receiver: the router has no routes: give at least one, made with OnState, OnFact or OnThin"))
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
		r.rest = task[Tx]{kind: ignoreTask}
	case RefuseUnknown:
		r.rest = task[Tx]{kind: refuseTask, refusal: ErrUnknownType}
	case KeepUnknown:
		r.rest = task[Tx]{kind: refuseTask, refusal: Permanent(ErrUnknownType)}
	default:
		problems = append(problems, fmt.Errorf("receiver: RouterConfig.Unknown is %d: it must be IgnoreUnknown, RefuseUnknown or KeepUnknown", c.Unknown))
	}
	if err := errors.Join(problems...); err != nil {
		return Work[Tx]{}, err
	}
	for _, route := range routes {
		r.add(route.pattern, route.task(c.Strict))
	}
	return Work[Tx]{routes: r}, nil
}

type router[Tx any] struct {
	exact  map[string]task[Tx]
	prefix map[string]task[Tx] // without its ".*"
	rest   task[Tx]
}

func (r *router[Tx]) add(pattern string, t task[Tx]) {
	prefix, ok := strings.CutSuffix(pattern, ".*")
	switch {
	case pattern == "*":
		r.rest = t
	case ok:
		r.prefix[prefix] = t
	default:
		r.exact[pattern] = t
	}
}

func (r *router[Tx]) find(eventType string) task[Tx] {
	if t, ok := r.exact[eventType]; ok {
		return t
	}
	for prefix := eventType; ; {
		dot := strings.LastIndexByte(prefix, '.')
		if dot < 0 {
			return r.rest
		}
		prefix = prefix[:dot]
		if t, ok := r.prefix[prefix]; ok {
			return t
		}
	}
}
