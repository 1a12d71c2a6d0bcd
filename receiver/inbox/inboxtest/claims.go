package inboxtest

import (
	"slices"
	"time"

	"github.com/surehook/surehook/receiver/inbox"
)

func claimRules[Tx any]() []rule[Tx] {
	return []rule[Tx]{
		{"one-of-a-line", "Of a line one event at a time is claimed: the one with the lowest version; of equal ones, what was recorded first.", oneOfALine[Tx]},
		{"lease-ends", "A claimed line is due again when its lease has ended, and not before; the claim then has another token and is one more attempt.", leaseEnds[Tx]},
		{"longest-due-first", "Those that are due longest are claimed first, and no more than the limit.", longestDueFirst[Tx]},
		{"claimed-in-scope", "Events are claimed and counted in one scope as if there were no other, or in all.", claimedInScope[Tx]},
		{"one-scope", "What was recorded with OneScope is claimed and counted in its scope alone. A line is as its last event was recorded.", oneScope[Tx]},
		{"overdue", "Events are counted that the scope does not claim, if their lines are due for longer, and one of their scopes is told.", overdue[Tx]},
		{"claim-rollback", "A claim that is rolled back was none, and no attempt, and its token is never given again.", claimRollback[Tx]},
		{"age", "A claim's age is the time since the first attempt, and does not begin anew.", age[Tx]},
	}
}

func oneOfALine[Tx any](e *env[Tx]) {
	e.record(event("one", "b", 2), true)
	e.record(event("one", "a", 1), true)
	e.record(event("one", "c", 2), true)
	e.record(event("one", "none", 0), true)
	e.record(event("two", "other", 9), true)
	claims := e.claim(10, long)
	got := ids(claims)
	if slices.Sort(got); !slices.Equal(got, []string{"none", "other"}) {
		e.Fatalf("claimed were %v, and must be the lowest version of each line: none, other", got)
	}
	if e.nothing("both lines are claimed"); claims[0].Line == "two" {
		claims[0], claims[1] = claims[1], claims[0]
	}
	next := claims[0]
	if next.Attempt != 1 || next.Age < 0 || next.Age > time.Minute {
		e.Errorf("the first claim is attempt %d, of the age %v", next.Attempt, next.Age)
	}
	e.record(event("one", "late", 1), true)
	e.nothing("the line that an event was recorded into is claimed")
	for _, id := range []string{"a", "late", "b", "c"} {
		e.finish(next)
		next = e.claimed(id)
	}
	e.finish(next)
	e.nothing("the line is empty, and the other one is claimed")
}

func leaseEnds[Tx any](e *env[Tx]) {
	e.record(event("line", "a", 1), true)
	first := e.claim(10, 20*time.Millisecond)
	if len(first) != 1 {
		e.Fatalf("claimed were %v, and it must be a", ids(first))
	}
	second := e.soon(scope, 10, long)[0]
	if second.ID != "a" || second.Attempt != 2 || second.Token == first[0].Token {
		e.Errorf("the second claim is of %q, attempt %d, token %d after %d", second.ID, second.Attempt, second.Token, first[0].Token)
	}
	e.lost("finishing after the lease", e.tryFinish(first[0]))
	e.lost("putting back after the lease", e.tryRetry(first[0], 0))
	e.nothing("it is claimed, and what came too late must change nothing")
	e.finish(second)
}

func longestDueFirst[Tx any](e *env[Tx]) {
	for _, of := range []string{scope, all} {
		longestDueFirstIn(e, of)
	}
}

func longestDueFirstIn[Tx any](e *env[Tx], of string) {
	order := []string{"c", "a", "d", "b"}
	for _, id := range []string{"a", "b", "c", "d"} {
		e.record(event(id, id, 1), true)
	}
	claims := e.claimOf(of, 3, long)
	if len(claims) != 3 {
		e.Fatalf("claimed were %v of four, with a limit of 3", ids(claims))
	}
	claims = append(claims, e.claimOf(of, 3, long)...)
	place := func(c inbox.Claim) int { return slices.Index(order, c.ID) }
	slices.SortFunc(claims, func(a, b inbox.Claim) int { return place(a) - place(b) })
	for i, c := range claims { // each due later than the one before, however long this takes
		e.retry(c, time.Duration(1+i)*20*time.Millisecond)
	}
	var got []string
	for len(got) < len(order) {
		next := e.soon(of, 1, long)
		got = append(got, ids(next)...)
		for _, c := range next {
			e.finish(c)
		}
	}
	if !slices.Equal(got, order) {
		e.Errorf("the order is %v, and those that were due first must come first: %v", got, order)
	}
}

func claimedInScope[Tx any](e *env[Tx]) {
	for _, id := range []string{"x", "y", "z"} { // they are due longer
		theirs := event(id, id, 1)
		theirs.Scope = "other"
		e.record(theirs, true)
	}
	e.record(event("x", "x", 1), true)
	mine := e.claim(1, long)
	if len(mine) != 1 || mine[0].Scope != scope {
		e.Fatalf("claimed were %v, and it must be the one event of the scope", mine)
	}
	e.retry(mine[0], long)
	e.nothing("those that are left are of another scope")
	for of, want := range map[string]inbox.Status{scope: {Events: 1, Failing: 1}, "other": {Events: 3}, "none": {}, all: {Events: 4, Failing: 1}} {
		if s := e.statusOf(of); s.Events != want.Events || s.Failing != want.Failing || s.Oldest.IsZero() != (want.Events == 0) {
			e.Errorf("the status of the scope %q is %+v, and must tell of %d events, %d of them failing", of, s, want.Events, want.Failing)
		}
	}
	for of, want := range map[string]int{"none": 0, "other": 2} {
		for _, c := range e.claimOf(of, 2, long) {
			if want--; c.Scope != of || c.Attempt != 1 {
				e.Errorf("claimed in the scope %q was %q of %q, attempt %d", of, c.ID, c.Scope, c.Attempt)
			}
		}
		if want != 0 {
			e.Errorf("%d more had to be claimed in the scope %q", want, of)
		}
	}
	if claims := e.claimOf(all, 10, long); len(claims) != 1 {
		e.Errorf("claimed in all scopes were %v, and one event is left", ids(claims))
	}
}

func oneScope[Tx any](e *env[Tx]) {
	alone := event("one", "a", 1)
	alone.OneScope = true
	e.record(alone, true)
	e.record(event("two", "x", 1), true)
	only := func(id string, claims []inbox.Claim) inbox.Claim {
		e.Helper()
		if len(claims) != 1 || claims[0].ID != id || claims[0].OneScope != (id == "a") {
			e.Fatalf("claimed were %v, and it must be %q alone", claims, id)
		}
		return claims[0]
	}
	for of, want := range map[string]int{all: 1, scope: 2} {
		if n := e.statusOf(of).Events; n != want {
			e.Errorf("in the scope %q there are %d events, and must be %d", of, n, want)
		}
	}
	e.finish(only("x", e.claimOf(all, 10, long)))
	e.retry(only("a", e.claim(10, long)), 0)
	if claims := e.claimOf(all, 10, long); len(claims) > 0 {
		e.Fatalf("claimed were %v, which an inbox with one scope has recorded", claims)
	}
	e.record(event("one", "b", 2), true)
	claims := e.soon(all, 10, long)
	if len(claims) != 1 || claims[0].ID != "a" || claims[0].OneScope {
		e.Fatalf("claimed were %v, and it must be the line of the event that was recorded without OneScope", claims)
	}
	c := event("one", "c", 3)
	c.OneScope = true
	e.record(c, true)
	e.finish(claims[0])
	if claims := e.claimOf(all, 10, long); len(claims) > 0 {
		e.Fatalf("claimed were %v of a line whose last event was recorded with OneScope", claims)
	}
}

func overdue[Tx any](e *env[Tx]) {
	mine, others, third := event("line", "a", 1), event("line", "b", 1), event("line", "d", 1)
	others.Scope, third.Scope, third.OneScope = "other", "third", true
	behind := others
	behind.ID, behind.Version = "c", 2
	for _, r := range []inbox.Record{mine, others, behind, third} {
		e.record(r, true)
	}
	for of, want := range map[string]inbox.Overdue{scope: {Events: 3}, "other": {Events: 2}, all: {Events: 1, Scope: "third"}} {
		for e.overdueIn(of, time.Millisecond).Events < want.Events && e.ctx.Err() == nil {
			e.pause()
		}
		got := e.overdueIn(of, time.Millisecond)
		if got.Events != want.Events || got.Scope == "" || got.Scope == of || want.Scope != "" && got.Scope != want.Scope {
			e.Errorf("overdue for the scope %q is %+v, and must be %d events of others", of, got, want.Events)
		}
		if got := e.overdueIn(of, long); got != (inbox.Overdue{}) {
			e.Errorf("overdue for an hour in the scope %q is %+v, and nothing is so old", of, got)
		}
	}
	if claims := e.claimOf("third", 10, long); len(claims) != 1 {
		e.Fatalf("claimed were %v", ids(claims))
	}
	if got := e.overdueIn(all, 0); got != (inbox.Overdue{}) {
		e.Errorf("overdue is %+v, and it is claimed", got)
	}
}

func claimRollback[Tx any](e *env[Tx]) {
	e.record(event("line", "a", 1), true)
	var none []inbox.Claim
	e.giveUp(func(tx Tx) (err error) {
		none, err = e.Store.ClaimTx(e.ctx, tx, scope, 1, long)
		return err
	})
	c := e.claimed("a")
	if c.Attempt != 1 {
		e.Errorf("it is attempt %d, and the one before was rolled back", c.Attempt)
	}
	// A failover that loses the last commits rolls back what somebody works on.
	e.lost("finishing under a claim that was rolled back", e.tryFinish(none[0]))
	e.finish(c)
}

func age[Tx any](e *env[Tx]) {
	e.record(event("line", "a", 1), true)
	before := time.Duration(-1)
	for range 3 {
		c := e.soon(scope, 1, long)[0]
		if before >= 0 && c.Age < before+10*time.Millisecond {
			e.Errorf("the age is %v, after %v at least 20 ms ago", c.Age, before)
		}
		before = c.Age
		e.retry(c, 20*time.Millisecond)
	}
}
