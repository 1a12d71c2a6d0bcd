package jobstest

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/surehook/surehook/sender/jobs"
)

const (
	second = time.Second
	hour   = time.Hour
)

func update[Tx any](w *world[Tx]) {
	given := w.job("work", "sub_a")
	given.CallbackURL, given.IdempotencyKey, given.KeyScope = "https://example.com/", "k", "a"
	want := w.insert(given)
	w.Advance(1234567 * time.Microsecond)
	var at time.Time
	w.change(given.ID, func(r *jobs.Record, now time.Time) {
		locked := want
		locked.Input = nil
		w.same(*r, locked, "locked job")
		at = now
		r.Status, r.Progress, r.Result, r.Error, r.Tries, r.CancelRequested = jobs.Running, &jobs.Progress{Done: 1 << 40, Total: 1 << 41}, []byte(`1`), "e", 3, true
		r.StartedAt, r.FinishedAt, r.Token, r.Due, r.State = now, now.Add(second), 1<<62+1, now.Add(hour+time.Microsecond), []byte("s")
		other := *r
		other.No, other.Kind, other.Owner, other.Input, other.CallbackURL = 99, "other", "sub_b", []byte(`2`), "https://example.org/"
		other.CreatedAt, other.IdempotencyKey, other.KeyScope, other.Hash = now, "l", "b", [32]byte{1}
		keep := want
		*r = other
		want = other
		want.No, want.Kind, want.Owner, want.Input, want.CallbackURL = keep.No, keep.Kind, keep.Owner, keep.Input, keep.CallbackURL
		want.CreatedAt, want.IdempotencyKey, want.KeyScope, want.Hash = keep.CreatedAt, keep.IdempotencyKey, keep.KeyScope, keep.Hash
	})
	w.equal(at.Sub(want.CreatedAt), 1234567*time.Microsecond, "time that has passed since the job was stored")
	w.same(w.get(given.ID), want, "job that was changed")

	w.change(given.ID, func(r *jobs.Record, _ time.Time) {
		r.Status, r.Progress, r.Result, r.Error, r.Tries, r.CancelRequested = jobs.Queued, nil, nil, "", 0, false
		r.StartedAt, r.FinishedAt, r.Token, r.State = time.Time{}, time.Time{}, 0, nil
		input := want.Input
		want = *r
		want.Input = input
	})
	w.same(w.get(given.ID), want, "job whose fields were emptied")
}

func updateOfNothing[Tx any](w *world[Tx]) {
	r := w.insert(w.job("work", "sub_a"))
	for _, k := range []jobs.Key{{ID: "job_unknown"}, {ID: r.ID, Owner: "sub_b"}} {
		err := w.Store.InTx(w.ctx, func(tx Tx) error {
			_, _, err := w.Store.LockTx(w.ctx, tx, k)
			return err
		})
		w.errorIs(err, jobs.ErrNotFound, "locking %+v", k)
	}
	r.ID = "job_unknown"
	w.errorIs(w.Store.InTx(w.ctx, func(tx Tx) error { return w.Store.UpdateTx(w.ctx, tx, r) }), jobs.ErrNotFound, "updating what is not there")
}

func due[Tx any](w *world[Tx]) {
	var ids []string
	for range 4 {
		ids = append(ids, w.insert(w.job("work", "")).ID)
		w.Advance(second)
	}
	w.insert(w.job("other", ""))
	w.equal(w.due("work", 10), ids, "jobs that are due")
	w.equal(w.due("work", 2), ids[:2], "jobs that are due, two of them")
	w.equal(w.due("nothing", 10), []string(nil), "jobs of a kind that there is none of")

	lease := func(status jobs.Status, until time.Duration) func(r *jobs.Record, now time.Time) {
		return func(r *jobs.Record, now time.Time) { r.Status, r.Due = status, now.Add(until) }
	}
	w.change(ids[0], lease(jobs.Running, 10*second))
	w.change(ids[1], lease(jobs.Queued, 5*second))
	w.finish(ids[2])
	w.equal(w.due("work", 10), []string{ids[3]}, "jobs that are due, without what is leased, put off or finished")
	w.Advance(5*second - time.Microsecond)
	w.equal(w.due("work", 10), []string{ids[3]}, "jobs that are due a microsecond before another is")
	w.Advance(time.Microsecond)
	w.equal(w.due("work", 10), []string{ids[3], ids[1]}, "jobs that are due when another is")
	w.Advance(5 * second)
	w.equal(w.due("work", 10), []string{ids[3], ids[1], ids[0]}, "jobs that are due when a lease has ended")
	w.inTx(func(tx Tx) error {
		rs, _, err := w.Store.DueTx(w.ctx, tx, jobs.DueQuery{Kind: "work", Limit: 1})
		w.noError(err, "looking for due jobs")
		want, err := w.Store.GetTx(w.ctx, tx, jobs.Key{ID: ids[3]})
		w.same(rs[0], want, "job that is due")
		return err
	})
}

func dueAlone[Tx any](w *world[Tx]) {
	const n = 40
	for range n {
		w.insert(w.job("work", ""))
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	claims := map[string]int{}
	var failed []error
	for range 4 {
		wg.Go(func() {
			for empty := 0; empty < 3; {
				var got []string
				err := w.Store.InTx(w.ctx, func(tx Tx) error {
					rs, now, err := w.Store.DueTx(w.ctx, tx, jobs.DueQuery{Kind: "work", Limit: 3})
					if err != nil {
						return err
					}
					for _, r := range rs {
						r.Status, r.Due = jobs.Running, now.Add(hour)
						r.Token++
						if err := w.Store.UpdateTx(w.ctx, tx, r); err != nil {
							return err
						}
					}
					got = idsOf(rs)
					return nil
				})
				mu.Lock()
				for _, id := range got {
					claims[id]++
				}
				if err != nil {
					failed = append(failed, err)
				}
				mu.Unlock()
				if len(got) == 0 {
					empty++
				}
			}
		})
	}
	wg.Wait()
	w.noError(errors.Join(failed...), "claiming")
	w.equal(len(claims), n, "jobs that were claimed")
	for id, times := range claims {
		w.equal(times, 1, "claims of job %s", id)
	}
	for _, r := range w.list(jobs.ListQuery{Limit: 100}) {
		w.equal(r.Token, int64(1), "token of job %s", r.ID)
	}
}

func duePassesOver[Tx any](w *world[Tx]) {
	one, two := w.insert(w.job("work", "")), w.insert(w.job("work", ""))
	tx, _, rollback := w.Begin(w.T)
	defer func() { w.noError(rollback(), "rolling back") }()
	rs, _, err := w.Store.DueTx(w.ctx, tx, jobs.DueQuery{Kind: "work", Limit: 1})
	w.noError(err, "looking for due jobs")
	w.equal(idsOf(rs), []string{one.ID}, "jobs that are due")
	if w.ConcurrentWriters {
		w.equal(w.due("work", 10), []string{two.ID}, "jobs that are due while another transaction has one")
	}
}

func dueWithoutCallbacks[Tx any](w *world[Tx]) {
	var ids []string
	for i := range 4 {
		r := w.job("work", "sub_a")
		if i%2 == 0 {
			r.CallbackURL = "https://example.com/"
		}
		ids = append(ids, w.insert(r).ID)
		w.Advance(second)
	}
	for _, c := range []struct {
		q    jobs.DueQuery
		want []string
	}{
		{jobs.DueQuery{Limit: 10}, ids},
		{jobs.DueQuery{Limit: 1}, ids[:1]},
		{jobs.DueQuery{Limit: 10, NoCallbacks: true}, []string{ids[1], ids[3]}},
		{jobs.DueQuery{Limit: 1, NoCallbacks: true}, ids[1:2]},
	} {
		c.q.Kind = "work"
		w.equal(w.dueBy(c.q), c.want, "jobs that are due, by %+v", c.q)
	}
	w.finish(ids[1])
	w.finish(ids[3])
	w.equal(w.dueBy(jobs.DueQuery{Kind: "work", Limit: 10, NoCallbacks: true}), []string(nil), "jobs that are due and have no callback URL")
}

func dueWithoutOwners[Tx any](w *world[Tx]) {
	var ids []string
	for _, owner := range []string{"sub_a", "", "sub_a", "sub_b", "SUB_A", `sub",b\`} {
		ids = append(ids, w.insert(w.job("work", owner)).ID)
		w.Advance(second)
	}
	for _, c := range []struct {
		limit  int
		except []string
		want   []string
	}{
		{10, []string{}, ids},
		{10, []string{"sub_x"}, ids},
		{10, []string{"sub_a"}, []string{ids[1], ids[3], ids[4], ids[5]}},
		{1, []string{"sub_a"}, ids[1:2]},
		{10, []string{"", "SUB_A", "SUB_A"}, []string{ids[0], ids[2], ids[3], ids[5]}},
		{10, []string{"sub_x", "sub_b", `sub",b\`, "sub_a"}, []string{ids[1], ids[4]}},
		{10, []string{"sub_a", "sub_b", "SUB_A", `sub",b\`, ""}, nil},
	} {
		w.equal(w.dueBy(jobs.DueQuery{Kind: "work", Limit: c.limit, Except: c.except}), c.want, "jobs that are due, without those of %q", c.except)
	}
}

func lock[Tx any](w *world[Tx]) {
	r := w.insert(w.job("work", ""))
	const each, by = 25, 4
	var wg sync.WaitGroup
	begin := make(chan struct{})
	var mu sync.Mutex
	var failed []error
	for range by {
		wg.Go(func() {
			<-begin
			for range each {
				err := w.Store.InTx(w.ctx, func(tx Tx) error {
					r, _, err := w.Store.LockTx(w.ctx, tx, jobs.Key{ID: r.ID})
					if err != nil {
						return err
					}
					r.Token++
					return w.Store.UpdateTx(w.ctx, tx, r)
				})
				if err != nil {
					mu.Lock()
					failed = append(failed, err)
					mu.Unlock()
				}
			}
		})
	}
	close(begin)
	wg.Wait()
	w.noError(errors.Join(failed...), "counting under the lock")
	w.equal(w.get(r.ID).Token, int64(each*by), "what was counted under the lock")
}

func list[Tx any](w *world[Tx]) {
	var all, ofA, works []string
	for i := range 9 {
		kind, owner := []string{"work", "other"}[i%2], []string{"sub_a", "sub_b", ""}[i%3]
		r := w.insert(w.job(kind, owner))
		all = append([]string{r.ID}, all...)
		if owner == "sub_a" {
			ofA = append([]string{r.ID}, ofA...)
		}
		if kind == "work" {
			works = append([]string{r.ID}, works...)
		}
	}
	w.change(all[0], func(r *jobs.Record, _ time.Time) { r.State, r.Result = []byte("s"), []byte("1") })
	w.finish(all[3])
	for _, c := range []struct {
		q    jobs.ListQuery
		want []string
	}{
		{jobs.ListQuery{Limit: 100}, all},
		{jobs.ListQuery{Limit: 4}, all[:4]},
		{jobs.ListQuery{Owner: "sub_a", Limit: 100}, ofA},
		{jobs.ListQuery{Kind: "work", Limit: 100}, works},
		{jobs.ListQuery{Status: jobs.Succeeded, Limit: 100}, all[3:4]},
		{jobs.ListQuery{Owner: "sub_x", Limit: 100}, nil},
		{jobs.ListQuery{Kind: "work", Owner: "sub_a", Status: jobs.Queued, Limit: 1}, []string{ofA[0]}},
	} {
		w.equal(idsOf(w.list(c.q)), c.want, "jobs for %+v", c.q)
	}
	var paged []string
	before := int64(0)
	for {
		page := w.list(jobs.ListQuery{Before: before, Limit: 2})
		if len(page) == 0 {
			break
		}
		paged = append(paged, idsOf(page)...)
		before = page[len(page)-1].No
	}
	w.equal(paged, all, "jobs in pages")
	for _, q := range []jobs.ListQuery{
		{Limit: 2}, {Limit: 3, Kind: "work"}, {Limit: 2, Kind: "other", Examine: 3}, {Limit: 1, Status: jobs.Succeeded, Examine: 2},
		{Limit: 1, Owner: "sub_a", Kind: "work", Examine: 2}, {Limit: 2, Kind: "none", Examine: 4}, {Limit: 100, Kind: "work"},
	} {
		w.pages(q)
	}
	first := w.get(all[0])
	first.Input, first.State = nil, nil
	w.same(w.list(jobs.ListQuery{Limit: 1})[0], first, "job in a list")

	// Lists of an owner's other jobs look at none that has ended.
	running := w.insert(w.job("work", "sub_c"))
	w.change(running.ID, func(r *jobs.Record, _ time.Time) { r.Status = jobs.Running })
	queued := w.insert(w.job("work", "sub_c"))
	for range 5 {
		w.finish(w.insert(w.job("work", "sub_c")).ID)
	}
	for status, id := range map[jobs.Status]string{jobs.Running: running.ID, jobs.Queued: queued.ID} {
		q := jobs.ListQuery{Owner: "sub_c", Status: status, Limit: 1, Examine: 2}
		w.equal(idsOf(w.list(q)), []string{id}, "jobs for %+v", q)
		w.pages(q)
	}
}

func listOfResults[Tx any](w *world[Tx]) {
	results := []string{"1", "", "[2]", `"large"`, "", "", "[3, 4]", "5"} // of the newest job first
	want := map[string]string{}
	for _, result := range slices.Backward(results) {
		id := w.insert(w.job("work", "sub_a")).ID
		want[id] = result
		w.change(id, func(r *jobs.Record, now time.Time) {
			r.Status, r.FinishedAt, r.Due, r.Result = jobs.Succeeded, now, time.Time{}, []byte(result)
		})
		w.insert(w.job("other", "sub_a"))
	}
	for _, c := range []struct {
		bytes, limit int
		sizes        [][]int // of the results of each page
	}{
		{0, 100, [][]int{{1, 0, 3, 7, 0, 0, 6, 1}}},
		{100, 100, [][]int{{1, 0, 3, 7, 0, 0, 6, 1}}},
		{100, 3, [][]int{{1, 0, 3}, {7, 0, 0}, {6, 1}}},
		{18, 100, [][]int{{1, 0, 3, 7, 0, 0, 6, 1}}},
		{17, 100, [][]int{{1, 0, 3, 7, 0, 0, 6}, {1}}},
		{7, 100, [][]int{{1, 0, 3}, {7, 0, 0}, {6, 1}}},
		{6, 100, [][]int{{1, 0, 3}, {7}, {0, 0, 6}, {1}}},
		{4, 2, [][]int{{1, 0}, {3}, {7}, {0, 0}, {6}, {1}}},
		{1, 100, [][]int{{1, 0}, {3}, {7}, {0, 0, 6}, {1}}},
	} {
		for _, q := range []jobs.ListQuery{{Kind: "work"}, {Status: jobs.Succeeded, Owner: "sub_a"}} {
			q.Bytes, q.Limit, q.Examine = c.bytes, c.limit, 100
			var got [][]int
			for first := true; (first || q.Before > 0) && len(got) < 10; first = false {
				page, next := w.listed(q)
				var sizes []int
				for _, r := range page {
					w.equal(string(r.Result), want[r.ID], "result in a list")
					sizes = append(sizes, len(r.Result))
				}
				got, q.Before = append(got, sizes), next
			}
			w.equal(got, c.sizes, "sizes of the results in the pages of %+v", q)
		}
	}
}

// pages ends the test unless three things hold: the pages of a list together are the list,
// each page looks at no more jobs than it may, and the last page says that it is the last.
func (w *world[Tx]) pages(q jobs.ListQuery) {
	w.Helper()
	whole := q
	whole.Limit, whole.Examine = 100, 100
	want := w.list(whole)
	candidates := w.list(jobs.ListQuery{Owner: q.Owner, Limit: 100})
	if q.Owner != "" && (q.Status == jobs.Queued || q.Status == jobs.Running) {
		candidates = slices.DeleteFunc(candidates, func(r jobs.Record) bool { return r.Status.Finished() })
	}
	var got []string
	for calls := 0; ; calls++ {
		page, next := w.listed(q)
		got = append(got, idsOf(page)...)
		passed := 0
		for _, c := range candidates {
			if (q.Before == 0 || c.No < q.Before) && c.No >= next {
				passed++
			}
		}
		w.equal(len(page) <= q.Limit, true, "%d jobs are no more than the limit of %+v", len(page), q)
		w.equal(next == 0 || passed <= max(q.Examine, q.Limit)+1, true, "%d jobs are what %+v may look at", passed, q)
		if next == 0 {
			break
		}
		w.equal(calls < 100 && (q.Before == 0 || next < q.Before), true, "%+v gets on, from %d", q, next)
		q.Before = next
	}
	w.equal(got, idsOf(want), "jobs in pages for %+v", q)
}

func prune[Tx any](w *world[Tx]) {
	var ids []string
	for range 5 {
		r := w.job("work", "sub_a")
		r.IdempotencyKey = "key of " + r.ID
		ids = append(ids, w.insert(r).ID)
	}
	w.Advance(second)
	for _, id := range []string{ids[2], ids[0], ids[1]} {
		w.finish(id)
		w.Advance(second)
	}
	w.change(ids[3], func(r *jobs.Record, now time.Time) { r.Status = jobs.Running })
	w.Advance(hour - second)
	pruned := func(limit int) int {
		return w.prune(jobs.PruneQuery{Age: hour, Limit: limit})
	}
	w.equal(pruned(1), 1, "jobs pruned, one at most")
	w.missing(jobs.Key{ID: ids[2]}, "that was finished first and is pruned")
	w.get(ids[0])
	w.equal(pruned(10), 1, "jobs pruned")
	w.missing(jobs.Key{ID: ids[0]}, "that is pruned")
	w.get(ids[1]) // it was finished exactly an hour ago
	w.equal(pruned(10), 0, "jobs pruned, when none is old")
	w.Advance(time.Microsecond)
	w.equal(pruned(10), 1, "jobs pruned a microsecond later")
	w.Advance(1000 * hour)
	w.equal(pruned(10), 0, "jobs pruned that have not ended")
	w.equal(idsOf(w.list(jobs.ListQuery{Limit: 10})), []string{ids[4], ids[3]}, "jobs that stay")
	r := w.job("work", "")
	r.IdempotencyKey = "key of " + ids[0]
	w.insert(r) // its key is free
}

func (w *world[Tx]) prune(q jobs.PruneQuery) (n int) {
	w.Helper()
	w.inTx(func(tx Tx) (err error) {
		n, err = w.Store.PruneTx(w.ctx, tx, q)
		return err
	})
	return n
}

func pruneByBytes[Tx any](w *world[Tx]) {
	for _, c := range []struct {
		bytes, limit int
		counts       []int // of the jobs that each call removes
	}{
		{0, 100, []int{7}},
		{100, 100, []int{7}},
		{100, 3, []int{3, 3, 1}},
		{19, 100, []int{7}},
		{18, 100, []int{6, 1}},
		{8, 100, []int{2, 3, 2}},
		{7, 100, []int{1, 3, 2, 1}},
		{5, 2, []int{1, 2, 1, 1, 2}},
		{1, 100, []int{1, 1, 1, 1, 1, 1, 1}},
	} {
		// The inputs and results, of the job that was finished first first.
		for _, of := range [][2]string{{"[2]", "[3]"}, {"4", "5"}, {"6", ""}, {"7", "8"}, {"[90]", ""}, {"1", "2"}, {"3", "4"}} {
			r := w.job("work", "sub_a")
			r.Input = []byte(of[0])
			w.change(w.insert(r).ID, func(r *jobs.Record, now time.Time) {
				r.Status, r.FinishedAt, r.Due, r.Result = jobs.Succeeded, now, time.Time{}, []byte(of[1])
			})
			w.Advance(second)
		}
		var got []int
		for n := 1; n > 0 && len(got) < 10; {
			if n = w.prune(jobs.PruneQuery{Limit: c.limit, Bytes: c.bytes}); n > 0 {
				got = append(got, n)
			}
		}
		w.equal(got, c.counts, "jobs pruned by each call with the limits %d and %d bytes", c.limit, c.bytes)
	}
}
