// Package portal serves the pages for a service's own customers: their endpoints, what was
// delivered to them and why not, sending again, event types, and the signing secret. The
// pages are made on the server, and work without a script where the browser keeps cookies.
//
//	pages, err := portal.New(portal.Backend{Registry: registry, History: history, Replays: replays}, keys, nil)
//	http.Handle("/portal/", http.StripPrefix("/portal", pages))
//
// It can be mounted under any prefix that ends in a slash, also behind a proxy that changes
// the prefix, because its links are relative.
//
// # How a session is opened
//
// The service knows who its visitor is. It makes a token, which opens the portal for one
// subscriber and for some minutes, and hands it to the visitor's browser in one of two ways:
//
//   - A form of the service's own page posts it: <form method="post" target="portal"
//     action="https://hooks.example.com/portal/open"> with the token in the field "token",
//     into a frame or into a window. No script of the portal is needed.
//   - A link, or a frame's address, has it in its fragment: see Portal.Link. The portal's
//     script takes it out of the address, and posts it.
//
// So the token is in the body of a POST, and never in a path or a query: servers and
// proxies log those, and other sites see them as a Referer. Fragments are sent to nobody.
//
// # Where the session is kept
//
// In a cookie of its own partition: __Host-…; Secure; HttpOnly; SameSite=None; Partitioned.
// A browser keeps it for the site around the frame and gives it to no other, so it is no
// third party's cookie, and it is kept where those are blocked. The path of the pages names
// the cookie, by a text that gives no right: so two tabs with two customers are two
// sessions, and not each other's.
//
// Some browsers keep no such cookie in a frame. The portal finds that out while it is opened:
// it sets the cookie, has the browser post the token once more, and looks for the cookie. If
// it is not there, the script keeps the session in the frame's own sessionStorage, and sends
// it in a header, or in the body of a form. Where there are neither cookies nor scripts, the
// portal offers a window of its own, which has cookies.
//
// Other ways have faults. A token in a path or a query stands in logs, and so does a
// session's secret in a path, however short it lives. With a form that posts the session
// in place of each link, pages could neither be reloaded nor opened in a tab. The Storage
// Access API asks the visitor. With sessionStorage alone, a script could read the session
// in every browser, and nothing would work without one.
//
// Nothing is stored on the server. A session ends with its time (Config.Session), with its
// subscriber, and with the keys. It cannot be ended sooner for one visitor. A browser keeps the
// sessions of the eight subscribers that were opened last.
//
// # What keeps others out
//
// A session sees and changes its subscriber's things alone. Another's ids answer 404, just
// as ids that nobody has. Its pages have nothing of the operator's: no notices, no reasons of
// replays, no other subscribers.
//
// Each form carries a secret of the session, and is refused without it. That is needed
// beside the refusal of other sites' requests (http.CrossOriginProtection), which the portal
// has too, because old browsers do not say where a request comes from. Pages can stand in
// frames of Config.FrameAncestors alone, by default in none. The Content-Security-Policy
// allows the portal's own script, and no inline one. A signing secret is shown in the answer
// to the POST that asks for it, which no cache may keep, and in no other.
//
// A frame with the attribute sandbox needs allow-same-origin, allow-forms and
// allow-scripts; the buttons that copy need allow="clipboard-write".
//
// # What it costs
//
// Every page reads a bounded number of rows, however large the database is. To try a filter
// reads the last 100 events that it could pass, one by one. A replay that is larger than
// replay.MaxCounted is not counted whole, and its page says so.
package portal
