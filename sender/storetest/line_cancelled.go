package storetest

import (
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
)

// lineCancelled cancels versions that waited for each other before their subscription came to
// want the latest alone. The first of them has not been claimed, or its attempt ends later.
func lineCancelled(w *world) {
	for how, cancel := range map[string]func(sub, id string){
		"skipped by a resume": func(sub, _ string) {
			w.pause(sub)
			w.resume(sub, takeNone)
		},
		"redacted": func(_, id string) { w.redact(history.RedactParams{Object: sender.Object{Type: "thing", ID: id}}) },
		"deleted":  func(sub, _ string) { w.unsubscribe(sub) },
	} {
		for when, end := range map[string]func(c dispatch.Claimed){
			"not claimed": nil,
			"given back":  func(c dispatch.Claimed) { w.giveBack(c) },
			"failed":      func(c dispatch.Claimed) { w.record(result(c, sender.ClassStatus)) },
		} {
			owner, sub := w.ordered(byObject)
			id := w.name("object")
			e := w.versions(owner, sub, id, id, id)
			var first []dispatch.Claimed
			if end != nil {
				first = w.claims(how+", at first", e[0])
			}
			w.set(sub, latest)
			cancel(sub, id)
			w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusCancelled: 3}, "statuses of three versions, %s, the first one %s", how, when)
			if end != nil {
				end(first[0])
				w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusCancelled: 3}, "statuses of three versions, %s, once the first one was %s", how, when)
			}
			w.endsSwept()
			w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusCancelled: 3}, "statuses of three versions, %s, the first one %s, once they are swept", how, when)
			if how != "deleted" {
				w.record(result(w.claims("what comes after those "+how, w.versions(owner, sub, id)...)[0], sender.ClassNone))
			}
		}
	}
}

// lineSkippedInPart resumes with the last of the versions alone.
func lineSkippedInPart(w *world) {
	owner, sub := w.ordered(byObject)
	e := w.versions(owner, sub, "a", "a", "a")
	w.pause(sub)
	w.Advance(time.Second)
	since := w.now()
	e = append(e, w.versions(owner, sub, "a")...)
	w.set(sub, latest)
	w.resume(sub, sender.Resume{Since: since})
	w.endsSwept()
	w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusCancelled: 3, sender.StatusPending: 1}, "statuses of three versions that a resume has skipped, and one that it has taken")
	w.record(result(w.claims("after the resume", e[3])[0], sender.ClassNone))
}
