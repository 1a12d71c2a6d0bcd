package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/validation"

	"github.com/surehook/surehook/sender"
)

// Problem is the body of every refusal (RFC 9457).
type Problem struct {
	Type   string   `json:"type" doc:"What kind of problem it is; about:blank says no more than the status."`
	Title  string   `json:"title" doc:"The kind of problem, in words."`
	Status int      `json:"status" doc:"The HTTP status."`
	Detail string   `json:"detail" doc:"What was wrong this time, and what would be right."`
	Errors []Detail `json:"errors,omitempty" nullable:"false" doc:"What in the request was wrong."`

	NextCursor string `json:"next_cursor,omitempty" doc:"Of a cursor that has expired: what to go on with."`

	retryAfter int // seconds; 0: it does not say
	cause      error
}

// Detail is one thing that is wrong with a request.
type Detail struct {
	Location string `json:"location" doc:"Where it is, such as body.url or query.limit."`
	Message  string `json:"message" doc:"What is wrong, and what would be right."`
}

const (
	typeCursorExpired = "urn:surehook:problem:cursor-expired"
	retrySeconds      = 2
	maxVersion        = 1<<53 - 1
	retryFull         = 30 // somebody must make room

	// maxDetails bounds how many things a refusal names. In the largest body, half a million
	// can be wrong: they would take seconds, and an answer of tens of megabytes.
	maxDetails = 100

	// Bytes of a detail. A name in a request can have a megabyte, and anybody can send one.
	maxLocation = 512
	maxWords    = 1024
)

func problem(status int, detail string, errs ...Detail) *Problem {
	for i, d := range errs {
		errs[i] = d.short()
	}
	return &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: short(detail, 4*maxWords), Errors: errs}
}

// short cuts the names and values that a request has made long.
func (d Detail) short() Detail {
	return Detail{Location: short(d.Location, maxLocation), Message: short(d.Message, maxWords)}
}

// short cuts a text that has more than most bytes.
func short(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// invalid is the refusal of a field that is well-formed and cannot be.
func invalid(location, message string) *Problem {
	at := Detail{Location: location, Message: message}
	return problem(http.StatusUnprocessableEntity, summary([]Detail{at}), at)
}

// unavailable is the refusal of what can be asked for again.
func unavailable(detail string, cause error) *Problem {
	p := problem(http.StatusServiceUnavailable, detail)
	p.retryAfter, p.cause = retrySeconds, cause
	return p
}

func notFound(what string) *Problem {
	return problem(http.StatusNotFound, "there is no such "+what)
}

// Error implements error.
func (p *Problem) Error() string { return p.Detail }

// Unwrap is what caused it, for the log alone.
func (p *Problem) Unwrap() error { return p.cause }

// GetStatus implements huma.StatusError.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType implements huma.ContentTypeFilter.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

// GetHeaders implements huma.HeadersError.
func (p *Problem) GetHeaders() http.Header {
	h := http.Header{}
	if p.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(p.retryAfter))
	}
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="surehook"`)
	}
	return h
}

// write answers a request that no operation has.
func (p *Problem) write(w http.ResponseWriter) {
	for name, values := range p.GetHeaders() {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Type", p.ContentType(""))
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p)
}

// fromHuma makes a problem of what huma has found wrong with a request. It leaves
// out the values: they can be secrets.
func fromHuma(status int, detail string, errs ...error) huma.StatusError {
	p := problem(status, detail)
	for _, err := range errs[:min(len(errs), maxDetails)] {
		var d huma.ErrorDetailer
		if errors.As(err, &d) {
			p.Errors = append(p.Errors, detailOf(d.ErrorDetail()).short())
		}
	}
	if detail == "request body is required" {
		p.Errors = []Detail{{Location: "body", Message: "it is required"}}
	}
	if len(p.Errors) > 0 {
		p.Detail = summaryOf(p.Errors, len(errs))
	}
	return p
}

// summary has the details in one line, for those who show no more than that.
func summary(errs []Detail) string { return summaryOf(errs, len(errs)) }

// summaryOf is summary for the first details of a number of them.
func summaryOf(errs []Detail, total int) string {
	var all []string
	for _, e := range errs[:min(len(errs), 3)] {
		all = append(all, e.Location+": "+e.Message)
	}
	if total > len(all) {
		all = append(all, fmt.Sprintf("and %d more", total-len(all)))
	}
	return strings.Join(all, "; ")
}

// detailOf names what is missing as the place, where huma names what it is missing in.
func detailOf(d *huma.ErrorDetail) Detail {
	name, is := strings.CutPrefix(d.Message, "expected required property ")
	if name, present := strings.CutSuffix(name, " to be present"); is && present {
		return Detail{Location: d.Location + "." + name, Message: "it is required"}
	}
	if m := unparsed.FindStringSubmatch(d.Message); m != nil {
		return notWhole(d.Location, m[1])
	}
	message := inWords(d.Message)
	if at, is := d.Value.(string); is && message == isATime && strings.Contains(at, " ") && strings.HasPrefix(d.Location, "query.") {
		message += "; a + in a query is written %2B"
	}
	return Detail{Location: d.Location, Message: message}
}

// notWhole refuses a number that the schema takes for whole, since it looks at the nearest
// floating-point number, and that is not, as 10.00000000000000000001, or does not fit.
// Go names the embedded structs on the way to the field, too.
func notWhole(location, field string) Detail {
	for name := range strings.SplitSeq(field, ".") {
		if name != "" && !unicode.IsUpper(rune(name[0])) {
			location += "." + name
		}
	}
	return Detail{Location: location, Message: "it must be an integer of up to 64 bits"}
}

const isATime = "it must be a time such as 2006-01-02T15:04:05Z (RFC 3339)"

// inWords says what huma says in its own terms and Go's.
func inWords(message string) string {
	if m := bounds.FindStringSubmatch(message); m != nil {
		n, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			return message
		}
		return fmt.Sprintf("it must be %s %s", boundWords[m[1]], strconv.FormatFloat(n, 'f', -1, 64))
	}
	switch {
	case message == "expected array length >= 1":
		return "the list is empty: name one or more, or leave it out"
	case message == validation.MsgUnexpectedProperty:
		return "it is unknown here: leave it out"
	case message == "expected length >= 1":
		return "it is empty"
	case strings.HasPrefix(message, "invalid date/time for format"), message == validation.MsgExpectedRFC3339DateTime:
		return isATime
	}
	return message
}

var (
	bounds     = regexp.MustCompile(`^expected number (<=|>=|<|>) (\S+)$`)
	boundWords = map[string]string{"<=": "at most", ">=": "at least", "<": "less than", ">": "above"}
)

var unparsed = regexp.MustCompile(`^json: cannot unmarshal number \S+ into Go struct field [^.]*\.(\S+) of type u?int`)

// refusal says how an error of the library is answered. It is in one place so that every
// operation answers alike. An operation that knows more returns a *Problem itself.
func refusal(err error) *Problem {
	var p *Problem
	switch {
	case errors.As(err, &p):
		return p
	case errors.Is(err, sender.ErrNotFound):
		return notFound("thing, or it is another's")
	case errors.Is(err, sender.ErrVersion), errors.Is(err, sender.ErrStatus), errors.Is(err, sender.ErrExists),
		errors.Is(err, sender.ErrCancelled), errors.Is(err, sender.ErrRedacted), errors.Is(err, sender.ErrRetention),
		errors.Is(err, sender.ErrConflict):
		return problem(http.StatusConflict, plain(err))
	case errors.Is(err, sender.ErrInvalid), errors.Is(err, sender.ErrInvalidEvent):
		errs := located(err)
		return problem(http.StatusUnprocessableEntity, summary(errs), errs...)
	case full(err):
		p := unavailable("the disk of the database is full, and nothing was changed: try again once there is room", err)
		p.retryAfter = retryFull
		return p
	case away(err), errors.Is(err, context.DeadlineExceeded):
		return unavailable("the database does not answer just now: try again", err)
	}
	p = problem(http.StatusInternalServerError, "something went wrong here; the log says what")
	p.cause = err
	return p
}

// clientLeft tells whether the client of a request has left before the answer. The request
// then fails in whatever it was about to do, and nothing is wrong here.
func clientLeft(ctx context.Context) bool { return errors.Is(ctx.Err(), context.Canceled) }

// logged logs an error that is not the caller's fault.
func (p *Problem) logged(ctx context.Context, log *slog.Logger, operation string) *Problem {
	if p.Status >= 500 && !clientLeft(ctx) {
		log.LogAttrs(ctx, slog.LevelError, "a request failed", slog.String("operation", operation), slog.Int("status", p.Status), slog.Any("error", p.cause))
	}
	return p
}

// located splits an error of the library, which reports all problems at once, and
// says where in the request each of them is.
func located(err error) []Detail {
	if many, ok := err.(interface{ Unwrap() []error }); ok && strings.Contains(err.Error(), "\n") {
		var all []Detail
		for _, one := range many.Unwrap() {
			all = append(all, located(one)...)
		}
		return all
	}
	var field *sender.FieldError
	if errors.As(err, &field) {
		name := field.Field
		switch name {
		case "hold_for", "retry_delays", "horizon", "disable_after":
			name += "_seconds"
		}
		return []Detail{{Location: "body." + name, Message: field.Reason}}
	}
	text := plain(err)
	for _, known := range locations {
		if strings.HasPrefix(text, known.words) {
			return []Detail{{Location: known.at, Message: strings.TrimPrefix(text, known.drop)}}
		}
	}
	return []Detail{{Location: "body", Message: text}}
}

// locations says by how they begin where in a request the library's other errors lie.
var locations = [...]struct{ words, drop, at string }{
	{"invalid rotation: SignFrom", "invalid rotation: ", "body.sign_after_seconds"},
	{"invalid rotation", "invalid rotation: ", "body.overlap_seconds"},
	{"the event is invalid: event type", "the event is invalid: ", "body.type"},
	{"the event is invalid: object type", "the event is invalid: ", "body.object.type"},
	{"the event is invalid: object id", "the event is invalid: ", "body.object.id"},
	{"the event is invalid: version", "the event is invalid: ", "body.version"},
	{"the event is invalid: data", "the event is invalid: ", "body.data"},
	{"the event is invalid: its body", "the event is invalid: ", "body.data"},
	{"invalid cursor", "invalid ", "query.cursor"},
	{"invalid limit", "invalid ", "query.limit"},
	{"invalid status", "invalid ", "query.status"},
	{"invalid event type", "invalid ", "query.event_type"},
	{"invalid times", "invalid times: ", "query.until"},
}

// plain returns an error of the library in words for a caller over HTTP.
func plain(err error) string {
	var version *sender.VersionError
	if errors.As(err, &version) && version.Stored >= maxVersion {
		return fmt.Sprintf("%s %q has had the highest version that there is, %d: no other event about it can be published", version.Object.Type, version.Object.ID, version.Stored)
	}
	text := err.Error()
	// The words before the library's own say where in it the error was met.
	for _, library := range []string{"sender: ", "jobs: "} {
		if _, own, met := strings.Cut(text, library); met {
			text = own
		}
	}
	return strings.NewReplacer("sender: ", "", "jobs: ", "", " (PublisherConfig.MaxBodyBytes)", "").Replace(text)
}
