package deduptest

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/surehook/surehook/dedup"
)

func argumentRules[Tx any]() []rule[Tx] {
	return []rule[Tx]{
		{"odd-values", "Values without the form that they must have are refused with ErrInvalid, never truncated, before anything is written.", oddValues[Tx]},
	}
}

func oddValues[Tx any](e *env[Tx]) {
	type call struct {
		what string
		do   func(tx Tx) (positive bool, err error)
	}
	var calls []call
	add := func(do func(tx Tx) (bool, error), format string, args ...any) {
		calls = append(calls, call{fmt.Sprintf(format, args...), do})
	}
	long := func(n int) string { return strings.Repeat("x", n) }
	letters, hasLetters := e.Store.(dedup.DeadLetters[Tx])

	for _, id := range []string{
		"", " ", "a b", "a ", " a", "a.b", ".", "a/b", "a:b", "a\x00", "a\n", "a\t", "é", "\xff", "a'", "a%", "٣", "\u200b", long(129), long(256), long(1 << 20),
	} {
		add(func(tx Tx) (bool, error) { return e.Store.Mark(e.ctx, tx, e.scope, id, day) }, "Mark of id %.40q", id)
		if hasLetters {
			add(func(tx Tx) (bool, error) { return false, letters.SetAside(e.ctx, tx, letter(e.scope, id)) }, "SetAside of id %.40q", id)
			add(func(tx Tx) (bool, error) {
				_, err := letters.DeadLetter(e.ctx, tx, e.scope, id)
				return false, err
			}, "DeadLetter of id %.40q", id)
			add(func(tx Tx) (bool, error) { return false, letters.Discard(e.ctx, tx, e.scope, id) }, "Discard of id %.40q", id)
		}
	}
	for _, scope := range []string{"", "\n", "a\x00b", "\u0085", "\xff", "a\xc3", long(129), strings.Repeat("é", 65)} {
		add(func(tx Tx) (bool, error) { return e.Store.Mark(e.ctx, tx, scope, "a", day) }, "Mark in scope %.40q", scope)
		add(func(tx Tx) (bool, error) { return e.Store.Advance(e.ctx, tx, scope, obj, 1) }, "Advance in scope %.40q", scope)
		add(func(tx Tx) (bool, error) {
			v, err := e.Store.Version(e.ctx, tx, scope, obj)
			return v != 0, err
		}, "Version in scope %.40q", scope)
		if hasLetters {
			add(func(tx Tx) (bool, error) { return false, letters.SetAside(e.ctx, tx, letter(scope, "a")) }, "SetAside in scope %.40q", scope)
			add(func(tx Tx) (bool, error) {
				list, err := letters.ListDeadLetters(e.ctx, tx, scope, "", 1)
				return len(list) > 0, err
			}, "ListDeadLetters in scope %.40q", scope)
		}
	}
	for _, o := range []dedup.Object{
		{}, {Type: "subscriber"}, {ID: "a"}, {Type: "a/b", ID: "a"}, {Type: "a.", ID: "a"}, {Type: "a b", ID: "a"}, {Type: long(65), ID: "a"},
		{Type: "subscriber", ID: "a\x00"}, {Type: "subscriber", ID: "\t"}, {Type: "subscriber", ID: "\xff"}, {Type: "subscriber", ID: long(256)},
	} {
		add(func(tx Tx) (bool, error) { return e.Store.Advance(e.ctx, tx, e.scope, o, 1) }, "Advance of object %.40q", o)
		add(func(tx Tx) (bool, error) {
			v, err := e.Store.Version(e.ctx, tx, e.scope, o)
			return v != 0, err
		}, "Version of object %.40q", o)
	}
	for _, v := range []int64{0, -1, maxVersion + 1, math.MaxInt64, math.MinInt64} {
		add(func(tx Tx) (bool, error) { return e.Store.Advance(e.ctx, tx, e.scope, obj, v) }, "Advance to %d", v)
	}
	for _, n := range []int{0, -1, math.MinInt} {
		add(func(tx Tx) (bool, error) {
			removed, err := e.Store.Prune(e.ctx, tx, day.Add(time.Hour), n)
			return removed > 0, err
		}, "Prune with limit %d", n)
		if hasLetters {
			add(func(tx Tx) (bool, error) {
				list, err := letters.ListDeadLetters(e.ctx, tx, e.scope, "", n)
				return len(list) > 0, err
			}, "ListDeadLetters with limit %d", n)
		}
	}
	add(func(tx Tx) (bool, error) { return e.Store.Mark(e.ctx, tx, e.scope, "a", time.Time{}) }, "Mark at the zero time")

	e.must(func(tx Tx) error {
		if err := e.wantMark(tx, e.scope, "before", true); err != nil {
			return err
		}
		for _, c := range calls {
			if positive, err := c.do(tx); !errors.Is(err, dedup.ErrInvalid) || positive {
				return fmt.Errorf("%s returned %t and the error %v, want false and ErrInvalid", c.what, positive, err)
			}
		}
		return e.wantMark(tx, e.scope, "after", true) // the transaction goes on
	})
	for id, want := range map[string]bool{"before": true, "after": true, "a": false, long(128): false, "x": false} {
		if got := e.seen(e.scope, id); got != want {
			e.Errorf("marker of %.40q there: %t, want %t", id, got, want)
		}
	}
	if v := e.version(e.scope, obj); v != 0 {
		e.Errorf("a refused Advance set the version to %d", v)
	}
}
