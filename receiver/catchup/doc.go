// Package catchup reads the events of a sender that serves them by cursor, and brings
// them through the receiver's own pipeline: the same markers, the same versions, the
// same transactions. What was posted and read has one effect, whichever came first.
//
// For a consumer that nobody can call, behind NAT say, it is the whole of receiving.
// For everyone else it brings what could not be posted, and says what that was.
//
//	client, err := catchup.NewClient("https://sender.example/events", &catchup.ClientConfig{Token: catchup.Token(token)})
//	catching, err := catchup.New(client, rcv, receiver.SQL(db, nil), sqlite.New(), apply, nil)
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
// # What is guaranteed
//
// The cursor is stored in the transaction of the last event of each page, after the
// others of the page: it is never ahead of their effects, whenever the process ends.
// An event whose failure may pass is tried again until it can be applied, with growing
// pauses, and nothing after it is taken. A cursor that has expired is reported as a gap,
// and what is kept is read from its beginning. Nothing is passed over in silence, but for
// events whose bodies the sender has redacted: they are counted.
//
// An event that can never be applied stops nothing. It becomes a dead letter if the
// application calls its error permanent, if it is larger than the receiver's
// Config.MaxBodyBytes, or if it does not decode. If it has no id that is certain, is
// larger than ClientConfig.MaxPageBytes, or the receiver's store keeps no dead letters, it
// is passed over instead: it is counted in Report.Refused, Hooks.Refused is called, and
// there is a record of it in the log, at level Error. It has left no marker then, so that
// once the reason is mended, Reconcile from Refusal.After applies it, for as long as the
// sender keeps it.
//
// Several processes may read under one name. That is safe, and does everything more
// than once.
package catchup
