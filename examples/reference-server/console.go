package main

import (
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
	pages, err := console.New(s.consoleBackend(), s.admitted, &console.Config{
		Name: "Surehook", Place: "reference server", SignOut: logoutPath, Logger: s.log, FirstSteps: firstSteps(s.options.addr),
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

func (s *server) showLogin(w http.ResponseWriter, r *http.Request, l login) {
	w.Header().Set("WWW-Authenticate", `Bearer realm="surehook"`)
	page := console.SignIn{Name: "Surehook reference server", Base: consoleRoot + "/", Action: loginPath, Label: "The operator's token", To: l.To}
	if l.Wrong {
		page.Wrong = "That is not the operator's token."
	}
	if err := page.Write(w, http.StatusUnauthorized); err != nil {
		s.log.DebugContext(r.Context(), "the page for signing in was not sent whole", "error", err)
	}
}
