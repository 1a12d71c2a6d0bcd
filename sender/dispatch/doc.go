// Package dispatch makes the deliveries of committed events, attempts them, and records the
// result of each attempt. A [Dispatcher] does this work until its context ends. Any
// number of processes may run a Dispatcher on the same database.
//
//	d, err := dispatch.New(store, keys, &dispatch.Config{Network: network})
//	err = d.Run(ctx) // delivers until ctx ends, then drains
//
// A step is one transaction of a dispatcher: it expands events into deliveries, records
// results, and claims deliveries that are due. A claimed delivery waits for a slot and
// goes on the wire; then its result waits for the next step. A [Policy] says when a failed
// attempt is made again, when a delivery is given up, and when a subscription is disabled.
// Where its Own bounds allow it, a subscription's Settings say so for itself. [Hooks] and
// a [Notifier] tell the application.
//
// # When a process is gone
//
// A process that holds claims says once a second that it lives. The Dispatchers of the
// other processes look, each by its own clock, and need not agree. A process that has said
// nothing for five seconds, over five looks, is gone, and the deliveries that it held are
// attempted again. This happens within ten seconds of a kill, a crash or a lost connection.
// In a deployment with one process it happens within ten seconds of that process's next
// start. A process that cannot say that it lives begins nothing after three seconds. A
// process that was stopped, and goes on, has lost the deliveries that it held, and works on
// with new ones. A takeover takes longer while nobody looks, for want of another process or
// of the database, and where Config.MaxIdle is more than a second. A lease ends by itself
// after Config.Lease.
//
// # Order
//
// Versions of one object are begun in their order while the endpoint takes them: a first
// attempt is not made while the first attempt of an earlier event about the same object is
// under way for the same subscription. So on ordinary days a receiver sees that an order
// was created, paid and shipped in this sequence, and seldom drops a version as stale.
// Other objects, and other subscriptions, wait for nobody.
//
// This order holds however many processes dispatch on one database: while a process has
// deliveries of a subscription that are claimed and not yet recorded, the other processes
// claim nothing of it. The first process to claim from a subscription has it, and each
// process leaves to the others the subscriptions for which it has no room. So a single
// subscription is not faster with more processes. If its process is gone, it waits until
// that process is taken over. If its process is ending, it waits until the attempts on the
// wire to it have ended.
//
// That is the relaxed order, which a subscription has by default. A failed attempt holds
// nobody back: it waits for its retry, and later versions pass it. Retries, deliveries that
// are redelivered or replayed after an attempt, and attempts whose process was lost keep no
// order. For these the receiver's version check decides, as it always does.
//
// With sender.OrderObject (Settings.Order) a subscription gets each version only when every
// earlier one of its object has ended, whatever fails, and whichever process is lost. A
// version that fails holds back its own object alone, until it succeeds or is dead-lettered:
// HoldTries and HoldFor make that sooner. Then the object goes on, or, with HoldDead, waits
// until somebody redelivers the dead letter or passes over it. A version that is sent again
// goes before later ones that have not begun.
//
// With sender.OrderLatest a subscription gets the newest version of each object. Earlier
// ones that are not in flight end as superseded when a newer one comes, so that a backlog
// has no more deliveries than there are objects.
//
// A change of the order counts for the events that are expanded from then on, and for what
// is sent again. Deliveries that were there before keep what they had: those that had no
// line pass others and are passed, and those behind others come to their end in order, or,
// with sender.OrderLatest, end as superseded when the newest of them may go. To have all of a
// backlog in order, set the order while there is none.
//
// The price is that one object at one endpoint is served one delivery at a time, however
// many places the subscription has. These are at most 1/latency deliveries in a second: 20
// at an endpoint that takes 50 ms. If you need more, give independent events objects of
// their own.
//
// An event that very many subscriptions get holds up only the events about its own object.
// It is expanded in parts, beside all other events, and a subscription may get it after
// later events.
package dispatch
