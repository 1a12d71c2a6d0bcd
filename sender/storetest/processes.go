package storetest

import (
	"time"

	"github.com/surehook/surehook/sender/dispatch"
)

// processesRules are about several processes on one database. If a Harness has no Other,
// they share its Store.
func processesRules[Tx any]() []rule[Tx] {
	return []rule[Tx]{
		{"rollups", "Each process has rollups of its own, which are read as one; they are pruned each for itself.", processesRollups[Tx]},
	}
}

// other is the store as another process has it.
func (w *world[Tx]) other() *world[Tx] {
	w.Helper()
	other := *w
	if w.Other != nil {
		other.Store = w.Other(w.T)
	}
	return &other
}

func processesRollups[Tx any](w *world[Tx]) {
	w.Advance(w.now().Truncate(time.Minute).Add(time.Minute).Sub(w.now()))
	minute := w.now()
	owner := w.subscriber()
	sub := w.subscribe(owner, "only.addressed")
	processes := []*world[Tx]{w.other(), w.other()}
	publish := func(n int, p *world[Tx]) {
		w.Helper()
		for range n {
			w.publish(w.addressed(owner, sub))
		}
		p.expand()
	}
	sweep := func() { // a store may count its backlog here
		w.Helper()
		for _, p := range processes {
			p.sweep(1)
		}
	}
	for i := range 4 {
		publish(1+i, processes[i%2])
	}
	w.Advance(time.Minute)
	sweep()
	publish(5, processes[0])
	sweep()
	for _, p := range processes {
		all, err := p.Store.Rollups(w.ctx, minute, minute.Add(time.Hour))
		w.noError(err, "reading rollups")
		w.equal(len(all), 2, "minutes with figures")
		w.sameTime(all[0].Minute, minute, "first minute")
		w.equal([]int64{all[0].Published, all[0].Deliveries, all[0].Backlog}, []int64{10, 10, 10}, "published, deliveries and backlog of the first minute")
		w.sameTime(all[1].Minute, minute.Add(time.Minute), "second minute")
		w.equal([]int64{all[1].Published, all[1].Backlog}, []int64{5, 10}, "published and backlog of the second minute")
	}
	rows := 2
	if w.Other != nil {
		rows = 3
	}
	pruned, _ := w.pruneBy(dispatch.PruneParams{Rollups: minute.Add(time.Hour), Limit: 10})
	w.equal(pruned, dispatch.Pruned{Rollups: rows}, "pruned: one for each minute and process")
}
