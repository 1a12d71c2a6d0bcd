package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/replay"
)

// lineRank keeps a subscription busy with other objects, and has a replay admit an earlier
// version of an object that has a fresh one. A step claims as many deliveries as come.
func lineRank(w *world) {
	for _, replayedFirst := range []bool{true, false} {
		owner, sub := w.ordered(byObject)
		old := w.versions(owner, sub, "a")[0]
		w.die(w.claims("at first", old)[0])
		others := 0
		busy := func() {
			others++
			w.versions(owner, sub, fmt.Sprint("other ", others))
			w.Advance(time.Second)
		}
		for range 3 {
			busy()
		}
		var fresh string
		publish := func() { fresh = w.versions(owner, sub, "a")[0] }
		if !replayedFirst {
			publish()
		}
		w.replay(replay.Filter{Status: sender.StatusDeadLettered, Subscription: sub})
		w.equal(w.steps(plenty).Admitted, 1, "admitted")
		if replayedFirst {
			publish()
		}
		var claimed []string
		for range 8 {
			busy()
			c := w.claim(1)[0]
			claimed = append(claimed, c.Event.ID)
			w.record(result(c, sender.ClassNone))
		}
		before, after := slices.Index(claimed, old), slices.Index(claimed, fresh)
		w.check(before >= 0 && after > before, "of eight claimed, the replayed version is at %d, and the fresh one behind it at %d", before, after)
		w.claim(plenty) // so that nothing is left to be claimed in the other turn
	}
}
