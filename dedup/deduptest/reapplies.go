package deduptest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/surehook/surehook/dedup"
)

func reapplyRules[Tx any]() []rule[Tx] {
	rules := []rule[Tx]{
		{"reapply-covers", "A request covers the events that match all that it names, were taken in its span and before it, and have a marker, and no others.", nil},
		{"reapply-once", "Each request makes an event due once, whatever the clocks say; a newer request makes it due again, and a cancelled one does not.", nil},
		{"reapply-versions", "AdvanceAgain is true for the stored version and for newer ones, to which it raises the stored one, and false for older ones.", nil},
		{"reapply-rollback", "A request of a rolled-back transaction never was, and what a rolled-back transaction took is still due.", nil},
		{"reapply-one-of-many", "Of many transactions that take one event again at once exactly one is told that it is due.", nil},
		{"reapply-waits", "While an event is applied again, nobody is answered by what is not committed, and nobody advances its version.", nil},
		{"reapply-list", "Requests come back as they were asked, by scope, in the order of their numbers, which only rise; what is not there is ErrNotFound.", nil},
		{"reapply-prune", "Requests go with Prune once no marker is left that they could cover, at most limit of them, and are not counted.", nil},
		{"reapply-odd", "Requests and arguments without the form that they must have are refused with ErrInvalid, and change nothing.", nil},
		{"reapply-dead-letters", "TakeAgain removes the dead letter of an event that is due, in the same transaction, and of no other.", nil},
	}
	for i, check := range []func(*env[Tx], dedup.Reapplies[Tx]){
		reapplyCovers[Tx], reapplyOnce[Tx], reapplyVersions[Tx], reapplyRollback[Tx], reapplyOneOfMany[Tx],
		reapplyWaits[Tx], reapplyList[Tx], reapplyPrune[Tx], reapplyOdd[Tx], reapplyLetters[Tx],
	} {
		rules[i].check = func(e *env[Tx]) {
			if s, ok := e.Store.(dedup.Reapplies[Tx]); ok {
				check(e, s)
			}
		}
	}
	return rules
}

// ask commits a request. Its scope is the rule's, and it is younger than all of its
// markers, unless it says otherwise.
func (e *env[Tx]) ask(s dedup.Reapplies[Tx], r dedup.Reapply) (number int64) {
	e.Helper()
	e.must(func(tx Tx) (err error) {
		number, err = e.askIn(tx, s, r)
		return err
	})
	return number
}

func (e *env[Tx]) askIn(tx Tx, s dedup.Reapplies[Tx], r dedup.Reapply) (int64, error) {
	if r.Scope == "" {
		r.Scope = e.scope
	}
	if r.At.IsZero() {
		r.At = day.Add(time.Hour)
	}
	number, err := s.AskReapply(e.ctx, tx, r)
	if err == nil && number < 1 {
		err = fmt.Errorf("AskReapply returned the number %d, want at least 1", number)
	}
	return number, e.fine(err)
}

func (e *env[Tx]) wantDue(tx Tx, s dedup.Reapplies[Tx], id string, o dedup.Object, want bool) error {
	due, err := s.TakeReapply(e.ctx, tx, e.scope, id, o)
	if err == nil && due != want {
		err = fmt.Errorf("TakeReapply(%q, %q) = %t, want %t", id, o, due, want)
	}
	return e.fine(err)
}

func (e *env[Tx]) wantAgain(tx Tx, s dedup.Reapplies[Tx], o dedup.Object, v int64, want bool) error {
	current, err := s.AdvanceAgain(e.ctx, tx, e.scope, o, v)
	if err == nil && current != want {
		err = fmt.Errorf("AdvanceAgain(%q, %d) = %t, want %t", o, v, current, want)
	}
	return e.fine(err)
}

// marked commits a marker at day.
func (e *env[Tx]) marked(id string) {
	e.Helper()
	e.must(func(tx Tx) error { return e.wantMark(tx, e.scope, id, true) })
}

func reapplyCovers[Tx any](e *env[Tx], s dedup.Reapplies[Tx]) {
	other, none := dedup.Object{Type: "subscriber", ID: "s-2"}, dedup.Object{}
	micro := time.Microsecond
	for i, c := range []struct {
		why  string
		r    dedup.Reapply
		obj  dedup.Object // of the event, which was taken at day
		want bool
	}{
		{"its id", dedup.Reapply{ID: "this"}, obj, true},
		{"its id, without an object", dedup.Reapply{ID: "this"}, none, true},
		{"another id", dedup.Reapply{ID: "that"}, obj, false},
		{"its id in another case", dedup.Reapply{ID: "THIS"}, obj, false},
		{"its id in another scope", dedup.Reapply{ID: "this", Scope: e.scope + "/2"}, obj, false},
		{"its object", dedup.Reapply{Object: obj}, obj, true},
		{"its object, and it has none", dedup.Reapply{Object: obj}, none, false},
		{"another object", dedup.Reapply{Object: other}, obj, false},
		{"the id of its object with another type", dedup.Reapply{Object: dedup.Object{Type: "invoice", ID: obj.ID}}, obj, false},
		{"its object and another id", dedup.Reapply{ID: "that", Object: obj}, obj, false},
		{"its id and another object", dedup.Reapply{ID: "this", Object: other}, obj, false},
		{"its id and its object", dedup.Reapply{ID: "this", Object: obj}, obj, true},
		{"a span that begins with it", dedup.Reapply{From: day}, obj, true},
		{"a span that begins with it, without an object", dedup.Reapply{From: day}, none, true},
		{"a span that begins after it", dedup.Reapply{From: day.Add(micro)}, obj, false},
		{"a span that ends after it", dedup.Reapply{From: day.Add(-time.Hour), Until: day.Add(micro)}, obj, true},
		{"a span that ends with it", dedup.Reapply{From: day.Add(-time.Hour), Until: day}, obj, false},
		{"its object and a span before it", dedup.Reapply{Object: obj, Until: day}, obj, false},
		{"its object and its span", dedup.Reapply{Object: obj, From: day.In(time.FixedZone("", 3600)), Until: day.Add(micro)}, obj, true},
		{"a request at the same time", dedup.Reapply{ID: "this", At: day}, obj, true},
		{"a request before it", dedup.Reapply{ID: "this", At: day.Add(-micro)}, obj, false},
		{"a span, and a request before it", dedup.Reapply{From: day.Add(-time.Hour), At: day.Add(-micro)}, obj, false},
	} {
		id := fmt.Sprintf("this-%d", i)
		if c.r.ID != "" {
			c.r.ID += fmt.Sprintf("-%d", i)
		}
		e.marked(id)
		e.must(func(tx Tx) error { // others were taken before it and after it: their times do not count
			for n, at := range []time.Time{day.Add(-time.Minute), day.Add(time.Minute)} {
				if _, err := e.markAt(tx, fmt.Sprintf("%s/%d", e.scope, n+2), id, at); err != nil {
					return err
				}
				if _, err := e.markAt(tx, e.scope, fmt.Sprintf("other-%d", n), at); err != nil {
					return err
				}
			}
			return nil
		})
		e.cancelAll(s, e.scope) // of the case before
		e.ask(s, c.r)
		e.must(func(tx Tx) error {
			if err := e.wantDue(tx, s, id, c.obj, c.want); err != nil {
				return fmt.Errorf("a request for %s: %w", c.why, err)
			}
			return nil
		})
	}
	e.ask(s, dedup.Reapply{ID: "never", From: day.Add(-time.Hour)})
	e.must(func(tx Tx) error { // an event without a marker is no duplicate
		if err := e.wantDue(tx, s, "never", obj, false); err != nil {
			return err
		}
		return e.wantMark(tx, e.scope, "never", true)
	})
}

// cancelAll cancels all requests of a scope and returns how many there were.
func (e *env[Tx]) cancelAll(s dedup.Reapplies[Tx], scope string) (n int) {
	e.Helper()
	e.must(func(tx Tx) error {
		list, err := s.ListReapplies(e.ctx, tx, scope, 0, 1000)
		if err != nil {
			return e.fine(err)
		}
		for _, r := range list {
			if err := s.CancelReapply(e.ctx, tx, scope, r.Number); err != nil {
				return e.fine(err)
			}
		}
		n = len(list)
		return nil
	})
	return n
}

func reapplyOnce[Tx any](e *env[Tx], s dedup.Reapplies[Tx]) {
	due := func(want bool) {
		e.Helper()
		e.must(func(tx Tx) error { return e.wantDue(tx, s, "a", obj, want) })
	}
	e.marked("a")
	due(false)
	e.ask(s, dedup.Reapply{ID: "a"})
	due(true)
	due(false)
	if !e.seen(e.scope, "a") {
		e.Errorf("the marker is gone after TakeReapply")
	}
	e.ask(s, dedup.Reapply{ID: "a", At: day}) // a newer one, by a clock that is behind
	due(true)
	due(false)
	e.ask(s, dedup.Reapply{ID: "a"}) // several at once are served together
	e.ask(s, dedup.Reapply{Object: obj})
	e.ask(s, dedup.Reapply{From: day})
	due(true)
	due(false)
	e.marked("b") // others are still due
	e.must(func(tx Tx) error { return e.wantDue(tx, s, "b", obj, true) })
	second := e.scope + "/2" // an event of another scope with the same id, too
	e.must(func(tx Tx) error { return e.wantMark(tx, second, "a", true) })
	e.ask(s, dedup.Reapply{ID: "a"})
	e.ask(s, dedup.Reapply{ID: "a", Scope: second})
	due(true)
	e.must(func(tx Tx) error {
		due, err := s.TakeReapply(e.ctx, tx, second, "a", obj)
		if err == nil && !due {
			err = errors.New("TakeReapply served a request of another scope")
		}
		return e.fine(err)
	})
	n := e.ask(s, dedup.Reapply{ID: "a"})
	e.must(func(tx Tx) error { return e.fine(s.CancelReapply(e.ctx, tx, e.scope, n)) })
	due(false)
	e.must(func(tx Tx) error { // in one transaction
		if _, err := e.askIn(tx, s, dedup.Reapply{ID: "a"}); err != nil {
			return err
		}
		if err := e.wantDue(tx, s, "a", obj, true); err != nil {
			return err
		}
		return e.wantDue(tx, s, "a", obj, false)
	})
	due(false)
}

func reapplyVersions[Tx any](e *env[Tx], s dedup.Reapplies[Tx]) {
	stored := int64(0)
	for _, v := range []int64{3, 3, 2, 3, 1, 5, 4, 5, 1 << 32, maxVersion, maxVersion - 1, maxVersion} {
		e.giveUp(func(tx Tx) error { return e.wantAgain(tx, s, obj, v, v >= stored) })
		e.must(func(tx Tx) error { return e.wantAgain(tx, s, obj, v, v >= stored) })
		stored = max(stored, v)
		if got := e.version(e.scope, obj); got != stored {
			e.Fatalf("version is %d after AdvanceAgain to %d, want %d", got, v, stored)
		}
	}
	o := dedup.Object{Type: "subscriber", ID: "own"}
	e.must(func(tx Tx) error { // what the transaction did itself counts
		for _, c := range []struct {
			v    int64
			want bool
		}{{5, true}, {5, true}, {4, false}, {6, true}} {
			if err := e.wantAgain(tx, s, o, c.v, c.want); err != nil {
				return err
			}
		}
		if err := e.wantAdvance(tx, e.scope, o, 6, false); err != nil {
			return err
		}
		return e.wantVersion(tx, e.scope, o, 6)
	})
	for _, c := range []struct {
		v            int64
		due, current bool
	}{{8, true, false}, {9, false, false}} {
		o := dedup.Object{Type: "subscriber", ID: "take"}
		if c.due {
			e.must(func(tx Tx) error { return e.wantAdvance(tx, e.scope, o, 9, true) })
			e.marked("take")
			e.ask(s, dedup.Reapply{Object: o})
		}
		e.must(func(tx Tx) error { return e.wantTaken(tx, "take", o, c.v, c.due, c.current) })
	}
	e.ask(s, dedup.Reapply{ID: "take"})
	e.must(func(tx Tx) error { return e.wantTaken(tx, "take", dedup.Object{}, 0, true, true) })
}

func (e *env[Tx]) wantTaken(tx Tx, id string, o dedup.Object, v int64, due, current bool) error {
	gotDue, gotCurrent, err := dedup.TakeAgain(e.ctx, e.Store, tx, e.scope, id, o, v)
	if err == nil && (gotDue != due || gotCurrent != current) {
		err = fmt.Errorf("TakeAgain(%q, %q, %d) = %t, %t, want %t, %t", id, o, v, gotDue, gotCurrent, due, current)
	}
	return e.fine(err)
}

func reapplyList[Tx any](e *env[Tx], s dedup.Reapplies[Tx]) {
	var want []dedup.Reapply
	last := int64(0)
	for _, r := range []dedup.Reapply{
		{ID: "b", At: day.Add(999 * time.Nanosecond)},
		{Object: dedup.Object{Type: "a.b", ID: "é '%"}, At: day.Add(-time.Hour)},
		{From: day.Add(1500 * time.Nanosecond), At: day},
		{From: day, Until: day.Add(2500 * time.Nanosecond).In(time.FixedZone("", -3600)), At: day},
		{ID: "a", Object: obj, Until: day, At: day},
	} {
		r.Scope = e.scope
		r.Number = e.ask(s, r)
		if r.Number <= last {
			e.Errorf("AskReapply returned the number %d after %d", r.Number, last)
		}
		last = r.Number
		for _, t := range []*time.Time{&r.From, &r.Until, &r.At} {
			if !t.IsZero() {
				*t = t.UTC().Truncate(time.Microsecond)
			}
		}
		want = append(want, r)
		e.ask(s, dedup.Reapply{ID: "b", Scope: e.scope + "/2"})
	}
	list := func(after int64, limit int, want []dedup.Reapply) {
		e.Helper()
		e.must(func(tx Tx) error {
			got, err := s.ListReapplies(e.ctx, tx, e.scope, after, limit)
			if err == nil && fmt.Sprint(got) != fmt.Sprint(want) {
				err = fmt.Errorf("ListReapplies after %d, limit %d = %v, want %v", after, limit, got, want)
			}
			return e.fine(err)
		})
	}
	list(0, 100, want)
	list(0, 2, want[:2])
	list(want[1].Number, 2, want[2:4])
	list(want[4].Number, 2, nil)
	e.must(func(tx Tx) error {
		if err := s.CancelReapply(e.ctx, tx, e.scope+"/2", want[4].Number); !errors.Is(err, dedup.ErrNotFound) {
			return errors.Join(fmt.Errorf("CancelReapply in another scope returned %v, want ErrNotFound", err), e.fine(err))
		}
		if err := s.CancelReapply(e.ctx, tx, e.scope, want[4].Number); err != nil {
			return e.fine(err)
		}
		if err := s.CancelReapply(e.ctx, tx, e.scope, want[4].Number); !errors.Is(err, dedup.ErrNotFound) {
			return errors.Join(fmt.Errorf("CancelReapply of what is not there returned %v, want ErrNotFound", err), e.fine(err))
		}
		return nil
	})
	list(0, 100, want[:4])
	e.cancelAll(s, e.scope)
	e.cancelAll(s, e.scope+"/2")
	if n := e.ask(s, dedup.Reapply{ID: "b"}); n <= last {
		e.Errorf("AskReapply returned the number %d when the requests up to %d were gone: it must be higher", n, last)
	}
}

func reapplyPrune[Tx any](e *env[Tx], s dedup.Reapplies[Tx]) {
	removeOld(e)
	for i := range 4 {
		prunable(e, fmt.Sprintf("old-%d", i), i)
	}
	early := e.ask(s, dedup.Reapply{From: old(1), At: old(8)})
	late := e.ask(s, dedup.Reapply{From: old(1), At: old(9)})
	left := func(why string, want ...int64) {
		e.Helper()
		e.must(func(tx Tx) error {
			list, err := s.ListReapplies(e.ctx, tx, e.scope, 0, 10)
			var got []int64
			for _, r := range list {
				got = append(got, r.Number)
			}
			if err == nil && fmt.Sprint(got) != fmt.Sprint(want) {
				err = fmt.Errorf("%s: the requests %v are left, want %v", why, got, want)
			}
			return e.fine(err)
		})
	}
	if n := prune(e, old(9), 3); n != 3 {
		e.Errorf("Prune removed %d markers, want 3", n)
	}
	left("a marker is left", early, late)
	e.must(func(tx Tx) error { return e.wantDue(tx, s, "old-3", obj, true) })
	e.giveUp(func(tx Tx) error {
		_, err := e.Store.Prune(e.ctx, tx, old(9), 3)
		return e.fine(err)
	})
	left("after a rollback", early, late)
	if n := prune(e, old(9), 3); n != 1 {
		e.Errorf("Prune removed %d markers beside a request, want 1", n)
	}
	left("no marker is left", late)
	if n := prune(e, old(10), 3); n != 0 {
		e.Errorf("Prune removed %d markers beside a request, want 0", n)
	}
	left("all are old")
	var many []int64
	for range 3 {
		many = append(many, e.ask(s, dedup.Reapply{From: old(1), At: old(9)}))
	}
	prune(e, old(9).Add(999), 3) // no time is finer than a microsecond
	left("none was asked a microsecond before that time", many...)
	removeAll := func() (rest int) {
		prune(e, old(10), 2)
		e.must(func(tx Tx) error {
			list, err := s.ListReapplies(e.ctx, tx, e.scope, 0, 10)
			rest = len(list)
			return e.fine(err)
		})
		return rest
	}
	if first, second := removeAll(), removeAll(); first != 1 || second != 0 {
		e.Errorf("Prune with limit 2 left %d and then %d of 3 old requests, want 1 and then 0", first, second)
	}
}

func reapplyOdd[Tx any](e *env[Tx], s dedup.Reapplies[Tx]) {
	good := dedup.Reapply{Scope: e.scope, ID: "a", At: day}
	e.marked("a")
	e.must(func(tx Tx) error {
		for what, spoil := range map[string]func(*dedup.Reapply){
			"no scope":                         func(r *dedup.Reapply) { r.Scope = "" },
			"an id with a space":               func(r *dedup.Reapply) { r.ID = "a b" },
			"an id that is too long":           func(r *dedup.Reapply) { r.ID = strings.Repeat("x", 129) },
			"an object without an id":          func(r *dedup.Reapply) { r.Object.Type = "a" },
			"an object without a type":         func(r *dedup.Reapply) { r.Object.ID = "a" },
			"nothing that it covers":           func(r *dedup.Reapply) { r.ID = "" },
			"the end of a span alone":          func(r *dedup.Reapply) { r.ID, r.Until = "", day },
			"an empty span":                    func(r *dedup.Reapply) { r.From, r.Until = day, day },
			"a span that ends before it began": func(r *dedup.Reapply) { r.From, r.Until = day, day.Add(-time.Hour) },
			"a beginning before 1980":          func(r *dedup.Reapply) { r.From = time.Date(1979, 12, 31, 0, 0, 0, 0, time.UTC) },
			"an end after 9999":                func(r *dedup.Reapply) { r.Until = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) },
			"the zero time":                    func(r *dedup.Reapply) { r.At = time.Time{} },
			"a number":                         func(r *dedup.Reapply) { r.Number = 7 },
		} {
			r := good
			spoil(&r)
			if n, err := s.AskReapply(e.ctx, tx, r); !errors.Is(err, dedup.ErrInvalid) || n != 0 {
				return fmt.Errorf("AskReapply of a request with %s returned %d and %v, want 0 and ErrInvalid", what, n, err)
			}
		}
		for what, err := range map[string]error{
			"TakeReapply of an odd id":              second(s.TakeReapply(e.ctx, tx, e.scope, "a b", obj)),
			"TakeReapply in no scope":               second(s.TakeReapply(e.ctx, tx, "", "a", obj)),
			"TakeReapply of half an object":         second(s.TakeReapply(e.ctx, tx, e.scope, "a", dedup.Object{ID: "a"})),
			"AdvanceAgain to 0":                     second(s.AdvanceAgain(e.ctx, tx, e.scope, obj, 0)),
			"AdvanceAgain above 2^53-1":             second(s.AdvanceAgain(e.ctx, tx, e.scope, obj, maxVersion+1)),
			"AdvanceAgain of no object":             second(s.AdvanceAgain(e.ctx, tx, e.scope, dedup.Object{}, 1)),
			"ListReapplies with limit 0":            second(s.ListReapplies(e.ctx, tx, e.scope, 0, 0)),
			"ListReapplies after a negative number": second(s.ListReapplies(e.ctx, tx, e.scope, -1, 1)),
			"ListReapplies of no scope":             second(s.ListReapplies(e.ctx, tx, "", 0, 1)),
			"CancelReapply of 0":                    s.CancelReapply(e.ctx, tx, e.scope, 0),
			"CancelReapply in no scope":             s.CancelReapply(e.ctx, tx, "", 1),
		} {
			if !errors.Is(err, dedup.ErrInvalid) {
				return fmt.Errorf("%s returned %v, want ErrInvalid", what, err)
			}
		}
		return e.wantDue(tx, s, "a", obj, false)
	})
	if v := e.version(e.scope, obj); v != 0 {
		e.Errorf("a refused AdvanceAgain set the version to %d", v)
	}
	if n := e.cancelAll(s, e.scope); n != 0 {
		e.Errorf("%d requests are there that were refused", n)
	}
}

func second[T any](_ T, err error) error { return err }

func reapplyLetters[Tx any](e *env[Tx], s dedup.Reapplies[Tx]) {
	letters, ok := e.Store.(dedup.DeadLetters[Tx])
	if !ok {
		return
	}
	for _, id := range []string{"a", "b"} {
		e.must(func(tx Tx) error {
			if err := e.wantMark(tx, e.scope, id, true); err != nil {
				return err
			}
			return e.fine(letters.SetAside(e.ctx, tx, letter(e.scope, id)))
		})
	}
	e.ask(s, dedup.Reapply{ID: "a"})
	e.giveUp(func(tx Tx) error { return e.wantTaken(tx, "a", obj, 1, true, true) })
	e.must(func(tx Tx) error {
		if err := e.wantLetter(tx, letters, letter(e.scope, "a")); err != nil {
			return err
		}
		if err := e.wantTaken(tx, "b", obj, 1, false, false); err != nil {
			return err
		}
		if err := e.wantTaken(tx, "a", obj, 1, true, true); err != nil {
			return err
		}
		return e.wantNoLetter(tx, letters, e.scope, "a")
	})
	e.must(func(tx Tx) error { return e.wantLetter(tx, letters, letter(e.scope, "b")) })
}
