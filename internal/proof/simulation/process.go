package simulation

import (
	"time"

	"github.com/surehook/surehook/sender/dispatch"
)

// process is a process that dispatches. It crashes and begins anew, and has a clock of
// its own.
type process struct {
	w    *world
	no   int
	loop *dispatch.Loop // nil: it does not run

	firsts map[turn]*post // first attempts that are under way

	life    int           // raised when it begins, and when it ends
	off     time.Duration // how far its clock is ahead
	stalled time.Time     // until when it does nothing
	behind  time.Duration // how far its clock may be ahead, with its idea of the time
	plan    int           // raised when it is planned anew when to go on
	planned time.Time
	beats   time.Time           // when it next says that it lives
	said    map[int64]time.Time // when it last said so, under each of its numbers

	busy    bool // it waits for a call of the database
	waiting []func()
	dying   bool
}

// clock is the process's own. Durations on it are monotonic, so it is off by the same
// amount all the time, except while the process is suspended.
func (p *process) clock() time.Time { return p.w.now.Add(p.off) }

func (p *process) start() {
	if p.loop != nil {
		return
	}
	w := p.w
	p.life++
	p.off, p.behind, p.firsts = 0, 0, map[turn]*post{}
	if !w.calm && !w.cfg.NoFaults {
		p.off = time.Duration(w.rand.Int64N(int64(20*365*24*time.Hour)) - int64(10*365*24*time.Hour)).Truncate(time.Microsecond)
	}
	p.stalled, p.planned, p.beats, p.said, p.waiting = time.Time{}, time.Time{}, time.Time{}, map[int64]time.Time{}, nil
	w.say("process %d begins", p.no)
	p.act(func() {
		store, err := w.open(p.clock)
		if err != nil {
			w.fail(err)
			return
		}
		cfg := w.config
		cfg.Convert = p.converter()
		loop, err := dispatch.NewLoop(newProcessStore(p, store), w.keys, &cfg, p.clock)
		if err != nil {
			w.fail(err)
			return
		}
		if err := loop.Ready(w.ctx); err != nil { // it begins when the database is there
			w.at(w.between(50*time.Millisecond, 5*time.Second), p.start)
			return
		}
		p.loop = loop
	})
}

// crash ends the process: all that it had planned never happens.
func (p *process) crash() {
	w := p.w
	w.say("process %d crashes", p.no)
	p.loop = nil
	p.life++
	w.at(w.between(time.Millisecond, time.Minute), p.start)
}

// act makes the process do something, with all direct consequences. If the process is busy,
// or stalled, it does so later; if it crashes first, never.
func (p *process) act(do func()) {
	w, life := p.w, p.life
	if p.busy {
		p.waiting = append(p.waiting, func() { p.ifAlive(life, do) })
		return
	}
	if p.stalled.After(w.now) {
		w.queue.add(p.stalled, func() { p.ifAlive(life, do) })
		return
	}
	p.busy = true
	crashed := p.guarded(func() {
		do()
		for p.loop != nil {
			a := p.loop.Begin()
			if a == nil {
				break
			}
			w.send(p, a)
		}
	})
	p.busy = false
	if crashed {
		p.waiting = nil
		p.crash()
		return
	}
	waiting := p.waiting
	p.waiting = nil
	for _, do := range waiting {
		w.at(0, do)
	}
	w.hint()
	p.goOn()
}

// guarded reports whether the process died in fn. Other panics go on.
func (p *process) guarded(do func()) (died bool) {
	defer func() {
		if p.dying {
			p.dying, died = false, true
			_ = recover() // the process panics with this value instead of dying
		}
	}()
	do()
	return false
}

// die ends the process in the middle of its work.
func (p *process) die() {
	p.dying = true
	panic("simulation: the process dies here")
}

func (p *process) ifAlive(life int, do func()) {
	if p.life == life {
		p.act(do)
	}
}

// goOn plans the next step.
func (p *process) goOn() {
	if p.loop == nil {
		return
	}
	p.beat()
	at := p.loop.Next().Add(-p.off)
	if at.Before(p.w.now) {
		at = p.w.now
	}
	if at.Equal(p.planned) {
		return
	}
	p.planned = at
	p.plan++
	plan, life := p.plan, p.life
	p.w.queue.add(at, func() {
		if p.life == life && p.plan == plan {
			p.act(p.step)
		}
	})
}

func (p *process) step() {
	p.planned = time.Time{}
	p.loop.Step(p.w.ctx)
	if p.w.steps%8 == 0 {
		p.w.lookAround()
	}
}

// beat plans the process's next beat. A real process has a goroutine for that, so it
// does not wait for other work.
func (p *process) beat() {
	w := p.w
	at := p.loop.NextBeat().Add(-p.off)
	if at.Before(w.now) {
		at = w.now
	}
	if at.Equal(p.beats) {
		return
	}
	p.beats = at
	life := p.life
	w.queue.add(at, func() { p.lives(life, at) })
}

func (p *process) lives(life int, at time.Time) {
	w := p.w
	switch {
	case p.life != life || !p.beats.Equal(at):
	case p.stalled.After(w.now):
		p.beats = p.stalled
		w.queue.add(p.stalled, func() { p.lives(life, p.beats) })
	default:
		p.beats = time.Time{}
		p.loop.Beat(w.ctx)
		w.hint()
		p.beat()
	}
}

// hint tells processes that something may be due, as far as hints arrive.
func (w *world) hint() {
	select {
	case <-w.woken:
	default:
		return
	}
	for _, p := range w.processes {
		if p.loop != nil && !w.fault(lostHint) {
			life := p.life
			w.at(w.between(time.Microsecond, 10*time.Millisecond), func() {
				p.ifAlive(life, func() { p.loop.Woken() })
			})
		}
	}
}

// weather makes a process crash or stall from time to time.
func (p *process) weather() {
	w := p.w
	if p.loop == nil || p.busy {
		return
	}
	switch {
	case w.fault(crashAnywhere):
		p.crash()
	case w.fault(stall):
		p.stalled = w.now.Add(w.between(10*time.Millisecond, 3*w.config.Lease))
		w.say("process %d stalls until %v", p.no, p.stalled.Sub(begins))
	case w.fault(suspension):
		d := w.between(10*time.Millisecond, 3*w.config.Lease)
		p.stalled = w.now.Add(d)
		p.off -= d
		p.behind += d
		w.say("process %d is suspended until %v", p.no, p.stalled.Sub(begins))
	}
}
