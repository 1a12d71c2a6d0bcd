// Package feed serves the events by cursor, for those who cannot be called, or who
// want to make sure that they have missed nothing.
//
//	reader, err := feed.NewReader(store, nil)
//	events, err := feed.NewHandler(reader, func(r *http.Request) (string, error) {
//		return subscriberOf(r.Header.Get("Authorization")) // its id, or feed.ErrUnauthorized
//	}, nil)
//	http.Handle("GET /events", events)
//	http.Handle("GET /events/{id}", events)
//
// A client asks for what is after a cursor, and gets events, and the cursor to go on
// with: always, also with an empty page, so that it can go on for ever. It may ask
// for an empty answer to be held open until there is something to tell. Its side is
// package receiver/catchup.
//
// # Why nothing is skipped
//
// Transactions commit in another order than the one in which they began or wrote. A
// client that goes by a sequence, or by a time, passes by an event whose transaction
// was still open when it read what was written later. So the feed's order is that in
// which events became visible, and a position in it is given when nothing can come
// before it any more: in PostgreSQL after the commit, by one process at a time, in
// a transaction of its own, which commits before the next position is given; in
// SQLite in the transaction, because only one can write at a time. What was read up
// to a position is all that will ever be up to it.
//
// In PostgreSQL the positions are given by dispatchers as they expand events, so one
// must run somewhere, also if there is nobody to be called.
//
// # How long
//
// Events are in the feed until they are pruned (sender.Retention). A cursor before
// what was pruned since is told so, by [ExpiredError], and never passed over in
// silence. Redacted events stay in the feed, without their bodies.
package feed
