// Package storetest is the suite that every store of package sender must pass. It
// checks the contract that the comments of sender.Store define. A store that passes it
// serves the publisher, the registry, the dispatcher and the history. Package rules has the
// decisions that a store runs on its rows.
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) storetest.Harness[*sql.Tx] { … })
//	}
//
// The subtests are named "group/rule". The message of a failed one ends with the full
// text of its rule.
package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/surehook/surehook/sender"
)

// Harness is a store under test, with the functions that the suite needs besides it.
type Harness[Tx any] struct {
	// Store is empty: nothing was ever written to it.
	Store Store[Tx]

	// Other returns another store on the same database, like that of another
	// process. It may be nil: then the suite's processes share Store.
	Other func(t *testing.T) Store[Tx]

	// Advance moves the store's clock forward, also while the store works. Otherwise the
	// clock stands still.
	Advance func(time.Duration)

	// Begin opens a transaction that the suite ends, by one of the two functions,
	// before the test is over.
	Begin func(t *testing.T) (tx Tx, commit, rollback func() error)

	// Settled looks into the database for what the store's methods do not show. The suite
	// calls it when all deliveries are delivered: nothing of the work on them may be left.
	// It may be nil.
	Settled func(t *testing.T)

	// Consistent looks into the database after each step of the random histories, for what
	// the store's methods do not show. It may be nil.
	Consistent func(t *testing.T)

	// SettingsOf looks into the database for the settings of a subscription, which may be
	// deleted, with what is sealed in them. It may be nil.
	SettingsOf func(t *testing.T, subscription string) sender.Settings

	// ConcurrentWriters tells that several open transactions can write at a time.
	// False: the database has one writer, and a second one waits for the first to
	// end.
	ConcurrentWriters bool

	// BoundedWork tells that the cost of a call does not grow with what is stored. A list
	// looks at history.MaxExamined candidates and no more. A claim gives several deliveries
	// to each of a few subscriptions, and not one to each of many. False: the group "bounded
	// work" does not apply.
	BoundedWork bool
}

// Run runs the suite. It calls open for a new, empty store at the beginning of
// each subtest; open registers its own clean-up.
func Run[Tx any](t *testing.T, open func(t *testing.T) Harness[Tx]) {
	run(t, erased(open), slices.Concat(callersGroups(), ownGroups()))
}

// RunCallers runs the part of the suite about callers' transactions. Use it if a store
// has passed Run on a database, and must also serve transactions that begin in another
// way: at another isolation level, or by another driver.
func RunCallers[Tx any](t *testing.T, open func(t *testing.T) Harness[Tx]) {
	run(t, erased(open), callersGroups())
}

// RunRandom runs the suite's random histories alone, in which nearly all methods are called
// in all orders. Use it if a store has passed Run on a database, for another way to hold
// that database: with one connection, for example.
func RunRandom[Tx any](t *testing.T, open func(t *testing.T) Harness[Tx]) {
	run(t, erased(open), []group{{"random", modelRules()}})
}

func run(t *testing.T, open func(t *testing.T) Harness[any], groups []group) {
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			for _, c := range g.cases {
				t.Run(c.name, func(t *testing.T) {
					t.Cleanup(func() {
						if t.Failed() {
							t.Logf("the rule: %s", c.rule)
						}
					})
					c.run(newWorld(t, open(t)))
				})
			}
		})
	}
}

type group struct {
	name  string
	cases []rule
}

// rule is one thing that a store must do, and the test of it.
type rule struct {
	name string
	rule string
	run  func(w *world)
}

// callersGroups are the rules about methods that take a transaction, and about InTx.
func callersGroups() []group {
	return []group{
		{"publish", publishRules()},
		{"registry", registryRules()},
		{"callback", callbackRules()},
		{"secrets", secretsRules()},
		{"matching", matchingRules()},
		{"filter", filterRules()},
		{"cancel", cancelRules()},
		{"life", lifeRules()},
		{"transaction", txRules()},
	}
}

// ownGroups are the rules about the store's own transactions. They do not depend on how
// callers' transactions begin.
func ownGroups() []group {
	return []group{
		{"expand", expandRules()},
		{"large", largeRules()},
		{"claim", claimRules()},
		{"bodies", slices.Concat(bodyRules(), keptBodyRules())},
		{"fairness", fairnessRules()},
		{"order", orderRules()},
		{"line", lineRules()},
		{"several processes", processesRules()},
		{"record", slices.Concat(recordRules(), outageRules(), spareRules())},
		{"redeliver", redeliverRules()},
		{"replay", replayRules()},
		{"notice", noticeRules()},
		{"rate", rateRules()},
		{"rotation", rotationRules()},
		{"presence", presenceRules()},
		{"history", historyRules()},
		{"query", queryRules()},
		{"bounded work", boundedRules()},
		{"feed", feedRules()},
		{"retention", pruneRules()},
		{"redaction", redactionRules()},
		{"notifier", notifyingRules()},
		{"random", modelRules()},
	}
}
