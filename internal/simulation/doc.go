// Package simulation runs the sender and its receivers in a world of their own, in
// which a seed decides everything that is left to chance: what time passes, what is
// published, what the operator does, which process crashes where, which call of the
// database fails before or after its effect, which answer is lost, late or a lie.
//
// What runs in it is the code that is shipped: the dispatcher's rounds (sender.Loop),
// a store with its transactions, and for each subscription a receiver with its
// verifier, markers, versions and an effect in the same transaction. What is not
// there are goroutines, timers and connections: one goroutine takes one event after
// another from a queue that is ordered by virtual time. So a seed that fails, fails
// again, bit for bit, which the hash over all that happened shows.
//
// The store is in memory, in SQLite or in PostgreSQL. The last one's connections are
// real, and break in the middle of transactions and at their commits: see InPostgres.
//
// The invariants are held against records that the simulation keeps for itself, of
// what it has published, what it has seen on the wire, and what the calls of the
// store returned: each in a file of its own, i01_… to i14_…, while things happen. In
// the end the faults stop, and everything must come to an end, each effect once.
package simulation
