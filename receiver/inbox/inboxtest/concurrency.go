package inboxtest

import (
	"fmt"
	"slices"
	"sync"

	"github.com/surehook/surehook/receiver/inbox"
)

func concurrencyRules[Tx any]() []rule[Tx] {
	return []rule[Tx]{
		{"fresh-once", "Of many that record one event at once exactly one is told that it is fresh.", freshOnce[Tx]},
		{"claimed-once", "Of many that claim at once each gets lines of its own, and together they get all.", claimedOnce[Tx]},
		{"recorded-while-finished", "What is recorded into a line while its last event is finished is due afterwards.", recordedWhileFinished[Tx]},
		{"finished-once", "Of two that finish one claim at once, one is told that its lease is lost.", finishedOnce[Tx]},
		{"context-ended", "With a context that has ended every method returns an error that matches it.", contextEnded[Tx]},
	}
}

func freshOnce[Tx any](e *env[Tx]) {
	for round := range 3 {
		var mu sync.Mutex
		told := 0
		e.each(16, func(int) error {
			fresh, err := e.tryRecord(event("line", fmt.Sprint("event-", round), 1))
			mu.Lock()
			defer mu.Unlock()
			if fresh && err == nil {
				told++
			}
			return err
		})
		if told != 1 {
			e.Errorf("%d were told that the event is fresh", told)
		}
	}
}

func claimedOnce[Tx any](e *env[Tx]) {
	const lines, claimers = 48, 8
	var want []string
	for i := range lines {
		id := fmt.Sprintf("event-%02d", i)
		want = append(want, id)
		e.record(event(id, id, 1), true)
	}
	var mu sync.Mutex
	var got []string
	e.each(claimers, func(i int) error {
		// Others may have locked what is left, so that nothing is no reason to go.
		for e.ctx.Err() == nil {
			claims, err := e.tryClaim([]string{scope, all}[i%2], 3, long)
			if err != nil {
				return err
			}
			mu.Lock()
			got = append(got, ids(claims)...)
			all := len(got) >= lines
			mu.Unlock()
			if all {
				return nil
			}
			if len(claims) == 0 {
				e.pause()
			}
		}
		return nil
	})
	if slices.Sort(got); !slices.Equal(got, want) {
		e.Errorf("claimed were %v, and each of the %d must be claimed once", got, lines)
	}
}

func recordedWhileFinished[Tx any](e *env[Tx]) {
	last := event("line", "event-0", 1)
	e.record(last, true)
	for round := range 40 {
		c := e.claimed(last.ID)
		last = event("line", fmt.Sprint("event-", round+1), 1)
		e.each(2, func(i int) error {
			if i == 0 {
				return e.tryFinish(c)
			}
			_, err := e.tryRecord(last)
			return err
		})
	}
	e.claimed(last.ID)
}

func finishedOnce[Tx any](e *env[Tx]) {
	for round := range 10 {
		id := fmt.Sprint("event-", round)
		e.record(event("line", id, 1), true)
		c := e.claimed(id)
		errs := make([]error, 2)
		e.each(2, func(i int) error {
			errs[i] = e.tryFinish(c)
			return nil
		})
		if (errs[0] == nil) == (errs[1] == nil) {
			e.Fatalf("the two were told %v and %v", errs[0], errs[1])
		}
		for _, err := range errs {
			if err != nil {
				e.lost("the other one", err)
			}
		}
	}
	if s := e.status(); s != (inbox.Status{}) {
		e.Errorf("the status is %+v after everything is finished", s)
	}
}
