package storetest

import (
	"slices"
	"testing"
)

// concurrentRules are the rules in whose tests several goroutines call the store, by their
// groups.
var concurrentRules = map[string][]string{
	"publish":           {"versions of concurrent publishers", "key of two at a time", "open transactions"},
	"registry":          {"id in use", "changed by several at a time"},
	"callback":          {"made once"},
	"secrets":           {"by several at a time"},
	"life":              {"delete subscriber, while it gets a subscription"},
	"transaction":       {"rolls back on a panic", "takes turns"},
	"expand":            {"by several at a time"},
	"claim":             {"by several at a time", "every wake-up is seen"},
	"order":             {"dispatched", "dispatched by two processes"},
	"several processes": {"each delivery once"},
	"replay":            {"in steps", "the same twice"},
	"rotation":          {"rotated by several at a time"},
	"retention":         {"beside redeliveries"},
}

// RunConcurrent runs the rules in whose tests several goroutines call the store. Use it with
// the race detector, for a store that passes Run without it: the detector slows all tests
// down, and finds something in these.
func RunConcurrent[Tx any](t *testing.T, open func(t *testing.T) Harness[Tx]) {
	var groups []group
	for _, g := range slices.Concat(callersGroups(), ownGroups()) {
		names := concurrentRules[g.name]
		if len(names) == 0 {
			continue
		}
		g.cases = slices.DeleteFunc(g.cases, func(r rule) bool { return !slices.Contains(names, r.name) })
		if len(g.cases) != len(names) {
			t.Errorf("group %q has %d of the %d rules %q", g.name, len(g.cases), len(names), names)
		}
		groups = append(groups, g)
	}
	run(t, erased(open), groups)
}
