// Package feed serves the events by cursor, for clients that cannot be called, or that
// want to make sure that they have missed nothing.
//
//	reader, err := feed.NewReader(store, nil)
//	events, err := feed.NewHandler(reader, func(r *http.Request) (string, error) {
//		return subscriberOf(r.Header.Get("Authorization")) // its id, or feed.ErrUnauthorized
//	}, nil)
//	http.Handle("GET /events", events)
//	http.Handle("GET /events/{id}", events)
//
// A client asks for the events after a cursor, and gets a page of them and the cursor
// to go on with. An empty page has a cursor, too, so a client can go on for ever. It
// may ask for an empty answer to be held open until an event comes. Package
// receiver/catchup is the client's side.
//
// The feed has what a client may see, whatever its subscriptions ask for: neither their types
// nor their filters on content leave anything out of it.
//
// # Why nothing is skipped
//
// Transactions commit in another order than the one in which they began or wrote. A
// client that goes by a sequence, or by a time, misses an event whose transaction was
// still open when it read what was written later. So the feed's order is the one in
// which events became visible. An event gets its position when no other event can come
// before it any more. In PostgreSQL that is after the commit: one process at a time
// gives positions, in a transaction of its own, which commits before the next position
// is given. In SQLite it is in the transaction, because only one transaction can write
// at a time. A client that has read up to a position has read all events that will ever
// be up to it.
//
// In PostgreSQL dispatchers give the positions as they expand events. So one must run
// somewhere, also if there are no subscriptions.
//
// # How long
//
// Events are in the feed until they are pruned (sender.Retention). A client whose
// cursor is older than pruned events gets an [ExpiredError]; the feed never skips them
// in silence. Redacted events stay in the feed, without their bodies.
package feed
