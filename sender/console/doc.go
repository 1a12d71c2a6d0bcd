// Package console is the operator's view: what waits, what fails and why, and what
// can be done about it, as pages that are made on the server and need no script.
//
//	pages, err := console.New(console.Backend{Registry: registry, History: history, Replays: replays}, authorize, nil)
//	http.Handle("/console/", http.StripPrefix("/console", pages))
//
// It can be mounted under any prefix, also behind a proxy that changes it: its links
// are relative. The prefix that a request comes with must end in a slash, as that of
// a pattern of http.ServeMux that ends in one does.
//
// # Who may see it
//
// Who signs in, and how, is the program's: every request is shown to the Authorize
// function, but for the style sheet, which a page for signing in can use, too. Whoever
// it lets in may do all that the console can do, for the subscriptions of everybody.
//
// Every change is a POST, and refused if it comes from another site
// (http.CrossOriginProtection), and logged with who has made it. The pages allow
// neither scripts nor frames (Content-Security-Policy), and are not to be cached.
//
// # What it shows
//
// Whatever strangers have written (URLs, descriptions, bodies, answers) is escaped and
// bounded, and control characters are shown as what they are. Signing secrets, client
// certificates and the values of a subscription's own headers are never shown. The
// bodies of events are, and the URLs of callbacks.
//
// # What it costs
//
// Every page reads a bounded number of rows, however large the database is, but for
// the preview of a replay, which counts all that has the replay's status. A page that
// takes longer than Config.Timeout is given up.
package console
