// Package surehook delivers signed events (webhooks) at least once, and receives them so
// that each has at most one effect and never an older one over a newer. It needs no broker
// and no second service: it works in the database that the application already has.
//
// This package is the front door: [NewSender] makes the sending side of a service, and
// [NewReceiver] the receiving side. Both only put parts together that agree with each
// other. The parts are packages of their own. Use them directly if you need one alone, or
// more of it:
//
//   - sender, with sender/postgres or sender/sqlite (sender/memory in tests), publishes
//     events in your own transactions and delivers them;
//   - receiver, with dedup/postgres or dedup/sqlite (dedup/memory in tests), verifies,
//     deduplicates and applies them in your own transactions;
//   - signing, backoff and dedup are what both stand on.
//
// examples/start has a whole producer and a whole consumer, examples/quickstart shows both
// at work.
package surehook
