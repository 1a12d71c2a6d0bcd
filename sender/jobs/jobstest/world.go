package jobstest

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/surehook/surehook/sender/jobs"
)

// world is a store under test.
type world[Tx any] struct {
	*testing.T
	Harness[Tx]
	ctx  context.Context
	made int
}

func (w *world[Tx]) noError(err error, doing string, args ...any) {
	w.Helper()
	if err != nil {
		w.Fatalf("%s: %v", fmt.Sprintf(doing, args...), err)
	}
}

func (w *world[Tx]) errorIs(err, want error, doing string, args ...any) {
	w.Helper()
	if !errors.Is(err, want) {
		w.Fatalf("%s: got the error %v, want one that matches %q", fmt.Sprintf(doing, args...), err, want)
	}
}

func (w *world[Tx]) equal(got, want any, what string, args ...any) {
	w.Helper()
	if !reflect.DeepEqual(got, want) {
		w.Fatalf("%s: got %+v, want %+v", fmt.Sprintf(what, args...), got, want)
	}
}

// same ends the test unless two records are the same. It ignores the difference between
// nil and empty, and the part of a time that a store may drop.
func (w *world[Tx]) same(got, want jobs.Record, what string, args ...any) {
	w.Helper()
	w.equal(plain(got), plain(want), what, args...)
}

func plain(r jobs.Record) jobs.Record {
	for _, t := range []*time.Time{&r.Due, &r.CreatedAt, &r.StartedAt, &r.FinishedAt} {
		if !t.IsZero() {
			*t = t.UTC().Truncate(time.Microsecond)
		}
	}
	if len(r.State) == 0 {
		r.State = nil
	}
	if len(r.Input) == 0 {
		r.Input = nil
	}
	if len(r.Result) == 0 {
		r.Result = nil
	}
	return r
}

func (w *world[Tx]) inTx(fn func(tx Tx) error) {
	w.Helper()
	w.noError(w.Store.InTx(w.ctx, fn), "running a transaction")
}

// job is one that can be inserted.
func (w *world[Tx]) job(kind, owner string) jobs.Record {
	w.made++
	r := jobs.Record{}
	r.ID, r.Kind, r.Owner = fmt.Sprintf("job_%d", w.made), kind, owner
	r.Input = json.RawMessage(fmt.Sprintf(`{"n":%d}`, w.made))
	r.Hash = sha256.Sum256(r.Input)
	return r
}

func (w *world[Tx]) insert(r jobs.Record) jobs.Record {
	w.Helper()
	w.inTx(func(tx Tx) error {
		stored, existed, err := w.Store.InsertTx(w.ctx, tx, r)
		w.equal(existed, false, "whether job %s existed", r.ID)
		r = stored
		return err
	})
	return r
}

func (w *world[Tx]) get(id string) (r jobs.Record) {
	w.Helper()
	w.inTx(func(tx Tx) (err error) {
		r, err = w.Store.GetTx(w.ctx, tx, jobs.Key{ID: id})
		return err
	})
	return r
}

// missing ends the test unless there is no such job.
func (w *world[Tx]) missing(k jobs.Key, when string) {
	w.Helper()
	err := w.Store.InTx(w.ctx, func(tx Tx) error {
		_, err := w.Store.GetTx(w.ctx, tx, k)
		return err
	})
	w.errorIs(err, jobs.ErrNotFound, "reading job %q of %q %s", k.ID, k.Owner, when)
}

// change locks a job, changes it, and returns it as it is then.
func (w *world[Tx]) change(id string, change func(r *jobs.Record, now time.Time)) {
	w.Helper()
	w.inTx(func(tx Tx) error {
		r, now, err := w.Store.LockTx(w.ctx, tx, jobs.Key{ID: id})
		if err != nil {
			return err
		}
		change(&r, now)
		return w.Store.UpdateTx(w.ctx, tx, r)
	})
}

func (w *world[Tx]) finish(id string) {
	w.Helper()
	w.change(id, func(r *jobs.Record, now time.Time) { r.Status, r.FinishedAt, r.Due = jobs.Succeeded, now, time.Time{} })
}

func (w *world[Tx]) now() (now time.Time) {
	w.Helper()
	w.inTx(func(tx Tx) (err error) {
		_, now, err = w.Store.DueTx(w.ctx, tx, jobs.DueQuery{Kind: "nothing", Limit: 1})
		return err
	})
	return now
}

// due returns the ids of the jobs of a kind that are due.
func (w *world[Tx]) due(kind string, limit int) (ids []string) {
	w.Helper()
	return w.dueBy(jobs.DueQuery{Kind: kind, Limit: limit})
}

// dueBy returns the ids of the jobs that a query finds.
func (w *world[Tx]) dueBy(q jobs.DueQuery) (ids []string) {
	w.Helper()
	w.inTx(func(tx Tx) error {
		rs, _, err := w.Store.DueTx(w.ctx, tx, q)
		ids = idsOf(rs)
		return err
	})
	if looker, looks := w.Store.(jobs.Looker); looks {
		some, err := looker.AnyDue(w.ctx, []jobs.DueQuery{{Kind: "nothing", Limit: 1}, q})
		w.noError(err, "looking for due jobs")
		w.equal(some, len(ids) > 0, "whether jobs are due, by AnyDue")
	}
	return ids
}

func (w *world[Tx]) list(q jobs.ListQuery) []jobs.Record {
	w.Helper()
	rs, _ := w.listed(q)
	return rs
}

func (w *world[Tx]) listed(q jobs.ListQuery) (rs []jobs.Record, next int64) {
	w.Helper()
	w.inTx(func(tx Tx) (err error) {
		rs, next, err = w.Store.ListTx(w.ctx, tx, q)
		return err
	})
	return rs, next
}

func idsOf(rs []jobs.Record) (ids []string) {
	for _, r := range rs {
		ids = append(ids, r.ID)
	}
	return ids
}
