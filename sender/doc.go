// Package sender delivers signed events (webhooks) at least once, from the
// database that the application already has.
//
// A Publisher persists events in the producer's own transaction. A Registry
// keeps who is told: subscribers, their secrets, and their subscriptions. A
// Dispatcher makes the deliveries of committed events, attempts them, and
// records what came of it. A History tells what became of a delivery and sends
// it again. All four work on a Store: sender/sqlite, or sender/memory for tests.
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
package sender
