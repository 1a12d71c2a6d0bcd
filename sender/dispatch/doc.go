// Package dispatch makes the deliveries of committed events, attempts them, and records what
// came of each attempt. A [Dispatcher] does it until it is told to stop; any number of
// processes may run one on the same database.
//
//	d, err := dispatch.New(store, keys, &dispatch.Config{Network: network})
//	err = d.Run(ctx) // delivers until ctx ends, then drains
//
// A step is one transaction of a dispatcher: it expands events into deliveries, records
// results, and claims what is due. What is claimed waits for a slot, goes on the wire, and
// its result waits for the next step. A [Policy] says when a failed attempt is made again,
// when a delivery is given up, and when a subscription is disabled. [Hooks] and a [Notifier]
// tell the application.
//
// # When a process is gone
//
// A process that holds claims says once a second that it lives. The Dispatchers of the
// others look, each by its own clock, and need not agree: one that has said nothing for
// five seconds, over five looks, is gone, and what it held is attempted again. So it is
// within ten seconds of a kill, a crash or a lost connection, and in a deployment with one
// process as soon as that long after its start. A process that cannot say that it lives
// begins nothing after three seconds; one that was stopped, and goes on, has lost what it
// held, and works on with what is new. It takes longer while nobody looks, for want of
// another process or of the database, and where Config.MaxIdle is more than a
// second. A lease ends by itself after Config.Lease.
//
// # Order
//
// Versions of one object are begun in their order while the endpoint takes them: no first
// attempt is made for a subscription while one of an earlier event about the same object is
// under way for it. So a receiver sees an order of created, paid and
// shipped in that order on ordinary days, and seldom drops a version as stale. Other
// objects, and other subscriptions, wait for nobody.
//
// It holds however many processes dispatch on one database: what one of them has claimed of
// a subscription and not yet recorded keeps the others from it. They share out the
// subscriptions among themselves, by who comes first, and each passes on what it has no
// room for. So a single subscription is not faster with more processes. It waits with a
// process that is gone until that is taken over, and with one that ends until what is on
// the wire to that subscription has ended.
//
// An attempt that failed holds nobody back: it waits for its retry, and later versions pass
// it. Retries, what is redelivered or replayed after an attempt, and an attempt whose
// process was lost keep no order. There the receiver's version check decides, as it always
// does.
//
// The price is that one object at one endpoint is served one delivery at a time, however
// many places the subscription has: at most 1/latency in a second, 20 at an endpoint that
// takes 50 ms. If you need more, give independent events objects of their own.
//
// An event that very many subscriptions get holds up only those about its own object: it is
// expanded in parts, beside all others, and a subscription may get it after later ones.
package dispatch
