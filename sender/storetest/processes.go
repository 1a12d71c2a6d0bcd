package storetest

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
)

// processesRules are about several processes on one database. If a Harness has no Other,
// they share its Store.
func processesRules() []rule {
	return []rule{
		{"each delivery once", "Processes that expand, claim and record at the same time make each delivery once, and claim it once.", processesOnce},
		{"slower than its lease", "A process that is slower than its lease loses the delivery to another one: its late result changes nothing, and does not end the other's attempt.", processesSlow},
		{"rollups", "Each process has rollups of its own, which are read as one; they are pruned each for itself.", processesRollups},
	}
}

// other is the store as another process has it.
func (w *world) other() *world {
	w.Helper()
	other := *w
	if w.Other != nil {
		other.Store = w.Other(w.T)
	}
	return &other
}

// settled ends the test unless n events have one delivery each, which is delivered. It
// returns the deliveries.
func (w *world) settled(n int) (all []sender.Delivery) {
	w.Helper()
	all = w.list(history.DeliveryQuery{Limit: 200})
	w.equal(len(all), n, "deliveries")
	for _, d := range all {
		w.equal(d.Status, sender.StatusDelivered, "status of %s", d.ID)
	}
	counts, err := w.Store.Counts(w.ctx)
	w.noError(err, "counting")
	w.equal([]int64{counts.Live, counts.Held, counts.DeadLettered, counts.Unexpanded}, []int64{0, 0, 0, 0}, "live, held and dead-lettered deliveries, and events that are not expanded")
	if w.Settled != nil {
		w.Settled(w.T)
	}
	return all
}

// crew are the loops of processes that work together until some results are recorded.
type crew struct {
	sync.Mutex
	moved    *sync.Cond // somebody has done something, or all is over
	moves    int
	loops    int
	idle     int // loops that wait
	over     bool
	want     int
	recorded int
	made     int
	claims   map[dispatch.DeliveryKey]int
}

func newCrew(loops, want int) *crew {
	c := &crew{loops: loops, want: want, claims: map[dispatch.DeliveryKey]int{}}
	c.moved = sync.NewCond(c)
	return c
}

// again tells whether a loop goes on. One that has done nothing waits for another that
// has. It may have found locked what others looked at too, so the last one looks again,
// alone; if that is in vain all is over.
func (c *crew) again(moved bool, alone *bool) bool {
	switch {
	case c.over || c.recorded >= c.want:
		c.end()
	case moved:
		*alone = false
		c.moves++
		c.idle = 0 // those that wait are awake from now on, before they run
		c.moved.Broadcast()
	case c.idle < c.loops-1:
		c.idle++
		for seen := c.moves; !c.over && seen == c.moves; {
			c.moved.Wait()
		}
	case *alone:
		c.end()
	default:
		*alone = true
	}
	return !c.over
}

func (c *crew) end() {
	c.over = true
	c.moved.Broadcast()
}

// round expands, records results, and claims.
func (w *world) round(results []dispatch.Result) (x dispatch.Expanded, c dispatch.Claims, err error) {
	x, _, err = w.Store.Step(w.ctx, dispatch.ExpandParams{Events: 64, Deliveries: 64}, dispatch.Batch{})
	if err != nil {
		return x, c, err
	}
	_, c, err = w.Store.Step(w.ctx, dispatch.ExpandParams{}, dispatch.Batch{
		Results: results, Decide: w.decide, Claim: dispatch.ClaimParams{Lease: lease, Token: w.token(), Lanes: lanes(50)},
	})
	return x, c, err
}

// work is a loop of a process.
func (w *world) work(all *crew) error {
	var results []dispatch.Result
	for again, alone := true, false; again; {
		x, c, err := w.round(results)
		all.Lock()
		if err != nil {
			all.end()
			all.Unlock()
			return err
		}
		w.Advance(time.Microsecond) // so little that no lease ends
		all.made += x.Deliveries
		for _, r := range c.Recorded {
			if !r.Lost {
				all.recorded++
			}
		}
		results = nil
		for _, d := range c.Claimed {
			all.claims[d.Key]++
			results = append(results, result(d, sender.ClassNone))
		}
		again = all.again(x.Events+len(c.Recorded)+len(c.Claimed) > 0, &alone)
		all.Unlock()
	}
	return nil
}

func processesOnce(w *world) {
	const events, subscribers, loops = 1500, 7, 2
	owners, subs := w.crowd(subscribers, 0)
	drafts := make([]sender.Draft, events)
	for i := range drafts {
		drafts[i] = w.addressed(owners[i%subscribers], subs[i%subscribers])
	}
	for chunk := range slices.Chunk(drafts, 500) {
		w.publish(chunk...)
	}
	all := newCrew(2*loops, events)
	worked := make(chan error)
	for _, process := range []*world{w, w.other()} {
		for range loops {
			go func() { worked <- process.work(all) }()
		}
	}
	var err error
	for range 2 * loops {
		err = errors.Join(err, <-worked)
	}
	w.noError(err, "working")
	w.equal(all.recorded, events, "results recorded")
	w.equal(all.made, events, "deliveries made")
	w.equal(len(all.claims), events, "deliveries claimed")
	for key, n := range all.claims {
		w.equal(n, 1, "claims of %v", key)
	}
	for _, d := range w.settled(events) {
		w.equal([]any{d.AttemptCount, d.LastErrorClass}, []any{1, sender.ClassNone}, "attempts, and class of the last failed one, of %s", d.ID)
	}
}

func processesSlow(w *world) {
	slow, other := w, w.other()
	event, sub := w.one()
	lost := slow.claimOne()
	w.Advance(lease - time.Microsecond)
	other.claimNothing("before the lease has ended")
	w.Advance(time.Microsecond)
	claims := other.claimBy(dispatch.ClaimParams{Lease: lease, Lanes: lanes(10)})
	w.equal(len(claims.Interrupted), 1, "attempts that are found lost")
	w.equal(claims.Interrupted[0].Result.Class, sender.ClassInterrupted, "class of the lost attempt")
	w.equal(len(claims.Claimed), 1, "deliveries claimed when the lease has ended")
	again := claims.Claimed[0]
	w.equal([]any{again.Key, again.Number}, []any{lost.Key, 2}, "key and number of the attempt of another process")

	late := slow.tryRecord(result(lost, sender.ClassNone))
	w.check(late[0].Lost, "the late result of the slow process counts")
	slow.claimNothing("while another process holds the delivery")
	d := slow.delivery(event.ID, sub)
	w.check(d.InFlight, "the late result has ended the attempt of another process")

	other.record(result(again, sender.ClassNone))
	d = other.get(d.ID)
	w.equal(d.Status, sender.StatusDelivered, "status in the end")
	w.equal(len(d.Attempts), 2, "attempts")
	w.equal([]sender.Class{d.Attempts[0].Class, d.Attempts[1].Class}, []sender.Class{sender.ClassInterrupted, sender.ClassNone}, "classes of the attempts")
	w.settled(1)
}

func processesRollups(w *world) {
	w.Advance(w.now().Truncate(time.Minute).Add(time.Minute).Sub(w.now()))
	minute := w.now()
	owner := w.subscriber()
	sub := w.subscribe(owner, "only.addressed")
	processes := []*world{w.other(), w.other()}
	publish := func(n int, p *world) {
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
