package console

import (
	"bytes"
	"html/template"
	"net/http"

	"github.com/surehook/surehook/sender/internal/look"
)

// SignIn is a page for signing in with one secret, in the looks of the console, for
// programs that have no page of their own. Their Authorize shows it, and the program takes
// the form: see Write.
type SignIn struct {
	Name string // stands above the form, as Config.Name

	// Base is where the console is mounted, with its slash at the end: "/console/". The
	// page loads its style sheet from there.
	Base string

	// Action takes the form: a POST with the fields "token" and "to".
	Action string

	// Label names what is asked for. The default is "Token".
	Label string

	// To is where the visitor wanted to go. The program must check it when it comes back:
	// a form's field can be anything.
	To string

	// Wrong says why signing in has failed; "": it was not tried.
	Wrong string
}

// Write answers with the page, and the headers that keep others from framing it, and
// anybody from caching it.
func (s SignIn) Write(w http.ResponseWriter, status int) error {
	if s.Label == "" {
		s.Label = "Token"
	}
	page, err := signInPage()
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := page.ExecuteTemplate(&b, "signin", s); err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Security-Policy", look.CSP+"; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, err = w.Write(b.Bytes())
	return err
}

func signInPage() (*template.Template, error) {
	page, err := look.Template()
	if err != nil {
		return nil, err
	}
	return page.ParseFS(files, "pages/signin.html")
}
