// Package console serves the operator's pages: what waits, what fails and why, and the
// actions that help. The pages are made on the server and need no script.
//
//	pages, err := console.New(console.Backend{Registry: registry, History: history, Replays: replays}, authorize, nil)
//	http.Handle("/console/", http.StripPrefix("/console", pages))
//
// It can be mounted under any prefix, also behind a proxy that changes the prefix,
// because its links are relative. The prefix must end in a slash, as a pattern of
// http.ServeMux for a subtree does.
//
// # Who may see it
//
// The program decides who may use the console: its Authorize function sees every
// request, except those for the style sheet, which a page for signing in can use, too.
// A visitor whom it lets in may do all that the console can do, for everybody's
// subscriptions.
//
// Every change is a POST. It is refused if it comes from another site
// (http.CrossOriginProtection), and logged with the visitor who made it. The pages
// allow neither scripts nor frames (Content-Security-Policy), and forbid caching.
//
// # What it shows
//
// Text of strangers (URLs, descriptions, bodies, answers) is escaped and bounded, and
// its control characters are shown as escapes. The console shows the bodies of events
// and the URLs of callbacks. It never shows signing secrets, client certificates, or
// the values of a subscription's own headers.
//
// # What it costs
//
// Every page reads a bounded number of rows, however large the database is. The preview
// of a replay is the exception: it counts all deliveries of the replay's status. The
// console gives up a page that takes longer than Config.Timeout.
package console
