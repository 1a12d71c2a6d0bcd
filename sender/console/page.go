package console

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/internal/look"
)

// view is a page's own part.
type view struct {
	title  string
	nav    string   // the part of the console that it belongs to
	crumbs []crumb  // what stands above it
	owners []string // the subscribers whose names it shows
	static bool     // it is not loaded again while it is open
	leads  string   // the page that is shown instead, from the console's root; "": none
	data   any

	counts *history.Counts // that the page has read already; nil: none
}

type crumb struct{ Title, Link string }

// pages are the templates of all consoles.
var pages = look.Set(files, funcs, "pages/layout.html", "pages/parts.html", "pages/rows.html")

// page answers GET and HEAD.
func (c *Console) page(pattern, name string, read func(ctx context.Context, r *http.Request) (view, error)) {
	c.mux.HandleFunc("GET "+pattern, func(w http.ResponseWriter, r *http.Request) {
		v, err := read(r.Context(), r)
		if err != nil {
			c.fail(w, r, err)
			return
		}
		if v.leads != "" {
			w.Header().Set("Location", base(r)+v.leads)
			w.WriteHeader(http.StatusFound)
			return
		}
		l := c.layout(r, v)
		if err := c.surround(r.Context(), l, v); err != nil {
			c.fail(w, r, err)
			return
		}
		c.write(w, r, http.StatusOK, name, l)
	})
}

// action answers POST: it changes something, and has the browser go to a page that
// says so, so that loading it anew does not do it again.
func (c *Console) action(pattern, what string, do func(ctx context.Context, r *http.Request) (to, said string, err error)) {
	c.mux.HandleFunc("POST "+pattern, func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			c.fail(w, r, badInput("the form cannot be read: it must be that of the page, and have at most 64 KiB"))
			return
		}
		if err := storable(r.PostForm); err != nil {
			c.fail(w, r, err)
			return
		}
		to, said, err := do(r.Context(), r)
		var part partly
		if err == nil || errors.As(err, &part) && part.some {
			c.cfg.Logger.LogAttrs(r.Context(), slog.LevelInfo, "console: done", logged(r, what, err == nil)...)
		}
		if err != nil {
			c.fail(w, r, err)
			return
		}
		w.Header().Set("Location", base(r)+to+"?said="+url.QueryEscape(said))
		w.WriteHeader(http.StatusSeeOther)
	})
}

// logged says what was done, by whom, and to what.
func logged(r *http.Request, what string, whole bool) []slog.Attr {
	all := []slog.Attr{slog.String("action", what), slog.String("by", whoOf(r)), slog.String("path", r.URL.Path)}
	for _, field := range []string{"id", "group"} {
		if chosen := r.PostForm[field]; len(chosen) > 0 {
			all = append(all, slog.Any(field, chosen))
		}
	}
	if !whole {
		all = append(all, slog.Bool("partly", true))
	}
	return all
}

func whoOf(r *http.Request) string {
	who, _ := r.Context().Value(whoKey{}).(string)
	return who
}

// base leads from the page that was asked for to the console's root.
func base(r *http.Request) string {
	if deep := strings.Count(r.URL.EscapedPath(), "/") - 1; deep > 0 {
		return strings.Repeat("../", deep)
	}
	return "./"
}

// write answers with a page. It is made whole first: half of one would look right.
func (c *Console) write(w http.ResponseWriter, r *http.Request, status int, name string, l *layout) {
	var b bytes.Buffer
	page, err := pages(name)
	if err == nil {
		err = page.ExecuteTemplate(&b, "layout", l)
	}
	if err != nil {
		c.cfg.Logger.ErrorContext(r.Context(), "console: a page cannot be made", "page", name, "error", err)
		http.Error(w, "this page cannot be made; the log says why", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes())
}

// said has the sentences that confirm an action. A page shows only these, whatever a
// link says.
var said = map[string]string{
	"paused":       "Paused.",
	"resumed":      "Resumed.",
	"disabled":     "Disabled.",
	"test":         "A test event was published. Its delivery is shown here as soon as it is made.",
	"redelivered":  "It is sent again.",
	"held":         "It is sent again as soon as its subscription is resumed.",
	"passed":       "The later versions go on.",
	"allagain":     "They are sent again.",
	"replaying":    "The replay has begun.",
	"continued":    "Continued.",
	"cancelled":    "Cancelled.",
	"acknowledged": "Acknowledged.",
}
