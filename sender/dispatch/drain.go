package dispatch

import (
	"context"
	"time"
)

// drain ends a run: it claims and begins nothing more, waits for the attempts in flight to
// end or gives them up, and records their results. ctx may have ended.
func (p *pump) drain(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	defer p.giveUp()
	p.stop()
	ended := make(chan struct{})
	go func() {
		p.workers.Wait()
		close(ended)
	}()
	var err error
	timer := time.NewTimer(p.d.cfg.DrainTimeout)
	defer timer.Stop()
	for waiting := true; waiting; {
		p.settle(ctx)
		select {
		case <-ended:
			waiting = false
		case <-p.results:
			sleep(ctx, flushAfter)
		case <-timer.C:
			err = ErrDrainTimeout
			p.giveUp()
			<-ended
			waiting = false
		}
	}
	if p.settle(ctx) { // the database answers
		p.lastSweep(ctx)
	}
	return err
}

// lastSweep makes the store write the figures that it has counted, and reports whether it
// could.
func (p *pump) lastSweep(ctx context.Context) bool {
	ctx, cancel := p.present.within(ctx)
	defer cancel()
	_, err := p.d.store.Sweep(ctx, SweepParams{})
	if err != nil {
		p.d.cfg.Logger.ErrorContext(ctx, "the last figures could not be stored", "error", err)
	}
	return err == nil
}

// stop begins nothing more, and gives back the deliveries whose attempts did not begin.
func (p *pump) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.draining = true
	close(p.drained)
	p.returned(p.slots.takeQueues(true), time.Time{})
	for _, c := range p.unread.claims {
		p.back = append(p.back, givenBack{a: &attempt{Claimed: c}})
	}
	p.unread = unread{}
	p.present.aside.Store(false)
}

// settle records all results and gives back all claims, and reports whether it could. A
// delivery that the database does not take in time is due again when its lease ends, or when
// another process takes it over.
func (p *pump) settle(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, p.d.cfg.Timeout)
	defer cancel()
	for pause := 50 * time.Millisecond; !p.settleOnce(ctx); pause *= 2 {
		if ctx.Err() != nil {
			return false
		}
		sleep(ctx, pause)
	}
	return true
}

// settleOnce reports whether everything was recorded and given back.
func (p *pump) settleOnce(ctx context.Context) bool {
	given := p.giveBack(ctx)
	if given != nil {
		p.d.cfg.Logger.ErrorContext(ctx, "claims could not be given back; they end with their leases unless another try succeeds", "error", given)
	}
	p.mu.Lock()
	done := p.done
	p.done = nil
	p.mu.Unlock()
	if len(done) == 0 {
		return given == nil
	}
	_, _, err := p.exchange(ctx, ExpandParams{}, done, ClaimParams{})
	if err != nil {
		p.d.cfg.Logger.ErrorContext(ctx, "results could not be recorded", "results", len(done), "error", err)
	}
	return err == nil && given == nil
}
