package jobstest

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/jobs"
)

func insert[Tx any](w *world[Tx]) {
	given := w.job("work", "sub_a")
	given.CallbackURL = "https://example.com/callback"
	now := w.now()
	want := given
	stored := w.insert(given)
	want.No, want.Status, want.CreatedAt, want.Due = stored.No, jobs.Queued, now, now
	w.same(stored, want, "job as it is returned")
	w.same(w.get(given.ID), want, "job as it is read")
	w.inTx(func(tx Tx) error {
		got, err := w.Store.GetTx(w.ctx, tx, jobs.Key{ID: given.ID, Owner: "sub_a"})
		w.same(got, want, "job as its owner reads it")
		return err
	})
	w.missing(jobs.Key{ID: given.ID, Owner: "sub_b"}, "by somebody else")
	w.missing(jobs.Key{ID: "job_unknown"}, "that is not there")
	later := w.insert(w.job("work", ""))
	if later.No <= stored.No {
		w.Fatalf("the No of a later job is %d, that of the one before %d", later.No, stored.No)
	}
	err := w.Store.InTx(w.ctx, func(tx Tx) error {
		_, _, err := w.Store.InsertTx(w.ctx, tx, given)
		return err
	})
	if err == nil {
		w.Fatalf("a second job with the same id was stored")
	}
	w.same(w.get(given.ID), want, "job after another one with its id")
}

func oddStrings[Tx any](w *world[Tx]) {
	r := w.job("a.b-c_d", "sub_A")
	r.ID, r.IdempotencyKey, r.KeyScope = "job_ÄÖ", "k'\"\\%_ é", "ſcope "
	r.Input = json.RawMessage("{\"a\" :\t\"\\u0000 é %s\"} ")
	stored := w.insert(r)
	got := w.get(r.ID)
	w.same(got, stored, "job")
	w.equal(string(got.Input), string(r.Input), "input")
	for _, id := range []string{strings.ToLower(r.ID), strings.ToUpper(r.ID), r.ID + " ", "job_ÄÖ\x00", ""} {
		w.missing(jobs.Key{ID: id}, "that is another")
	}
	w.missing(jobs.Key{ID: r.ID, Owner: "sub_a"}, "of an owner that is another")

	state := []byte("\x00\x01\xff'")
	result := json.RawMessage(" [1, \"\u2028\"]\n")
	w.change(r.ID, func(r *jobs.Record, _ time.Time) {
		r.State, r.Result, r.Error = state, result, "why\nnot 'é'"
	})
	got = w.get(r.ID)
	w.equal(string(got.State), string(state), "state")
	w.equal(string(got.Result), string(result), "result")
	w.equal(got.Error, "why\nnot 'é'", "error")
	other := w.job("work", "")
	other.IdempotencyKey, other.KeyScope = strings.ToUpper(r.IdempotencyKey), r.KeyScope
	w.insert(other)
}

func idempotencyKey[Tx any](w *world[Tx]) {
	first := w.job("work", "sub_a")
	first.IdempotencyKey, first.KeyScope = "k", "a"
	stored := w.insert(first)
	w.change(first.ID, func(r *jobs.Record, _ time.Time) { r.Tries = 3 })
	stored.Tries = 3

	again := w.job("other", "sub_b")
	again.IdempotencyKey, again.KeyScope = "k", "a"
	w.inTx(func(tx Tx) error {
		got, existed, err := w.Store.InsertTx(w.ctx, tx, again)
		w.equal(existed, true, "whether the key existed")
		w.same(got, stored, "job that has the key")
		return err
	})
	keyed := func(scope, key string) (r jobs.Record, found bool) {
		w.inTx(func(tx Tx) (err error) {
			r, found, err = w.Store.KeyTx(w.ctx, tx, scope, key)
			return err
		})
		return r, found
	}
	got, found := keyed("a", "k")
	w.equal(found, true, "whether a job has the key")
	w.same(got, stored, "job that is found by its key")
	for _, k := range [][2]string{{"b", "k"}, {"", "k"}, {"a", "l"}, {"a", "K"}, {"A", "k"}, {"a", "k "}, {"a", "k\x00"}, {"a\xff", "k"}} {
		got, found := keyed(k[0], k[1])
		w.equal(found, false, "whether a job has the key %q in scope %q", k[1], k[0])
		w.same(got, jobs.Record{}, "job that has the key %q in scope %q", k[1], k[0])
	}
	w.missing(jobs.Key{ID: again.ID}, "whose key was known")
	w.equal(w.due("other", 10), []string(nil), "jobs whose key was known")

	// In one transaction, too, which goes on after a key that no job has.
	one, two := w.job("work", ""), w.job("work", "")
	one.IdempotencyKey, two.IdempotencyKey = "twice", "twice"
	w.inTx(func(tx Tx) error {
		_, found, err := w.Store.KeyTx(w.ctx, tx, "", "twice")
		w.noError(err, "looking for a key")
		w.equal(found, false, "whether a job has the key")
		_, _, err = w.Store.InsertTx(w.ctx, tx, one)
		w.noError(err, "inserting a job")
		got, found, err := w.Store.KeyTx(w.ctx, tx, "", "twice")
		w.noError(err, "looking for a key")
		w.equal(found, true, "whether a job of the same transaction has the key")
		w.equal(got.ID, one.ID, "id of the job that has the key")
		got, existed, err := w.Store.InsertTx(w.ctx, tx, two)
		w.equal(existed, true, "whether the key existed")
		w.equal(got.ID, one.ID, "id of the job that has the key")
		return err
	})
	for _, scope := range []string{"b", ""} {
		r := w.job("work", "")
		r.IdempotencyKey, r.KeyScope = "k", scope
		w.insert(r)
	}
	for range 2 { // without a key
		r := w.job("work", "")
		r.KeyScope = "a"
		w.insert(r)
	}
}

func idempotencyKeyAtOnce[Tx any](w *world[Tx]) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	ids, made := map[string]int{}, 0
	var failed []error
	for range 8 {
		r := w.job("work", "")
		r.IdempotencyKey = "k"
		wg.Go(func() {
			var got jobs.Record
			var existed bool
			err := w.Store.InTx(w.ctx, func(tx Tx) (err error) {
				got, existed, err = w.Store.InsertTx(w.ctx, tx, r)
				return err
			})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = append(failed, err)
				return
			}
			ids[got.ID]++
			if !existed {
				made++
			}
		})
	}
	wg.Wait()
	w.noError(errors.Join(failed...), "inserting jobs with one key")
	w.equal(made, 1, "jobs that were stored")
	w.equal(len(ids), 1, "jobs that were returned")
	w.equal(len(w.due("work", 10)), 1, "jobs that are due")
}

func rolledBack[Tx any](w *world[Tx]) {
	kept := w.job("work", "")
	kept.IdempotencyKey = "kept"
	kept = w.insert(kept)
	lost := w.job("work", "")
	lost.IdempotencyKey = "lost"
	changed := func(tx Tx) {
		r, _, err := w.Store.LockTx(w.ctx, tx, jobs.Key{ID: kept.ID})
		w.noError(err, "locking")
		r.Status, r.Token = jobs.Running, 7
		w.noError(w.Store.UpdateTx(w.ctx, tx, r), "updating")
		_, _, err = w.Store.InsertTx(w.ctx, tx, lost)
		w.noError(err, "inserting")
	}
	tx, _, rollback := w.Begin(w.T)
	changed(tx)
	w.noError(rollback(), "rolling back")
	w.same(w.get(kept.ID), kept, "job whose change was rolled back")
	w.missing(jobs.Key{ID: lost.ID}, "that was rolled back")

	refused := errors.New("refused")
	w.errorIs(w.Store.InTx(w.ctx, func(tx Tx) error {
		changed(tx)
		return refused
	}), refused, "running a transaction that refuses")
	w.same(w.get(kept.ID), kept, "job whose change was rolled back")
	w.missing(jobs.Key{ID: lost.ID}, "that was rolled back")
	w.insert(lost) // its key is free

	w.Advance(hour)
	w.finish(kept.ID)
	w.Advance(hour)
	kept = w.get(kept.ID)
	w.errorIs(w.Store.InTx(w.ctx, func(tx Tx) error {
		n, err := w.Store.PruneTx(w.ctx, tx, jobs.PruneQuery{Age: hour / 2, Limit: 10})
		w.noError(err, "pruning")
		w.equal(n, 1, "jobs pruned")
		return refused
	}), refused, "running a transaction that refuses")
	w.same(w.get(kept.ID), kept, "job whose pruning was rolled back")
	again := w.job("work", "")
	again.IdempotencyKey = "kept"
	w.inTx(func(tx Tx) error {
		_, existed, err := w.Store.InsertTx(w.ctx, tx, again)
		w.equal(existed, true, "whether the key is there after a pruning that was rolled back")
		return err
	})
}

func transactions[Tx any](w *world[Tx]) {
	runs := 0
	var r jobs.Record
	w.inTx(func(tx Tx) (err error) {
		if runs++; runs < 3 {
			_, _, err = w.Store.InsertTx(w.ctx, tx, w.job("work", ""))
			w.noError(err, "inserting")
			return sender.ErrRetryTx
		}
		r, _, err = w.Store.InsertTx(w.ctx, tx, w.job("work", ""))
		return err
	})
	w.equal(runs, 3, "runs of the function")
	w.equal(w.due("work", 10), []string{r.ID}, "jobs of the run that committed")
	func() {
		defer func() { w.equal(recover(), "on purpose", "panic") }()
		_ = w.Store.InTx(w.ctx, func(tx Tx) error {
			_, _, err := w.Store.InsertTx(w.ctx, tx, w.job("work", ""))
			w.noError(err, "inserting")
			panic("on purpose")
		})
	}()
	w.equal(w.due("work", 10), []string{r.ID}, "jobs after a panic")
	always := 0
	err := w.Store.InTx(w.ctx, func(Tx) error { always++; return sender.ErrRetryTx })
	w.errorIs(err, sender.ErrRetryTx, "running what always asks to be run again")
	if always < 2 || always > 100 {
		w.Fatalf("it was run %d times, a few are asked for", always)
	}
}

func check[Tx any](w *world[Tx]) { w.noError(w.Store.Check(w.ctx), "checking") }
