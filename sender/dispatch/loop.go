package dispatch

import (
	"context"
	"net/http"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/internal/post"
)

// Loop is a dispatcher in the hands of a driver. The driver gives the time, says when to go
// on, and tells the outcome of each attempt. A Loop is for simulations, in which nothing
// may happen by itself. It runs the same code as Run, but it starts no goroutine, sets no
// timer and opens no connection. So with the same calls, the same answers of the store and
// the same Config.Chance it does the same. It waits for a store that does not answer. Only
// one goroutine at a time may use it.
//
// The driver calls Step whenever Next has come, and Woken when the store hints that
// something may be due. After each call it begins all attempts by Begin, makes their POSTs,
// and calls their End within their Timeout. A driver that stops at any moment leaves the
// database as a killed process does.
type Loop struct {
	p       *pump
	begun   []*attempt
	next    time.Time
	upkeep  time.Time // when upkeep is due
	ignores bool      // it ignores hints and results until next
	beat    time.Time
	swept   bool // the last sweep is done
}

// NewLoop returns a Loop on a store, as New returns a Dispatcher. now is the local clock. A
// Loop does not send by the configuration's transports, and uses neither Notifier nor
// Listener.
func NewLoop(store Store, keys *sender.Keys, cfg *Config, now func() time.Time) (*Loop, error) {
	d, err := newDispatcher(store, keys, cfg, now)
	if err != nil {
		return nil, err
	}
	d.secrets.timeout, d.bound = 0, 0 // only the driver knows the time
	l := &Loop{p: newPump(d), next: now(), upkeep: now(), beat: now()}
	l.p.present.timeout = 0
	l.p.begin(context.Background())
	l.p.launch = func(a *attempt) { l.begun = append(l.begun, a) }
	return l, nil
}

// Ready returns the error for which Run would not begin, or an error of the database that
// Run would wait out.
func (l *Loop) Ready(ctx context.Context) error { return l.p.d.ready(ctx) }

// Step does one round: it expands, records, claims and begins attempts, or sweeps, prunes
// and goes on with replays, or looks for attempts that take long. It logs errors of the
// database, and then waits longer before the next round. Once Stop was called, it only records and gives back.
func (l *Loop) Step(ctx context.Context) {
	if l.p.draining {
		wait := l.p.d.cfg.Timeout
		if !l.p.settleOnce(ctx) || l.settled() && !l.swept && !l.sweep(ctx) {
			wait = longerPause(0)
		}
		l.next = l.p.d.now().Add(wait)
		return
	}
	now := l.p.d.now()
	at, upkeep := l.stepAt(now), l.upkeepAt(now)
	if scan := l.scanAt(at); scan.Before(at) && !scan.After(now) && !upkeep.Before(scan) {
		if l.p.rescan(now) {
			l.next = now
		}
		return
	}
	if upkeep.Before(at) {
		l.upkeep = now.Add(l.p.upkeep.round(ctx))
		return
	}
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
	return earliest(l.scanAt(l.stepAt(now)), l.upkeepAt(now))
}

// scanAt is when to look for attempts that take long, if that is before a step.
func (l *Loop) scanAt(step time.Time) time.Time {
	if l.ignores {
		return step
	}
	return l.p.scanBefore(step)
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

// Beat says that the process lives, if it holds something, and takes over the leases of
// processes that are gone. The driver calls it whenever NextBeat has come, also while Step
// waits for the store, until the Loop is Stopped. Beat logs errors of the database.
func (l *Loop) Beat(ctx context.Context) {
	gone, wait, err := l.p.present.round(ctx)
	if err == nil {
		l.p.present.follow(ctx, gone)
	}
	l.beat = l.p.d.now().Add(wait)
}

// NextBeat is when to call Beat.
func (l *Loop) NextBeat() time.Time {
	select {
	case <-l.p.present.claims:
		l.beat = earliest(l.beat, l.p.d.now().Add(beatFresh))
	default:
	}
	return l.beat
}

// Woken passes on the store's hint (Store.Woken).
func (l *Loop) Woken() {
	if !l.ignores && !l.p.draining {
		l.next = l.p.hint(l.next)
	}
}

// Stop ends claims and new attempts, as the end of Run's context does. The driver goes on
// with Step until Stopped.
func (l *Loop) Stop() {
	if !l.p.draining {
		l.p.stop()
		l.next = l.p.d.now()
	}
}

// Stopped reports whether Stop was called, and all attempts that were begun are recorded
// and counted.
func (l *Loop) Stopped() bool { return l.p.draining && l.settled() && l.swept }

func (l *Loop) settled() bool {
	return l.p.slots.wire == 0 && len(l.p.done) == 0 && len(l.p.back) == 0
}

func (l *Loop) sweep(ctx context.Context) bool {
	l.swept = l.p.lastSweep(ctx)
	return l.swept
}

// Begin begins the next attempt that must be made now, or returns nil if there is none. It
// can ask the store for a secret.
func (l *Loop) Begin() *Posting {
	for len(l.begun) > 0 {
		a := l.begun[0]
		l.begun = l.begun[1:]
		if a.elsewhere {
			l.finish(a, time.Time{}, l.p.refuse(a))
			continue
		}
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

// Posting is an attempt of a Loop: a POST that the driver must make once, and at once.
type Posting struct {
	l   *Loop
	a   *attempt
	ctx context.Context
	x   post.Exchange
}

// Claimed is the delivery that is attempted.
func (p *Posting) Claimed() *Claimed { return &p.a.Claimed }

// Request is the request to send.
func (p *Posting) Request() *http.Request { return p.x.Request(p.ctx) }

// Timeout is the time from the attempt's beginning within which the driver must call End,
// with context.DeadlineExceeded if nothing else has come.
func (p *Posting) Timeout() time.Duration { return p.x.Timeout() }

// End takes the results of http.RoundTripper.RoundTrip. It may begin other attempts.
func (p *Posting) End(answer *http.Response, err error) {
	p.a.ended(p.x.Conclude(p.ctx, answer, err, nil))
	p.x.End()
	p.l.finish(p.a, time.Time{}, p.l.p.made(p.ctx, p.a))
}
