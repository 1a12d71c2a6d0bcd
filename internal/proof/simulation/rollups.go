package simulation

import (
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
)

// counting is a database whose processes count in memory, and write the counts about
// once a second. Counts that a process has not written when it dies are lost, and so
// are those of commits whose answer was lost.
type counting interface{ countsInMemory() }

// Beside the invariants: the rollups count exactly the recorded attempts, whatever was
// lost on the way, or at most those if processes count in memory.
func (w *world) checkRollups() {
	const week = 7 * 24 * time.Hour // the most that one query may ask for
	var got, want history.Rollup
	for from := begins; !from.After(w.now); from = from.Add(week) {
		all, err := w.history.Rollups(w.ctx, from, from.Add(week))
		w.fail(err)
		for i := range all {
			got.Merge(&all[i])
		}
	}
	for _, d := range w.deliveries {
		for i := range d.taken {
			switch a := &d.taken[i]; a.Class {
			case sender.ClassNone:
				want.Delivered++
			case sender.ClassInterrupted:
				want.Interrupted++
			default:
				want.Failed++
			}
		}
	}
	n := got.Attempts()
	wrong := n != want.Attempts() || got.Delivered != want.Delivered
	if w.countsMayBeLost {
		wrong = n > want.Attempts() || got.Delivered > want.Delivered || n == 0 && want.Attempts() > 0
	}
	if wrong {
		w.violated("rollups", "they count %d attempts, of which %d have succeeded, and there were %d and %d",
			n, got.Delivered, want.Attempts(), want.Delivered)
	}
	if w.cfg.NoFaults && got.Published != int64(len(w.events)) {
		w.violated("rollups", "they count %d events, and there were %d", got.Published, len(w.events))
	}
}
