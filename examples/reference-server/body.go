package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	maxBody     = 1 << 20
	largeBody   = 64 << 10 // programs of subscribers send no larger ones, as a rule
	maxDrained  = 64 << 20
	bodyTimeout = 10 * time.Second
)

// bounded reads a request's body whole, within its bounds of size and time, and
// refuses what is no JSON in UTF-8 before anybody parses it.
//
// A subscriber may send few large bodies at a time.
func bounded(next http.Handler, within time.Duration, large *largeBodies) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p := wellFormedURL(r); p != nil {
			p.write(w)
			return
		}
		r.URL.RawQuery = r.URL.Query().Encode() // huma takes a name alone for one with the value true
		for _, list := range []string{"If-Match", "If-None-Match"} {
			if lines := r.Header.Values(list); len(lines) > 1 { // one list (RFC 9110, section 5.3), and huma reads the first line alone
				r.Header.Set(list, strings.Join(lines, ", "))
			}
		}
		body, leave, p := read(w, r, within, large)
		defer leave()
		switch {
		case p != nil || len(body) <= largeBody:
		case r.Method == http.MethodGet || r.Method == http.MethodHead: // one of the feed is held open
			body = nil // no such call takes one
		default:
			var looked func()
			looked, p = large.look(r.Context())
			defer looked()
		}
		if p != nil {
			p.write(w)
			return
		}
		// Said once it is known that the caller may do this at all.
		if p := wellFormed(body); p != nil {
			r = r.WithContext(context.WithValue(r.Context(), malformedKey{}, p))
		}
		if len(body) > 0 {
			r.Header.Set("Content-Type", "application/json") // huma compares letter for letter
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

// inTime reads a body under a deadline. If that fails, or something else has decided that the
// connection ends, the deadline stays: net/http would read what is left of the body, without a
// limit of time.
func inTime(w http.ResponseWriter, within time.Duration, read func() error) error {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(within))
	err := read()
	if err != nil {
		w.Header().Set("Connection", "close")
		return err
	}
	if w.Header().Get("Connection") != "close" {
		_ = control.SetReadDeadline(time.Time{})
	}
	return nil
}

// unasked has the connection end if its request has a body that nobody reads.
func unasked(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 {
		w.Header().Set("Connection", "close")
	}
}

var errTooLarge = errors.New("the body is too large")

// largeBodies bound the large bodies that are in memory. One of a megabyte can take thirty while it
// is looked at, and the processor for as long: so few are, of the operator, too, and those that are
// whole wait for each other. One that is still being sent takes no more than it has, and must not
// keep the others waiting.
type largeBodies struct {
	*places // of subscribers, from their first parts on

	looking chan struct{}
	kept    chan struct{} // for the operator
}

func newLargeBodies() *largeBodies {
	return &largeBodies{newPlaces(largeOfOne, largeOfAll), make(chan struct{}, largeLooked-largeKept), make(chan struct{}, largeKept)}
}

// look waits until one more may be looked at, which ends with looked.
func (l *largeBodies) look(ctx context.Context) (looked func(), p *Problem) {
	var kept chan struct{} // nil: there is never room
	if callerOf(ctx).operator() {
		kept = l.kept
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	select {
	case l.looking <- struct{}{}:
		return func() { <-l.looking }, nil
	case kept <- struct{}{}:
		return func() { <-kept }, nil
	case <-ctx.Done():
		return func() {}, tooManyLarge(true)
	}
}

// read takes the body whole. leave gives up the place that a large one has.
func read(w http.ResponseWriter, r *http.Request, within time.Duration, large *largeBodies) (body []byte, leave func(), p *Problem) {
	leave = func() {}
	err := inTime(w, within, func() (err error) {
		if r.ContentLength > maxBody && strings.EqualFold(r.Header.Get("Expect"), "100-continue") {
			return errTooLarge // the client asks before it sends, so it sends nothing
		}
		if body, err = io.ReadAll(io.LimitReader(r.Body, largeBody+1)); err != nil || len(body) <= largeBody {
			return err
		}
		if c := callerOf(r.Context()); !c.operator() {
			full, ok := large.take(c.id)
			if !ok {
				_, _ = io.CopyN(io.Discard, r.Body, maxDrained)
				return tooManyLarge(full)
			}
			leave = func() { large.leave(c.id) }
		}
		rest, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1-int64(len(body))))
		if body = append(body, rest...); len(body) > maxBody {
			// A client that is cut off in the middle of sending does not see the answer.
			_, _ = io.CopyN(io.Discard, r.Body, maxDrained)
			return errTooLarge
		}
		return err
	})
	if err == nil {
		p = unreadable(r, body)
	} else {
		p = unread(err, within)
	}
	if p != nil {
		return nil, leave, p
	}
	return body, leave, nil
}

// unread returns why a body was not taken whole.
func unread(err error, within time.Duration) *Problem {
	var p *Problem
	switch {
	case errors.As(err, &p):
		return p
	case errors.Is(err, errTooLarge):
		return problem(http.StatusRequestEntityTooLarge, fmt.Sprintf("a body may have up to %d bytes", maxBody))
	case errors.Is(err, os.ErrDeadlineExceeded):
		return problem(http.StatusRequestTimeout, fmt.Sprintf("the body did not arrive within %v", within))
	}
	return problem(http.StatusBadRequest, "the body ended early")
}

// unreadable returns why a body cannot be understood, or nil.
func unreadable(r *http.Request, body []byte) *Problem {
	switch {
	case len(body) == 0:
		return nil
	case !isJSON(r.Header.Get("Content-Type")):
		return problem(http.StatusUnsupportedMediaType, "the body must be JSON, with Content-Type: application/json")
	case slices.ContainsFunc(r.Header.Values("Content-Encoding"), encodes):
		return problem(http.StatusUnsupportedMediaType, "the body must not be encoded: leave out Content-Encoding")
	case !utf8.Valid(body):
		return malformed("body", "it is not valid UTF-8 (RFC 8259, section 8.1)")
	}
	return nil
}

// tooManyLarge refuses a large body that is one too many.
func tooManyLarge(full bool) *Problem {
	if full {
		p := unavailable("as many large bodies are being read as can be at a time: try again", nil)
		p.retryAfter = retryLarge
		return p
	}
	return tooMany(retryLarge, "a subscriber may send %d bodies of more than %d bytes at a time: send the next once one is answered", largeOfOne, largeBody)
}

// encodes tells whether a list of content codings has one that changes the body. "identity" is
// the name of none (RFC 9110, section 12.5.3), and some clients say it.
func encodes(list string) bool {
	for coding := range strings.SplitSeq(list, ",") {
		if coding = strings.TrimSpace(coding); coding != "" && !strings.EqualFold(coding, "identity") {
			return true
		}
	}
	return false
}

// isJSON also takes a request that does not say what its body is.
func isJSON(contentType string) bool {
	if contentType == "" {
		return true
	}
	kind, params, err := mime.ParseMediaType(contentType)
	charset := params["charset"]
	return err == nil && (kind == "application/json" || strings.HasPrefix(kind, "application/") && strings.HasSuffix(kind, "+json")) &&
		(charset == "" || strings.EqualFold(charset, "utf-8"))
}

// wellFormedURL refuses what no database takes as text, so that no handler has to.
func wellFormedURL(r *http.Request) *Problem {
	if _, err := url.ParseQuery(r.URL.RawQuery); err != nil {
		return malformed("query", "it is malformed: its parameters must be percent-encoded, and joined with &")
	}
	for name, values := range r.URL.Query() {
		switch {
		case !slices.ContainsFunc(values, func(v string) bool { return !text(v) }):
		case name == "cursor", name == "after": // whatever it is, no page has returned it
			return invalid("query."+name, notOfAList)
		default:
			return malformed("query."+name, "it is not valid UTF-8, or holds a NUL")
		}
	}
	if !text(r.URL.Path) {
		return malformed("path", "it is not valid UTF-8, or holds a NUL")
	}
	return nil
}

func text(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }
