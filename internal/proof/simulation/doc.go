// Package simulation runs the sender and its receivers in a world of their own, in which a
// seed decides everything that is left to chance. It decides the time that passes, the
// events, and the operator's acts. It decides which process crashes where, which call of
// the database fails before or after its effect, and which answer is lost, late or a lie.
//
// It runs the shipped code: the dispatcher's rounds (dispatch.Loop), a store with its
// transactions, and for each subscription a receiver with its verifier, markers, versions
// and an effect in the same transaction. It has no further goroutines, no timers and no
// connections: one goroutine takes one event after another from a queue that is ordered by
// virtual time. So a seed that fails, fails again, bit for bit. The hash over everything
// that happened shows this.
//
// The store is in memory, in SQLite or in PostgreSQL. The connections to PostgreSQL are
// real, and break in the middle of transactions and at their commits: see InPostgres.
//
// The simulation checks the invariants all the time against its own records of the
// published events, of the posts on the wire, and of the results of the store's calls.
// Each invariant has a file of its own, i01_… to i16_…. In the end the faults stop, and
// everything must come to an end, with each effect once.
package simulation
