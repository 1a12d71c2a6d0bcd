// Package receiver applies signed events inside the application's own database
// transaction, so that each has at most one effect and an older one never
// overwrites a newer one.
//
//	verifier, err := signing.NewVerifier(keys, nil)
//	rcv, err := receiver.New(verifier, sqlite.InTx(db), sqlite.New(), "billing", nil)
//	routes, err := receiver.Router(
//		receiver.OnState("customer.*", storeCustomer), // the newest version counts
//		receiver.OnFact("invoice.paid", addPayment),   // each counts, in any order
//	)
//	http.Handle("POST /webhooks", rcv.Handler(routes))
//	go rcv.Run(ctx) // removes old markers
//
// The package's example is the whole of it.
//
// # States and facts
//
// Events overtake each other, on a healthy network too. The application says what such an
// event is worth: see [Work]. The handler of a state that was overtaken does not run. The
// event is acknowledged as stale: the log has a record of it, Hooks.Stale is called, and
// [Receiver.Stats] counts it. A fact is never skipped. A handler that inserts a row and
// another one that changes it do not depend on states but on order, and lose events as
// states; receivertest.Hostile finds that out.
//
// # Steps
//
// For every request it goes through the same steps in the same order. It checks the
// method, the declared size, the content type, the headers and the timestamp. Then it
// reads the raw body, within its bounds of size and time, verifies the signature, and
// decodes id, type, object and version strictly from the verified bytes. One transaction
// has the marker, the version of a state, the application's own change, and the commit.
// The answer is written after the commit and only then.
//
// [Envelope] is for events of other senders, such as Stripe, GitHub and Slack, whose
// bodies have other forms; [VendorEnvelope] makes one for each sender of package
// signing/vendors. [Secrets] is for receivers of many senders, whose keys depend on the
// request. [Group] lets concurrent requests share transactions. [Router] gives each type
// of event a function of its own and decodes its data.
//
// There are three ways in, and one pipeline behind them: [Receiver.Handler];
// [Receiver.WrapState] and [Receiver.WrapFact], for handlers that exist already; and
// [Receiver.Receive], for those who have bytes and no net/http. [Thin] and [OnThin] are for
// events that only name what has changed.
//
// # Answers
//
//	200  applied, duplicate, stale, ignored, recorded or set aside as a dead letter, and
//	     the body says which; a challenge, and the body has its token
//	400  a missing, repeated or malformed header; a truncated body; a body that does not decode
//	401  outside the window, wrong signature, unknown key: one body for all
//	405  not POST
//	408  the body did not arrive in time
//	413  the body is over the limit
//	415  a content type other than JSON or the Envelope's, or a content encoding
//	500  the application's function failed or panicked; a mistake in the receiver's own
//	     set-up; a fact that is older than markers are kept, without a store for dead letters
//	501  a type that no route matches, if the router refuses those
//	503  with Retry-After: database away, lock wait over, the same event in work here,
//	     serialization failures beyond the retries, out of time, commit outcome unknown,
//	     secret lookup failed
//
// Bodies are constant. The log and the hooks get the cause; the client never does.
//
// # Challenges
//
// A sender may ask a callback URL for a proof before it sends anything else. It posts a
// signed event of the type webhook.challenge, and the answer must return its token. Once
// verified, such an event is answered with 200 and {"token":"…"} by the receiver itself:
// no transaction begins and nothing is stored. The application's function never sees
// events of that type. [Envelope].Challenge and TextChallenge answer the signed questions of
// other senders, and Config.Handshake those that nobody has signed.
//
// # The application's function
//
// It may run more than once for one request (after a serialization failure) and again for
// a resent event (after a rollback), so its effects outside the transaction must bear
// repetition. Its context is not cancelled when the client leaves. It ends when the
// request's time is over.
package receiver
