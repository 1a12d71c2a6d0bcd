package feed

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/surehook/surehook/sender"
)

// problem is a problem document, RFC 9457. An empty Type means "about:blank".
type problem struct {
	Type       string         `json:"type"`
	Title      string         `json:"title"`
	Status     int            `json:"status"`
	Detail     string         `json:"detail,omitempty"`
	Errors     []problemError `json:"errors,omitempty"`
	NextCursor string         `json:"next_cursor,omitempty"`
}

type problemError struct {
	Location string `json:"location"`
	Message  string `json:"message"`
}

// ExpiredType is the type of the problem that answers an expired cursor.
const ExpiredType = "urn:surehook:problem:cursor-expired"

func problemOf(err error) problem {
	var expired *ExpiredError
	var byViewer viewerError
	switch {
	case errors.Is(err, ErrUnauthorized):
		return problem{Status: http.StatusUnauthorized, Detail: "give a valid token: Authorization: Bearer TOKEN"}
	case errors.Is(err, ErrForbidden):
		return problem{Status: http.StatusForbidden, Detail: "this token may not read the feed"}
	case errors.Is(err, errNoViewer):
		return problem{Status: http.StatusInternalServerError}
	case errors.As(err, &byViewer):
		return problem{Status: http.StatusServiceUnavailable, Detail: "who is asking could not be looked up: try again"}
	case errors.As(err, &expired):
		return problem{
			Type: ExpiredType, Title: "Cursor expired", Status: http.StatusGone, NextCursor: expired.Next,
			Detail: "events after this cursor are gone: make sure of the state that they would have brought, then go on with next_cursor",
		}
	case errors.Is(err, sender.ErrNotFound):
		return problem{Status: http.StatusNotFound, Detail: "there is no such event, or it is not for you to see"}
	}
	if invalid := invalidOf(err); invalid != nil {
		p := problem{Status: http.StatusUnprocessableEntity, Detail: "a parameter is not valid"}
		for _, e := range invalid {
			p.Errors = append(p.Errors, problemError{Location: "query." + e.Parameter, Message: e.Error()})
		}
		return p
	}
	return problem{Status: http.StatusServiceUnavailable, Detail: "the database is away: try again"}
}

// invalidOf are the InvalidErrors that are joined in err.
func invalidOf(err error) (all []*InvalidError) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			all = append(all, invalidOf(e)...)
		}
		return all
	}
	var one *InvalidError
	if errors.As(err, &one) {
		all = append(all, one)
	}
	return all
}

func (p problem) write(w http.ResponseWriter) {
	if p.Type == "" {
		p.Type = "about:blank"
	}
	if p.Title == "" {
		p.Title = http.StatusText(p.Status)
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	switch p.Status {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "5")
	}
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p)
}
