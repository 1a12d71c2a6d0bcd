package simulation

import (
	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/receiver"
)

// I10: an event has at most one effect. It has a marker if and only if it has an
// effect, a newer event of its object was applied, or it is a local dead letter. A
// version never falls.

// applied is the expected content of a receiver's database, by its commits.
type applied struct {
	ends     map[string]end // by event: its marker is there
	versions map[dedup.Object]int64
	tx       tx
}

type end int

const (
	effected end = iota + 1
	stale
	deadLettered
)

// tx has the changes of a transaction so far.
type tx struct {
	marker   string // set by it
	newer    bool
	advanced dedup.Object
	version  int64
	effects  []receiver.Event
	letter   string
}

func newApplied() applied {
	return applied{ends: map[string]end{}, versions: map[dedup.Object]int64{}}
}

func (a *applied) begin() { a.tx = tx{} }

func (a *applied) marked(id string, fresh bool) {
	if fresh {
		a.tx.marker = id
	}
}

func (a *applied) advanced(o dedup.Object, version int64, newer bool) {
	a.tx.advanced, a.tx.version, a.tx.newer = o, version, newer
}

func (a *applied) setAside(id string) { a.tx.letter = id }

func (a *applied) effect(ev receiver.Event) { a.tx.effects = append(a.tx.effects, ev) }

// committed takes over a transaction's changes, and checks that they belong together.
func (e *endpoint) committed() {
	w, tx := e.s.w, e.tx
	e.begin()
	var how end
	switch {
	case tx.letter != "":
		how = deadLettered
	case len(tx.effects) > 0:
		how = effected
	case tx.marker != "" && tx.advanced != (dedup.Object{}) && !tx.newer:
		how = stale
	}
	for _, ev := range tx.effects {
		if e.ends[ev.ID] == effected || len(tx.effects) > 1 {
			w.violated("I10", "%s has applied %s twice", e.s.name, w.eventName(ev.ID))
		}
		if tx.marker != ev.ID {
			w.violated("I10", "%s has applied %s in a transaction without its marker", e.s.name, w.eventName(ev.ID))
		}
		o := ev.Object
		if ev.Version <= e.versions[o] {
			w.violated("I10", "%s has applied version %d of %v after %d", e.s.name, ev.Version, o, e.versions[o])
		}
	}
	if tx.newer {
		if how == deadLettered {
			w.violated("I10", "%s has advanced the version with a dead letter", e.s.name)
		}
		e.versions[tx.advanced] = tx.version
	}
	if tx.letter != "" && tx.letter != tx.marker {
		w.violated("I10", "%s has set aside %s without its marker", e.s.name, w.eventName(tx.letter))
	}
	if tx.marker == "" {
		return
	}
	if how == 0 {
		w.violated("I10", "%s has the marker of %s, and neither an effect, nor something newer, nor a dead letter", e.s.name, w.eventName(tx.marker))
	}
	e.ends[tx.marker] = how
	if e.now.post != nil && e.now.post.d.event.id == tx.marker {
		e.now.committed = true
	}
}

// checkEffects compares the receiver's database with its expected content for the event
// in hand.
func (e *endpoint) checkEffects() {
	ev := e.now.post.d.event
	e.compare(ev)
}

func (e *endpoint) compare(ev *event) {
	w := e.s.w
	how, want := e.ends[ev.id]
	got, err := e.store.stored(e, ev)
	if err != nil {
		w.fail(err)
		return
	}
	if got.marked != want {
		w.violated("I10", "%s has the marker of %s: %v, and should: %v", e.s.name, ev.name, got.marked, want)
	}
	if got.version != e.versions[ev.object] {
		w.violated("I10", "%s has version %d of %v, and should have %d", e.s.name, got.version, ev.object, e.versions[ev.object])
	}
	effects := 0
	if how == effected {
		effects = 1
	}
	if got.effects != effects {
		w.violated("I10", "%s has %d effects of %s, and should have %d", e.s.name, got.effects, ev.name, effects)
	}
}
