// Package inbox records verified events and acknowledges them at once, and applies them
// afterwards, with the markers, the versions and the transactions of the receiver that
// verified them.
//
// It is for work that takes longer than a sender waits, or that fails for reasons that
// the sender should not see: a third party that is away must not use up the sender's
// attempts.
//
//	rcv, err := receiver.New(verifier, inTx, markers, "billing", nil) // markers: a store of package dedup
//	in, err := inbox.New(rcv, inTx, sqlite.New(), receiver.Fact(apply), nil)
//	http.Handle("POST /webhooks", in.Handler())
//	err = in.Run(ctx)
//
// # Guarantees
//
// A 2xx is written after the event has been committed to the inbox, and only then. An
// acknowledged event is applied, becomes a dead letter beside the markers, or is still in
// the inbox, with the error of its last attempt. Nothing else happens to it. With SQLite
// that needs PRAGMA synchronous to be FULL, as it is by default; with PostgreSQL,
// transactions that record have synchronous_commit set to on if it is off.
//
// An event leaves the inbox in the transaction that takes it: its marker, its version, its
// effect and the removal are committed together. A duplicate finds the event in the inbox
// and is answered as one. If it comes after the event was applied, it is recorded once
// more, finds the marker, and leaves without an effect. So the inbox holds live work only
// and needs no pruning; markers are pruned as ever (receiver.Receiver.Run).
//
// Any number of processes may run on one inbox. Each takes events for the length of a
// lease. The events of a process that was killed are taken by another one when their
// leases have ended. A process that comes back too late changes nothing.
//
// An attempt that fails is repeated with growing pauses, and other events go on
// meanwhile. When the policy gives up, or the error is a receiver.Permanent one, the
// event becomes a dead letter: receiver.Receiver.ApplyDeadLetter applies it by hand. An
// event that the receiver itself can no longer read becomes one at its first attempt. It
// was recorded under a larger Config.MaxBodyBytes or another Config.Envelope, or by
// another version.
//
// The store of the receiver must keep dead letters, as all of package dedup do. With one
// that does not, an event that fails for good stays in the inbox, since it was
// acknowledged, and is tried again and again. Each time the log has a record of it at
// level Error, and Hooks.Retry is called. Other events go on, except those of the same
// object with Config.Ordered.
//
// # Several inboxes in one database
//
// An inbox works the events of its receiver's scope, and leaves those of other scopes
// alone. So the inboxes of two senders, each with a receiver and a scope of its own, may
// share the tables, and one transaction may change what both senders' events are about.
// Inboxes with the same scope are one inbox: any Run applies all of its events, so their
// work must be the same.
//
// An inbox whose receiver has Secrets or Config.ScopeOf has many scopes. It may share the
// tables with inboxes that have one, and leaves alone what they have recorded. Two with many
// scopes are one inbox. If their work differs, one of them needs tables of its own. On
// PostgreSQL that is a schema. On SQLite it is a file, in which the receiver's markers and
// the tables of the work stand, too: one transaction changes all of them.
//
// Events of a scope that no inbox has any more stay. Every Run looks for them at its start
// and each hour. The log has a record at level Warn if events have been due for an hour that
// this inbox leaves alone. So let an inbox with one scope apply all that it has
// ([Inbox.Status]) before its receiver gets another scope, or several.
//
// # Order
//
// Versions keep an older state from being applied over a newer one, by leaving the older
// one out as stale. Facts are all applied, in any order. With Config.Ordered the events of
// an object that are in the inbox are applied one at a time, lower versions first,
// independent of the order of arrival. An event that fails holds up those behind it until
// it is applied or becomes a dead letter. Objects do not hold up each other. A state that
// arrives after a newer one of its object was applied is stale, with Config.Ordered too:
// nobody knows whether an event is missing, so none is waited for.
package inbox
