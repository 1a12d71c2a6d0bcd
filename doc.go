// Package surehook is the home of a library that delivers signed events
// (webhooks) at least once, and receives them so that each has at most one
// effect and never an older one over a newer. It needs no broker and no second
// service: it works in the database that the application already has.
//
// There is nothing in this package itself. Import
//
//   - sender, with sender/sqlite or sender/postgres (sender/memory in tests), to
//     publish events in your own transactions and deliver them;
//   - receiver, with dedup/sqlite or dedup/postgres (dedup/memory in tests), to
//     verify, deduplicate and apply them in your own transactions;
//   - signing, backoff and dedup if you need a part alone.
//
// examples/quickstart shows both sides at work.
package surehook
