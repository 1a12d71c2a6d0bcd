//go:build !race

package storetest

import (
	"testing"
	"time"

	"github.com/surehook/surehook/sender/memory"
)

// modelHappens are what the random histories of all seeds together must come to.
var modelHappens = []string{
	"made without its filter", "made by its filter over an older version", "made once its filter has changed", "not made by its filter over an older version",
	"order changed to , in flight", "order changed to object, in flight", "order changed to latest, in flight",
	"superseded", "superseded at once", "overtaken in flight", "yields",
	"passed over", "passed over beyond its reach", "freed by a sweep", "resume beyond its reach", "given up by a horizon of its own",
	"pruned", "event pruned", "redacted", "replayed", "refused for its version", "published again", "held up by a rate",
}

// A random history that does not come to what it is about proves nothing. If something is
// missing, another seed may have it.
func TestRandomHistoriesReach(t *testing.T) {
	saw := map[string]int{}
	for _, seed := range modelSeeds {
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		s, err := memory.New(&memory.Config{Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		m := runModel(newWorld(t, erasedHarness(Harness[*memory.Tx]{Store: s, Advance: func(d time.Duration) { now = now.Add(d) }})), seed)
		for what, n := range m.saw {
			saw[what] += n
		}
	}
	t.Log(saw)
	for _, what := range modelHappens {
		if saw[what] == 0 {
			t.Errorf("nothing was seen of: %s", what)
		}
	}
}
