package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/surehook/surehook/internal/fence"
	"github.com/surehook/surehook/internal/guard"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/internal/post"
	"github.com/surehook/surehook/signing"
)

const (
	defaultMaxDelay = 12 * time.Millisecond

	leastSlots = 4
	mostSlots  = 1_000_000 // no machine has as many connections, and the sums of what is held must not overflow
)

// Config adjusts a Dispatcher. A nil config and zero fields mean the
// defaults.
type Config struct {
	// Policy decides when to try again and when to give up. The default is
	// backoff.Reference: 1 min, 5 min, 30 min, 2 h, then every 12 h, for 72 h.
	Policy Policy

	// Timeout bounds an attempt, from the dial to the end of the answer, and each
	// read of secrets before it. The default is 10 s; 5 to 10 are sensible, more
	// than 30 is refused.
	Timeout time.Duration

	// Slots is how many attempts may be on the wire at a time, from 4 to 1,000,000. The default
	// is 256. An eighth of them is for new subscriptions, and another eighth is for slow and
	// failing ones. Of each part, and of the rest, one subscriber gets at most half. An
	// attempt that takes longer than Policy.FastAnswer leaves its slot to others. So up to
	// twice as many attempts can be on the wire, of which one subscriber gets at most half
	// of what the others leave.
	//
	// Proven endpoints of many subscribers may begin to hang together, as when a hosting
	// provider fails. If they are more than that, nothing is begun until the first of their
	// attempts end. After that they are known to be slow. More Slots bear more of them.
	Slots int

	// PerSubscription is how many slots one subscription can earn by answering fast. The
	// default is 32. First attempts about one object take turns (see Order, in the
	// package's comment), so a subscription uses only as many slots as there are objects
	// with something due.
	PerSubscription int

	// BodyBytes bounds the memory, in bytes, for the bodies of events whose deliveries wait
	// for their attempt or are on the wire. The deliveries of an event share its body.
	// Deliveries beyond the bound stay in the database until there is room. One subscriber
	// gets about half of the room that the others leave. One body that is larger than the
	// room left may exceed the bound. The default is 64 MiB.
	BodyBytes int64

	// Lease is how long a claim holds at most. The default is 60 s; it must be at least
	// three times the timeout. The claims of a process that is gone are taken over sooner:
	// see the package's comment.
	Lease time.Duration

	// DrainTimeout is how long Run waits, once its context has ended, for the
	// attempts in flight. The default is Timeout + 5 s.
	DrainTimeout time.Duration

	// MaxIdle is how long the dispatcher rests at most before it looks for work again, if
	// nothing wakes it. An event without a hint waits for that look: an event that was
	// published in a caller's transaction without Publisher.Wake, or on SQLite by another
	// process. The default is 200 ms.
	MaxIdle time.Duration

	// MaxDelay is the distance between the steps that new events cause. So an event waits
	// at most this long for a step, beside the time of the step itself. After a rest the
	// step is made at once. Each step costs the database about the same, however many
	// events are in it, so a longer delay saves CPU: at 50 events a second, 100 ms cost
	// little more than half of the default, the producer's transactions included. If it is
	// longer than the default, events that come less than twice the delay after the one
	// before wait for others all that time. A backlog does not wait. The default is 12 ms;
	// MaxDelay is at most MaxIdle.
	MaxDelay time.Duration

	// Schemes sign every delivery. The default is signing.DefaultSchemes.
	Schemes []signing.Scheme

	// Network says which addresses may be called.
	Network sender.Network

	// Proxies are the HTTP proxies that subscriptions can name in Settings.Proxy. Their
	// URLs are http or https, and may hold credentials. The dispatcher uses them only by
	// CONNECT, for an address that was resolved and checked here. The addresses of the
	// proxies themselves are not checked.
	//
	// A proxy that cannot be reached, hangs, refuses (any status but 2xx and the 5xx that
	// tell of the target) or wants other credentials is yours to mend: its failures are not
	// charged to an endpoint. The delivery's schedule stands still, for at most twice its
	// horizon. Hooks.ProxyDown, the log and a NoticeProxy tell of a proxy that keeps
	// failing; then only a few attempts at a time go through it, and the others are put
	// off. A proxy that says nothing for half of an attempt's time is asked whether it is
	// alive (OPTIONS *, with Max-Forwards: 0). If it gives any answer, the endpoint is the
	// one that has not answered.
	Proxies sender.Proxies

	// UnguardedTransport makes the POSTs instead of the dispatcher's own transport. Then
	// only your transport can keep callback URLs from leading into your own network, follow
	// no redirects, and send each request once. It must honour the request's context, also
	// while an answer is read and closed. An http.Transport that speaks HTTP/2 needs
	// HTTP2.WriteByteTimeout for that: otherwise it waits for ever for a server that reads
	// nothing. Deliveries of subscriptions with a proxy or a client certificate are not sent with
	// it.
	UnguardedTransport http.RoundTripper

	// UserAgent is the header's value. The default is "surehook".
	UserAgent string

	// Notifier is given every notice that nobody has acknowledged, until it accepts it.
	// Without a Notifier, notices are only logged, listed (History.Notices) and published
	// as events.
	Notifier Notifier

	// Retention says how long each kind of record is kept. Run removes records past their
	// time in the background; RunOnce does not: see Prune. Give the Registry the same
	// Retention.
	Retention sender.Retention

	// Hooks are called at the dispatcher's steps.
	Hooks Hooks

	// Convert makes the payloads of subscriptions that are pinned to an older version: see
	// sender.Settings.PayloadVersion. It is called in the dispatcher's own loop, and for such
	// subscriptions with a filter also while events are expanded, so it must be quick. A
	// delivery whose payload cannot be made is put off by a minute, and the log says so. That
	// does not count as an attempt. The default is nil: everything goes out as it was
	// published, and deliveries to subscriptions that are pinned to an older version are put
	// off.
	Convert sender.Convert

	// MaxBodyBytes bounds a body that Convert makes. A larger one counts as one that cannot be
	// made. The default is 1 MiB. Give the Publisher the same.
	MaxBodyBytes int

	// Traceparent returns the value of the header traceparent (W3C Trace Context, version 00)
	// of an attempt, so that a receiver's traces can tell of the sender's. ctx has the values
	// of the context that Hooks.AttemptStart has returned, and c.Event.Traceparent what the
	// event was published with. A text of another form sends none, and neither does "". The
	// default is to send none: a trace's ids go to strangers only if you say so. No
	// tracestate and no baggage is ever sent. It must not block. A panic in it is logged and
	// contained.
	Traceparent func(ctx context.Context, c *Claimed) string

	// Headers says of which attempts the headers of the request and of the answer are kept,
	// without the values that may be secret: see [sender.Headers]. The default is
	// HeadersOfFailed, which costs nothing as long as nothing fails. HeadersOfAll also shows
	// what was sent and answered for deliveries that succeeded, and makes the record of each
	// larger.
	Headers HeadersOf

	// Logger gets what an operator should know. The default is slog.Default(). At Error:
	// why Run does not begin, and what the database, a hook or the Notifier failed at. At
	// Warn: the first failure of a subscription since its last success, once for each such
	// streak; dead letters and the other notices; what another process has left. At Info:
	// the start and the end of Run, and the end of outages and replays. At Debug: each
	// attempt that failed, and what was pruned. No message has a secret, a header, a body
	// or a callback URL.
	Logger *slog.Logger

	// Chance returns numbers in [0,1) for the jitter. The default is
	// rand.Float64.
	Chance func() float64

	// Fence returns numbers above zero that it has given to nobody before, in any process:
	// each claim is made under one of them. The default draws 63 random bits from the
	// operating system. Fence is for simulations, which draw the numbers from their seed.
	// If a number comes twice, a late result can be taken for the result of another claim.
	Fence func() int64
}

// Dispatcher makes the deliveries of committed events, attempts them and records their
// results. Any number of Dispatchers, in any number of processes, share the work of a
// store. A Dispatcher does nothing until Run or RunOnce is called.
type Dispatcher struct {
	store   Store
	cfg     Config
	now     func() time.Time // the clock for durations and pauses
	post    *post.Poster
	secrets *keyrings
	unsent  unsentLog
	running atomic.Bool
	bound   time.Duration // of a call of the store; zero: none
	telling chan struct{} // one element for each call of the Notifier

	// These fields outlast a run. The run that is under way guards them.
	network         networkWatch
	networkNotified time.Time               // when the operator was notified last
	machineNotified time.Time               // the same, of our own machine
	proxies         map[string]proxyNoticed // by name
}

// New returns a Dispatcher on a store. It opens the secrets that were sealed with keys.
func New(store Store, keys *sender.Keys, cfg *Config) (*Dispatcher, error) {
	return newDispatcher(store, keys, cfg, time.Now)
}

func newDispatcher(store Store, keys *sender.Keys, cfg *Config, now func() time.Time) (*Dispatcher, error) {
	var c Config
	if cfg != nil {
		c = *cfg
	}
	c = c.withDefaults()
	errs := c.problems()
	if store == nil {
		errs = append(errs, errors.New("dispatch: New needs a store"))
	}
	if keys == nil {
		errs = append(errs, errors.New("dispatch: New needs the keys that the secrets are sealed with: nothing is ever sent unsigned"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return &Dispatcher{
		store: store, cfg: c, now: now,
		post: post.New(post.Config{
			Policy: guard.Policy(c.Network), Timeout: c.Timeout, Places: c.Slots, Proxies: c.Proxies, Unguarded: c.UnguardedTransport,
			Schemes: c.Schemes, UserAgent: c.UserAgent, Now: now,
		}),
		secrets: newKeyrings(store, keys, now, c.Timeout),
		unsent:  unsentLog{logged: map[int64]time.Time{}},
		bound:   max(callTimeout, c.Lease),
		proxies: map[string]proxyNoticed{},
		telling: make(chan struct{}, mostLeftBehind),
	}, nil
}

func (c Config) withDefaults() Config {
	if c.Policy.FastAnswer == 0 {
		c.Policy.FastAnswer = defaultFastAnswer
	}
	c.Retention = c.Retention.WithDefaults()
	if c.Timeout == 0 {
		c.Timeout = sender.DefaultTimeout
	}
	if c.Slots == 0 {
		c.Slots = 256
	}
	if c.PerSubscription == 0 {
		c.PerSubscription = 32
	}
	if c.BodyBytes == 0 {
		c.BodyBytes = 64 << 20
	}
	if c.MaxBodyBytes == 0 {
		c.MaxBodyBytes = 1 << 20
	}
	if c.Lease == 0 {
		c.Lease = max(60*time.Second, 3*c.Timeout)
	}
	if c.DrainTimeout == 0 {
		c.DrainTimeout = c.Timeout + 5*time.Second
	}
	if c.MaxIdle == 0 {
		c.MaxIdle = 200 * time.Millisecond
	}
	if c.MaxDelay == 0 {
		c.MaxDelay = min(defaultMaxDelay, c.MaxIdle)
	}
	if c.Schemes == nil {
		c.Schemes = signing.DefaultSchemes()
	}
	if c.UserAgent == "" {
		c.UserAgent = post.DefaultUserAgent
	}
	if c.Headers == "" {
		c.Headers = HeadersOfFailed
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Chance == nil {
		c.Chance = rand.Float64
	}
	if c.Fence == nil {
		c.Fence = fence.Token
	}
	return c
}

func (c Config) problems() []error {
	var errs []error
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf("dispatch: Config."+format, args...))
		}
	}
	bad(c.Timeout < 0 || c.Timeout > sender.MaxTimeout, "Timeout is %v: it must be positive and at most %v", c.Timeout, sender.MaxTimeout)
	bad(c.Slots < leastSlots || c.Slots > mostSlots, "Slots is %d: it must be from %d to %d", c.Slots, leastSlots, mostSlots)
	bad(c.PerSubscription < 1, "PerSubscription is %d: it must be at least 1", c.PerSubscription)
	bad(c.BodyBytes < 0, "BodyBytes is %d: it must be positive", c.BodyBytes)
	bad(c.MaxBodyBytes < 0, "MaxBodyBytes is %d: it must be positive", c.MaxBodyBytes)
	bad(c.Lease < 3*c.Timeout, "Lease is %v: it must be at least three times the Timeout, %v", c.Lease, 3*c.Timeout)
	bad(c.DrainTimeout < 0, "DrainTimeout is %v: it must be positive", c.DrainTimeout)
	bad(c.MaxIdle < time.Millisecond, "MaxIdle is %v: it must be at least 1ms", c.MaxIdle)
	bad(c.MaxDelay < 0 || c.MaxDelay > c.MaxIdle, "MaxDelay is %v: it must be positive and at most MaxIdle, %v", c.MaxDelay, c.MaxIdle)
	bad(c.Policy.FastAnswer < 0, "Policy.FastAnswer is %v: it must be positive", c.Policy.FastAnswer)
	bad(!c.Headers.known(), "Headers is %q: it must be %q, %q or %q", c.Headers, HeadersOfFailed, HeadersOfAll, HeadersOfNone)
	bad(len(c.Schemes) == 0, "Schemes is empty: nothing is ever sent unsigned")
	if err := post.CheckUserAgent("dispatch: Config", c.UserAgent); err != nil {
		errs = append(errs, err)
	}
	if err := c.Policy.Backoff.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("dispatch: Config.Policy: %w", err))
	}
	errs = append(errs, c.Retention.Problems(max(c.Policy.Backoff.WithDefaults().Horizon, c.Policy.Own.Horizon()))...)
	errs = append(errs, c.Policy.Own.Problems()...)
	if err := guard.Policy(c.Network).Validate(); err != nil {
		errs = append(errs, fmt.Errorf("dispatch: Config.Network: %w", err))
	}
	return append(errs, post.CheckProxies("dispatch: Config", c.Proxies)...)
}

// Run dispatches until ctx ends, and then drains: it claims nothing more, gives back the
// deliveries that were claimed and not begun, waits for the attempts in flight for up to
// DrainTimeout, and records them. It also waits for the Notifier, for about a minute at
// most. It returns nil, or ErrDrainTimeout if it gave up some attempts. Their deliveries
// become due again when a dispatcher finds that the process is gone, or when their leases
// end. It returns an error at once if the database is not fit (ErrUnfit), secrets are sealed
// with a key that it was not given (ErrSealed), or the dispatcher is running already
// (ErrRunning); it logs this error, too. Run logs all other errors of the database and tries
// again, also if the database is away when Run is called. No result is lost by them.
func (d *Dispatcher) Run(ctx context.Context) error {
	if !d.running.CompareAndSwap(false, true) {
		return d.refused(ctx, ErrRunning)
	}
	defer d.running.Store(false)
	defer open(d.store)()
	if err := d.becomeReady(ctx); err != nil || ctx.Err() != nil {
		return d.refused(ctx, err)
	}
	p := newPump(d)
	d.logStart(ctx, p.present.process)
	var notifying sync.WaitGroup
	if d.cfg.Notifier != nil {
		notifying.Go(func() { d.notifying(ctx, p.noticed) })
	}
	if l, ok := d.store.(Listener); ok {
		p.workers.Go(func() { l.Listen(ctx) })
	}
	p.workers.Go(func() { p.upkeep.run(ctx) })
	defer p.present.live(ctx)()
	p.run(ctx)
	defer d.post.CloseIdle()
	err := p.drain(ctx)
	notifying.Wait() // a Notifier that does not heed its context at once is no attempt that was given up
	return d.logEnd(ctx, err)
}

// Stats counts what RunOnce did.
type Stats struct {
	Expanded     int // events
	Attempted    int
	Delivered    int
	Failed       int // attempts whose deliveries await a retry
	DeadLettered int
	PutOff       int // before an attempt, because something is wrong on this side: see Hooks
}

// RunOnce does the work that is due now, and returns when it is done: it expands committed
// events, attempts the deliveries that are due, records the results, and goes on until
// nothing more is due. It works through replays as far as their rates allow now. It gives
// each notice that is due to the Notifier once. It is for schedulers, and for tests that
// drive the dispatcher step by step. When ctx ends, it drains like Run, and returns ctx's
// error. Where Run does not begin, or the database is away, RunOnce does nothing and
// returns the error.
func (d *Dispatcher) RunOnce(ctx context.Context) (Stats, error) {
	if !d.running.CompareAndSwap(false, true) {
		return Stats{}, ErrRunning
	}
	defer d.running.Store(false)
	defer open(d.store)()
	if err := d.ready(ctx); err != nil {
		return Stats{}, err
	}
	p := newPump(d)
	defer p.present.live(ctx)()
	err := p.once(ctx)
	if err == nil && d.cfg.Notifier != nil {
		err = d.notifyOnce(ctx)
	}
	if drained := p.drain(ctx); err == nil {
		err = drained
	}
	return p.stats, err
}

// open opens a store that is an Opener.
func open(store Store) (done func()) {
	if o, ok := store.(Opener); ok {
		return o.Open()
	}
	return func() {}
}

// within bounds a call of the store.
func (d *Dispatcher) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if d.bound == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, d.bound)
}

// ready returns an error if the dispatcher cannot deliver. It is called before the first
// claim.
func (d *Dispatcher) ready(ctx context.Context) error {
	ctx, end := d.within(ctx)
	defer end()
	if err := d.store.Check(ctx); err != nil {
		return err
	}
	return d.secrets.keys.Check(ctx, d.store)
}

// becomeReady waits for a database that is away, until ctx ends: a process that
// happens to start while its database restarts must not need another start.
func (d *Dispatcher) becomeReady(ctx context.Context) error {
	var pause time.Duration
	for {
		err := d.ready(ctx)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, sender.ErrUnfit) || errors.Is(err, sender.ErrSealed) {
			return err
		}
		pause = longerPause(pause)
		d.cfg.Logger.ErrorContext(ctx, "the database cannot be checked; the dispatcher begins when it can", "error", err, "in", pause)
		sleep(ctx, pause)
	}
}

// guarded calls a hook and contains its panics.
func (d *Dispatcher) guarded(ctx context.Context, name string, hook func()) {
	defer func() {
		if v := recover(); v != nil {
			d.cfg.Logger.ErrorContext(ctx, "a hook panicked", "hook", name, "panic", panicText(v), "stack", string(debug.Stack()))
		}
	}()
	hook()
}

// panicText leaves out a panic's value unless the runtime made it, because a program's own
// panic value may well contain an event.
func panicText(v any) string {
	if err, ok := v.(runtime.Error); ok {
		return err.Error()
	}
	return fmt.Sprintf("%T", v)
}

// Errors of the dispatcher.
var (
	// ErrRunning: Run or RunOnce is under way on this dispatcher.
	ErrRunning = errors.New("sender: the dispatcher is running already")

	// ErrDrainTimeout: Run gave up waiting for attempts in flight. Their
	// deliveries become due again when a dispatcher finds that the process is gone, or
	// when their leases end.
	ErrDrainTimeout = errors.New("sender: attempts were still in flight when the drain timeout was over")
)
