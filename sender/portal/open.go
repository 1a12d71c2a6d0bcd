package portal

import (
	"net/http"
	"path"
	"strings"

	"github.com/surehook/surehook/sender/internal/look"
)

const (
	sessionRoot = "/s/"
	openPath    = "/open"
	tokenField  = "token"
	formField   = "form"
)

// ServeHTTP implements http.Handler. It takes the path as relative to the portal's root:
// strip the prefix before.
func (p *Portal) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasPrefix(r.URL.Path, "/") { // the prefix was stripped with its slash
		r = r.Clone(r.Context())
		r.URL.Path, r.URL.RawPath = "/"+r.URL.Path, ""
	}
	h := w.Header()
	h.Set("Content-Security-Policy", p.policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	if len(p.cfg.FrameAncestors) == 0 {
		h.Set("X-Frame-Options", "DENY")
	}
	if p.asset(w, r) {
		return
	}
	h.Set("Cache-Control", "no-store")
	// A redirect of the mux would lead out of the prefix.
	if clean := path.Clean(r.URL.Path); clean != r.URL.Path && clean+"/" != r.URL.Path {
		p.fail(w, r, errNoPage)
		return
	}
	if r.Body != nil {
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	}
	if err := r.ParseForm(); err != nil {
		p.fail(w, r, badInput("The form cannot be read: it must be that of the page, and have at most 64 KiB."))
		return
	}
	if !storable(r.Form) {
		p.fail(w, r, badInput("A field has bytes that are no text: it must be UTF-8 without NUL."))
		return
	}
	handle, rest, ok := parts(r.URL.Path)
	switch {
	case r.URL.Path == "/" && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		p.write(w, r, http.StatusOK, "start", view{title: "Opening", data: overView{Return: p.cfg.Return}})
	case r.URL.Path == openPath && r.Method == http.MethodPost:
		p.enter(w, r)
	case ok && rest == openPath && r.Method == http.MethodPost:
		p.entered(w, r, handle)
	case ok:
		p.guarded.ServeHTTP(w, r)
	default:
		p.fail(w, r, errNoPage)
	}
}

// asset answers for what is the same for everybody.
func (p *Portal) asset(w http.ResponseWriter, r *http.Request) bool {
	if look.Serve(w, r) {
		return true
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	switch r.URL.Path {
	case "/portal.js":
		w.Header().Set("Cache-Control", "max-age=3600")
		http.ServeFileFS(w, r, files, "portal.js")
	case "/brand.css":
		w.Header().Set("Cache-Control", "max-age=3600")
		w.Header().Set("Content-Type", "text/css; charset=utf-8")
		_, _ = w.Write(p.brand)
	default:
		return false
	}
	return true
}

// enter takes a token, which another site's page may post: nothing else lets it in. It
// sets the cookie, and has the browser post the same again, to see if the cookie was kept.
func (p *Portal) enter(w http.ResponseWriter, r *http.Request) {
	c, ok := p.openToken(r.PostForm.Get(tokenField))
	if !ok {
		p.cfg.Logger.WarnContext(r.Context(), "portal: a token was refused: it has ended, or is not this portal's", "from", r.RemoteAddr)
		p.sessionOver(w, r, false)
		return
	}
	handle := p.begin(w, r, c)
	p.cfg.Logger.InfoContext(r.Context(), "portal: opened", "subscriber", c.Subscriber, "by", c.By, "from", r.RemoteAddr)
	w.Header().Set("Location", strings.TrimPrefix(sessionRoot, "/")+handle+openPath)
	w.WriteHeader(http.StatusTemporaryRedirect)
}

// entered leads to the first page if the cookie has come back. If not, the script keeps the
// session instead.
func (p *Portal) entered(w http.ResponseWriter, r *http.Request, handle string) {
	c, ok := p.openToken(r.PostForm.Get(tokenField))
	if !ok || !p.isHandle(c.Subscriber, handle) {
		p.sessionOver(w, r, false)
		return
	}
	if _, ok := p.fromCookie(r, handle); ok {
		w.Header().Set("Location", "./")
		w.WriteHeader(http.StatusSeeOther)
		return
	}
	s := p.newSession(c, handle)
	p.write(w, r, http.StatusOK, "cookieless", view{title: "Opening", data: cookielessView{
		Session: p.seal(forSessions, &s), Token: r.PostForm.Get(tokenField), Alone: r.Header.Get("Sec-Fetch-Dest") == "document",
	}})
}

type cookielessView struct {
	Session, Token string
	Alone          bool // it has a window of its own already
}
