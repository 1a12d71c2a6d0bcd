package deduptest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/surehook/surehook/dedup"
)

func markAdvanceRules[Tx any]() []rule[Tx] {
	return []rule[Tx]{
		{"mark-and-advance", "MarkAndAdvance answers and does what Mark and then, of a fresh event, Advance would, in the same transaction.", markAndAdvance[Tx]},
		{"mark-and-advance-refused", "MarkAndAdvance with an odd value or an ended context is refused as a whole: neither marker nor version is written.", markAndAdvanceRefused[Tx]},
		{"mark-and-advance-waits", "MarkAndAdvance is answered neither by a marker nor by a version that is not committed.", markAndAdvanceWaits[Tx]},
	}
}

func (e *env[Tx]) markAndAdvance(tx Tx, id string, o dedup.Object, v int64) (fresh, newer bool, err error) {
	fresh, newer, err = dedup.MarkAndAdvance(e.ctx, e.Store, tx, e.scope, id, day, o, v)
	return fresh, newer, e.fine(err)
}

func (e *env[Tx]) wantBoth(tx Tx, id string, v int64, fresh, newer bool) error {
	gotFresh, gotNewer, err := e.markAndAdvance(tx, id, obj, v)
	if err == nil && (gotFresh != fresh || gotNewer != newer) {
		err = fmt.Errorf("MarkAndAdvance(%q, %d) = %t, %t, want %t, %t", id, v, gotFresh, gotNewer, fresh, newer)
	}
	return err
}

func markAndAdvance[Tx any](e *env[Tx]) {
	stored := int64(0)
	for _, c := range []struct {
		id           string
		v            int64
		fresh, newer bool
	}{
		{"a", 3, true, true},
		{"a", 3, false, false},
		{"a", 9, false, false}, // a duplicate's version is not looked at
		{"b", 3, true, false},
		{"c", 2, true, false},
		{"d", 4, true, true},
		{"b", 8, false, false}, // a stale event is marked, too
		{"e", maxVersion, true, true},
	} {
		e.giveUp(func(tx Tx) error { return e.wantBoth(tx, c.id, c.v, c.fresh, c.newer) })
		e.must(func(tx Tx) error { return e.wantBoth(tx, c.id, c.v, c.fresh, c.newer) })
		if c.newer {
			stored = c.v
		}
		if got := e.version(e.scope, obj); got != stored {
			e.Errorf("version is %d after MarkAndAdvance(%q, %d), want %d", got, c.id, c.v, stored)
		}
		if !e.seen(e.scope, c.id) {
			e.Errorf("there is no marker after MarkAndAdvance(%q, %d)", c.id, c.v)
		}
	}
	o := dedup.Object{Type: "subscriber", ID: "own"}
	e.must(func(tx Tx) error { // what the transaction did itself counts
		if err := e.wantMark(tx, e.scope, "x", true); err != nil {
			return err
		}
		if err := e.wantAdvance(tx, e.scope, o, 5, true); err != nil {
			return err
		}
		for _, c := range []struct {
			id           string
			v            int64
			fresh, newer bool
		}{{"x", 6, false, false}, {"y", 5, true, false}, {"z", 7, true, true}, {"z", 8, false, false}} {
			fresh, newer, err := e.markAndAdvance(tx, c.id, o, c.v)
			if err != nil {
				return err
			}
			if fresh != c.fresh || newer != c.newer {
				return fmt.Errorf("MarkAndAdvance(%q, %d) = %t, %t after others in its transaction, want %t, %t", c.id, c.v, fresh, newer, c.fresh, c.newer)
			}
		}
		return e.wantVersion(tx, e.scope, o, 7)
	})
}

func markAndAdvanceRefused[Tx any](e *env[Tx]) {
	e.must(func(tx Tx) error {
		for _, c := range []struct {
			scope, id string
			at        time.Time
			o         dedup.Object
			v         int64
		}{
			{"", "a", day, obj, 1},
			{e.scope, "a.b", day, obj, 1},
			{e.scope, "a", time.Time{}, obj, 1},
			{e.scope, "a", day, dedup.Object{Type: "subscriber"}, 1},
			{e.scope, "a", day, dedup.Object{ID: "s-1"}, 1},
			{e.scope, "a", day, obj, 0},
			{e.scope, "a", day, obj, maxVersion + 1},
		} {
			fresh, newer, err := dedup.MarkAndAdvance(e.ctx, e.Store, tx, c.scope, c.id, c.at, c.o, c.v)
			if !errors.Is(err, dedup.ErrInvalid) || fresh || newer {
				return fmt.Errorf("MarkAndAdvance(%q, %q, %s, %q, %d) = %t, %t, %v, want ErrInvalid", c.scope, c.id, c.at, c.o, c.v, fresh, newer, err)
			}
		}
		return nil
	})
	ended, cancel := context.WithCancel(e.ctx)
	cancel()
	if err := e.run(func(tx Tx) error {
		_, _, err := dedup.MarkAndAdvance(ended, e.Store, tx, e.scope, "a", day, obj, 1)
		return err
	}); !errors.Is(err, context.Canceled) {
		e.Errorf("MarkAndAdvance with a cancelled context returned %v, which does not match context.Canceled", err)
	}
	if e.seen(e.scope, "a") || e.version(e.scope, obj) != 0 {
		e.Errorf("a refused MarkAndAdvance has left something")
	}
}

func markAndAdvanceWaits[Tx any](e *env[Tx]) {
	for _, commit := range []bool{true, false} {
		for i, c := range []struct {
			id           string
			v            int64
			fresh, newer bool // if the first commits
		}{
			{"first", 9, false, false},
			{"second", 9, true, true},
			{"second", 5, true, false},
		} {
			o := dedup.Object{Type: "subscriber", ID: fmt.Sprintf("%t-%d", commit, i)}
			id := func(s string) string { return fmt.Sprintf("%s-%s", s, o.ID) }
			e.during(commit,
				func(tx Tx) error {
					_, _, err := e.markAndAdvance(tx, id("first"), o, 5)
					return err
				},
				func(tx Tx, open func() bool) error {
					fresh, newer, err := e.markAndAdvance(tx, id(c.id), o, c.v)
					switch {
					case err != nil:
						return err
					case open():
						return fmt.Errorf("MarkAndAdvance = %t, %t while the transaction before it was still open", fresh, newer)
					case commit && (fresh != c.fresh || newer != c.newer):
						return fmt.Errorf("MarkAndAdvance of the %s id to %d = %t, %t after version 5 was committed, want %t, %t", c.id, c.v, fresh, newer, c.fresh, c.newer)
					case !commit && (!fresh || !newer):
						return fmt.Errorf("MarkAndAdvance of the %s id to %d = %t, %t after the one before it was rolled back", c.id, c.v, fresh, newer)
					}
					return nil
				})
			want := c.v
			if commit && !c.newer {
				want = 5
			}
			if v := e.version(e.scope, o); v != want {
				e.Errorf("version is %d, want %d", v, want)
			}
		}
	}
}
