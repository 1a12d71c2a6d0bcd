// Package jobs runs what takes longer than a request: it is accepted now, run
// later, and reported by status and by callback.
//
// Submit stores a job, in the caller's transaction if the caller has one; a job
// that is committed is never lost. Run has workers claim jobs of the kinds that
// were given to New and run their functions. Get tells the truth about a job at
// any time. With a callback URL, the event job.completed is published in the
// transaction that writes the completion: see NewCallbacks.
//
// # What is guaranteed
//
// A committed job ends once: succeeded, failed or cancelled, and with a callback
// URL it has exactly one job.completed event. Its function may be run more than
// once, because a process can be lost at any moment; two runs of one job overlap
// only between the loss of a lease and the end of the context of the run that has
// lost it. Whatever a run writes it writes under the token of its claim: what comes
// late changes nothing. A kind that does its work in steps of Run.InTx, each of
// which commits its effect and the state to go on from together, has each step's
// effect once, however often the process is killed.
//
// What is not guaranteed: an order of the jobs, and that a function's effects
// outside of Run.InTx happen once.
//
// Everything works on a Store: jobs/sqlite, jobs/postgres, or jobs/memory for
// tests; jobstest is the suite that each passes.
package jobs
