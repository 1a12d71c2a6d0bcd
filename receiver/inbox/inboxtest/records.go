package inboxtest

import (
	"strings"

	"github.com/surehook/surehook/receiver/inbox"
)

func recordRules[Tx any]() []rule[Tx] {
	return []rule[Tx]{
		{"recorded-once", "An event that is there already is not recorded again, whatever the copy says, and not told to be fresh.", recordedOnce[Tx]},
		{"whole", "An event comes out as it was put in: each byte of its body, and each character of its names.", whole[Tx]},
		{"scopes", "Scopes keep events and lines apart.", scopes[Tx]},
		{"record-rollback", "What was recorded in a transaction that is rolled back was never there.", recordRollback[Tx]},
		{"status", "StatusTx counts what is there, what has failed last, and tells since when the oldest is there.", status[Tx]},
	}
}

func recordedOnce[Tx any](e *env[Tx]) {
	first := event("line", "a", 3)
	e.record(first, true)
	other := event("other", "a", 1)
	other.Body = []byte("another body")
	e.record(first, false)
	e.record(other, false)
	if c := e.claimed("a"); !same(c.Record, first) {
		e.Errorf("the event is %+v, and must be as it was recorded first: %+v", c.Record, first)
	}
	e.record(first, false)
	e.nothing("the line of the copy is no line")
	if n := e.status().Events; n != 1 {
		e.Errorf("there are %d events, and must be 1", n)
	}
}

func whole[Tx any](e *env[Tx]) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	records := []inbox.Record{
		{Scope: scope, ID: "every-byte", Line: "one", Type: "t", Version: 1<<53 - 1, Body: every},
		{Scope: scope, ID: "Case", Line: "two", Type: "a.B-c_d", Version: 1, Body: []byte("upper")},
		{Scope: scope, ID: "case", Line: "Two", Type: "t", Version: 1, Body: []byte("lower")},
		{Scope: scope, ID: "no-version", Line: "three", Type: "t", Body: []byte("x")},
		{Scope: "Ünicode/" + strings.Repeat("s", 100), ID: strings.Repeat("i", 128), Line: strings.Repeat("l", 400), Type: "t", Version: 1, Body: []byte("x")},
		{Scope: scope, ID: "odd-line", Line: `object/it's "odd"% _\/ ` + "\u2028", Type: "t", Version: 1, Body: []byte("x")},
		{Scope: scope, ID: "empty", Line: "four", Type: "t", Version: 1, Body: []byte{}},
	}
	for _, r := range records {
		e.record(r, true)
	}
	got := map[string]inbox.Record{}
	for _, c := range e.claimOf(all, 2*len(records), long) {
		got[c.ID] = c.Record
		e.finish(c)
	}
	for _, r := range records {
		if !same(got[r.ID], r) {
			e.Errorf("the event is %+v, and must be as it was recorded: %+v", got[r.ID], r)
		}
	}
	if s := e.status(); s.Events != 0 {
		e.Errorf("%d events are left of those that were finished", s.Events)
	}
}

func scopes[Tx any](e *env[Tx]) {
	mine, yours := event("line", "a", 1), event("line", "a", 1)
	yours.Scope = "other"
	e.record(mine, true)
	e.record(yours, true)
	claims := e.claimOf(all, 10, long)
	if len(claims) != 2 {
		e.Fatalf("claimed were %d events, and must be one of each scope", len(claims))
	}
	for _, c := range claims {
		if c.Scope == scope {
			e.finish(c)
		}
	}
	e.record(mine, true)
	e.record(yours, false)
	if claims := e.claimOf(all, 10, long); len(claims) != 1 || claims[0].Scope != scope {
		e.Errorf("claimed were %v, and the event of the other scope is claimed already", claims)
	}
}

func recordRollback[Tx any](e *env[Tx]) {
	e.giveUp(func(tx Tx) error {
		_, err := e.Store.RecordTx(e.ctx, tx, event("line", "a", 1))
		return err
	})
	e.nothing("it was rolled back")
	e.record(event("line", "a", 1), true)
	e.claimed("a")
}

func status[Tx any](e *env[Tx]) {
	if s := e.status(); s != (inbox.Status{}) {
		e.Errorf("the status of nothing is %+v", s)
	}
	e.record(event("one", "a", 1), true)
	first := e.status().Oldest
	if first.IsZero() {
		e.Errorf("the oldest is there since the zero time")
	}
	e.record(event("two", "b", 1), true)
	e.record(event("two", "c", 2), true)
	claims := e.claim(10, long)
	for _, c := range claims {
		e.retry(c, long)
	}
	s := e.status()
	if s.Events != 3 || s.Failing != 2 || !s.Oldest.Equal(first) {
		e.Errorf("the status is %+v, and must tell of 3 events, 2 of them failing, since %v", s, first)
	}
}
