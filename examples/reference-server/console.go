package main

import (
	"html/template"
	"net/http"
	"strings"

	"github.com/surehook/surehook/sender/console"
)

const (
	consoleRoot = "/console"
	loginPath   = consoleRoot + "/login"
	logoutPath  = consoleRoot + "/logout"
)

// newConsole is the library's console behind a page for signing in with the
// operator's token.
func (s *server) newConsole() (http.Handler, error) {
	pages, err := console.New(console.Backend{Registry: s.registry, History: s.history, Replays: s.replays}, s.admitted, &console.Config{
		Name: "Surehook reference server", SignOut: logoutPath, Logger: s.log,
	})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle(consoleRoot+"/", http.StripPrefix(consoleRoot, pages))
	mux.HandleFunc("POST "+loginPath, s.signIn)
	mux.HandleFunc("POST "+logoutPath, s.signOut)
	// Nobody else's page may sign a visitor in or out.
	return http.NewCrossOriginProtection().Handler(mux), nil
}

// besides sends what is the console's there, and all else on.
func besides(pages, api http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == consoleRoot || strings.HasPrefix(r.URL.Path, consoleRoot+"/") {
			pages.ServeHTTP(w, r)
			return
		}
		api.ServeHTTP(w, r)
	})
}

// admitted lets in who has signed in, and programs with the operator's token. All
// others are shown the page for signing in.
func (s *server) admitted(w http.ResponseWriter, r *http.Request) (who string, ok bool) {
	if headers := r.Header.Values("Authorization"); len(headers) > 0 {
		id, err := s.whose(r.Context(), headers)
		if err == nil && !(caller{id: id}).operator() {
			err = problem(http.StatusForbidden, "this is for the operator's token alone")
		}
		if err != nil {
			p := refusal(err).logged(r.Context(), s.log, "console")
			if p.Status == http.StatusUnauthorized {
				w.Header().Set("WWW-Authenticate", `Bearer realm="surehook"`)
			}
			p.write(w)
			return "", false
		}
		return "the operator's token", true
	}
	if s.sessions.valid(r) {
		return "the operator", true
	}
	to := consoleRoot + "/"
	if r.Method == http.MethodGet {
		to = consoleRoot + r.URL.RequestURI()
	}
	s.showLogin(w, r, login{To: to})
	return "", false
}

// signIn takes the operator's token.
func (s *server) signIn(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	to := r.PostFormValue("to")
	if !strings.HasPrefix(to, consoleRoot+"/") || strings.HasPrefix(to, loginPath) || strings.HasPrefix(to, logoutPath) {
		to = consoleRoot + "/"
	}
	if token := strings.TrimSpace(r.PostFormValue("token")); !same(hashToken(token), s.operatorHash) {
		s.log.Warn("console: somebody gave a token that is not the operator's", "from", r.RemoteAddr)
		s.showLogin(w, r, login{To: to, Wrong: true})
		return
	}
	s.sessions.begin(w, r)
	s.log.Info("console: signed in", "from", r.RemoteAddr)
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}

func (s *server) signOut(w http.ResponseWriter, r *http.Request) {
	s.sessions.end(w, r)
	http.Redirect(w, r, consoleRoot+"/", http.StatusSeeOther)
}

type login struct {
	To    string // where to go on
	Wrong bool
}

var loginPage = template.Must(template.New("login").Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Sign in – Surehook reference server</title>
<link rel="stylesheet" href="/console/style.css">
</head>
<body>
<main>
<h1>Surehook reference server</h1>
{{if .Wrong}}<p role="alert" class="said">That is not the operator's token.</p>{{end}}
<form method="post" action="/console/login">
<fieldset><legend>Sign in</legend>
<input type="hidden" name="to" value="{{.To}}">
<div><label for="token">The operator's token</label><input id="token" name="token" type="password" autocomplete="current-password" required autofocus></div>
<button>Sign in</button>
</fieldset>
</form>
</main>
</body>
</html>
`))

func (s *server) showLogin(w http.ResponseWriter, r *http.Request, l login) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	h.Set("WWW-Authenticate", `Bearer realm="surehook"`)
	h.Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(http.StatusUnauthorized)
	if err := loginPage.Execute(w, l); err != nil {
		s.log.DebugContext(r.Context(), "the page for signing in was not sent whole", "error", err)
	}
}
