package sender

import "context"

// stepReplays admits what replays have to send, as far as a claim has left slots: it
// has found nothing else for them. It reports whether to claim again at once.
func (p *pump) stepReplays(ctx context.Context, spare int, s *stepped) (goOn bool, err error) {
	now := p.d.now()
	if spare <= 0 || s.busy() && now.Before(p.lookForReplays) {
		return false, nil
	}
	step, err := p.d.store.StepReplays(ctx, spare, announce)
	if err != nil {
		return false, err
	}
	switch {
	case step.More:
		p.lookForReplays = now
	case step.Next.IsZero():
		p.lookForReplays = now.Add(p.d.cfg.MaxIdle)
	default:
		wait := step.Next.Sub(s.now)
		p.lookForReplays = now.Add(min(wait, p.d.cfg.MaxIdle))
		if wait > 0 && (s.due.IsZero() || step.Next.Before(s.due)) {
			s.due = step.Next
		}
	}
	goOn = step.More || step.Admitted > 0
	s.replayed = goOn || len(step.Finished) > 0
	for _, r := range step.Finished {
		p.reportReplay(ctx, r)
	}
	for _, n := range step.Notices {
		p.notice(ctx, n)
	}
	return goOn, nil
}

func (p *pump) reportReplay(ctx context.Context, r Replay) {
	p.d.cfg.Logger.InfoContext(ctx, "a replay is finished", "replay_id", r.ID,
		"matched", r.Matched, "admitted", r.Admitted, "skipped", r.Skipped)
	if hook := p.d.cfg.Hooks.ReplayFinished; hook != nil {
		p.d.guarded(ctx, "ReplayFinished", func() { hook(ctx, r) })
	}
}
