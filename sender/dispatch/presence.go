package dispatch

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// While a process holds leases, it says this often that it lives. It checks this often
	// which other processes live, or each MaxIdle if that is longer and no other process is
	// known.
	beatEvery = time.Second
	// A claim says it too, unless the process has said it within this time.
	beatFresh = beatEvery / 2
	// A process begins nothing once this much time has passed since it last said that it
	// lives, because others may have taken over its leases.
	beatStale = 3 * time.Second
	// A process that holds nothing for this long leaves. It leaves before others would take
	// it for gone.
	beatRest = 3 * time.Second

	// A process is gone if its beat was the same for goneAfter, and at goneLooks looks
	// after the first.
	goneAfter = 5 * time.Second
	goneLooks = 4
	// Once a beat was the same for this long, the looking process says at each look that it
	// lives itself. If it must wait for that, then perhaps so must the other: reads can go
	// on while nobody may write, as in SQLite while a program keeps its lock. A process that
	// rests has left before.
	doubtAfter = goneAfter - beatEvery
	// Looks further apart than this do not count together, because the looking process or
	// the database may have stood still between them.
	watchGap = 2 * time.Second
)

// presence says that a run lives while it holds leases, watches the other processes, and
// takes over the leases of processes that are gone. It has its own goroutine and its own
// connection: as a part of the steps it would stop whenever a step waits for the database.
type presence struct {
	p       *pump
	timeout time.Duration // of a call of the store; zero: none
	watch   watch
	claims  chan struct{} // capacity 1: something was claimed, or may have been
	aside   atomic.Bool   // the run holds claims whose events it could not read, or whose bodies are being kept

	mu       sync.Mutex
	process  int64
	doubts   []doubt
	beat     int64     // the last beat that was given to the store
	stored   int64     // the last beat that the store is known to hold; 0: others do not know the process
	beaten   time.Time // when the stored beat was asked for
	since    time.Time // since when there was no gap in which nothing may be begun
	claiming time.Time // since when a step is under way; zero: none is under way
}

func newPresence(p *pump) *presence {
	return &presence{p: p, process: p.d.cfg.Fence(), timeout: p.d.cfg.Timeout, claims: make(chan struct{}, 1)}
}

// by returns the presence for the claim of a step that is about to begin.
func (x *presence) by(now time.Time) Presence {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.claiming = now
	if x.stored != 0 && now.Sub(x.beaten) < beatFresh {
		return Presence{Process: x.process}
	}
	x.beat++
	return Presence{Process: x.process, Beat: x.beat}
}

// claimed ends the step that by began. any tells that something was claimed, and that the
// beat was stored with it.
func (x *presence) claimed(c *ClaimParams, asked time.Time, any bool, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.claiming = time.Time{}
	if err != nil {
		x.doubt(c.Token)
	}
	if any && c.By.Beat != 0 {
		x.keep(c.By.Beat, asked)
	}
	if err != nil || any && c.By.Beat != 0 {
		select {
		case x.claims <- struct{}{}:
		default:
		}
	}
}

// keep notes that a beat was stored. Under mu.
func (x *presence) keep(beat int64, asked time.Time) {
	if x.stored == 0 || asked.Sub(x.beaten) > beatStale {
		x.since = asked
	}
	x.stored = max(x.stored, beat)
	if asked.After(x.beaten) {
		x.beaten = asked
	}
}

// vouches tells whether leases that were asked for at a time still belong to the process,
// as far as it can know: it has said ever since that it lives.
func (x *presence) vouches(asked, now time.Time) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return !asked.Before(x.since) && now.Sub(x.beaten) <= beatStale
}

// live starts the goroutine, and returns a function that ends it. ctx may end before.
func (x *presence) live(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var ended sync.WaitGroup
	var following atomic.Bool
	ended.Go(func() {
		timer := time.NewTimer(0)
		defer timer.Stop()
		next := time.Now()
		for {
			select {
			case <-ctx.Done():
				return
			case <-timer.C:
				gone, wait, err := x.round(ctx)
				next = time.Now().Add(wait)
				// It may wait for what others have locked. No beat may wait with it.
				if err == nil && following.CompareAndSwap(false, true) {
					ended.Go(func() {
						defer following.Store(false)
						x.follow(ctx, gone)
					})
				}
			case <-x.claims: // the next round may be planned for later
				next = earliest(next, time.Now().Add(beatFresh))
			}
			timer.Reset(time.Until(next))
		}
	})
	return func() {
		cancel()
		ended.Wait()
		if x.resolve(context.WithoutCancel(ctx)) {
			x.p.settle(context.WithoutCancel(ctx))
		}
		if !x.p.holds() {
			x.leave(context.WithoutCancel(ctx))
		}
	}
}

// round says that the process lives, if it must, and checks which others live. It returns
// those that are gone, and how long to wait before the next round. It logs its error.
func (x *presence) round(ctx context.Context) (gone []Presence, wait time.Duration, err error) {
	d := x.p.d
	idle := max(beatEvery, d.cfg.MaxIdle)
	asked := d.now()
	known, err := x.look(ctx, asked)
	if err != nil {
		if ctx.Err() == nil {
			d.cfg.Logger.ErrorContext(ctx, "the process could not tell the others that it lives, or learn which of them do; it begins nothing until it can", "error", err)
		}
		return nil, idle, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	gone = x.watch.look(x.process, known, asked, d.now())
	if len(x.watch.seen) == 0 && x.stored == 0 && len(x.doubts) == 0 {
		return gone, idle, nil
	}
	return gone, beatEvery, nil
}

// follow does what a round has led to: it takes over the leases of processes that are gone,
// and gives back those of doubtful claims.
func (x *presence) follow(ctx context.Context, gone []Presence) {
	for _, p := range gone {
		x.takeOver(ctx, p)
	}
	x.resolve(ctx)
}

// look makes one call of the store, or two if the process holds nothing and leaves.
func (x *presence) look(ctx context.Context, asked time.Time) ([]Presence, error) {
	ctx, cancel := x.within(ctx)
	defer cancel()
	holds := x.p.holds()
	x.mu.Lock()
	claims := !x.claiming.IsZero() && asked.Sub(x.claiming) >= beatEvery
	young := x.stored != 0 && asked.Sub(x.beaten) < beatFresh
	rests := x.stored != 0 && asked.Sub(x.beaten) >= beatRest
	says := (holds || claims || x.watch.doubts(asked)) && !young
	if says {
		x.beat++
	}
	p := Presence{Process: x.process, Beat: x.beat}
	x.mu.Unlock()
	switch {
	case says:
		known, err := x.p.d.store.Beat(ctx, p)
		if err == nil {
			x.said(p, asked, known)
		}
		return known, err
	case rests && !holds:
		x.leave(ctx)
	}
	return x.p.d.store.Present(ctx)
}

// said notes that a beat was stored. known are the processes that were known before it.
func (x *presence) said(p Presence, asked time.Time, known []Presence) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if p.Process != x.process {
		return
	}
	there := false
	for _, other := range known {
		there = there || other.Process == x.process
	}
	if !there && x.stored != 0 { // another process has taken it over; perhaps its clock stood still
		x.stored = 0
	}
	x.keep(p.Beat, asked)
}

// leave removes the process from the processes that the others know.
func (x *presence) leave(ctx context.Context) {
	ctx, cancel := x.within(ctx)
	defer cancel()
	x.mu.Lock()
	p, doubtful := Presence{Process: x.process, Beat: x.stored}, len(x.doubts) > 0
	x.mu.Unlock()
	if p.Beat == 0 || doubtful {
		return
	}
	if err := x.p.d.store.Leave(ctx, p); err != nil {
		return // another process will take it over, and find no leases
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.process == p.Process && x.stored == p.Beat {
		x.stored = 0
	}
}

func (x *presence) takeOver(ctx context.Context, p Presence) {
	ctx, cancel := x.within(ctx)
	defer cancel()
	d := x.p.d
	ended, err := d.store.TakeOver(ctx, p)
	switch log := d.cfg.Logger; {
	case err != nil && ctx.Err() == nil:
		log.ErrorContext(ctx, "a process that is gone could not be taken over; it is tried again", "process", p.Process, "leases", ended, "error", err)
	case ended > 0:
		log.WarnContext(ctx, "a process is gone; what it had claimed is attempted again", "process", p.Process, "leases", ended)
	}
	if hook := d.cfg.Hooks.TakenOver; hook != nil && ended > 0 {
		d.guarded(ctx, "TakenOver", func() { hook(ctx, ended) })
	}
}

func (x *presence) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if x.timeout == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, x.timeout)
}

// holds reports whether the run holds leases.
func (p *pump) holds() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.slots.held+len(p.done)+len(p.back) > 0 || p.present.aside.Load()
}

// watch judges which other processes are gone, by the beats that this process has seen and
// by its own clock.
type watch struct {
	last time.Time
	seen map[int64]sighting
}

// sighting is the last beat that was seen of a process.
type sighting struct {
	beat  int64
	at    time.Time // when the beat was seen first
	looks int       // since then
}

// doubts tells whether a process may be gone.
func (w *watch) doubts(asked time.Time) bool {
	for _, s := range w.seen {
		if asked.Sub(s.at) >= doubtAfter {
			return true
		}
	}
	return false
}

// look takes the known processes, from an answer of the store and with the times around the
// call, and returns the processes that are gone.
func (w *watch) look(own int64, known []Presence, asked, answered time.Time) (gone []Presence) {
	before := w.seen
	if answered.Sub(w.last) > watchGap {
		before = nil
	}
	w.last, w.seen = answered, make(map[int64]sighting, len(known))
	for _, p := range known {
		if p.Process == own {
			continue
		}
		s, ok := before[p.Process]
		if ok && s.beat == p.Beat {
			s.looks++
		} else {
			s = sighting{beat: p.Beat, at: answered}
		}
		w.seen[p.Process] = s
		if s.looks >= goneLooks && asked.Sub(s.at) >= goneAfter {
			gone = append(gone, p)
		}
	}
	return gone
}
