// Package catchup reads the events of a sender that serves them by cursor, and brings
// them through the receiver's own pipeline: the same markers, the same versions, the same
// transactions. An event that was both posted and read has one effect, whichever came
// first.
//
// A consumer that nobody can call, for instance behind NAT, receives all its events this
// way. For every other consumer the package brings the events that could not be posted,
// and reports which they were.
//
//	client, err := catchup.NewClient("https://sender.example/events", &catchup.ClientConfig{Token: catchup.Token(token)})
//	catching, err := catchup.New(client, rcv, inTx, sqlite.New(), receiver.State(apply), nil)
//	err = catching.Run(ctx)
//
// The feed is GET with the parameters after, limit and wait, which answers
//
//	{"data":[{"id":"evt_…", …}, …],"next_cursor":"…"}
//
// with each event as it would have been posted, or with "redacted":true and without
// its data; and 410 with a problem document whose type ends in cursor-expired for a
// cursor that is older than what is kept. Package sender/feed serves one.
//
// # Guarantees
//
// The cursor is stored in the transaction of the last event of each page, after the
// others of the page: it is never ahead of their effects, whenever the process ends. An
// event whose failure may pass is tried again until it can be applied, with growing
// pauses, and nothing after it is taken. A cursor that has expired is reported as a gap,
// and the kept events are read from their beginning. Events whose bodies the sender has
// redacted are counted; every other event that is passed over is reported.
//
// A fact (receiver.Fact) that occurred longer ago than the receiver keeps markers becomes
// a dead letter, since it may have been applied before. So a feed that is read from a
// distant beginning brings its old facts as dead letters, and its old states as they are.
//
// An event that can never be applied stops nothing. It becomes a dead letter if the
// application calls its error permanent, if it is larger than the receiver's
// Config.MaxBodyBytes, or if it does not decode. It is passed over instead if it has no id
// that is certain, if it is larger than ClientConfig.MaxPageBytes, or if the receiver's
// store keeps no dead letters. Then it is counted in Report.Refused, Hooks.Refused is
// called, and the log has a record of it at level Error. It leaves no marker. Once the
// cause is mended, Reconcile from Refusal.After applies it, for as long as the sender
// keeps it.
//
// Several processes may read under one name. That is safe, but each of them does all the
// work.
package catchup
