package jobstest

import (
	"context"
	"encoding/json"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/jobs"
)

func reads[Tx any](w *world[Tx]) {
	if _, reads := w.Store.(sender.Reader[Tx]); !reads && !w.ConcurrentWriters {
		w.Log("NOT TESTED: on this store those who read wait for the one who writes")
		return
	}
	run := func(context.Context, *jobs.Run[Tx]) (json.RawMessage, error) { return nil, nil }
	all, err := jobs.New(w.Store, []jobs.Kind[Tx]{{Name: "work", Run: run}}, nil)
	w.noError(err, "making jobs")
	id := w.insert(w.job("work", "owner")).ID

	tx, _, rollback := w.Begin(w.T)
	r, _, err := w.Store.LockTx(w.ctx, tx, jobs.Key{ID: id})
	w.noError(err, "locking a job")
	r.Status = jobs.Running
	w.noError(w.Store.UpdateTx(w.ctx, tx, r), "changing a job")
	job, err := all.Get(w.ctx, jobs.Key{ID: id})
	w.noError(err, "reading a job beside a transaction that has changed it")
	w.equal(job.Status, jobs.Queued, "status that is not committed")
	page, _, err := all.List(w.ctx, jobs.Query{})
	w.noError(err, "listing jobs beside a transaction that has changed one")
	w.equal(len(page), 1, "jobs")
	if looker, looks := w.Store.(jobs.Looker); looks {
		some, err := looker.AnyDue(w.ctx, []jobs.DueQuery{{Kind: "work", Limit: 1}})
		w.noError(err, "looking for due jobs beside a transaction that has changed one")
		w.equal(some, true, "whether a job is due that a transaction has changed and not committed")
	}
	w.noError(rollback(), "rolling back")
}
