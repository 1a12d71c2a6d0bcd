package main

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// access says who may call an operation.
type access int

const (
	anyCaller    access = iota // about what the caller owns
	operatorOnly               // 403 for subscribers
	everybody                  // no token is needed
)

// inWords tells those who read the OpenAPI document.
func (a access) inWords() string {
	switch a {
	case operatorOnly:
		return "For the operator's token alone."
	case everybody:
		return "It needs no token."
	}
	return "For the operator, and for a subscriber about its own: another's answers 404."
}

// whoInWords tells who may call an operation, and of a list, who sees what.
func (o operation) whoInWords() string {
	switch {
	case o.who != anyCaller || strings.Contains(o.path, "{"):
		return o.who.inWords()
	case o.method == http.MethodGet && !o.says:
		return "The operator sees all, a subscriber its own."
	}
	return "For the operator, and for subscribers."
}

// tags are what the calls are about, in the OpenAPI document.
func tags() []*huma.Tag {
	return []*huma.Tag{
		{Name: "Subscribers", Description: "Customers of the service, and what its own events are about."},
		{Name: "Secrets", Description: "Signing secrets and bearer tokens."},
		{Name: "Subscriptions", Description: "Registered callback URLs, each with its filter."},
		{Name: "Events", Description: "What happened: by cursor, and published."},
		{Name: "Deliveries", Description: "One event on its way to one subscription, with its attempts."},
		{Name: "Jobs", Description: "Work that is accepted at once, runs later and reports by callback."},
		{Name: "Notices", Description: "What an operator or an owner must learn, kept until it is acknowledged."},
		{Name: "Service", Description: "Health and metrics."},
	}
}

// operation describes a call to those who read the OpenAPI document.
type operation struct {
	method, path string
	id, summary  string
	tag          string
	status       int // of success; 0 means 200
	who          access
	says         bool  // a list of which described says who sees what
	shows        bool  // a secret: the answer is kept nowhere on its way
	long         bool  // it also waits for something else than the database, and has a time of its own
	errors       []int // besides those that every call can answer, and 401, 403, 404 and 429
}

// setHuma sets what huma offers as variables of its package alone: once, since servers that
// answer already read them.
var setHuma = sync.OnceFunc(func() {
	huma.NewError = fromHuma         // it makes its own refusals with this, and describes them by its type
	huma.ValidateStrictCasing = true // a field in other letters is an unknown one
})

// newAPI makes the API on a mux: the same types serve the requests and describe them
// in /openapi.json.
func newAPI(mux *http.ServeMux) huma.API {
	setHuma()
	config := huma.DefaultConfig("Surehook reference server", version())
	config.Info.Description = "Signed webhooks by push and by pull, asynchronous jobs, redelivery and replay. Every refusal is a problem document (RFC 9457) that says what would be right."
	config.Info.Contact = &huma.Contact{Name: "Surehook", URL: "https://github.com/surehook/surehook"}
	config.Info.License = &huma.License{Name: "MIT", Identifier: "MIT"}
	config.OpenAPIPath, config.DocsPath, config.SchemasPath = "", "", ""
	config.CreateHooks = nil // no $schema in the answers
	config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"bearer": {Type: "http", Scheme: "bearer", Description: "The operator's token, or a subscriber's."},
	}
	config.Tags = tags()
	config.Servers = []*huma.Server{{URL: "/"}}
	return humago.New(mux, config)
}

// handle registers a handler for an operation. A handler knows who calls, and that the
// caller may. Its error becomes a problem document here.
func handle[I, O any](s *server, o operation, handler func(ctx context.Context, c caller, in *I) (*O, error)) {
	op := huma.Operation{
		OperationID: o.id, Method: o.method, Path: o.path, Summary: o.summary, Description: o.whoInWords(), Tags: []string{o.tag}, DefaultStatus: o.status,
		// The body has been read by then, within its bounds: see body.go.
		MaxBodyBytes: maxBody + 1, BodyReadTimeout: -1,
		// A body is also read where none is taken.
		Errors: append([]int{http.StatusBadRequest, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity, http.StatusServiceUnavailable}, o.errors...),
	}
	op.Security = []map[string][]string{} // so that nobody takes it for forgotten
	if o.who != everybody {
		op.Security = []map[string][]string{{"bearer": {}}}
		op.Errors = append(op.Errors, http.StatusUnauthorized, http.StatusTooManyRequests)
	}
	op.Middlewares = huma.Middlewares{s.allowed(o)}
	if o.who == operatorOnly {
		op.Errors = append(op.Errors, http.StatusForbidden)
	}
	if strings.Contains(o.path, "{") || strings.HasPrefix(o.path, "/subscribers/") {
		op.Errors = append(op.Errors, http.StatusNotFound)
	}
	huma.Register(s.api, op, func(ctx context.Context, in *I) (*O, error) {
		var out *O
		do := func(ctx context.Context) (err error) {
			out, err = handler(ctx, callerOf(ctx), in)
			return err
		}
		var err error
		if o.who == everybody || o.long {
			err = do(ctx)
		} else {
			err = s.asking.do(ctx, do)
		}
		if err != nil {
			return nil, refusal(err).logged(ctx, s.log, o.id)
		}
		return out, nil
	})
}

// allowed refuses before anything else of the request is looked at. It checks first
// whether a thing exists for the caller, and then the caller's rights: otherwise 403
// would reveal which of others' things exist.
func (s *server) allowed(o operation) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		c := callerOf(ctx.Context())
		refuse := func(p *Problem) {
			var errs []error
			for _, d := range p.Errors {
				errs = append(errs, &huma.ErrorDetail{Location: d.Location, Message: d.Message})
			}
			_ = huma.WriteErr(s.api, ctx, p.Status, p.Detail, errs...)
		}
		malformed, _ := ctx.Context().Value(malformedKey{}).(*Problem)
		u := ctx.URL()
		unknown := unknownQuery(u.Query(), queryNames(ctx.Operation()))
		unclear, unwanted := unclearHeaders(ctx), unwantedBody(ctx)
		switch {
		case o.who == everybody && unknown == nil:
			next(ctx)
		case o.who != everybody && strings.HasPrefix(ctx.Operation().Path, "/subscribers/") && !c.owns(subscriberIn(ctx)):
			refuse(notFound("subscriber"))
		case o.who == operatorOnly && !c.operator():
			refuse(problem(http.StatusForbidden, "this is for the operator's token alone"))
		case malformed != nil:
			refuse(malformed)
		case unknown != nil:
			refuse(unknown)
		case unclear != nil:
			refuse(unclear)
		case unwanted != nil:
			refuse(unwanted)
		default:
			if o.shows {
				ctx.SetHeader("Cache-Control", "no-store")
			}
			next(ctx)
		}
	}
}

// queryNames are the parameters that an operation takes in its query.
func queryNames(op *huma.Operation) []string { return parameters(op, "query") }

func parameters(op *huma.Operation, in string) (names []string) {
	for _, p := range op.Parameters {
		if p.In == in {
			names = append(names, p.Name)
		}
	}
	return names
}

// emptyIsNone are the parameters that say the same when they are empty as when they are left
// out: the first page, and every name.
var emptyIsNone = map[string]bool{"cursor": true, "after": true, "name": true}

// unknownQuery refuses a parameter that would be passed over: a caller who has mistyped a
// filter, or given it no value, would be shown everything.
func unknownQuery(query url.Values, known []string) *Problem {
	var errs []Detail
	for _, name := range slices.Sorted(maps.Keys(query)) {
		switch {
		case !slices.Contains(known, name) && len(known) == 0:
			errs = append(errs, Detail{Location: "query." + name, Message: "it is unknown: this path takes no parameters"})
		case !slices.Contains(known, name):
			errs = append(errs, Detail{Location: "query." + name, Message: "it is unknown: this path takes " + strings.Join(known, ", ")})
		case len(query[name]) > 1 && !strings.HasSuffix(name, "[]"):
			errs = append(errs, Detail{Location: "query." + name, Message: "it is given more than once"})
		case query[name][0] == "" && !emptyIsNone[name]:
			errs = append(errs, Detail{Location: "query." + name, Message: "it is empty: leave it out, or give it a value"})
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return problem(http.StatusUnprocessableEntity, summary(errs), errs...)
}

// unclearHeaders refuses headers that would be passed over. A caller who sends an empty
// Idempotency-Key or If-Match, or an If-Match where there is no ETag, would wrongly feel
// safe, and one of two keys would not count.
func unclearHeaders(ctx huma.Context) *Problem {
	op := ctx.Operation()
	matchless := op.Method != http.MethodGet && !slices.Contains(parameters(op, "header"), "If-Match")
	var keys int
	var errs []Detail
	ctx.EachHeader(func(name, value string) {
		switch name = http.CanonicalHeaderKey(name); name {
		case "Idempotency-Key", "If-Match":
			if strings.TrimSpace(value) == "" {
				errs = append(errs, Detail{Location: "header." + name, Message: "it is empty: leave it out, or give it a value"})
			}
		}
		if name == "Idempotency-Key" {
			keys++
		}
		if name == "If-Match" && matchless && strings.TrimSpace(value) != "*" {
			errs = append(errs, Detail{Location: "header.If-Match", Message: "what this call changes has no ETag: leave it out"})
		}
	})
	if keys > 1 {
		errs = append(errs, Detail{Location: "header.Idempotency-Key", Message: "it is given more than once"})
	}
	if len(errs) == 0 {
		return nil
	}
	return problem(http.StatusUnprocessableEntity, summary(errs), errs...)
}

// unwantedBody refuses what would be passed over: who gives an overlap to a call that takes
// none believes that there is one. An empty object is what some clients send for nothing.
func unwantedBody(ctx huma.Context) *Problem {
	if ctx.Operation().RequestBody != nil {
		return nil
	}
	body, err := io.ReadAll(ctx.BodyReader()) // it is in memory: see body.go
	if err != nil || len(body) == 0 {
		return nil //nolint:nilerr // there is none
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return invalid("body", "this call takes no body: leave it out")
	}
	var errs []Detail
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		errs = append(errs, Detail{Location: "body." + name, Message: "it is unknown: this call takes no body"})
	}
	if len(errs) == 0 {
		return nil
	}
	return problem(http.StatusUnprocessableEntity, summary(errs), errs...)
}

// subscriberIn is the id in the path, which for the operator's own secret is a part
// of the pattern.
func subscriberIn(ctx huma.Context) string {
	if id := ctx.Param("id"); id != "" {
		return id
	}
	u := ctx.URL()
	return strings.Split(u.Path, "/")[2]
}
