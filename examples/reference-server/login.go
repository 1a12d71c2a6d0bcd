package main

import (
	"html/template"
	"math"
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"github.com/surehook/surehook/sender/console"
)

// An address may send guessesAtOnce wrong tokens at once, and then guessesASecond a second.
// Right ones are not counted.
const (
	guessesAtOnce   = 5
	guessesASecond  = 0.5
	proxiedAddress  = "X-Forwarded-For"
	addressPrefixV6 = 64 // one customer's, as a rule
)

// signIn takes the operator's token.
func (s *server) signIn(w http.ResponseWriter, r *http.Request) {
	to := r.PostFormValue("to")
	if !strings.HasPrefix(to, consoleRoot+"/") || strings.HasPrefix(to, loginPath) || strings.HasPrefix(to, logoutPath) {
		to = consoleRoot + "/"
	}
	from := addressOf(r)
	if wait, ok := s.guesses.take(from); !ok {
		after := max(1, int(math.Ceil(wait.Seconds())))
		w.Header().Set("Retry-After", strconv.Itoa(after))
		s.log.Warn("console: too many wrong tokens from one address", "from", from)
		s.showLogin(w, r, http.StatusTooManyRequests, login{To: to, Said: "Too many wrong tokens came from your address. Wait " + strconv.Itoa(after) + " s, and try again."})
		return
	}
	if token := strings.TrimSpace(r.PostFormValue("token")); !same(hashToken(token), s.operatorHash) {
		s.log.Warn("console: somebody gave a token that is not the operator's", "from", from)
		s.showLogin(w, r, http.StatusUnauthorized, login{To: to, Said: "That is not the operator's token."})
		return
	}
	s.guesses.giveBack(from)
	if err := s.sessions.begin(w, r); err != nil {
		s.sorry(w, r, err)
		return
	}
	s.log.Info("console: signed in", "from", from)
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}

func (s *server) signOut(w http.ResponseWriter, r *http.Request) {
	if err := s.sessions.end(w, r); err != nil {
		s.sorry(w, r, err)
		return
	}
	http.Redirect(w, r, consoleRoot+"/", http.StatusSeeOther)
}

// addressOf is whom wrong tokens are counted for. A proxy on this machine or in its
// private network says for whom it asks.
func addressOf(r *http.Request) string {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	from := peer.Addr().Unmap()
	if from.IsLoopback() || from.IsPrivate() {
		said := strings.Split(strings.Join(r.Header.Values(proxiedAddress), ","), ",")
		if named, err := netip.ParseAddr(strings.TrimSpace(said[len(said)-1])); err == nil {
			from = named.Unmap()
		}
	}
	if from.Is6() {
		if prefix, err := from.WithZone("").Prefix(addressPrefixV6); err == nil {
			return prefix.String()
		}
	}
	return from.String()
}

type login struct {
	To   string // where to go on
	Said string // what was wrong; empty: nothing
}

var sorryPage = template.Must(template.New("sorry").Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{{.Title}} · Surehook reference server</title>
<link rel="stylesheet" href="/console/style.css">
</head>
<body>
<main class="alone">
<div class="card"><div class="sign">
<h1>{{.Title}}</h1>
<div class="say bad"><p role="alert">{{.Said}}</p></div>
</div></div>
</main>
</body>
</html>
`))

func (s *server) showLogin(w http.ResponseWriter, r *http.Request, status int, l login) {
	w.Header().Set("WWW-Authenticate", `Bearer realm="surehook"`)
	page := console.SignIn{Name: "Surehook reference server", Base: consoleRoot + "/", Action: loginPath, Label: "The operator's token", To: l.To, Wrong: l.Said}
	if err := page.Write(w, status); err != nil {
		s.log.DebugContext(r.Context(), "the page for signing in was not sent whole", "error", err)
	}
}

// sorry answers a visitor of the console with what the API answers others.
func (s *server) sorry(w http.ResponseWriter, r *http.Request, err error) {
	p := refusal(err).logged(r.Context(), s.log, "console")
	for name, values := range p.GetHeaders() {
		w.Header()[name] = values
	}
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(p.Status)
	if err := sorryPage.Execute(w, struct{ Title, Said string }{p.Title, p.Detail}); err != nil {
		s.log.DebugContext(r.Context(), "a page was not sent whole", "error", err)
	}
}
