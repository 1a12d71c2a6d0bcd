// Package backoff decides how long to wait before a failed delivery is tried
// again, and when to stop trying.
//
// Everything in it is a pure function of what a row remembers: the number of the
// attempt that failed, the age of the delivery, what the answer asked for, and a
// number drawn by the caller. Nothing keeps state, reads a clock, draws a random
// number or sleeps, so a decision survives a restart, can be made by any process,
// and can be replayed in a test. All values may be used by several goroutines at
// once.
//
// A [Policy] joins a [Schedule] (how the delays grow), a [Jitter] (how they are
// spread, so that deliveries that failed together do not return together), a
// horizon (how long a delivery is tried at all) and a limit to what a Retry-After
// header may ask for. Its zero value is the reference: see [Reference].
package backoff
