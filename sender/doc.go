// Package sender delivers signed events (webhooks) at least once, from the
// database that the application already has.
//
// A Publisher persists events in the producer's own transaction. A Registry
// keeps who is told: subscribers, their secrets, and their subscriptions. A
// Dispatcher makes the deliveries of committed events, attempts them, and
// records what came of it. A History tells what became of a delivery and sends
// it again. All four work on a Store: sender/sqlite, sender/postgres where one
// machine is not enough, or sender/memory for tests.
//
// # What is guaranteed
//
// An event whose transaction committed is never lost: each of its deliveries
// ends delivered, dead-lettered or cancelled, or is still on its way. One whose
// transaction rolled back is never sent. Each attempt is recorded before it is
// made, and is at most one POST on the wire; if the process is lost in between,
// the attempt reads as interrupted and the delivery is attempted again, so a
// receiver can see an event more than once, always with the same id and the same
// bytes. No attempt is made before it is due. A result that arrives after its
// lease was lost changes nothing.
//
// What is not guaranteed: that events arrive in order, or once. The receiver
// deduplicates by id and applies an event only if its version is newer; package
// receiver does both.
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
// another process or of the database, and where dispatch.Config.MaxIdle is more than a
// second. A lease ends by itself after dispatch.Config.Lease.
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
// takes 50 ms. Whoever needs more gives events that are independent objects of their own.
//
// An event that very many subscriptions get holds up only those about its own object: it is
// expanded in parts, beside all others, and a subscription may get it after later ones.
package sender
