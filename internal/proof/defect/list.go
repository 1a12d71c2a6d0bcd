package defect

import "slices"

// All is every defect: signing, rotating, receiving, deduplicating, deciding, by policies
// of subscriptions' own too, storing, keeping the order, in lines too, filtering, running jobs,
// in callers' transactions, sending.
func All() []Defect {
	return slices.Concat(ofSigning, ofRotation, ofReceiver, ofDedup, ofDecisions, ofOwnPolicies, ofStores, ofOrder, ofLines, ofFilters, ofJobs, ofTransactions, ofWire)
}

// store runs the suite that every store must pass, which is the quicker part of a
// store's tests.
const store = "^TestStore$"
