package dispatch

import (
	"context"
	"errors"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/replay"
)

const (
	// Unless it is nudged, upkeep looks this often for something to sweep and for replays
	// to go on with, or each MaxIdle if that is longer.
	upkeepEvery = time.Second

	// Until a restore or a failover is noticed, versions may be given out that receivers have
	// seen.
	restoreEvery = 5 * time.Second
	// untoldEvery is for a database that does not tell.
	untoldEvery = 24 * time.Hour
)

// upkeep does the work of a run beside delivering: it watches for restores, sweeps, admits
// the deliveries of replays, and prunes. No delivery waits for it, because Run gives it a
// goroutine of its own. A replay gives way all the same, because upkeep admits only as many
// deliveries as the pump has slots without other work. If one of the four fails, the others
// go on.
type upkeep struct {
	p        *pump
	nudged   chan struct{} // capacity 1: there may be something to do
	restores task
	sweeps   task
	replays  task
	pruning  pruning
}

// task is a part of upkeep's work.
type task struct {
	at    time.Time     // when to do it
	pause time.Duration // since it failed; 0: it did not fail the last time
}

func newUpkeep(p *pump) *upkeep { return &upkeep{p: p, nudged: make(chan struct{}, 1)} }

// nudge makes upkeep look at once.
func (u *upkeep) nudge() {
	select {
	case u.nudged <- struct{}{}:
	default:
	}
}

func (u *upkeep) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-u.nudged:
			u.look()
		case <-timer.C:
		}
		timer.Reset(u.round(ctx))
	}
}

func (u *upkeep) every() time.Duration { return max(upkeepEvery, u.p.d.cfg.MaxIdle) }

// look makes the next round look at everything. A task that has failed waits for the end of
// its pause all the same.
func (u *upkeep) look() {
	for _, t := range []*task{&u.sweeps, &u.replays} {
		if t.pause == 0 {
			t.at = time.Time{}
		}
	}
}

// round does the work that is due, and says how long to wait for more.
func (u *upkeep) round(ctx context.Context) (wait time.Duration) {
	u.try(ctx, &u.restores, "watching for restores", u.watchRestores)
	u.try(ctx, &u.sweeps, "sweeping", u.sweep)
	u.try(ctx, &u.replays, "replays", u.stepReplays)
	pruneAt := u.prune(ctx, u.p.d.now())
	next := earliest(u.restores.at, u.sweeps.at, u.replays.at, pruneAt)
	return max(0, next.Sub(u.p.d.now()))
}

// try does a task if it is time for it. A task that fails is done again after a pause.
func (u *upkeep) try(ctx context.Context, t *task, name string, do func(context.Context) (busy bool, err error)) {
	if u.p.d.now().Before(t.at) {
		return
	}
	_, err := do(ctx)
	switch {
	case err == nil:
		t.pause = 0
	case ctx.Err() == nil:
		t.pause = longerPause(t.pause)
		t.at = u.p.d.now().Add(t.pause)
		u.p.d.cfg.Logger.ErrorContext(ctx, "upkeep failed; the dispatcher tries it again", "part", name, "error", err, "in", t.pause)
	}
}

// once does all but pruning, and reports whether it has found something to do.
func (u *upkeep) once(ctx context.Context) (busy bool, err error) {
	var restoreErr error
	if !u.p.d.now().Before(u.restores.at) {
		_, restoreErr = u.watchRestores(ctx)
	}
	swept, err := u.sweep(ctx)
	replayed, replayErr := u.stepReplays(ctx)
	return swept || replayed, errors.Join(restoreErr, err, replayErr)
}

// watchRestores makes versions and positions go on above what may be lost, if the database was
// restored or has failed over.
func (u *upkeep) watchRestores(ctx context.Context) (busy bool, err error) {
	d := u.p.d
	store, ok := d.store.(RestoreWatch)
	if !ok {
		u.restores.at = d.now().Add(untoldEvery)
		return false, nil
	}
	bounded, end := d.within(ctx)
	r, moved, err := store.RestoreIfMoved(bounded)
	end()
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		d.cfg.Logger.WarnContext(ctx, "the database does not tell whether it was restored or has failed over: call Restored yourself when it has", "error", err)
		u.restores.at = d.now().Add(untoldEvery)
		return false, nil
	case err != nil:
		return false, err
	}
	u.restores.at = d.now().Add(max(restoreEvery, d.cfg.MaxIdle))
	if moved {
		d.cfg.Logger.WarnContext(ctx, "the database was restored, moved, or has failed over; versions and positions go on above what may be lost",
			"lineage_before", r.LineageBefore, "lineage", r.Lineage, "version", r.Version, "position", r.Position)
		if hook := d.cfg.Hooks.Restored; hook != nil {
			d.guarded(ctx, "Restored", func() { hook(ctx, r) })
		}
	}
	return moved, nil
}

// lookAgain goes on with the replays that the store leaves alone while what they have
// admitted waits to be claimed. It is called when all of that is claimed that can be, and
// reports whether one of them has advanced.
func (u *upkeep) lookAgain(ctx context.Context) (advanced bool, err error) {
	store, ok := u.p.d.store.(ReplayPauses)
	if !ok {
		return false, nil
	}
	bounded, end := u.p.d.within(ctx)
	more, err := store.EndReplayPauses(bounded)
	end()
	for more && err == nil {
		var step ReplayStep
		step, err = u.stepOfReplays(ctx)
		advanced, more = advanced || step.advanced(), step.More
	}
	return advanced, err
}

// stepReplays reports whether the replays have advanced, or would at once.
func (u *upkeep) stepReplays(ctx context.Context) (busy bool, err error) {
	step, err := u.stepOfReplays(ctx)
	return step.More || step.advanced(), err
}

// stepOfReplays admits deliveries of replays, as far as the pump's last claim has left slots.
func (u *upkeep) stepOfReplays(ctx context.Context) (ReplayStep, error) {
	spare := u.p.takeSpare()
	if spare.slots <= 0 { // the pump nudges when it has slots
		u.replays.at = u.p.d.now().Add(u.every())
		return ReplayStep{}, nil
	}
	bounded, end := u.p.d.within(ctx)
	step, err := u.p.d.store.StepReplays(bounded, spare.slots, sender.Notice.Draft)
	end()
	u.p.keepSpare(spare, step.Admitted)
	if err != nil {
		return ReplayStep{}, err
	}
	now := u.p.d.now()
	u.replays.at = now.Add(u.every())
	if step.More {
		u.replays.at = now
	} else if !step.Next.IsZero() {
		u.replays.at = now.Add(max(stepGap, min(step.Next.Sub(spare.clock.at(now)), u.every())))
	}
	if step.Admitted > 0 {
		u.p.admit()
	}
	for _, r := range step.Finished {
		u.p.reportReplay(ctx, r)
	}
	for _, n := range step.Notices {
		u.p.notice(ctx, n)
	}
	return step, nil
}

// prune does a part of a pass if it is time for it, and says when to come back.
func (u *upkeep) prune(ctx context.Context, now time.Time) (at time.Time) {
	g := &u.pruning
	if now.Before(g.next) || ctx.Err() != nil {
		return g.next
	}
	over, err := g.batch(ctx, u.p.d)
	last := u.p.d.now()
	switch {
	case err != nil && ctx.Err() == nil:
		pause := g.pause()
		u.p.d.cfg.Logger.ErrorContext(ctx, "pruning failed; it is tried again", "error", err, "in", pause)
		g.began, g.next = false, last.Add(pause)
	case over:
		g.failed, g.next = false, last.Add(betweenPasses(u.p.d.cfg.Retention))
	default: // others have the database meanwhile
		g.next = last.Add(prunePause * last.Sub(now))
	}
	return g.next
}

func earliest(times ...time.Time) time.Time {
	least := times[0]
	for _, t := range times[1:] {
		if t.Before(least) {
			least = t
		}
	}
	return least
}

// databaseClock is one moment by the database's clock and by the local clock.
type databaseClock struct{ there, here time.Time }

// at is the database's time at a time of the local clock.
func (c databaseClock) at(local time.Time) time.Time { return c.there.Add(local.Sub(c.here)) }

// spareSlots are the slots that a step has left free.
type spareSlots struct {
	slots int
	clock databaseClock
	step  int // 1 for the first one
}

// leaveSpare tells upkeep how many slots a step has left free.
func (p *pump) leaveSpare(slots int, clock databaseClock) {
	p.mu.Lock()
	wanted := p.wantsSpare && slots > 0
	p.spare = spareSlots{slots, clock, p.spare.step + 1}
	p.wantsSpare = p.wantsSpare && !wanted
	p.mu.Unlock()
	if wanted {
		p.upkeep.nudge()
	}
}

// takeSpare returns these slots, once: the next step claims the deliveries that are
// admitted for them, and leaves other slots.
func (p *pump) takeSpare() spareSlots {
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := p.spare
	p.spare.slots = 0
	p.wantsSpare = taken.slots <= 0
	return taken
}

// keepSpare keeps for later what was not used of the slots that were taken. Otherwise a
// replay whose rate grants something soon would wait for the next step.
func (p *pump) keepSpare(taken spareSlots, used int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.spare.step == taken.step {
		p.spare.slots = taken.slots - used
	}
}

// admit causes the next step at once, because there is something to claim.
func (p *pump) admit() {
	p.mu.Lock()
	p.admitted = true
	p.mu.Unlock()
	p.signal()
}

func (p *pump) reportReplay(ctx context.Context, r replay.Replay) {
	p.d.cfg.Logger.InfoContext(ctx, "a replay is finished", "replay_id", r.ID,
		"matched", r.Matched, "admitted", r.Admitted, "skipped", r.Skipped, "too_old", r.TooOld)
	if hook := p.d.cfg.Hooks.ReplayFinished; hook != nil {
		p.d.guarded(ctx, "ReplayFinished", func() { hook(ctx, r) })
	}
}

// ReplayStep tells what StepReplays did.
type ReplayStep struct {
	Admitted int
	Skipped  int
	Finished []replay.Replay
	Notices  []sender.Notice // they were stored
	// More tells that another step would advance at once.
	More bool
	// Next is when to make another step, if More is not set; zero: no replay is running.
	// For a replay with a rate, rules.ReplayAgain gives the time.
	Next time.Time
}

func (s *ReplayStep) advanced() bool { return s.Admitted > 0 || len(s.Finished) > 0 }
