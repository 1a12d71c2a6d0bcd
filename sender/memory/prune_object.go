package memory

import (
	"slices"
	"time"

	"github.com/surehook/surehook/internal/ident"
	"github.com/surehook/surehook/sender"
)

// forgettable is an object whose last event was pruned.
type forgettable struct {
	object  sender.Object
	version int64
	at      time.Time // when it was
}

// markForgettable notes the objects whose last events go, and raises the versions of all
// above theirs.
func (w *pruning) markForgettable() {
	tx, s := w.tx, w.tx.store
	if w.Objects.IsZero() {
		return
	}
	marked := slices.Clip(s.forgettable)
	for _, e := range s.events {
		if _, goes := w.events[e]; goes && s.versions[e.info.Object] == e.version && e.version <= ident.MaxForgotten {
			marked = append(marked, forgettable{e.info.Object, e.version, s.now()})
			set(tx, &s.floor, max(s.floor, e.version))
		}
	}
	set(tx, &s.forgettable, marked)
}

// forgetObjects forgets the last versions of objects that have no event any more.
func (w *pruning) forgetObjects() (more bool) {
	tx, s := w.tx, w.tx.store
	done := 0
	for _, f := range s.forgettable {
		if !f.at.Before(w.Objects) {
			break
		}
		if more = w.full(); more {
			break
		}
		if s.versions[f.object] == f.version {
			deleteKey(tx, s.versions, f.object)
			w.out.Objects++
		}
		done++
	}
	set(tx, &s.forgettable, s.forgettable[done:])
	return more
}
