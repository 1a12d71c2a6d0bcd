package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/surehook/surehook/internal/fence"
	"github.com/surehook/surehook/internal/guard"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/internal/post"
	"github.com/surehook/surehook/signing"
)

// At 200 events a second steps 10 ms apart cost the database and the process 5 % more, and
// begin an attempt 1 ms sooner.
const defaultMaxDelay = 12 * time.Millisecond

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

	// Slots is how many attempts may be on the wire at a time. The default is
	// 256. An eighth of them is for new subscriptions and another for slow and
	// failing ones.
	Slots int

	// PerSubscription is how many of them one subscription can earn by answering
	// fast. The default is 32. First attempts about one object take turns (see Order, in
	// the package's comment), so that it uses as many as there are objects with something
	// due.
	PerSubscription int

	// BodyBytes is how much memory the bodies of events may take that wait for their
	// attempt or are on the wire, in bytes. The deliveries of an event share its body.
	// More than that is left in the database until there is room; to a body that is
	// larger than what is left it is exceeded by that one. The default is 64 MiB.
	BodyBytes int64

	// Lease is how long a claim holds at most. The default is 60 s; it must be at least
	// three times the timeout. What a process held that is gone is taken over sooner: see
	// the package's comment.
	Lease time.Duration

	// DrainTimeout is how long Run waits, once its context has ended, for the
	// attempts in flight. The default is Timeout + 5 s.
	DrainTimeout time.Duration

	// MaxIdle is how long the dispatcher rests at most before it looks for work
	// again, if nothing wakes it. An event that nobody hints at waits for that: one that
	// was published in a caller's transaction without Publisher.Wake, or on SQLite by
	// another process. The default is 200 ms.
	MaxIdle time.Duration

	// MaxDelay is how far apart the dispatcher's steps are that new events cause, and
	// so how long an event waits for one at most, beside what the step itself takes. After
	// a rest it is made at once. Each step costs the database about the same however many
	// events are in it, so a service that has time saves CPU: at 50 events a second 100 ms
	// cost little more than half of the default, the producer's transactions included. A
	// backlog does not wait. The default is 12 ms; it is at most MaxIdle.
	MaxDelay time.Duration

	// Schemes sign every delivery. The default is signing.DefaultSchemes.
	Schemes []signing.Scheme

	// Network says which addresses may be called.
	Network sender.Network

	// Proxies are the HTTP proxies that subscriptions can name in Settings.Proxy.
	// Their URLs are http or https, and may hold credentials. They are used by
	// CONNECT alone, for an address that was resolved and checked here; their own
	// addresses are not checked.
	//
	// A proxy that cannot be reached, hangs, refuses (any status but 2xx and the 5xx that
	// tell of the target) or wants other credentials is yours to mend: nothing of it is
	// charged to an endpoint. The delivery's schedule stands still, for at most twice
	// its horizon. Hooks.ProxyDown, the log and a NoticeProxy tell of a proxy that keeps
	// failing; then only a few attempts at a time go through it, and the others are put
	// off. One that says nothing for half of an attempt's time is asked whether it is
	// alive (OPTIONS *, with Max-Forwards: 0): if it answers, whatever it answers, it is the
	// endpoint that has not.
	Proxies map[string]*url.URL

	// UnguardedTransport makes the POSTs instead of the dispatcher's own
	// transport. Nothing then keeps callback URLs from leading into your own
	// network, follows no redirects, and sends each request once, but what you
	// give. It must honour the request's context. Deliveries of subscriptions
	// with a proxy or a client certificate are not sent with it.
	UnguardedTransport http.RoundTripper

	// UserAgent is the header's value. The default is "surehook".
	UserAgent string

	// Notifier is given every notice that nobody has acknowledged, until it accepts
	// it. Without one notices are only logged, listed (History.Notices) and published
	// as events.
	Notifier Notifier

	// Retention says how long what is kept. Run removes what is past its time in the
	// background; RunOnce does not: see Prune. Give the Registry the same.
	Retention sender.Retention

	// Hooks are called at the dispatcher's steps.
	Hooks Hooks

	// Logger gets what an operator should know. The default is slog.Default().
	Logger *slog.Logger

	// Chance returns numbers in [0,1) for the jitter. The default is
	// rand.Float64.
	Chance func() float64

	// Fence returns numbers above zero that nobody has been given before, in any
	// process: each claim is made under one of them. The default draws 63 random
	// bits of the operating system's. It is for simulations, which draw them from
	// their seed: where a number comes twice, a result that comes too late can be
	// taken for another one.
	Fence func() int64
}

// Dispatcher makes the deliveries of committed events, attempts them and records
// what came of it. Any number of them, in any number of processes, share the
// work of a store. A Dispatcher does nothing until Run or RunOnce is called.
type Dispatcher struct {
	store   Store
	cfg     Config
	now     func() time.Time // how long things take, and have to wait
	post    *post.Poster
	secrets *keyrings
	unsent  unsentLog
	running atomic.Bool

	// These outlast a run, and are guarded by the one that is under way.
	network         networkWatch
	networkNotified time.Time               // when the operator was notified last
	proxies         map[string]proxyNoticed // by name
}

// New returns a Dispatcher on a store, which opens the secrets that
// were sealed with keys.
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
		proxies: map[string]proxyNoticed{},
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
	bad(c.Slots < 4, "Slots is %d: it must be at least 4", c.Slots)
	bad(c.PerSubscription < 1, "PerSubscription is %d: it must be at least 1", c.PerSubscription)
	bad(c.BodyBytes < 0, "BodyBytes is %d: it must be positive", c.BodyBytes)
	bad(c.Lease < 3*c.Timeout, "Lease is %v: it must be at least three times the Timeout, %v", c.Lease, 3*c.Timeout)
	bad(c.DrainTimeout < 0, "DrainTimeout is %v: it must be positive", c.DrainTimeout)
	bad(c.MaxIdle < time.Millisecond, "MaxIdle is %v: it must be at least 1ms", c.MaxIdle)
	bad(c.MaxDelay < 0 || c.MaxDelay > c.MaxIdle, "MaxDelay is %v: it must be positive and at most MaxIdle, %v", c.MaxDelay, c.MaxIdle)
	bad(c.Policy.FastAnswer < 0, "Policy.FastAnswer is %v: it must be positive", c.Policy.FastAnswer)
	bad(len(c.Schemes) == 0, "Schemes is empty: nothing is ever sent unsigned")
	if err := c.Policy.Backoff.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("dispatch: Config.Policy: %w", err))
	}
	errs = append(errs, c.Retention.Problems(c.Policy.Backoff.WithDefaults().Horizon)...)
	if err := guard.Policy(c.Network).Validate(); err != nil {
		errs = append(errs, fmt.Errorf("dispatch: Config.Network: %w", err))
	}
	return append(errs, post.CheckProxies("dispatch: Config", c.Proxies)...)
}

// Run dispatches until ctx ends, then drains: it claims nothing more, gives back
// what was claimed and not begun, waits for the attempts in flight for up to
// DrainTimeout, records them, and returns nil, or ErrDrainTimeout if some were
// given up; their deliveries become due again when a dispatcher finds that the
// process is gone, or when their leases end. It returns an error at once if the
// database is not fit (ErrUnfit), secrets are sealed with a key that it was not given
// (ErrSealed), or the dispatcher is running already (ErrRunning). All other errors of
// the database, one that is away when Run is called included, are logged and tried
// again: no result is lost by them.
func (d *Dispatcher) Run(ctx context.Context) error {
	if !d.running.CompareAndSwap(false, true) {
		return ErrRunning
	}
	defer d.running.Store(false)
	defer open(d.store)()
	if err := d.becomeReady(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	p := newPump(d)
	if d.cfg.Notifier != nil {
		p.workers.Go(func() { d.notifying(ctx, p.noticed) })
	}
	if l, ok := d.store.(Listener); ok {
		p.workers.Go(func() { l.Listen(ctx) })
	}
	p.workers.Go(func() { p.upkeep.run(ctx) })
	defer p.present.live(ctx)()
	p.run(ctx)
	defer d.post.CloseIdle()
	return p.drain(ctx)
}

// Stats counts what RunOnce did.
type Stats struct {
	Expanded     int // events
	Attempted    int
	Delivered    int
	Failed       int // attempts whose deliveries await a retry
	DeadLettered int
}

// RunOnce does the work that is due now, and returns when it is done: it expands
// what has been committed, attempts what is due, records the results, and goes
// on until nothing more is due. Replays are worked through as far as their rates
// allow now. It is for schedulers, and for tests that drive
// the dispatcher step by step. When ctx ends it drains like Run, and returns
// ctx's error. It does not begin for the same reasons as Run, nor while the
// database is away: that error is returned.
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
	for d.cfg.Notifier != nil && err == nil {
		var n int
		if n, err = d.notify(ctx); n == 0 {
			break
		}
	}
	if drained := p.drain(ctx); err == nil {
		err = drained
	}
	return p.stats, err
}

// open opens a store that is opened.
func open(store Store) (done func()) {
	if o, ok := store.(Opener); ok {
		return o.Open()
	}
	return func() {}
}

// ready returns an error unless everything that it takes to deliver is there.
// Nothing has been claimed yet.
func (d *Dispatcher) ready(ctx context.Context) error {
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

// panicText leaves a panic's value out unless the runtime made it: what a program
// panics with may well contain an event.
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
