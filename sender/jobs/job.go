package jobs

import (
	"encoding/json"
	"time"
)

// Status is a job's.
type Status string

// The statuses of jobs.
const (
	// Queued: it waits to be run, for the first time or again.
	Queued Status = "queued"
	// Running: a worker has claimed it.
	Running Status = "running"
	// Succeeded: its function returned a result.
	Succeeded Status = "succeeded"
	// Failed: its function failed for good, or too often.
	Failed Status = "failed"
	// Cancelled: somebody has cancelled it.
	Cancelled Status = "cancelled"
)

// Finished tells whether a job of this status has ended. Such a status never changes
// again.
func (s Status) Finished() bool { return s == Succeeded || s == Failed || s == Cancelled }

// Progress is how much of a job is done, in units of its kind.
type Progress struct {
	Done  int64 `json:"done"`
	Total int64 `json:"total"` // 0: not known
}

// Job is a piece of work of some kind, as it is now.
type Job struct {
	ID    string
	Kind  string
	Owner string // the subscriber that has submitted it; "": nobody

	// Input is what was submitted, byte for byte. It is nil in lists, in what Cancel
	// and CancelTx return, in what Hooks.Finished gets after Cancel, and in what
	// Announcer.CompletedTx gets.
	Input json.RawMessage

	// CallbackURL is where job.completed is posted; "": there is none.
	CallbackURL string

	Status Status

	// Progress is nil until the function reports some. It can be a second old.
	Progress *Progress

	// Result is what the function returned; nil unless it succeeded.
	Result json.RawMessage

	// Error is why the job failed. While the job is queued or running again, it is
	// why the last try failed.
	Error string

	// Tries counts how often the job was begun since its saved state changed last.
	Tries int

	// CancelRequested: somebody has cancelled the job while it was running. It ends
	// soon.
	CancelRequested bool

	CreatedAt  time.Time // all three on the database's clock
	StartedAt  time.Time // of the first try; zero: none has begun
	FinishedAt time.Time // zero: it has not ended
}

// Key names a job. If Owner is not empty it must be the job's: else the job is not
// found.
type Key struct {
	ID    string
	Owner string
}
