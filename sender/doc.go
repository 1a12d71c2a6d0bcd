// Package sender publishes events, and keeps the subscribers and subscriptions that get
// them: signed (webhooks), at least once, from the database that the application already
// has.
//
// A [Publisher] persists events in the producer's own transaction. A [Registry] keeps the
// subscribers, their secrets, and their subscriptions. The packages beside this one have a
// reader each:
//
//   - dispatch makes the deliveries of committed events, attempts them, and records what
//     came of it;
//   - history tells what became of a delivery, and sends it again; replay sends many again;
//   - feed serves the events by cursor to those who ask;
//   - filter has the expressions by which a subscription asks for events by their content;
//   - catalogue has a service's event types, with what their data looks like;
//   - challenge asks a callback URL whether its owner wants the events;
//   - console shows all of it to an operator, and portal shows a customer their own part;
//   - jobs adds long-running work that reports its end;
//   - sendertest helps to test an application;
//   - rules and storetest are for authors of stores.
//
// All of them work on a store: sender/sqlite, sender/postgres where one machine is not
// enough, or sender/memory for tests. surehook.NewSender puts the parts together.
//
// # What is guaranteed
//
// An event whose transaction committed is never lost: each of its deliveries
// ends delivered, dead-lettered, cancelled or superseded, or is still on its way. One whose
// transaction rolled back is never sent. Each attempt is recorded before it is
// made, and is at most one POST on the wire; if the process is lost in between,
// the attempt reads as interrupted and the delivery is attempted again, so a
// receiver can see an event more than once, always with the same id and the same
// bytes. No attempt is made before it is due. A result that arrives after its
// lease was lost changes nothing.
//
// The library does not guarantee that events arrive once, nor in order unless a
// subscription asks for it: see Settings.Order. The receiver deduplicates by id and
// applies an event only if its version is newer; package receiver does both. Package
// dispatch says what order there is on ordinary days.
package sender
