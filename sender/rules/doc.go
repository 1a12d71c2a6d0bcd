// Package rules has the decisions that every store of package sender runs on the rows
// that it holds: they are the same whatever the database is. It is for authors of stores,
// who read it with the comments of sender's interfaces, which are the contract, and run
// storetest. It changes with that contract. Applications have no need of it.
//
// A rule takes values and returns values. It has no clock, no lock and no database, keeps
// nothing, and may be called by any number of goroutines at once. The store reads the rows,
// holds them until its transaction has ended, and writes what the rule says.
//
// The comments name the invariants that a rule serves, as TESTING.md does: I1, no delivery
// is lost; I6, an end is final; I7, attempt numbers rise by one; I8, nothing is sent before
// it is due; I10, an event has at most one effect at its receiver.
package rules
