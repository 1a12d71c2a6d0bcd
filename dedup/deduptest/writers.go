package deduptest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/surehook/surehook/dedup"
)

// writerRules are the rules that need transactions that write at the same time.
func writerRules[Tx any]() []rule[Tx] {
	return []rule[Tx]{
		{"usable-after-waiting", "A duplicate that had to wait for the first one's commit leaves the transaction usable.", usableAfterWaiting[Tx]},
		{"many-writers", "Of a stream with duplicates that many transactions work on, some of which roll back, each event is fresh once, and each object ends with its highest version.", manyWriters[Tx]},
		{"one-discards", "Of many transactions that discard one dead letter at once exactly one finds it.", func(e *env[Tx]) {
			if s, ok := e.Store.(dedup.DeadLetters[Tx]); ok {
				oneDiscards(e, s)
			}
		}},
	}
}

func usableAfterWaiting[Tx any](e *env[Tx]) {
	e.during(true,
		func(tx Tx) error {
			if err := e.wantMark(tx, e.scope, "a", true); err != nil {
				return err
			}
			return e.wantAdvance(tx, e.scope, obj, 5, true)
		},
		func(tx Tx, _ func() bool) error {
			if err := e.wantMark(tx, e.scope, "a", false); err != nil {
				return err
			}
			if err := e.wantAdvance(tx, e.scope, obj, 5, false); err != nil {
				return err
			}
			return e.wantMark(tx, e.scope, "b", true)
		})
	if !e.seen(e.scope, "b") {
		e.Errorf("what was marked after a duplicate is not there")
	}
}

func manyWriters[Tx any](e *env[Tx]) {
	const events, objects, workers = 40, 3, 8
	// Event i is of object i%objects with version i+1.
	object := func(i int) dedup.Object {
		return dedup.Object{Type: "subscriber", ID: fmt.Sprint(i % objects)}
	}
	var mu sync.Mutex
	fresh, newer := map[int]int{}, map[int]int{}
	order := rand.Perm(events) // the same for all, so that they meet
	e.each(workers, func(int) error {
		for _, i := range order {
			var isFresh, isNewer bool
			err := e.run(func(tx Tx) (err error) {
				isFresh, isNewer, err = e.markAndAdvance(tx, fmt.Sprintf("event-%d", i), object(i), int64(i+1))
				if err == nil && rand.IntN(4) == 0 {
					return errGivenUp
				}
				return err
			})
			if errors.Is(err, errGivenUp) {
				continue
			}
			if err != nil {
				return err
			}
			mu.Lock()
			if isFresh {
				fresh[i]++
			}
			if isNewer {
				newer[i]++
			}
			mu.Unlock()
		}
		return nil
	})
	// Events that nobody has committed yet.
	for i := range events {
		e.must(func(tx Tx) error {
			isFresh, isNewer, err := e.markAndAdvance(tx, fmt.Sprintf("event-%d", i), object(i), int64(i+1))
			if err == nil && isFresh != (fresh[i] == 0) {
				err = fmt.Errorf("event %d is fresh: %t, after it was committed %d times", i, isFresh, fresh[i])
			}
			if err == nil && isNewer && !isFresh {
				err = fmt.Errorf("the duplicate of event %d is newer", i)
			}
			return err
		})
		if fresh[i] > 1 || newer[i] > 1 {
			e.Errorf("event %d was committed as fresh %d times and as newer %d times", i, fresh[i], newer[i])
		}
	}
	for i := events - objects; i < events; i++ {
		if v := e.version(e.scope, object(i)); v != int64(i+1) {
			e.Errorf("version of object %s is %d, want %d", object(i).ID, v, i+1)
		}
	}
}

func oneDiscards[Tx any](e *env[Tx], s dedup.DeadLetters[Tx]) {
	const n = 6
	for round := range 2 {
		id := fmt.Sprintf("event-%d", round)
		e.must(func(tx Tx) error { return e.fine(s.SetAside(e.ctx, tx, letter(e.scope, id))) })
		var reading, found atomic.Int32
		all := make(chan struct{})
		e.each(n, func(int) error {
			told := false
			err := e.run(func(tx Tx) error {
				if _, err := s.DeadLetter(e.ctx, tx, e.scope, id); err != nil {
					return e.fine(err)
				}
				if !told {
					told = true
					if reading.Add(1) == n {
						close(all)
					}
				}
				await(all)
				return e.fine(s.Discard(e.ctx, tx, e.scope, id))
			})
			if err == nil {
				found.Add(1)
			}
			if errors.Is(err, dedup.ErrNotFound) {
				return nil
			}
			return err
		})
		if got := found.Load(); got != 1 {
			e.Errorf("%d of %d transactions discarded the dead letter and committed, want 1", got, n)
		}
	}
}
