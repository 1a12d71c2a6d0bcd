package soak

import (
	"context"
	"net/http"
)

// watched looks into the database, from another connection, at the moment when a
// receiver answers 2xx.
type watched struct {
	http.ResponseWriter
	h     *endpoints
	r     *http.Request
	scope string
	post  *post
}

// Unwrap is for http.ResponseController.
func (x *watched) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (x *watched) WriteHeader(status int) {
	x.h.w.note(x.post, func(p *post) { p.status = status })
	if status >= 200 && status < 300 {
		x.h.w.note(x.post, func(p *post) { p.accepted = true })
		id := x.r.Header.Get("Webhook-Id")
		if x.h.intN(4) == 0 {
			marked, err := x.h.db.marked(context.WithoutCancel(x.r.Context()), x.scope, id)
			switch {
			case err != nil:
				x.h.w.count("looks into the database that failed")
			case !marked:
				x.h.w.add("I11", "event %s was answered with 2xx at %s before its marker was committed", id, x.scope)
			default:
				x.h.w.count("2xx seen after the commit")
			}
		}
	}
	x.ResponseWriter.WriteHeader(status)
}
