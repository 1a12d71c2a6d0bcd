package replay

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/surehook/surehook/internal/ident"
	"github.com/surehook/surehook/internal/pagesize"
	"github.com/surehook/surehook/sender"
)

// maxReplayText bounds By and Reason, in bytes.
const maxReplayText = 1024

// Config adjusts Replays. A nil config and zero fields mean the defaults.
type Config struct {
	// Retention says, by its Reach, how long ago an event may have been published that
	// is replayed without Request.Force. A replay keeps the Reach with which it is created.
	// Give the Dispatcher the same.
	Retention sender.Retention

	// Now is the clock that the reach is counted by. The default is time.Now.
	Now func() time.Time
}

// Request asks for a replay.
type Request struct {
	// ID is the id that it gets: "rpl_" and letters, digits, hyphens and underscores, up to
	// 128 bytes in all. Empty: one is drawn.
	//
	// A caller who gives one can ask again: for a request that may come twice, or for a form
	// that is sent twice. While a replay with that id is known (see Get), and its filter names
	// the same subscriber or none as well, Create begins nothing and returns that one as it is
	// now, with whatever else is asked for. The id of any other replay is ErrExists.
	ID     string
	Filter Filter
	// Rate bounds how many deliveries are sent again, a second. 0: as fast as the
	// dispatchers have room.
	Rate float64
	// Force replays what is beyond the reach, too, and what comes to be while the replay
	// is paused or under way.
	Force bool
	// By and Reason are kept for people: who asks for it, and why. Up to 1024 bytes
	// each, of UTF-8 without NUL.
	By, Reason string
}

// Replays sends many deliveries again. A replay's set is fixed when it is created;
// the dispatchers work through it when they have nothing else to do, and go on
// after a restart where they were. It is safe for concurrent use.
type Replays struct {
	store Store
	keeps sender.Retention
	now   func() time.Time
}

// New returns Replays on a store.
func New(store Store, cfg *Config) (*Replays, error) {
	var c Config
	if cfg != nil {
		c = *cfg
	}
	c.Retention = c.Retention.WithDefaults()
	if c.Now == nil {
		c.Now = time.Now
	}
	err := errors.Join(c.Retention.Problems(0)...)
	if store == nil {
		err = errors.Join(errors.New("replay: New needs a store"), err)
	}
	if err != nil {
		return nil, err
	}
	return &Replays{store: store, keeps: c.Retention, now: c.Now}, nil
}

// Create begins a replay of the deliveries that match now. A dead letter starts its
// schedule anew. A delivered one gets a single attempt, whose failure leaves it
// delivered. Deliveries of a paused or disabled subscription are held, and those of a
// deleted one are skipped. Redacted ones are left out.
//
// Create counts what matches, and stops when it has looked at about MaxCounted deliveries:
// so it takes no longer after a large outage. Replay.More tells that it has stopped.
//
// ErrInvalid: the filter or the rate is malformed. ErrNotFound: the filter names a
// subscription or a subscriber that never was, or a subscription of another subscriber than
// it names. A *RetentionError, unless it is forced: some of the events were published
// longer ago than Retention.Reach; or, if its Published is zero, that cannot be told, since
// there are more than MaxCounted that are so old and that the filter may select. A later
// Filter.Since leaves them out. A replay that is paused for long, or has a low rate, skips
// what is beyond the reach when its turn comes: Replay.TooOld counts it. ErrExists: see
// Request.ID.
func (r *Replays) Create(ctx context.Context, n Request) (Replay, error) { return r.create(ctx, n, 0) }

func (r *Replays) create(ctx context.Context, n Request, unfinished int) (Replay, error) {
	if err := n.validate(); err != nil {
		return Replay{}, err
	}
	n.Filter = n.Filter.withDefaults()
	b := Bounds{Look: MaxCounted, Unfinished: unfinished}
	if !n.Force {
		b.NotBefore = r.keeps.NotBefore(r.now())
	}
	asked := Replay{ID: n.ID, Filter: n.Filter, Rate: n.Rate, By: n.By, Reason: n.Reason}
	if n.ID == "" {
		return r.store.CreateReplay(ctx, asked, b)
	}
	if was, err := r.again(ctx, &asked); !errors.Is(err, sender.ErrNotFound) {
		return was, err
	}
	made, err := r.store.CreateReplay(ctx, asked, b)
	if err != nil {
		// A call with this id may have come meanwhile: what that has begun takes the id, and the
		// last room of a subscriber.
		if was, known := r.again(ctx, &asked); known == nil || errors.Is(known, sender.ErrExists) {
			return was, known
		}
	}
	return made, err
}

// again is the replay that a call with the same id has begun, or ErrNotFound.
func (r *Replays) again(ctx context.Context, asked *Replay) (Replay, error) {
	was, err := r.store.Replay(ctx, asked.ID)
	if err == nil && was.Filter.Subscriber != asked.Filter.Subscriber {
		err = fmt.Errorf("%w: replay %q", sender.ErrExists, asked.ID)
	}
	if err != nil {
		return Replay{}, err
	}
	return was, nil
}

// MaxCounted is about how many deliveries Create looks at to count what a replay sends, and
// as many again to see whether one is too old. It takes 10 to 20 microseconds of CPU for each.
const MaxCounted = 10_000

// Preview tells what a replay with a filter would send, and changes nothing. It
// reads all that has the filter's status. Errors are as Create's.
func (r *Replays) Preview(ctx context.Context, f Filter) (Preview, error) {
	if err := f.validate(); err != nil {
		return Preview{}, err
	}
	return r.store.PreviewReplay(ctx, f.withDefaults(), 0)
}

// MaxPreviewed is about how many deliveries PreviewSome looks at.
const MaxPreviewed = 5000

// PreviewSome is Preview of a part, for a page that must not take long: it looks at about
// MaxPreviewed of the deliveries that may match, of a subscription at those that a replay
// would send first. Preview.More tells whether there may be others.
func (r *Replays) PreviewSome(ctx context.Context, f Filter) (Preview, error) {
	if err := f.validate(); err != nil {
		return Preview{}, err
	}
	return r.store.PreviewReplay(ctx, f.withDefaults(), MaxPreviewed)
}

// Get returns a replay, or ErrNotFound. One that was finished or cancelled is known for
// Retention.Events from then on.
func (r *Replays) Get(ctx context.Context, id string) (Replay, error) { return r.store.Replay(ctx, id) }

// List lists replays, newest first. ErrInvalid: the subscriber or the limit is malformed.
// ErrNotFound: there is none with the id q.After.
func (r *Replays) List(ctx context.Context, q Query) ([]Replay, error) {
	limit, err := pagesize.Of(sender.ErrInvalid, q.Limit)
	if err := errors.Join(append(ident.AllStorable(sender.ErrInvalid, ident.Text{Name: "subscriber", Text: q.Subscriber}), err)...); err != nil {
		return nil, err
	}
	q.Limit = limit
	return r.store.Replays(ctx, q)
}

// Pause stops a running replay until Continue. Deliveries that it has admitted go on.
// ErrNotFound; ErrStatus: it is at its end.
func (r *Replays) Pause(ctx context.Context, id string) (Replay, error) {
	return r.store.SetReplayStatus(ctx, id, Paused)
}

// Continue lets a paused replay go on where it was. ErrNotFound; ErrStatus: it is
// at its end.
func (r *Replays) Continue(ctx context.Context, id string) (Replay, error) {
	return r.store.SetReplayStatus(ctx, id, Running)
}

// Cancel ends a replay. Deliveries that it has admitted go on, and the others stay as
// they are. ErrNotFound; ErrStatus: it is finished.
func (r *Replays) Cancel(ctx context.Context, id string) (Replay, error) {
	return r.store.SetReplayStatus(ctx, id, Cancelled)
}

func (f Filter) withDefaults() Filter {
	if f.Status == "" {
		f.Status = sender.StatusDeadLettered
	}
	return f
}

var errorClasses = []sender.Class{
	sender.ClassNone, sender.ClassDNS, sender.ClassConnect, sender.ClassTLS, sender.ClassTimeout, sender.ClassReset, sender.ClassStatus, sender.ClassRedirect, sender.ClassBlocked, sender.ClassInterrupted, sender.ClassProtocol,
}

const classesInWords = "dns, connect, tls, timeout, reset, status, redirect, blocked, interrupted or protocol"

// maxGroups bounds Filter.Groups.
const maxGroups = 100

func isCode(code int) bool { return code == 0 || code >= 100 && code <= 999 }

func (f *Filter) validate() error {
	var errs []error
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf("%w filter: "+format, append([]any{sender.ErrInvalid}, args...)...))
		}
	}
	switch f.Status {
	case "", sender.StatusDeadLettered, sender.StatusDelivered, sender.StatusSuperseded:
	case sender.StatusPending, sender.StatusAwaitingRetry, sender.StatusHeld:
		bad(true, "status %q: those that wait are sent by themselves; pausing and resuming a subscription sends all of its own at once. It must be dead_lettered, delivered or superseded", f.Status)
	default:
		bad(true, "status %q: it must be dead_lettered, delivered or superseded", f.Status)
	}
	if f.EventType != "" {
		err := ident.TypePattern(f.EventType)
		bad(err != nil, "event type %q: it must be an exact type, \"prefix.*\" or \"*\": %w", f.EventType, err)
	}
	errs = append(errs, ident.AllStorable(sender.ErrInvalid, ident.Text{Name: "filter: subscription", Text: f.Subscription}, ident.Text{Name: "filter: subscriber", Text: f.Subscriber})...)
	bad(!f.Until.IsZero() && !f.Since.Before(f.Until), "until %s: it must be later than since, %s", f.Until.UTC().Format(time.RFC3339), f.Since.UTC().Format(time.RFC3339))
	bad(!isCode(f.StatusCode), "status code %d: it must be an HTTP status of three digits, or 0 for any", f.StatusCode)
	bad(len(f.Groups) > maxGroups, "%d groups: at most %d may be replayed at once", len(f.Groups), maxGroups)
	for i, g := range f.Groups {
		errs = append(errs, ident.AllStorable(sender.ErrInvalid, ident.Text{Name: fmt.Sprintf("filter: group %d: subscription", i), Text: g.Subscription})...)
		bad(g.Subscription == "", "group %d: it names no subscription", i)
		bad(!slices.Contains(errorClasses, g.ErrorClass), "group %d: error class %q: it must be %s", i, g.ErrorClass, classesInWords)
		bad(!isCode(g.StatusCode), "group %d: status code %d: it must be an HTTP status of three digits, or 0 if there was no answer", i, g.StatusCode)
	}
	bad(!slices.Contains(errorClasses, f.ErrorClass), "error class %q: it must be %s", f.ErrorClass, classesInWords)
	return errors.Join(errs...)
}

func (n *Request) validate() error {
	errs := []error{n.Filter.validate()}
	if n.ID != "" {
		errs = append(errs, checkID(n.ID))
	}
	if !(n.Rate >= 0) || math.IsInf(n.Rate, 0) {
		errs = append(errs, fmt.Errorf("%w rate %v: it must be a number of deliveries a second, or 0 for no bound", sender.ErrInvalid, n.Rate))
	}
	errs = append(errs, ident.AllStorable(sender.ErrInvalid, ident.Text{Name: "by", Text: n.By}, ident.Text{Name: "reason", Text: n.Reason})...)
	for _, text := range []ident.Text{{Name: "by", Text: n.By}, {Name: "reason", Text: n.Reason}} {
		if len(text.Text) > maxReplayText {
			errs = append(errs, fmt.Errorf("%w %s: it has %d bytes, at most %d are allowed", sender.ErrInvalid, text.Name, len(text.Text), maxReplayText))
		}
	}
	return errors.Join(errs...)
}

func checkID(id string) error {
	if err := ident.PrefixedID("rpl_", id); err != nil {
		return fmt.Errorf("%w id: it %w", sender.ErrInvalid, err)
	}
	return nil
}
