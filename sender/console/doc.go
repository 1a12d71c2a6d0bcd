// Package console serves the operator's pages: how the sender does, what waits, what fails
// and why, and the actions that help. The pages are made on the server and work without a
// script; a small one adds what it can (see below).
//
//	pages, err := console.New(console.Backend{Registry: registry, History: history, Replays: replays}, authorize, nil)
//	http.Handle("/console/", http.StripPrefix("/console", pages))
//
// It can be mounted under any prefix, also behind a proxy that changes the prefix,
// because its links are relative. The prefix must end in a slash, as a pattern of
// http.ServeMux for a subtree does.
//
// Give Backend what the program has besides: Customers, so that names stand where the
// library knows ids alone and there is a list of customers, and Jobs. Set Config.Policy to
// the dispatcher's PolicyOf, so that pages say when a subscription is tried, and when one
// that fails will be disabled. Set Config.Portal if your customers have pages of their
// own.
//
// # Who may see it
//
// The program decides who may use the console. Its Authorize function sees every request
// except those for the style sheet and the script, which a page for signing in can use,
// too: SignIn is such a page. A visitor whom it lets in may do all that the console can
// do, for everybody's subscriptions.
//
// Every change is a POST. It is refused if it comes from another site
// (http.CrossOriginProtection), and logged with the visitor who made it. The pages
// load nothing but the console's own style sheet and script, allow no frames
// (Content-Security-Policy), and forbid caching.
//
// # What it shows
//
// Text of strangers (URLs, descriptions, bodies, answers) is escaped and bounded, and
// its control characters are shown as escapes. The console shows the bodies of events
// and the URLs of callbacks. It never shows signing secrets, client certificates, or
// the values of a subscription's own headers.
//
// Times are in UTC. The script adds local time, lets ages tick, copies ids, and follows
// keys ("?" lists them). Every Config.Refresh it loads the parts of a page that change,
// unless somebody types, chooses or reads in them.
//
// # What it costs
//
// Every page reads a bounded number of rows, however large the database is, and so does
// creating a replay: beyond replay.MaxCounted it is not counted whole, and its page says so. The
// console gives up a page that takes longer than Config.Timeout. A page that is open is
// asked for every Config.Refresh while somebody looks at it.
//
// Some pages look at up to about history.MaxExamined candidates, and say so if there are
// more: those with a filter that the database has no index for, the search for a part of a
// URL, and groups of dead letters and notices. Figures of seven and thirty days are read
// by the hour, those of a day by the minute.
package console
