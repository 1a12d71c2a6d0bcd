// Package jobstest is the suite that every store of package jobs must pass. It checks
// the contract that the comments of jobs.Store define. A store that passes it can be
// given to jobs.New.
//
//	func TestStore(t *testing.T) {
//		jobstest.Run(t, func(t *testing.T) jobstest.Harness[*sql.Tx] { … })
//	}
//
// The subtests are named after the rules. The message of a failed one ends with the
// full text of its rule.
package jobstest

import (
	"testing"
	"time"

	"github.com/surehook/surehook/sender/jobs"
)

// Harness is a store under test, with the functions that the suite needs besides it.
type Harness[Tx any] struct {
	// Store is empty: nothing was ever written to it.
	Store jobs.Store[Tx]

	// Advance moves the store's clock forward. Otherwise the clock stands still.
	Advance func(time.Duration)

	// Begin opens a transaction that the suite ends, by one of the two functions,
	// before the test is over.
	Begin func(t *testing.T) (tx Tx, commit, rollback func() error)

	// ConcurrentWriters tells that several open transactions can write at a time.
	// False: the database has one writer, and a second one waits for the first to
	// end.
	ConcurrentWriters bool
}

// Run runs the suite. It calls open for a new, empty store at the beginning of each
// subtest; open registers its own clean-up.
func Run[Tx any](t *testing.T, open func(t *testing.T) Harness[Tx]) {
	for _, c := range rules[Tx]() {
		t.Run(c.name, func(t *testing.T) {
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("the rule: %s", c.rule)
				}
			})
			c.run(&world[Tx]{T: t, Harness: open(t), ctx: t.Context()})
		})
	}
}

// rule is one thing that a store must do, and the test of it.
type rule[Tx any] struct {
	name string
	rule string
	run  func(w *world[Tx])
}

func rules[Tx any]() []rule[Tx] {
	return []rule[Tx]{
		{"insert", "A job is stored as it was given, queued and due at once, and read back so, by its owner and by nobody's key but its owner's.", insert[Tx]},
		{"odd strings", "Texts and bytes are kept as they are, and ids are compared byte for byte.", oddStrings[Tx]},
		{"idempotency key", "A key that is stored already in its scope brings back the job that has it, and changes nothing. The job is found by it, too.", idempotencyKey[Tx]},
		{"idempotency key at once", "If several calls with one key run at once, one stores its job; the others get that job.", idempotencyKeyAtOnce[Tx]},
		{"update", "An update stores all that can change of a job and nothing else, with the precision of a microsecond.", update[Tx]},
		{"update of nothing", "Locking and changing a job that is not there is ErrNotFound.", updateOfNothing[Tx]},
		{"rolled back", "A transaction that rolls back has no effect.", rolledBack[Tx]},
		{"due", "Jobs that are queued or running are given when they are due, by kind, those that are due longest first, up to the limit.", due[Tx]},
		{"due alone", "While a transaction that got due jobs is open, no other one gets them.", dueAlone[Tx]},
		{"due passes over", "Where several can write at a time, jobs that others have locked are passed over.", duePassesOver[Tx]},
		{"due without callbacks", "Jobs that have a callback URL are left out if that is asked for, and take no place of the others.", dueWithoutCallbacks[Tx]},
		{"due without owners", "Jobs of owners that are to be left out are left out, and take no place of the others.", dueWithoutOwners[Tx]},
		{"shares", "Where a kind has Kind.OwnerConcurrency, the jobs of an owner that has many leave places to those of others, and the owners take turns.", shares[Tx]},
		{"lock", "A locked job is read as it was committed last, and changed by nobody else.", lock[Tx]},
		{"list", "Lists are filtered, newest first, bounded, and leave out inputs and states.", list[Tx]},
		{"list of results", "A page ends before the result that would make its results longer together than it is asked for. The first result comes whatever its size, and the pages together have all.", listOfResults[Tx]},
		{"prune", "Jobs finished longer ago than an age are removed, the oldest first, up to a limit, with their keys; others never.", prune[Tx]},
		{"prune by bytes", "The jobs that are removed end before the one whose input and result would make theirs longer together than it is asked for. The first job goes whatever its size.", pruneByBytes[Tx]},
		{"reads", "If those who read need not wait for those who write, as sender.Reader and jobs.Looker say, Get, List and a look for due jobs do not wait for the end of a transaction that has changed a job.", reads[Tx]},
		{"transactions", "InTx commits what fn did if it returns nil, runs it again on ErrRetryTx, and rolls back on an error and a panic.", transactions[Tx]},
		{"check", "A store that is migrated is fit.", check[Tx]},
	}
}
