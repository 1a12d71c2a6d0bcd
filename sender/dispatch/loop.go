package dispatch

import (
	"context"
	"net/http"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/internal/post"
)

// Loop is a dispatcher in the hands of a driver, who says what time it is, when to go
// on, and what came of each attempt: for simulations, in which nothing may happen
// by itself. Between the driver's calls it is the same code that Run runs, but it
// starts no goroutine, sets no timer and opens no connection, so with the same
// calls, the same answers of the store and the same Config.Chance it does
// the same. A store that does not answer is waited for. It is for one goroutine at a
// time.
//
// The driver calls Step whenever Next has come, and Woken when the store hints that
// something may be due; after each call has all attempts begun, by Begin; makes their
// POSTs, and calls their End within their Timeout. Left alone at any moment, a Loop is what a process
// leaves behind that was killed.
type Loop struct {
	p       *pump
	begun   []*attempt
	next    time.Time
	upkeep  time.Time // when it is due
	ignores bool      // hints and results, until next
	beat    time.Time
	swept   bool // for the last time
}

// NewLoop returns a Loop on a store, as New would return a Dispatcher, by
// the local clock now. Deliveries are not sent by the configuration's transports, and
// neither Notifier nor Listener are used.
func NewLoop(store Store, keys *sender.Keys, cfg *Config, now func() time.Time) (*Loop, error) {
	d, err := newDispatcher(store, keys, cfg, now)
	if err != nil {
		return nil, err
	}
	d.secrets.timeout = 0 // it is the driver who knows what time it is
	l := &Loop{p: newPump(d), next: now(), upkeep: now(), beat: now()}
	l.p.present.timeout = 0
	l.p.begin(context.Background())
	l.p.launch = func(a *attempt) { l.begun = append(l.begun, a) }
	return l, nil
}

// Ready returns why Run would not begin, or an error of the database for which it
// would wait.
func (l *Loop) Ready(ctx context.Context) error { return l.p.d.ready(ctx) }

// Step does one round: it expands, records, claims and begins attempts, or sweeps, prunes
// and goes on with replays. Errors of the database are logged, and put off the next one.
// Once Stop was called, it only records and gives back.
func (l *Loop) Step(ctx context.Context) {
	if l.p.draining {
		wait := l.p.d.cfg.Timeout
		if !l.p.settleOnce(ctx) || l.settled() && !l.swept && !l.sweep(ctx) {
			wait = longerPause(0)
		}
		l.next = l.p.d.now().Add(wait)
		return
	}
	if now := l.p.d.now(); l.upkeepAt(now).Before(l.stepAt(now)) {
		l.upkeep = now.Add(l.p.upkeep.round(ctx))
		return
	}
	l.ignores = false
	select {
	case <-l.p.results:
	default:
	}
	wait, deaf := l.p.round(ctx)
	l.next, l.ignores = l.p.d.now().Add(wait), deaf
}

// Next is when to call Step, unless Woken or an End brings it forward.
func (l *Loop) Next() time.Time {
	now := l.p.d.now()
	if l.p.draining {
		return l.stepAt(now)
	}
	return earliest(l.stepAt(now), l.upkeepAt(now))
}

// stepAt is when to expand, record and claim.
func (l *Loop) stepAt(now time.Time) time.Time {
	if !l.ignores {
		l.next = l.p.recordAt(now, l.next)
	}
	return l.next
}

func (l *Loop) upkeepAt(now time.Time) time.Time {
	select {
	case <-l.p.upkeep.nudged:
		l.p.upkeep.look()
		l.upkeep = now
	default:
	}
	return l.upkeep
}

// Beat has the process say that it lives, as far as it holds something, and take over
// what others held that are gone. The driver calls it whenever NextBeat has come, while
// Step waits for the store too, until it is Stopped. Errors of the database are logged.
func (l *Loop) Beat(ctx context.Context) { l.beat = l.p.d.now().Add(l.p.present.round(ctx)) }

// NextBeat is when to call Beat.
func (l *Loop) NextBeat() time.Time {
	select {
	case <-l.p.present.claims:
		l.beat = earliest(l.beat, l.p.d.now().Add(beatFresh))
	default:
	}
	return l.beat
}

// Woken is the store's hint (Store.Woken).
func (l *Loop) Woken() {
	if !l.ignores && !l.p.draining {
		l.next = l.p.hint(l.next)
	}
}

// Stop has nothing more claimed or begun, as when the context of Run ends. Step until
// Stopped.
func (l *Loop) Stop() {
	if !l.p.draining {
		l.p.stop()
		l.next = l.p.d.now()
	}
}

// Stopped reports whether Stop was called, and all that was begun is recorded, and
// counted.
func (l *Loop) Stopped() bool { return l.p.draining && l.settled() && l.swept }

func (l *Loop) settled() bool {
	return l.p.slots.wire == 0 && len(l.p.done) == 0 && len(l.p.back) == 0
}

func (l *Loop) sweep(ctx context.Context) bool {
	l.swept = l.p.lastSweep(ctx)
	return l.swept
}

// Begin begins the next of the attempts that are to be made now, or returns nil if
// there are none. It can ask the store for a secret.
func (l *Loop) Begin() *Posting {
	for len(l.begun) > 0 {
		a := l.begun[0]
		l.begun = l.begun[1:]
		ctx, x, due, ok := l.p.prepare(a)
		if ok {
			return &Posting{l: l, a: a, ctx: ctx, x: x}
		}
		l.finish(a, due, false)
	}
	return nil
}

func (l *Loop) finish(a *attempt, due time.Time, made bool) {
	if next := l.p.finish(a, due, made); next != nil {
		l.begun = append(l.begun, next)
	}
}

// Posting is an attempt of a Loop: a POST that is to be made once, at once.
type Posting struct {
	l   *Loop
	a   *attempt
	ctx context.Context
	x   post.Exchange
}

// Claimed is what is attempted.
func (p *Posting) Claimed() *Claimed { return &p.a.Claimed }

// Request is what to send.
func (p *Posting) Request() *http.Request { return p.x.Request(p.ctx) }

// Timeout is within what time of its beginning End is to be called, with
// context.DeadlineExceeded if nothing else has come.
func (p *Posting) Timeout() time.Duration { return p.x.Timeout() }

// End tells what http.RoundTripper.RoundTrip returned. It may begin other attempts.
func (p *Posting) End(answer *http.Response, err error) {
	p.a.ended(p.x.Conclude(p.ctx, answer, err, nil))
	p.x.End()
	p.l.finish(p.a, time.Time{}, p.l.p.made(p.ctx, p.a))
}
