package portal

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/surehook/surehook/sender"
)

// session is a visit: the subscriber whose things may be seen, and the secrets of the
// browser's own.
type session struct{ claims }

const (
	// cookiePrefix has browsers refuse the cookie unless it is this very host's alone
	// (draft-ietf-httpbis-rfc6265bis, section 4.1.3.2).
	cookiePrefix = "__Host-surehook-portal-"

	// maxSessions is of how many subscribers a browser keeps sessions at a time. All of their
	// cookies go with each request, which many servers refuse beyond 8 KiB of cookies.
	maxSessions = 8

	// sessionHeader and sessionField carry the session where a browser keeps no cookie.
	sessionHeader = "Surehook-Session"
	sessionField  = "session"
)

// handle is the part of the path that a subscriber's sessions have. It says which cookie
// counts, so that two tabs with two customers are not taken for each other. It is no
// secret, and gives no right.
func (p *Portal) handle(subscriber string) string { return p.keys[0].handle(subscriber) }

func (d *derived) handle(subscriber string) string {
	return b64.EncodeToString(d.mac(forHandles, subscriber)[:9])
}

// isHandle tells whether a subscriber's sessions have a handle here, or in a process that has
// another of the keys in front.
func (p *Portal) isHandle(subscriber, handle string) bool {
	return slices.ContainsFunc(p.keys, func(d *derived) bool { return d.handle(subscriber) == handle })
}

// newSession makes a session of a token's claims.
func (p *Portal) newSession(c *claims, handle string) claims {
	return claims{
		Subscriber: c.Subscriber, Name: c.Name, By: c.By,
		Until: p.cfg.Now().Add(p.cfg.Session).Unix(), Handle: handle, Nonce: rand.Text(),
	}
}

// begin gives the browser a session. The one that it has of the same subscriber goes on, so
// that forms in its other tabs stay good.
func (p *Portal) begin(w http.ResponseWriter, r *http.Request, c *claims) (handle string) {
	s := p.newSession(c, p.handle(c.Subscriber))
	if was, ok := p.fromCookie(r, s.Handle); ok {
		s.Nonce = was.Nonce
	}
	setCookie(w, s.Handle, p.seal(forSessions, &s), int(p.cfg.Session.Seconds()))
	p.makeRoom(w, r, s.Handle)
	return s.Handle
}

func setCookie(w http.ResponseWriter, handle, value string, maxAge int) {
	http.SetCookie(w, &http.Cookie{
		Name: cookiePrefix + handle, Value: value, Path: "/", MaxAge: maxAge,
		Secure: true, HttpOnly: true, SameSite: http.SameSiteNoneMode, Partitioned: true,
	})
}

// makeRoom ends the sessions that a browser has beyond maxSessions, those first that would end
// first. The one with the handle is being opened.
func (p *Portal) makeRoom(w http.ResponseWriter, r *http.Request, handle string) {
	var others []claims
	for _, cookie := range r.Cookies() {
		other, ok := strings.CutPrefix(cookie.Name, cookiePrefix)
		if !ok || other == handle {
			continue
		}
		c := claims{Handle: other} // of one that has ended
		if s, ok := p.session(cookie.Value, other); ok {
			c = s.claims
		}
		others = append(others, c)
	}
	slices.SortFunc(others, func(a, b claims) int { return cmp.Compare(a.Until, b.Until) })
	for _, c := range others[:max(0, len(others)-maxSessions+1)] {
		setCookie(w, c.Handle, "", -1)
	}
}

func (p *Portal) fromCookie(r *http.Request, handle string) (*session, bool) {
	cookie, err := r.Cookie(cookiePrefix + handle)
	if err != nil {
		return nil, false
	}
	return p.session(cookie.Value, handle)
}

func (p *Portal) session(sealed, handle string) (*session, bool) {
	c, ok := p.open(forSessions, sealed)
	if !ok || c.Handle != handle {
		return nil, false
	}
	return &session{*c}, true
}

// sessionOf returns a request's session: from the cookie, or from the script of a browser
// that keeps none, which puts it into a header, or into a form.
func (p *Portal) sessionOf(r *http.Request, handle string) (*session, bool) {
	if s, ok := p.fromCookie(r, handle); ok {
		return s, true
	}
	if sealed := r.Header.Get(sessionHeader); sealed != "" {
		return p.session(sealed, handle)
	}
	if r.Method == http.MethodPost {
		return p.session(r.PostFormValue(sessionField), handle)
	}
	return nil, false
}

// form is the secret that a session's forms carry: who posts it has read a page of this
// session, which no other site's page can, in whatever frame it is. The one that also names a
// thing tells that this session has seen its page.
func (p *Portal) form(s *session, thing string) string {
	return b64.EncodeToString(p.keys[0].mac(forForms, s.formText(thing)))
}

func (s *session) formText(thing string) string {
	if thing == "" {
		return s.Handle + "." + s.Nonce
	}
	return s.Handle + "." + s.Nonce + "." + thing
}

func (p *Portal) formFits(s *session, thing, given string) bool {
	mac, err := b64.DecodeString(given)
	if err != nil {
		return false
	}
	for i := range p.keys {
		if hmac.Equal(mac, p.keys[i].mac(forForms, s.formText(thing))) {
			return true
		}
	}
	return false
}

type sessionKey struct{}

func sessionIn(ctx context.Context) *session {
	s, _ := ctx.Value(sessionKey{}).(*session)
	return s
}

// admitted answers a request below a session's path.
func (p *Portal) admitted(w http.ResponseWriter, r *http.Request, handle string) {
	s, ok := p.sessionOf(r, handle)
	if !ok {
		p.sessionOver(w, r, r.Method == http.MethodPost)
		return
	}
	if p.cfg.Admit != nil && !p.cfg.Admit(w, r, s.Subscriber) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithValue(r.Context(), sessionKey{}, s), p.cfg.Timeout)
	defer cancel()
	r = r.WithContext(ctx)
	if _, err := p.b.Registry.Subscriber(ctx, s.Subscriber); errors.Is(err, sender.ErrNotFound) {
		p.sessionOver(w, r, r.Method == http.MethodPost) // it was deleted, and its sessions end with it
		return
	} else if err != nil {
		p.fail(w, r, err)
		return
	}
	if r.Method == http.MethodPost && !p.formFits(s, "", r.PostFormValue(formField)) {
		p.fail(w, r, forbidden("The form was not of this session. Go back, load the page again, and repeat what you did."))
		return
	}
	if _, pattern := p.inner.Handler(r); pattern == "" {
		p.fail(w, r, errNoPage)
		return
	}
	p.inner.ServeHTTP(w, r)
}

// sessionOver answers a request without a session. The script tries it again with the
// session that it has kept, if it has. unsaved: the request was a form of a session.
func (p *Portal) sessionOver(w http.ResponseWriter, r *http.Request, unsaved bool) {
	w.Header().Set("Vary", "Cookie, "+sessionHeader)
	p.write(w, r, http.StatusUnauthorized, "over", view{title: "Your visit is over", data: overView{p.cfg.Return, unsaved}})
}

type overView struct {
	Return  string
	Unsaved bool // a form came too late
}

// parts divides a path below the portal's root into a session's handle and the rest.
func parts(path string) (handle, rest string, ok bool) {
	after, ok := strings.CutPrefix(path, sessionRoot)
	if !ok {
		return "", "", false
	}
	handle, rest, ok = strings.Cut(after, "/")
	return handle, "/" + rest, ok && handle != ""
}
