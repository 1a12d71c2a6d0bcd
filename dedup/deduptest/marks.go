package deduptest

import (
	"fmt"
)

func markRules[Tx any]() []rule[Tx] {
	return []rule[Tx]{
		{"first-is-fresh", "The first Mark of an id is fresh and every later one is not, in the same transaction or another.", firstIsFresh[Tx]},
		{"rollback", "What a rolled-back transaction marked and advanced never was.", rollback[Tx]},
		{"panic", "What a transaction did that ended in a panic never was.", panics[Tx]},
		{"marker-and-version-together", "Marker and version are of one transaction: both are committed, or neither.", together[Tx]},
		{"scopes", "The same id or object in another scope is another one.", scopes[Tx]},
		{"distinct-values", "Ids, scopes and objects that differ in any byte are different.", distinct[Tx]},
		{"duplicate-changes-nothing", "Marking a duplicate leaves the first marker as it is, its time included.", duplicateChangesNothing[Tx]},
	}
}

func firstIsFresh[Tx any](e *env[Tx]) {
	e.must(func(tx Tx) error {
		if err := e.wantMark(tx, e.scope, "a", true); err != nil {
			return err
		}
		if err := e.wantMark(tx, e.scope, "b", true); err != nil {
			return err
		}
		return e.wantMark(tx, e.scope, "a", false)
	})
	for range 2 {
		e.must(func(tx Tx) error {
			if err := e.wantMark(tx, e.scope, "a", false); err != nil {
				return err
			}
			return e.wantMark(tx, e.scope, "b", false)
		})
	}
	e.must(func(tx Tx) error { // a duplicate leaves the transaction usable
		if err := e.wantMark(tx, e.scope, "b", false); err != nil {
			return err
		}
		return e.wantMark(tx, e.scope, "c", true)
	})
	if !e.seen(e.scope, "c") {
		e.Errorf("what was marked after a duplicate is not there")
	}
}

func both[Tx any](e *env[Tx], tx Tx, id string, v int64) error {
	if err := e.wantMark(tx, e.scope, id, true); err != nil {
		return err
	}
	return e.wantAdvance(tx, e.scope, obj, v, true)
}

func rollback[Tx any](e *env[Tx]) {
	e.must(func(tx Tx) error { return both(e, tx, "kept", 3) })
	for range 2 {
		e.giveUp(func(tx Tx) error { return both(e, tx, "a", 7) })
		if v := e.version(e.scope, obj); v != 3 {
			e.Errorf("version is %d after a rollback, want 3", v)
		}
	}
	e.must(func(tx Tx) error { return both(e, tx, "a", 7) })
	e.giveUp(func(tx Tx) error {
		if err := e.wantAdvance(tx, e.scope, obj, 9, true); err != nil {
			return err
		}
		return e.wantVersion(tx, e.scope, obj, 9) // its own
	})
	e.must(func(tx Tx) error {
		if err := e.wantMark(tx, e.scope, "kept", false); err != nil {
			return err
		}
		return e.wantAdvance(tx, e.scope, obj, 8, true)
	})
}

func panics[Tx any](e *env[Tx]) {
	// It failed in the transaction, before the panic.
	err := e.run(func(Tx) error { return nil })
	func() {
		defer func() { _ = recover() }()
		_ = e.InTx(e.ctx, func(tx Tx) error {
			err = both(e, tx, "a", 7)
			panic("on purpose")
		})
	}()
	if err != nil {
		e.Fatalf("%v", err)
	}
	e.must(func(tx Tx) error { return both(e, tx, "a", 7) })
}

func together[Tx any](e *env[Tx]) {
	check := func(id string, marked bool, version int64) {
		e.Helper()
		if got := e.seen(e.scope, id); got != marked {
			e.Errorf("marker of %q there: %t, want %t", id, got, marked)
		}
		if got := e.version(e.scope, obj); got != version {
			e.Errorf("version is %d, want %d", got, version)
		}
	}
	e.must(func(tx Tx) error { return both(e, tx, "a", 1) })
	check("a", true, 1)
	e.giveUp(func(tx Tx) error { return both(e, tx, "b", 2) })
	check("b", false, 1)
	e.must(func(tx Tx) error { // a stale one is marked too
		if err := e.wantMark(tx, e.scope, "b", true); err != nil {
			return err
		}
		return e.wantAdvance(tx, e.scope, obj, 1, false)
	})
	check("b", true, 1)
}

func scopes[Tx any](e *env[Tx]) {
	for i, scope := range []string{e.scope, e.scope + "/2", e.scope + "/3"} {
		e.must(func(tx Tx) error {
			if err := e.wantMark(tx, scope, "a", true); err != nil {
				return err
			}
			if err := e.wantVersion(tx, scope, obj, 0); err != nil {
				return err
			}
			return e.wantAdvance(tx, scope, obj, int64(10-i), true)
		})
	}
	if v := e.version(e.scope, obj); v != 10 {
		e.Errorf("another scope changed the version to %d", v)
	}
}

func distinct[Tx any](e *env[Tx]) {
	fill := func(c string, n int, last string) string {
		s := ""
		for len(s) < n-len(last) {
			s += c
		}
		return s + last
	}
	room := 128 - len(e.scope)
	e.must(func(tx Tx) error {
		for _, id := range []string{
			"a", "A", "a-", "a_", "-a", "1", "01", "1e0", "0x1", "NULL", "null", "true",
			fill("x", 128, "1"), fill("x", 128, "2"), fill("x", 127, "1"), fill("x", 65, "1"), fill("x", 65, "2"),
		} {
			if err := e.wantMark(tx, e.scope, id, true); err != nil {
				return err
			}
		}
		for _, s := range []string{
			"a", "A", " a", "a ", "a  ", "'", "''", "\"", "\\", "%", "_", "?", "$1", ":a", "1", "01", "ß", "ss", "ſ",
			"\u00e9", "e\u0301", "\u212b", "\u00e5", "\U0001F4A9", fill("x", room, "1"), fill("x", room, "2"),
		} {
			if err := e.wantMark(tx, e.scope+s, "id", true); err != nil {
				return err
			}
		}
		// The same text, parted elsewhere.
		for _, p := range [][2]string{{"-a", "bc"}, {"-ab", "c"}, {"-abc", "c"}} {
			if err := e.wantMark(tx, e.scope+p[0], p[1], true); err != nil {
				return err
			}
		}
		for i, o := range objects(fill) {
			if err := e.wantAdvance(tx, e.scope, o, int64(100-i), true); err != nil {
				return fmt.Errorf("%w: it was taken for another object", err)
			}
		}
		return nil
	})
	for i, o := range objects(fill) {
		if v := e.version(e.scope, o); v != int64(100-i) {
			e.Errorf("version of %q is %d, want %d", o, v, 100-i)
		}
	}
}

func duplicateChangesNothing[Tx any](e *env[Tx]) {
	removeOld(e)
	prunable(e, "a", 0)
	e.must(func(tx Tx) error { return e.wantMark(tx, e.scope, "a", false) })
	if n := prune(e, old(1), 10); n != 1 {
		e.Errorf("pruned %d markers, want 1: marking the duplicate made the first marker younger", n)
	}
}
