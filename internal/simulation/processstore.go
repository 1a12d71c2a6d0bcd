package simulation

import (
	"context"
	"time"

	"github.com/surehook/surehook/sender"
)

// processStore is the database as a process sees it: its calls fail before or after
// their effect, take their time, and are the last thing that the process does. What
// has had its effect is recorded, whether the process learns of it or not.
type processStore struct {
	sender.DispatchStore
	p *process
}

// newProcessStore hides no optional interface that a dispatcher asks for.
func newProcessStore(p *process, store sender.DispatchStore) sender.DispatchStore {
	s := &processStore{store, p}
	step, steps := store.(sender.Stepper)
	large, isLarge := store.(sender.LargeSteps)
	switch {
	case steps && isLarge:
		return struct {
			*stepper
			sender.LargeSteps
		}{&stepper{s, step}, large}
	case steps:
		return &stepper{s, step}
	}
	return s
}

// call makes one call, with what befalls it.
func call[T any](s *processStore, name string, do func() (T, error)) (result T, err error) {
	p, w := s.p, s.p.w
	var none T
	if w.fault(crashBefore) {
		w.say("process %d dies before %s", p.no, name)
		p.die()
	}
	if w.fault(slowCall) {
		w.meanwhile(w.between(time.Millisecond, 2*w.config.Lease))
	}
	if w.away.After(w.now) || w.fault(failBefore) {
		w.say("process %d: %s fails", p.no, name)
		return none, errAway
	}
	if result, err = do(); err != nil {
		w.fail(err) // the database itself is never at fault
		return none, err
	}
	if w.fault(crashAfter) {
		w.say("process %d dies after %s", p.no, name)
		p.die()
	}
	if w.fault(failAfter) {
		w.say("process %d does not learn of its %s", p.no, name)
		return none, errUnknown
	}
	if effect := w.now; w.fault(slowCall) {
		w.meanwhile(w.between(time.Millisecond, 2*w.config.Lease))
		p.behind += w.now.Sub(effect)
	}
	return result, nil
}

func (s *processStore) Check(ctx context.Context) error {
	_, err := call(s, "check", func() (struct{}, error) { return struct{}{}, s.DispatchStore.Check(ctx) })
	return err
}

func (s *processStore) SealingKeys(ctx context.Context) ([]string, error) {
	return call(s, "sealing keys", func() ([]string, error) { return s.DispatchStore.SealingKeys(ctx) })
}

func (s *processStore) Expand(ctx context.Context, x sender.ExpandParams) (sender.Expanded, error) {
	return call(s, "expand", func() (sender.Expanded, error) {
		done, err := s.DispatchStore.Expand(ctx, x)
		s.p.expanded(done)
		return done, err
	})
}

func (s *processStore) RecordAndClaim(ctx context.Context, b sender.Batch) (sender.Claims, error) {
	return call(s, "record and claim", func() (sender.Claims, error) {
		c, err := s.DispatchStore.RecordAndClaim(ctx, b)
		if err == nil {
			s.p.exchanged(&b, &c)
		}
		return c, err
	})
}

func (s *processStore) Release(ctx context.Context, rs []sender.Release) error {
	_, err := call(s, "release", func() (struct{}, error) {
		err := s.DispatchStore.Release(ctx, rs)
		if err == nil {
			s.p.released(rs)
		}
		return struct{}{}, err
	})
	return err
}

func (s *processStore) Sweep(ctx context.Context, limit int) (int, error) {
	return call(s, "sweep", func() (int, error) {
		n, err := s.DispatchStore.Sweep(ctx, limit)
		if n > 0 {
			s.p.w.swept()
		}
		return n, err
	})
}

func (s *processStore) Keyrings(ctx context.Context, subscribers []int64) (map[int64]sender.SealedKeyring, error) {
	return call(s, "keyrings", func() (map[int64]sender.SealedKeyring, error) { return s.DispatchStore.Keyrings(ctx, subscribers) })
}

func (s *processStore) StepReplays(ctx context.Context, limit int, announce func(sender.Notice) (sender.Draft, bool)) (sender.ReplayStep, error) {
	return call(s, "step replays", func() (sender.ReplayStep, error) { return s.DispatchStore.StepReplays(ctx, limit, announce) })
}

func (s *processStore) Prune(ctx context.Context, x sender.PruneParams) (sender.Pruned, error) {
	return call(s, "prune", func() (sender.Pruned, error) { return s.DispatchStore.Prune(ctx, x) })
}

// stepper is a processStore whose database does it all in one transaction.
type stepper struct {
	*processStore
	inner sender.Stepper
}

func (s *stepper) Step(ctx context.Context, x sender.ExpandParams, b sender.Batch) (expanded sender.Expanded, _ sender.Claims, _ error) {
	claims, err := call(s.processStore, "step", func() (sender.Claims, error) {
		done, c, err := s.inner.Step(ctx, x, b)
		if err == nil {
			expanded = done
			s.p.expanded(done)
			s.p.exchanged(&b, &c)
		}
		return c, err
	})
	if err != nil {
		return sender.Expanded{}, sender.Claims{}, err
	}
	return expanded, claims, nil
}
