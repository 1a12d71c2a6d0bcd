package storetest

import (
	"fmt"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// about publishes an event about an object, which nobody gets, and returns its version.
// If given is 0 the store assigns the version.
func (w *world) about(id string, given int64) int64 {
	w.Helper()
	d := w.draftOn("c", sender.Object{Type: "thing", ID: id})
	d.Version = given
	return w.publish(d)[0].Version
}

func pruneObjects(w *world) {
	for range 3 {
		w.about("old", 0)
	}
	w.about("changing", 0)
	w.about("given", 7)
	for i := range 20 {
		w.about(fmt.Sprint("one of many ", i), 0)
	}
	w.expand()
	w.Advance(2 * time.Hour)
	w.equal(w.prune(ages{events: time.Hour, objects: 10 * time.Hour}), dispatch.Pruned{Events: 25}, "pruned when the events' time is over")

	d := w.draftOn("c", sender.Object{Type: "thing", ID: "old"})
	d.Version = 3
	_, err := w.tryPublish(d)
	w.errorIs(err, sender.ErrVersion, "publishing a version that the object had, before it is forgotten")
	changed := w.about("changing", 0)
	w.check(changed > 1, "the version assigned after 1 is %d", changed)
	w.expand()
	w.Advance(9 * time.Hour)
	w.equal(w.prune(ages{objects: 10 * time.Hour}), dispatch.Pruned{}, "pruned 9 h after the events were")
	w.Advance(2 * time.Hour)
	w.equal(w.prune(ages{objects: 10 * time.Hour}), dispatch.Pruned{Objects: 22}, "pruned 11 h after the events were")

	w.equal(w.about("given", 5), int64(5), "version that a caller gives for an object that is forgotten")
	for id, had := range map[string]int64{"old": 3, "changing": changed, "given": 7, "one of many 3": 1} {
		for range 2 {
			version := w.about(id, 0)
			w.check(version > had, "object %q, which had version %d, is assigned %d", id, had, version)
			had = version
		}
	}
	w.expand()
	w.Advance(2 * time.Hour)
	w.equal(w.prune(ages{events: time.Hour, objects: 10 * time.Hour}).Objects, 0, "objects pruned with their last events")
	w.Advance(11 * time.Hour)
	w.equal(w.prune(ages{objects: 10 * time.Hour}), dispatch.Pruned{Objects: 4}, "pruned after their time once more")
}

func pruneNoObjects(w *world) {
	const high = 1 << 52
	w.about("kept", 0)
	w.expand()
	w.Advance(2 * time.Hour)
	w.equal(w.prune(ages{events: time.Hour}), dispatch.Pruned{Events: 1}, "pruned without a time for objects")
	w.about("high", high)
	w.about("lower", high-1)
	w.expand()
	w.Advance(2 * time.Hour)
	w.equal(w.prune(ages{events: time.Hour, objects: time.Hour}), dispatch.Pruned{Events: 2}, "pruned with one")
	w.equal(w.about("kept", 0), int64(high), "version assigned after half of all, once an object of the half less one is to be forgotten")
	w.Advance(2 * time.Hour)
	w.equal(w.prune(ages{objects: time.Hour}), dispatch.Pruned{Objects: 1}, "pruned after its time")
	d := w.draftOn("c", sender.Object{Type: "thing", ID: "high"})
	d.Version = high
	_, err := w.tryPublish(d)
	w.errorIs(err, sender.ErrVersion, "publishing a version that an object had that is never forgotten")
}

// pruneObjectsInLines does not ask when an object is forgotten that has a line: a store may
// find the line without it.
func pruneObjectsInLines(w *world) {
	owner, sub := w.ordered(byObject)
	waiting := func(object string) string {
		e := w.versions(owner, sub, object)[0]
		w.record(result(w.claims("at first", e)[0], sender.ClassStatus))
		w.about(object, 0)
		w.expand()
		w.Advance(2 * time.Hour)
		w.equal(w.prune(ages{events: time.Hour, objects: 10 * time.Hour}), dispatch.Pruned{Events: 1}, "pruned while an earlier version waits")
		w.Advance(11 * time.Hour)
		return e
	}
	forget := func() int { return w.prune(ages{objects: 10 * time.Hour}).Objects }

	e := waiting("a")
	n := forget()
	w.record(result(w.claims("after its object may have been forgotten", e)[0], sender.ClassNone))
	w.equal(n+forget(), 1, "objects forgotten, once no line has them")

	e = waiting("b")
	forget()
	next := w.versions(owner, sub, "b")[0]
	w.record(result(w.claims("of two versions, between which the object may have been forgotten", e)[0], sender.ClassNone))
	w.record(result(w.claims("then", next)[0], sender.ClassNone))

	both := w.versions(owner, sub, "c", "c")
	for _, e := range both {
		w.record(result(w.claims("in order", e)[0], sender.ClassNone))
	}
	w.about("c", 0)
	w.expand()
	w.Advance(2 * time.Hour)
	w.equal(w.prune(ages{events: time.Hour, objects: 10 * time.Hour}), dispatch.Pruned{Events: 1}, "pruned while earlier versions have deliveries")
	w.Advance(11 * time.Hour)
	forget()
	for _, e := range []string{both[1], both[0]} {
		w.redeliver(w.delivery(e, sub).ID)
	}
	for _, e := range both {
		w.record(result(w.claims("sent again, after their object was forgotten", e)[0], sender.ClassNone))
	}
}
