package deduptest

import (
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/surehook/surehook/dedup"
)

// maxVersion is 2^53-1.
const maxVersion = 1<<53 - 1

func objects(fill func(c string, n int, last string) string) []dedup.Object {
	return []dedup.Object{
		{Type: "a", ID: "b.c"}, {Type: "a.b", ID: "c"}, {Type: "a", ID: "bc"}, {Type: "ab", ID: "c"},
		{Type: "A", ID: "bc"}, {Type: "a", ID: "BC"}, {Type: "a", ID: "bc "}, {Type: "a", ID: "/"}, {Type: "a", ID: "'"},
		{Type: "a", ID: "1"}, {Type: "a", ID: "01"}, {Type: "a", ID: "\u00e9"}, {Type: "a", ID: "e\u0301"},
		{Type: fill("x", 64, "1"), ID: "b"}, {Type: fill("x", 64, "2"), ID: "b"},
		{Type: "a", ID: fill("x", 255, "1")}, {Type: "a", ID: fill("x", 255, "2")}, {Type: "a", ID: fill("x", 129, "1")},
	}
}

func versionRules[Tx any]() []rule[Tx] {
	return []rule[Tx]{
		{"version-order", "Advance is true for a higher version only, whatever the gap, and for an equal or lower one changes nothing.", versionOrder[Tx]},
		{"version-own-transaction", "A transaction sees the versions that it has advanced itself.", versionOwn[Tx]},
		{"concurrent-versions", "Of concurrent advances the highest version stays, and none is told true twice or after a higher one.", concurrentVersions[Tx]},
	}
}

func versionOrder[Tx any](e *env[Tx]) {
	stored := int64(0)
	for _, v := range []int64{3, 2, 3, 1, 4, 4, 100, 99, 5, 1 << 31, 1<<31 - 1, 1 << 32, 1<<53 - 2, maxVersion, maxVersion, maxVersion - 1, 1} {
		e.must(func(tx Tx) error {
			if err := e.wantVersion(tx, e.scope, obj, stored); err != nil {
				return err
			}
			return e.wantAdvance(tx, e.scope, obj, v, v > stored)
		})
		stored = max(stored, v)
		if got := e.version(e.scope, obj); got != stored {
			e.Fatalf("version is %d after Advance to %d, want %d", got, v, stored)
		}
	}
}

func versionOwn[Tx any](e *env[Tx]) {
	e.must(func(tx Tx) error {
		for _, v := range []int64{1, 5, 9} {
			if err := e.wantAdvance(tx, e.scope, obj, v, true); err != nil {
				return err
			}
			if err := e.wantAdvance(tx, e.scope, obj, v, false); err != nil {
				return err
			}
			if err := e.wantVersion(tx, e.scope, obj, v); err != nil {
				return err
			}
		}
		return nil
	})
}

func concurrentVersions[Tx any](e *env[Tx]) {
	const highest, workers = 24, 8
	versions := append(rand.Perm(highest), rand.Perm(highest)...)
	var mu sync.Mutex
	told := map[int]int{}
	committed := int64(0) // the highest that was told true by then
	e.each(workers, func(w int) error {
		for i := w; i < len(versions); i += workers {
			v := versions[i] + 1
			var newer bool
			mu.Lock()
			floor := committed
			mu.Unlock()
			err := e.run(func(tx Tx) error {
				before, err := e.Store.Version(e.ctx, tx, e.scope, obj)
				if err != nil {
					return e.fine(err)
				}
				if before < floor {
					return fmt.Errorf("Version = %d after %d was committed", before, floor)
				}
				if newer, err = e.advance(tx, e.scope, obj, int64(v)); err != nil {
					return err
				}
				after, err := e.Store.Version(e.ctx, tx, e.scope, obj)
				if err != nil {
					return e.fine(err)
				}
				switch {
				case after < before:
					return fmt.Errorf("the version fell from %d to %d", before, after)
				case newer && (before >= int64(v) || after != int64(v)):
					return fmt.Errorf("Advance to %d = true with version %d before and %d after", v, before, after)
				case !newer && after < int64(v):
					return fmt.Errorf("Advance to %d = false with version %d after", v, after)
				}
				return nil
			})
			if err != nil {
				return err
			}
			if newer {
				mu.Lock()
				told[v]++
				committed = max(committed, int64(v))
				mu.Unlock()
			}
		}
		return nil
	})
	if v := e.version(e.scope, obj); v != highest {
		e.Errorf("version is %d, want %d", v, highest)
	}
	if told[highest] != 1 {
		e.Errorf("Advance to the highest version was true %d times, want 1", told[highest])
	}
	for v, n := range told {
		if n > 1 {
			e.Errorf("Advance to %d was true %d times", v, n)
		}
	}
}
