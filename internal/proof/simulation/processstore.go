package simulation

import (
	"context"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// processStore is the database as a process sees it. Its calls fail before or after
// their effect, take time, and may be the last that the process makes. Every effect is
// recorded, whether the process learns of it or not.
type processStore struct {
	dispatch.Store
	p *process
}

// newProcessStore keeps all optional interfaces that a dispatcher uses.
func newProcessStore(p *process, store dispatch.Store) dispatch.Store {
	s := &processStore{store, p}
	if large, ok := store.(dispatch.LargeSteps); ok {
		return struct {
			*processStore
			dispatch.LargeSteps
		}{s, large}
	}
	return s
}

// effects record a call. known gets its result, whether the process learns of it or
// not. unknown is called if the call was committed and its result is lost.
type effects[T any] struct {
	known   func(T)
	unknown func()
	link    kind // how its connection may break
}

// call makes one call, and draws its faults.
func call[T any](s *processStore, name string, of effects[T], do func() (T, error)) (result T, err error) {
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
	mend := w.mayBreak(of.link)
	result, err = do()
	if broke, committed := mend(); broke && err != nil {
		w.say("process %d loses its connection during %s, committed: %v", p.no, name, committed)
		if committed {
			of.unknown()
		}
		return none, err
	}
	if err != nil {
		w.fail(err) // the database itself is never at fault
		return none, err
	}
	of.known(result)
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

// without is for calls whose effects are not recorded.
func without[T any]() effects[T] { return effects[T]{func(T) {}, func() {}, brokenLink} }

// same is for calls that have the same effect, whatever they return.
func same[T any](effect func()) effects[T] {
	return effects[T]{func(T) { effect() }, effect, brokenLink}
}

func (s *processStore) Check(ctx context.Context) error {
	_, err := call(s, "check", without[struct{}](), func() (struct{}, error) { return struct{}{}, s.Store.Check(ctx) })
	return err
}

func (s *processStore) SealingKeys(ctx context.Context) ([]string, error) {
	return call(s, "sealing keys", without[[]string](), func() ([]string, error) { return s.Store.SealingKeys(ctx) })
}

// inParts treats events with a few deliveries as large ones, because a simulation has
// no larger ones.
func (w *world) inParts(x dispatch.ExpandParams) dispatch.ExpandParams {
	if x.Events > 0 {
		x.Whole, x.Part = w.whole, 1+w.rand.IntN(3)
	}
	return x
}

func (s *processStore) Step(ctx context.Context, x dispatch.ExpandParams, b dispatch.Batch) (expanded dispatch.Expanded, _ dispatch.Claims, _ error) {
	of, b := s.p.exchange(b)
	x = s.p.w.inParts(x)
	exchanged := of.known
	of.known = func(c dispatch.Claims) {
		s.p.expanded(expanded)
		exchanged(c)
	}
	claims, err := call(s, "step", of, func() (c dispatch.Claims, err error) {
		expanded, c, err = s.Store.Step(ctx, x, b)
		return c, err
	})
	if err != nil {
		return dispatch.Expanded{}, dispatch.Claims{}, err
	}
	return expanded, claims, nil
}

func (s *processStore) Release(ctx context.Context, rs []dispatch.Release) error {
	_, err := call(s, "release", same[struct{}](func() { s.p.released(rs) }), func() (struct{}, error) {
		return struct{}{}, s.Store.Release(ctx, rs)
	})
	return err
}

func (s *processStore) Sweep(ctx context.Context, p dispatch.SweepParams) (dispatch.Swept, error) {
	out, err := call(s, "sweep", same[dispatch.Swept](s.p.w.swept), func() (dispatch.Swept, error) { return s.Store.Sweep(ctx, p) })
	if err != nil { // it may have done a part
		s.p.w.swept()
	}
	return out, err
}

func (s *processStore) Keyrings(ctx context.Context, subscribers []int64) (map[int64]sender.SealedKeyring, error) {
	return call(s, "keyrings", without[map[int64]sender.SealedKeyring](), func() (map[int64]sender.SealedKeyring, error) {
		return s.Store.Keyrings(ctx, subscribers)
	})
}

func (s *processStore) StepReplays(ctx context.Context, limit int, announce func(sender.Notice) (sender.Draft, bool)) (dispatch.ReplayStep, error) {
	return call(s, "step replays", without[dispatch.ReplayStep](), func() (dispatch.ReplayStep, error) { return s.Store.StepReplays(ctx, limit, announce) })
}

func (s *processStore) KeepBodies(ctx context.Context, all []dispatch.KeptBody) (map[dispatch.DeliveryKey][]byte, error) {
	return call(s, "keep bodies", without[map[dispatch.DeliveryKey][]byte](), func() (map[dispatch.DeliveryKey][]byte, error) {
		return s.Store.KeepBodies(ctx, all)
	})
}

func (s *processStore) Prune(ctx context.Context, x dispatch.PruneParams) (dispatch.Pruned, error) {
	counted := without[dispatch.Pruned]()
	counted.known = func(p dispatch.Pruned) { s.p.w.counts["objects forgotten"] += p.Objects }
	return call(s, "prune", counted, func() (dispatch.Pruned, error) { return s.Store.Prune(ctx, x) })
}

// brief makes one call that stores a beat, or reads those of others. It runs beside the
// process's other work, so it is never its last call.
func brief[T any](s *processStore, name string, effect func(T), do func() (T, error)) (T, error) {
	p, w := s.p, s.p.w
	var none T
	if w.away.After(w.now) || w.fault(failBefore) {
		w.say("process %d: %s fails", p.no, name)
		return none, errAway
	}
	result, err := do()
	if err != nil {
		w.fail(err)
		return none, err
	}
	effect(result)
	if w.fault(failAfter) {
		w.say("process %d does not learn of its %s", p.no, name)
		return none, errUnknown
	}
	return result, nil
}

func (s *processStore) Beat(ctx context.Context, b dispatch.Presence) ([]dispatch.Presence, error) {
	return brief(s, "beat", func([]dispatch.Presence) { s.p.said[b.Process] = s.p.w.now }, func() ([]dispatch.Presence, error) { return s.Store.Beat(ctx, b) })
}

func (s *processStore) Present(ctx context.Context) ([]dispatch.Presence, error) {
	return brief(s, "present", func([]dispatch.Presence) {}, func() ([]dispatch.Presence, error) { return s.Store.Present(ctx) })
}

func (s *processStore) TakeOver(ctx context.Context, b dispatch.Presence) (int, error) {
	return brief(s, "take over", func(n int) { s.p.tookOver(b, n) }, func() (int, error) { return s.Store.TakeOver(ctx, b) })
}

func (s *processStore) LeasedUnder(ctx context.Context, tokens []int64, limit int) ([]dispatch.Release, error) {
	return brief(s, "look for its lost claims", func([]dispatch.Release) {}, func() ([]dispatch.Release, error) { return s.Store.LeasedUnder(ctx, tokens, limit) })
}

func (s *processStore) Leave(ctx context.Context, b dispatch.Presence) error {
	_, err := brief(s, "leave", func(struct{}) {}, func() (struct{}, error) { return struct{}{}, s.Store.Leave(ctx, b) })
	return err
}
