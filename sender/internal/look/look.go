// Package look is what the operator's console and the customers' portal look like. It has
// their style sheet, their script, their icons, and the functions with which their
// templates put values into words. Package charts has their charts.
//
// A page is a template that begins as a clone of Template, so it has the functions (see
// Funcs) and the parts:
//
//	{{template "symbols"}}     the icons, once in each page, before the first icon
//	{{template "keys"}}        the list of keys, once in each page
//	{{template "pages" .}}     the foot of a list: a Pages
//	{{template "none" "…"}}    an empty list
//	{{template "body" .Body}}  bytes, indented and coloured if they are JSON
//	{{template "bytes" …}}     a Shown, such as "posted" makes: bytes as they are posted
//
// The head of a page names the files and tells the script the server's time:
//
//	<html lang="en" data-now="{{stamp .Now}}" data-refresh="15" data-fetch="1">
//	<link rel="icon" href="{{.Base}}icon.svg">
//	<link rel="stylesheet" href="{{.Base}}style.css">
//	<script src="{{.Base}}app.js" defer></script>
//
// Serve answers for the files. The script only adds to pages that work without it: ages
// that tick, local time, buttons that copy, and keys. Every data-refresh seconds it
// exchanges the parts that have an id and the attribute data-live. All of it runs under
// the policy CSP.
//
// The classes are those of style.css, whose head lists its sections. Text of strangers
// goes through "plain", or through a function that does it: icon, tag, id, endpoint,
// and all that returns HTML here, escape what they are given.
package look

import (
	"embed"
	"html/template"
	"io/fs"
	"net/http"
	"strings"
	"sync"
)

//go:embed style.css app.js icon.svg
var files embed.FS

//go:embed parts/*.html
var parts embed.FS

// CSP is the policy under which pages made with this package work, except for
// frame-ancestors, which is the page's own.
const CSP = "default-src 'none'; style-src 'self'; img-src 'self' data:; script-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'"

// Template returns a new template that has the functions and the parts of this package.
func Template() (*template.Template, error) {
	return template.New("").Funcs(Funcs()).ParseFS(parts, "parts/*.html")
}

// Set returns a function that returns the template of a page in the folder pages. With it are
// this package's own, and those of the files that all pages share. Each page is parsed once,
// when it is first asked for: the start of a program does not wait for pages that nobody reads.
func Set(files fs.FS, funcs template.FuncMap, shared ...string) func(page string) (*template.Template, error) {
	common := sync.OnceValues(func() (*template.Template, error) {
		t, err := Template()
		if err != nil {
			return nil, err
		}
		return t.Funcs(funcs).ParseFS(files, shared...)
	})
	var mu sync.Mutex
	parsed := map[string]*template.Template{}
	return func(page string) (*template.Template, error) {
		mu.Lock()
		defer mu.Unlock()
		if t := parsed[page]; t != nil {
			return t, nil
		}
		t, err := common()
		if err != nil {
			return nil, err
		}
		if t, err = t.Clone(); err != nil {
			return nil, err
		}
		if t, err = t.ParseFS(files, "pages/"+page+".html"); err != nil {
			return nil, err
		}
		parsed[page] = t
		return t, nil
	}
}

// Serve answers a request for /style.css, /app.js or /icon.svg, and reports whether it was one.
func Serve(w http.ResponseWriter, r *http.Request) bool {
	name := strings.TrimPrefix(r.URL.Path, "/")
	if name != "style.css" && name != "app.js" && name != "icon.svg" || r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	w.Header().Set("Cache-Control", "max-age=3600")
	http.ServeFileFS(w, r, files, name)
	return true
}

// Pages is the foot of a list: where its first page and the following one are. Empty
// links are left out.
type Pages struct {
	Of    string // what the page shows, such as "1 to 25 of 214"
	First string
	Next  string
}
