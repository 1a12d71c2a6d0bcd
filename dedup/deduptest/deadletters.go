package deduptest

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/surehook/surehook/dedup"
)

func letterRules[Tx any]() []rule[Tx] {
	rules := []rule[Tx]{
		{"dead-letters", "A dead letter comes back as it was set aside, until it is replaced or discarded; what is not there is ErrNotFound.", nil},
		{"dead-letters-list", "Dead letters are listed by scope, in the order of their ids, from the cursor on, at most limit of them.", nil},
		{"dead-letters-rollback", "Setting aside and discarding are of the transaction, with the marker.", nil},
		{"dead-letters-prune", "Dead letters are never pruned, however old they and their markers are.", nil},
		{"dead-letters-odd", "No text of a reason and no bytes of a body stop an event from being set aside; the rest must have its form.", nil},
		{"dead-letters-own-copy", "A store keeps no slice that the caller has.", nil},
	}
	for i, check := range []func(*env[Tx], dedup.DeadLetters[Tx]){lettersBasics[Tx], lettersList[Tx], lettersRollback[Tx], lettersPrune[Tx], lettersOdd[Tx], lettersCopy[Tx]} {
		rules[i].check = func(e *env[Tx]) {
			if s, ok := e.Store.(dedup.DeadLetters[Tx]); ok {
				check(e, s)
			}
		}
	}
	return rules
}

// largeBody is more than a receiver takes by default: what is too large for it becomes a
// dead letter.
const largeBody = 2 << 20

func letter(scope, id string) dedup.DeadLetter {
	return dedup.DeadLetter{
		Scope: scope, ID: id, Type: "subscriber.updated", Object: obj, Version: maxVersion,
		Body: []byte(`{"id":"` + id + `"}`), Reason: "no such plan: \"gold\"", At: day.Add(123456 * time.Microsecond),
	}
}

func (e *env[Tx]) wantLetter(tx Tx, s dedup.DeadLetters[Tx], want dedup.DeadLetter) error {
	got, err := s.DeadLetter(e.ctx, tx, want.Scope, want.ID)
	if err != nil {
		return e.fine(err)
	}
	return sameLetter(got, want)
}

func sameLetter(got, want dedup.DeadLetter) error {
	if !got.At.Equal(want.At) {
		return fmt.Errorf("dead letter's time is %s, want %s", got.At, want.At)
	}
	if string(got.Body) != string(want.Body) {
		return fmt.Errorf("dead letter's body has %d bytes and begins with %.100q, want %d bytes and %.100q", len(got.Body), got.Body, len(want.Body), want.Body)
	}
	got.At, want.At, got.Body, want.Body = time.Time{}, time.Time{}, nil, nil
	if !reflect.DeepEqual(got, want) {
		return fmt.Errorf("dead letter is %+v, want %+v", got, want)
	}
	return nil
}

func (e *env[Tx]) wantNoLetter(tx Tx, s dedup.DeadLetters[Tx], scope, id string) error {
	if _, err := s.DeadLetter(e.ctx, tx, scope, id); !errors.Is(err, dedup.ErrNotFound) {
		return errors.Join(fmt.Errorf("DeadLetter(%q, %q) returned the error %v, want ErrNotFound", scope, id, err), e.fine(err))
	}
	return nil
}

func lettersBasics[Tx any](e *env[Tx], s dedup.DeadLetters[Tx]) {
	first, second := letter(e.scope, "a"), letter(e.scope, "b")
	second.Object, second.Version, second.Body, second.Reason = dedup.Object{}, 0, nil, ""
	elsewhere := letter(e.scope+"/2", "a")
	elsewhere.Reason = "elsewhere"
	elsewhere.Body = bytes.Repeat([]byte("\x00\xffa long body. "), largeBody/16)
	e.must(func(tx Tx) error {
		for _, l := range []dedup.DeadLetter{first, second, elsewhere} {
			if err := s.SetAside(e.ctx, tx, l); err != nil {
				return e.fine(err)
			}
			if err := e.wantLetter(tx, s, l); err != nil {
				return err
			}
		}
		return nil
	})
	replaced := dedup.DeadLetter{
		Scope: e.scope, ID: "a", Type: "other", Object: dedup.Object{Type: "o", ID: "2"}, Version: 1,
		Body: []byte{0, 255}, Reason: "again", At: day.Add(time.Hour),
	}
	e.must(func(tx Tx) error {
		for _, l := range []dedup.DeadLetter{first, second, elsewhere} {
			if err := e.wantLetter(tx, s, l); err != nil {
				return err
			}
		}
		if err := e.wantNoLetter(tx, s, e.scope+"/2", "b"); err != nil {
			return err
		}
		return s.SetAside(e.ctx, tx, replaced)
	})
	e.must(func(tx Tx) error {
		if err := e.wantLetter(tx, s, replaced); err != nil {
			return err
		}
		return s.Discard(e.ctx, tx, e.scope, "a")
	})
	e.must(func(tx Tx) error {
		if err := e.wantNoLetter(tx, s, e.scope, "a"); err != nil {
			return err
		}
		if err := s.Discard(e.ctx, tx, e.scope, "a"); !errors.Is(err, dedup.ErrNotFound) {
			return fmt.Errorf("Discard of what is not there returned %v, want ErrNotFound", err)
		}
		for _, l := range []dedup.DeadLetter{second, elsewhere} {
			if err := e.wantLetter(tx, s, l); err != nil {
				return err
			}
		}
		return nil
	})
}

func lettersList[Tx any](e *env[Tx], s dedup.DeadLetters[Tx]) {
	ids := []string{"A", "Z", "_", "a", "a-", "a0", "aA", "b"}
	slices.Sort(ids) // by bytes
	want := map[string]dedup.DeadLetter{}
	e.must(func(tx Tx) error {
		for i, id := range slices.Backward(ids) {
			l := letter(e.scope, id)
			l.Reason = fmt.Sprint(i)
			want[id] = l
			if err := s.SetAside(e.ctx, tx, l); err != nil {
				return e.fine(err)
			}
		}
		return s.SetAside(e.ctx, tx, letter(e.scope+"/2", "aa"))
	})
	list := func(after string, limit int) (got []string) {
		e.Helper()
		e.must(func(tx Tx) error {
			got = nil
			letters, err := s.ListDeadLetters(e.ctx, tx, e.scope, after, limit)
			for _, l := range letters {
				if err := sameLetter(l, want[l.ID]); err != nil {
					return err
				}
				got = append(got, l.ID)
			}
			return e.fine(err)
		})
		return got
	}
	for _, c := range []struct {
		after string
		limit int
		want  []string
	}{
		{"", 100, ids}, {"", 3, ids[:3]}, {ids[2], 3, ids[3:6]}, {ids[5], 3, ids[6:]}, {ids[7], 3, nil},
		{"a1", 100, []string{"aA", "b"}}, // a cursor need not be there
	} {
		if got := list(c.after, c.limit); !slices.Equal(got, c.want) {
			e.Errorf("ListDeadLetters after %q, limit %d = %q, want %q", c.after, c.limit, got, c.want)
		}
	}
}

func lettersRollback[Tx any](e *env[Tx], s dedup.DeadLetters[Tx]) {
	setAside := func(tx Tx) error {
		if err := e.wantMark(tx, e.scope, "a", true); err != nil {
			return err
		}
		return e.fine(s.SetAside(e.ctx, tx, letter(e.scope, "a")))
	}
	e.giveUp(setAside)
	e.must(func(tx Tx) error { return e.wantNoLetter(tx, s, e.scope, "a") })
	e.during(false, setAside, func(tx Tx, open func() bool) error {
		list, err := s.ListDeadLetters(e.ctx, tx, e.scope, "", 1)
		if err == nil && len(list) > 0 {
			err = errors.New("a dead letter that is not committed is listed")
		}
		return e.fine(err)
	})
	e.must(setAside)
	e.giveUp(func(tx Tx) error {
		if err := s.Discard(e.ctx, tx, e.scope, "a"); err != nil {
			return e.fine(err)
		}
		return e.wantNoLetter(tx, s, e.scope, "a")
	})
	e.must(func(tx Tx) error { return e.wantLetter(tx, s, letter(e.scope, "a")) })
	if !e.seen(e.scope, "a") {
		e.Errorf("there is a dead letter without its marker")
	}
}

func lettersPrune[Tx any](e *env[Tx], s dedup.DeadLetters[Tx]) {
	removeOld(e)
	l := letter(e.scope, "a")
	l.At = old(1)
	e.must(func(tx Tx) error {
		if err := wantMarkAt(e, tx, e.scope, l.ID, l.At); err != nil {
			return err
		}
		return e.fine(s.SetAside(e.ctx, tx, l))
	})
	if n := prune(e, old(2), 10); n != 1 {
		e.Errorf("Prune removed %d markers beside a dead letter, want 1", n)
	}
	e.must(func(tx Tx) error { return e.wantLetter(tx, s, l) })
}

func lettersOdd[Tx any](e *env[Tx], s dedup.DeadLetters[Tx]) {
	for i, reason := range []string{"", "a\x00b", "\xff\xfe", "'; DROP TABLE x; --", "\u2028\U0001F4A9", strings.Repeat("é", dedup.MaxReason), strings.Repeat("\xff", dedup.MaxReason)} {
		l := letter(e.scope, fmt.Sprintf("a%d", i))
		l.Reason = reason
		l.Body = []byte{0, 0xff, '\'', byte(i)}
		e.must(func(tx Tx) error { return e.fine(s.SetAside(e.ctx, tx, l)) })
		e.must(func(tx Tx) error {
			got, err := s.DeadLetter(e.ctx, tx, e.scope, l.ID)
			if err != nil {
				return e.fine(err)
			}
			if !utf8.ValidString(got.Reason) || len(got.Reason) > dedup.MaxReason || (reason == "") != (got.Reason == "") {
				return fmt.Errorf("reason %.40q came back as %.40q (%d bytes)", reason, got.Reason, len(got.Reason))
			}
			got.Reason = reason
			return sameLetter(got, l)
		})
	}
	e.must(func(tx Tx) error {
		for what, spoil := range map[string]func(*dedup.DeadLetter){
			"the type a..b":                 func(l *dedup.DeadLetter) { l.Type = "a..b" },
			"no type":                       func(l *dedup.DeadLetter) { l.Type = "" },
			"the version 0 and an object":   func(l *dedup.DeadLetter) { l.Version = 0 },
			"a version and no object":       func(l *dedup.DeadLetter) { l.Object = dedup.Object{} },
			"a version above 2^53-1":        func(l *dedup.DeadLetter) { l.Version++ },
			"a control character in its id": func(l *dedup.DeadLetter) { l.Object.ID = "a\nb" },
			"the zero time":                 func(l *dedup.DeadLetter) { l.At = time.Time{} },
		} {
			l := letter(e.scope, "odd")
			spoil(&l)
			if err := s.SetAside(e.ctx, tx, l); !errors.Is(err, dedup.ErrInvalid) {
				return fmt.Errorf("SetAside of a dead letter with %s returned %v, want ErrInvalid", what, err)
			}
		}
		return e.wantNoLetter(tx, s, e.scope, "odd")
	})
}

func lettersCopy[Tx any](e *env[Tx], s dedup.DeadLetters[Tx]) {
	want := letter(e.scope, "a")
	e.must(func(tx Tx) error {
		given := letter(e.scope, "a")
		err := s.SetAside(e.ctx, tx, given)
		given.Body[0] = '#'
		return e.fine(err)
	})
	e.must(func(tx Tx) error {
		got, err := s.DeadLetter(e.ctx, tx, e.scope, "a")
		if err != nil {
			return e.fine(err)
		}
		if err := sameLetter(got, want); err != nil {
			return err
		}
		got.Body[0] = '#'
		list, err := s.ListDeadLetters(e.ctx, tx, e.scope, "", 1)
		if err != nil || len(list) != 1 {
			return errors.Join(fmt.Errorf("%d dead letters are listed, want 1", len(list)), e.fine(err))
		}
		if err := sameLetter(list[0], want); err != nil {
			return err
		}
		list[0].Body[0] = '#'
		return e.wantLetter(tx, s, want)
	})
}
