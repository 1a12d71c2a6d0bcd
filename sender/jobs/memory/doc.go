// Package memory keeps jobs in the process, under the transactions of a
// sender/memory store. It is for tests and for simulations: it honours the whole
// contract of jobs.Store, but what it keeps is gone when the process ends.
//
// As that store, it has one transaction open at a time: a function that runs inside
// one must not call anything that opens another.
package memory
