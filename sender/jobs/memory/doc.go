// Package memory keeps jobs in the process, under the transactions of a sender/memory
// store. It is for tests and for simulations: it honours the whole contract of
// jobs.Store, but its jobs are gone when the process ends.
//
// Like that store, it has one transaction open at a time: a function that runs inside
// one must not open another.
package memory
