package main

import (
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/surehook/surehook/sender/console"
)

const (
	consoleRoot = "/console"
	loginPath   = consoleRoot + "/login"
	logoutPath  = consoleRoot + "/logout"

	maxForm = 64 << 10
)

// newConsole is the library's console behind a page for signing in with the
// operator's token.
func (s *server) newConsole() (http.Handler, error) {
	types, err := eventTypes()
	if err != nil {
		return nil, err
	}
	pages, err := console.New(s.consoleBackend(), s.admitted, &console.Config{
		Name: "Surehook", Place: "reference server", SignOut: logoutPath, Catalogue: types, Policy: s.options.policy.Of, Logger: s.log, FirstSteps: firstSteps(s.options),
		Portal: s.portalOf,
	})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle(consoleRoot+"/", http.StripPrefix(consoleRoot, pages))
	mux.HandleFunc("POST "+loginPath, s.signIn)
	mux.HandleFunc("POST "+logoutPath, s.signOut)
	// Nobody else's page may sign a visitor in or out.
	return http.NewCrossOriginProtection().Handler(s.formed(mux)), nil
}

// besides gives the console its own paths, leads from the root to it, and leaves all other
// requests to the API.
func besides(pages, api http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == consoleRoot || strings.HasPrefix(r.URL.Path, consoleRoot+"/"):
			noteRoute(r, routeConsole)
			pages.ServeHTTP(w, r)
		case r.URL.Path == "/" && (r.Method == http.MethodGet || r.Method == http.MethodHead):
			toConsole(w, r)
		default:
			api.ServeHTTP(w, r)
		}
	})
}

func toConsole(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, consoleRoot+"/", http.StatusFound)
}

// formed refuses forms and queries that no database takes as text, so that no page has to.
func (s *server) formed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p := wellFormedURL(r); p != nil {
			s.sorry(w, r, p)
			return
		}
		if !hasForm(r) {
			unasked(w, r)
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		if err := inTime(w, bodyTimeout, r.ParseForm); err != nil {
			s.sorry(w, r, problem(http.StatusUnprocessableEntity, "the form cannot be read: it must be that of the page, and have at most 64 KiB"))
			return
		}
		for name, values := range r.PostForm {
			for _, v := range values {
				if !text(v) {
					s.sorry(w, r, problem(http.StatusUnprocessableEntity, name+": it must not hold a NUL character, and be valid UTF-8"))
					return
				}
			}
		}
		next.ServeHTTP(w, r)
	})
}

// hasForm tells whether ParseForm reads a request's body to its end.
func hasForm(r *http.Request) bool {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return kind == "application/x-www-form-urlencoded" && (r.Method == http.MethodPost || r.Method == http.MethodPut || r.Method == http.MethodPatch)
}

// bearers are a request's Authorization headers, without those of other schemes: a proxy that
// asks browsers for a password of its own lets that through.
func bearers(r *http.Request) []string {
	return slices.DeleteFunc(slices.Clone(r.Header.Values("Authorization")), func(h string) bool {
		scheme, _, _ := strings.Cut(h, " ")
		return !strings.EqualFold(scheme, "Bearer")
	})
}

// admitted lets in who has signed in, and programs with the operator's token. All
// others are shown the page for signing in.
func (s *server) admitted(w http.ResponseWriter, r *http.Request) (who string, ok bool) {
	if headers := bearers(r); len(headers) > 0 {
		id, err := s.whose(r.Context(), headers)
		if err == nil && !(caller{id: id}).operator() {
			err = problem(http.StatusForbidden, "this is for the operator's token alone")
		}
		if err == nil {
			err = s.db.answers(r.Context())
		}
		if err != nil {
			refusal(err).logged(r.Context(), s.log, "console").write(w)
			return "", false
		}
		return "the operator's token", true
	}
	in, err := s.sessions.valid(r)
	if err != nil {
		s.sorry(w, r, err)
		return "", false
	}
	if in {
		return "the operator", true
	}
	to := consoleRoot + "/"
	if r.Method == http.MethodGet {
		to = consoleRoot + r.URL.RequestURI()
	}
	s.showLogin(w, r, http.StatusUnauthorized, login{To: to})
	return "", false
}
