package portal

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/internal/look"
)

// layout has the data of every page.
type layout struct {
	Service   string // the service's name
	Logo      bool
	Catalogue bool // there are event types to look at
	Title     string
	Tab       string // the tab that the page belongs to
	Base      string // the way back to the session's root, so that all links are relative
	Assets    string // the way back to the portal's root
	Customer  string
	Handle    string
	Form      string // the secret that each form carries
	Session   bool   // the page is one of a session
	Embedded  bool   // it is shown in a frame
	Live      bool   // it is exchanged while it is looked at
	Said      string // what was done just now
	Now       time.Time
	View      any
}

// view is a page's own part.
type view struct {
	title string
	tab   string
	live  bool
	data  any
}

// pages are the templates of all portals.
var pages = look.Set(files, words, "pages/layout.html", "pages/parts.html")

func (p *Portal) routes() {
	p.inner = http.NewServeMux()
	p.page("/{$}", "endpoints", p.endpoints)
	p.page("/endpoints/new", "endpoint", p.newEndpoint)
	p.answered("/endpoints", "add an endpoint", p.addEndpoint)
	p.answered("/endpoints/new/preview", "try a filter", p.tryNew)
	p.page("/endpoints/{id}", "endpoint", p.endpoint)
	p.answered("/endpoints/{id}/preview", "try a filter", p.try)
	p.answered("/endpoints/{id}", "change an endpoint", p.changeEndpoint)
	p.action("/endpoints/{id}/pause", "pause an endpoint", p.pause)
	p.page("/endpoints/{id}/resume", "resume", p.resuming)
	p.action("/endpoints/{id}/resume", "resume an endpoint", p.resume)
	p.action("/endpoints/{id}/test", "send a test", p.sendTest)
	p.answered("/endpoints/{id}/delete", "delete an endpoint", p.deleteEndpoint)
	p.page("/deliveries", "deliveries", p.deliveries)
	p.page("/deliveries/{id}", "delivery", p.delivery)
	p.action("/deliveries/{id}/redeliver", "send a delivery again", p.redeliver)
	p.action("/deliveries/{id}/pass-over", "pass over a delivery", p.passOver)
	p.page("/replays", "replays", p.replays)
	p.page("/replays/new", "newreplay", p.newReplay)
	p.action("/replays", "begin a replay", p.createReplay)
	p.page("/replays/{id}", "replay", p.replay)
	for _, turn := range []string{"pause", "continue", "cancel"} {
		p.action("/replays/{id}/"+turn, turn+" a replay", p.turnReplay(turn))
	}
	p.page("/secret", "secret", p.secret)
	p.answered("/secret/show", "show the secrets", p.showSecrets)
	p.answered("/secret/rotate", "make a new secret", p.rotate)
	p.answered("/secret/activate", "sign with the new secret", p.activate)
	p.action("/secret/test", "test the new secret", p.testSecret)
	p.answered("/secret/extend", "extend the old secret", p.extend)
	p.answered("/secret/retire", "end the old secret", p.retire)
	p.page("/event-types", "eventtypes", p.eventTypes)

	others := http.NewCrossOriginProtection()
	others.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.fail(w, r, forbidden("This form was sent by another site's page. Nothing was changed."))
	}))
	p.guarded = others.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handle, rest, _ := parts(r.URL.Path)
		r = r.Clone(context.WithValue(r.Context(), belowKey{}, handle))
		r.URL.Path, r.URL.RawPath = rest, ""
		p.admitted(w, r, handle)
	}))
}

// route registers what answers a pattern below a session's path.
func (p *Portal) route(pattern string, answer http.HandlerFunc) {
	p.patterns = append(p.patterns, pattern)
	p.inner.HandleFunc(pattern, answer)
}

// page answers GET and HEAD.
func (p *Portal) page(pattern, name string, read func(ctx context.Context, r *http.Request) (view, error)) {
	p.route("GET "+pattern, func(w http.ResponseWriter, r *http.Request) {
		v, err := read(r.Context(), r)
		if err != nil {
			p.fail(w, r, err)
			return
		}
		p.write(w, r, http.StatusOK, name, v)
	})
}

// outcome is what came of a form: a page to go on to, with a sentence there, or a page that
// is the answer.
type outcome struct {
	to, said string
	page     string // "": to go on
	status   int
	view     view

	unchanged bool   // there is nothing to log
	did       string // what to log; "": what the form is for
}

// answered answers POST with one of the three: the page that shows what was made, the form
// again with what is wrong with it, or the way to the next page.
func (p *Portal) answered(pattern, what string, do func(ctx context.Context, r *http.Request) (outcome, error)) {
	p.route("POST "+pattern, func(w http.ResponseWriter, r *http.Request) {
		o, err := do(r.Context(), r)
		if err != nil {
			p.fail(w, r, err)
			return
		}
		if o.status != http.StatusUnprocessableEntity && !o.unchanged {
			s := sessionIn(r.Context())
			p.cfg.Logger.InfoContext(r.Context(), "portal: done", "action", cmp.Or(o.did, what), "subscriber", s.Subscriber, "by", s.By, "path", r.URL.Path)
		}
		if o.page != "" {
			p.write(w, r, o.status, o.page, o.view)
			return
		}
		w.Header().Set("Location", base(r)+o.to+"?said="+url.QueryEscape(o.said))
		w.WriteHeader(http.StatusSeeOther)
	})
}

// action answers POST: it changes something, and has the browser go to a page that says so,
// so that loading it anew does not do it again.
func (p *Portal) action(pattern, what string, do func(ctx context.Context, r *http.Request) (to, said string, err error)) {
	p.answered(pattern, what, func(ctx context.Context, r *http.Request) (outcome, error) {
		to, said, err := do(ctx, r)
		return outcome{to: to, said: said}, err
	})
}

// belowKey is of the handle of the session that a request is below of: its path is that
// within the session.
type belowKey struct{}

// base leads from the page that was asked for to the root of its session, or of the portal.
func base(r *http.Request) string {
	if deep := strings.Count(r.URL.EscapedPath(), "/") - 1; deep > 0 {
		return strings.Repeat("../", deep)
	}
	return "./"
}

// write answers with a page. It is made whole first: half of one would look right.
func (p *Portal) write(w http.ResponseWriter, r *http.Request, status int, name string, v view) {
	l := layout{
		Service: p.cfg.Name, Logo: p.cfg.Logo != "", Catalogue: p.cfg.Catalogue != nil, Title: v.title, Tab: v.tab, Base: base(r), Assets: base(r), Live: v.live,
		Embedded: r.Header.Get("Sec-Fetch-Dest") == "iframe", Said: said[r.URL.Query().Get("said")], Now: p.cfg.Now(), View: v.data,
	}
	if handle, below := r.Context().Value(belowKey{}).(string); below {
		l.Handle = handle
		l.Assets += "../../"
	} else {
		l.Handle, _, _ = parts(r.URL.Path)
	}
	if s := sessionIn(r.Context()); s != nil {
		l.Session, l.Customer, l.Form = true, s.Name, p.form(s, "")
	}
	var b bytes.Buffer
	page, err := pages(name)
	if err == nil {
		err = page.ExecuteTemplate(&b, "layout.html", l)
	}
	if err != nil {
		p.cfg.Logger.ErrorContext(r.Context(), "portal: a page cannot be made", "page", name, "error", err)
		http.Error(w, "This page cannot be made; it is our fault.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes())
}

// said has the sentences that confirm an action. A page shows only these, whatever a link
// says.
var said = map[string]string{
	"added":       "The endpoint was added. It gets the events that happen from now on.",
	"changed":     "Saved.",
	"paused":      "Paused. What happens meanwhile is held, and nothing is lost.",
	"resumed":     "Resumed.",
	"deleted":     "The endpoint was deleted.",
	"test":        "A test was sent. It is listed here in a moment.",
	"redelivered": "It is sent again.",
	"held":        "It is sent again as soon as the endpoint is resumed.",
	"passed":      "The later versions go on.",
	"replaying":   "They are being sent again.",
	"pause":       "Paused.",
	"continue":    "It goes on.",
	"cancel":      "Cancelled: no more are sent again.",
	"activated":   "The new secret signs from now on.",
	"retired":     "The old secret has ended.",
	"secrettest":  "A test was sent, signed with the new secret alone. It is listed here in a moment.",
	"extended":    "The old secret lasts longer. Its new end is below.",
}

var errNoPage = errors.New("sender/portal: there is no such page")

// badInput says what is wrong with a form or a query, forbidden why a form is refused, and
// tooMany why a request has to come later.
type (
	badInput  string
	forbidden string
	tooMany   string
)

func (b badInput) Error() string  { return string(b) }
func (f forbidden) Error() string { return string(f) }
func (t tooMany) Error() string   { return string(t) }

type problemView struct{ Message string }

// fail answers with a page that says what was wrong. It logs the error unless the visitor
// caused it.
func (p *Portal) fail(w http.ResponseWriter, r *http.Request, err error) {
	status, title, message := http.StatusServiceUnavailable, "That did not work", "We cannot answer just now. Nothing of yours is lost: try again in a moment."
	var bad badInput
	var no forbidden
	var many tooMany
	var tooOld *sender.RetentionError
	switch {
	case errors.Is(err, errNoPage), errors.Is(err, sender.ErrNotFound):
		status, title, message = http.StatusNotFound, "Not found", "There is nothing here: it was never there, or it is not kept any more."
	case errors.As(err, &no):
		status, title, message = http.StatusForbidden, "That was refused", string(no)
	case errors.As(err, &many):
		status, title, message = http.StatusTooManyRequests, "That is too much at a time", string(many)
	case errors.As(err, &bad):
		status, title, message = http.StatusUnprocessableEntity, "That cannot be", string(bad)
	case errors.Is(err, sender.ErrInvalid):
		status, title, message = http.StatusUnprocessableEntity, "That cannot be", sentence(err)
	case errors.As(err, &tooOld):
		status, title = http.StatusConflict, "That is too old"
		if tooOld.Published.IsZero() {
			message = "Some of it may have been published before " + exactly(tooOld.NotBefore) + ", which is not sent again: your receiver may have forgotten that it has it. Choose a later time under “Published since”."
			break
		}
		message = "An event was published on " + exactly(tooOld.Published) + ", and what is from before " + exactly(tooOld.NotBefore) + " is not sent again: your receiver may have forgotten that it has it. Take later ones."
	case errors.Is(err, sender.ErrRedacted):
		status, title, message = http.StatusConflict, "That cannot be done", "The event's content was removed, so it cannot be sent again."
	case errors.Is(err, sender.ErrCancelled):
		status, title, message = http.StatusConflict, "That cannot be done", "It was cancelled, and cannot be sent again."
	case errors.Is(err, sender.ErrStatus), errors.Is(err, sender.ErrConflict):
		status, title, message = http.StatusConflict, "That cannot be done now", sentence(err)
	}
	if status >= http.StatusInternalServerError || status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "5")
	}
	if status >= http.StatusInternalServerError && !errors.Is(r.Context().Err(), context.Canceled) { // the visitor is still there
		p.cfg.Logger.LogAttrs(r.Context(), slog.LevelError, "portal: a request failed", slog.String("path", r.URL.Path), slog.Any("error", err))
	}
	p.write(w, r, status, "problem", view{title: title, data: problemView{message}})
}

// sentence is an error in words for a customer.
func sentence(err error) string {
	text := strings.NewReplacer("sender: ", "", "subscription ", "endpoint ").Replace(err.Error())
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}
