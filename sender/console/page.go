package console

import (
	"bytes"
	"context"
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/surehook/surehook/sender"
)

var errNoPage = errors.New("sender/console: there is no such page")

// layout has the data of every page.
type layout struct {
	Name    string // of the console
	Title   string // of the page
	Nav     string // the part of the console that it belongs to
	Base    string // the way back to the console's root, so that all links are relative
	Who     string
	SignOut string
	Said    string // what was done just now
	Now     time.Time
	View    any
}

// view is a page's own part.
type view struct {
	title string
	nav   string
	data  any
}

func parsePages() (map[string]*template.Template, error) {
	pages := map[string]*template.Template{}
	shared, err := template.New("layout.html").Funcs(words).ParseFS(files, "pages/layout.html", "pages/parts.html")
	if err != nil {
		return nil, err
	}
	names, err := files.ReadDir("pages")
	if err != nil {
		return nil, err
	}
	for _, f := range names {
		name, _ := strings.CutSuffix(f.Name(), ".html")
		if name == "layout" || name == "parts" {
			continue
		}
		page, err := shared.Clone()
		if err != nil {
			return nil, err
		}
		if pages[name], err = page.ParseFS(files, "pages/"+f.Name()); err != nil {
			return nil, err
		}
	}
	return pages, nil
}

// page answers GET and HEAD.
func (c *Console) page(pattern, name string, read func(ctx context.Context, r *http.Request) (view, error)) {
	c.mux.HandleFunc("GET "+pattern, func(w http.ResponseWriter, r *http.Request) {
		v, err := read(r.Context(), r)
		if err != nil {
			c.fail(w, r, err)
			return
		}
		c.write(w, r, http.StatusOK, name, v)
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
		to, said, err := do(r.Context(), r)
		if err != nil {
			c.fail(w, r, err)
			return
		}
		c.cfg.Logger.InfoContext(r.Context(), "console: done", "action", what, "by", whoOf(r), "path", r.URL.Path)
		w.Header().Set("Location", base(r)+to+"?said="+url.QueryEscape(said))
		w.WriteHeader(http.StatusSeeOther)
	})
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
func (c *Console) write(w http.ResponseWriter, r *http.Request, status int, name string, v view) {
	var b bytes.Buffer
	err := c.pages[name].Execute(&b, layout{
		Name: c.cfg.Name, Title: v.title, Nav: v.nav, Base: base(r), Who: whoOf(r), SignOut: c.cfg.SignOut,
		Said: said[r.URL.Query().Get("said")], Now: c.cfg.Now(), View: v.data,
	})
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
	"replaying":    "The replay has begun.",
	"continued":    "Continued.",
	"cancelled":    "Cancelled.",
	"acknowledged": "Acknowledged.",
}

// badInput says what is wrong with a form or a query.
type badInput string

func (b badInput) Error() string { return string(b) }

// problem is a page that says what went wrong.
type problem struct {
	Message string
}

// fail answers with a page that says what was wrong. It logs the error unless the
// visitor caused it.
func (c *Console) fail(w http.ResponseWriter, r *http.Request, err error) {
	var bad badInput
	status, title, message := http.StatusInternalServerError, "That did not work", "Something went wrong here. The log says what."
	plain := strings.ReplaceAll(err.Error(), "sender: ", "")
	switch {
	case errors.Is(err, errNoPage), errors.Is(err, sender.ErrNotFound):
		status, title, message = http.StatusNotFound, "Not found", "There is nothing here: it was never there, or it is not kept any more."
	case errors.As(err, &bad), errors.Is(err, sender.ErrInvalid):
		status, title, message = http.StatusUnprocessableEntity, "That cannot be", plain
	case errors.Is(err, sender.ErrStatus), errors.Is(err, sender.ErrCancelled), errors.Is(err, sender.ErrRedacted),
		errors.Is(err, sender.ErrRetention), errors.Is(err, sender.ErrConflict):
		status, title, message = http.StatusConflict, "That cannot be done now", plain
	case errors.Is(err, context.DeadlineExceeded):
		status, title = http.StatusServiceUnavailable, "That took too long"
		message = "It was given up after " + c.cfg.Timeout.String() + ". Ask for less, or try again."
	}
	if status >= http.StatusInternalServerError {
		c.cfg.Logger.LogAttrs(r.Context(), slog.LevelError, "console: a request failed", slog.String("path", r.URL.Path), slog.Any("error", err))
	}
	c.write(w, r, status, "problem", view{title: title, data: problem{message}})
}
