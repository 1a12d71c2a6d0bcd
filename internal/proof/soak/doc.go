// Package soak runs the whole library under load and faults for a time, in one process
// with real connections, real clocks and a real database. It checks the invariants all
// the time.
//
// Publishers publish, in transactions of their own and of the library's, and roll some
// back. Two dispatchers deliver, and are stopped, cut off and restarted all the time.
// Endpoints fail in every way that an endpoint can, in front of real receivers that
// apply their events. An operator pauses, resumes, rotates, redelivers, replays,
// disables, closes and registers. Jobs run, a reader follows the feed, and old records
// are pruned. A seed decides all random choices. Goroutines and the network have
// timings of their own, so a seed repeats the kind of run, and not the run itself.
//
// A witness stands beside it. It knows which publishes were acknowledged, which posts
// came over the wire, the contents of the receivers' databases, and the library's
// records, and reports where these disagree. It shares no rule with the library.
//
// # Phases
//
// A cycle begins with load and faults, for a time. Then the faults stop, held
// deliveries are resumed and dead letters replayed, until everything is delivered. Then
// everything is stopped, checked to the last event, pruned, and compared. [Run] runs a
// short cycle first, to warm up, takes its figures after it, and then runs the long
// one. If something remains after the second that did not after the first, that is
// growth, and a finding.
package soak
