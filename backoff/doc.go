// Package backoff decides how long to wait before a failed delivery is tried
// again, and when to stop trying.
//
// Everything in it is a pure function of what a row remembers: the number of the attempt
// that failed, the age of the delivery, what the answer asked for, and a number drawn by
// the caller. Nothing keeps state, reads a clock, draws a random number or sleeps, so a
// decision survives a restart. Any process can make it, and a test can repeat it. All
// values may be used by several goroutines at once.
//
// A [Policy] joins four things. A [Schedule] says how the delays grow. A [Jitter] spreads
// them, so that deliveries that failed together do not return together. A horizon says how
// long a delivery is tried at all. A limit bounds what a Retry-After header may ask for.
// Its zero value is the reference: see [Reference].
package backoff
