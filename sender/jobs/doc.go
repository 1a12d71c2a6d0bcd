// Package jobs runs work that takes longer than a request: a job is accepted now, run
// later, and reported by status and by callback.
//
// Submit stores a job, and SubmitTx does so in the caller's transaction. A job that is
// committed is never lost. Run starts workers, which claim jobs of the kinds that were
// given to New and run their functions. Get returns a job as it is now. If a job has a
// callback URL, the transaction that writes its completion publishes the event
// job.completed: see NewCallbacks.
//
// # What is guaranteed
//
// A committed job ends once: succeeded, failed or cancelled. With a callback URL it has
// at most one job.completed event, which commits with its end. It has none if by then its
// owner was deleted, its callback URL is refused, or the publisher refuses the event: see
// Callbacks.CompletedTx. A process without Config.Announcer ends no job that has a
// callback URL.
//
// A job's function may be run more than once, because a process can be lost at any
// moment. Two runs of one job overlap only between the loss of a lease and the end of the
// context of the run that has lost it. A run writes only under the token of its claim: a
// write that comes after another claim changes nothing. A kind may do its work in steps of
// Run.InTx, each of which commits its effect and the state to go on from together. Then
// each step has its effect once, however often the process is killed.
//
// Two things are not guaranteed: an order of the jobs, and that a function's effects
// outside of Run.InTx happen only once.
//
// Jobs are kept in a Store: jobs/sqlite, jobs/postgres, or jobs/memory for tests.
// Package jobstest is the suite that each of them passes.
package jobs
