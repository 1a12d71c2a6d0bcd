package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/jobs"
	"github.com/surehook/surehook/sender/portal"
)

// server is the service, behind HTTP.
type server struct {
	*service
	api     huma.API
	handler http.Handler
	portal  *portal.Portal
}

func newServer(s *service) (*server, error) {
	mux := http.NewServeMux()
	h := &server{service: s, api: newAPI(mux)}
	h.healthOperations()
	h.subscriberOperations()
	h.portalOperations()
	h.subscriberListOperations()
	h.redactOperations()
	h.secretOperations()
	h.subscriptionOperations()
	h.publishOperations()
	h.eventOperations()
	h.jobOperations()
	h.exportOperations()
	h.describeKinds()
	h.deliveryOperations()
	h.noticeOperations()
	h.metricsOperation(mux)
	h.describePosted()
	document := sync.OnceValues(h.document) // to make it takes longer than all the rest of a start
	mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, r *http.Request) {
		if p := unknownQuery(r.URL.Query(), nil); p != nil {
			p.write(w)
			return
		}
		doc, err := document()
		if err != nil {
			panic(err) // it is a mistake in the program
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(doc)
	})
	mux.HandleFunc("GET /{$}", toConsole) // besides comes first; the pattern has other methods refused with 405
	pages, err := h.newConsole()
	if err != nil {
		return nil, err
	}
	if h.portal, err = h.newPortal(); err != nil {
		return nil, err
	}
	h.handler = s.metrics.counted(s.recovered(h.withPortal(besides(pages, s.authenticated(routed(mux, bounded(mux, bodyTimeout, newLargeBodies())))))))
	return h, nil
}

// run serves until ctx ends, and then drains: no request begins, those under way
// end, and so do the attempts in flight, or they are given up within the timeout.
func (s *server) run(ctx context.Context, listener net.Listener) error {
	web := &http.Server{
		Handler: s.handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: bodyTimeout, IdleTimeout: 2 * time.Minute, WriteTimeout: 2 * time.Minute,
		ErrorLog:    slog.NewLogLogger(s.log.Handler(), slog.LevelWarn), // any visitor can have something logged
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	web.RegisterOnShutdown(s.feed.Drain) // held answers end, empty
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var wg sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	run := func(part func() error) {
		wg.Go(func() {
			defer stop() // one part's end is everybody's
			if err := part(); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
		})
	}
	run(func() error {
		if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	run(func() error {
		<-ctx.Done()
		patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.options.timeout)
		defer cancel()
		if err := web.Shutdown(patience); err != nil {
			s.log.Warn("requests were still under way when the time was over")
			return web.Close()
		}
		return nil
	})
	if s.options.workers {
		run(func() error { return s.dispatch(ctx) })
		run(func() error { return s.work(ctx) })
		run(func() error { return s.tidy(ctx) })
	}
	wg.Wait()
	if len(errs) == 0 {
		s.log.Info("drained")
	}
	return errors.Join(errs...)
}

func (s *server) dispatch(ctx context.Context) error {
	err := s.dispatcher.Run(ctx)
	if errors.Is(err, dispatch.ErrDrainTimeout) {
		s.log.Warn("attempts were given up: they are made again when their leases end")
		return nil
	}
	return err
}

func (s *server) work(ctx context.Context) error {
	err := s.jobs.Run(ctx)
	if errors.Is(err, jobs.ErrDrainTimeout) {
		s.log.Warn("jobs were given up: they go on from where they were when their leases end")
		return nil
	}
	return err
}

// tidy removes, at intervals, the service's own records that are kept for a time only, and ends
// what a lost process has left.
func (s *server) tidy(ctx context.Context) error {
	tick := time.NewTicker(10 * time.Minute)
	defer tick.Stop()
	for {
		if err := s.answers.forget(ctx); err != nil && ctx.Err() == nil {
			s.log.Error("removing old answers", "error", err)
		}
		if err := s.sessions.forget(ctx); err != nil && ctx.Err() == nil {
			s.log.Error("removing sessions that have ended", "error", err)
		}
		if err := s.rewrap(ctx); err != nil && ctx.Err() == nil {
			s.log.Error("sealing anew with the newest key", "error", err)
		}
		if err := s.forgetExports(ctx); err != nil && ctx.Err() == nil {
			s.log.Error("removing old exports", "error", err)
		}
		if err := s.endLeftReplays(ctx); err != nil && ctx.Err() == nil {
			s.log.Error("ending the replays of cancelled jobs", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// recovered answers a panic with a problem, and keeps the process.
func (s *service) recovered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if p := recover(); p != nil {
				if p == http.ErrAbortHandler { //nolint:errorlint // it is never wrapped
					panic(p)
				}
				s.log.Error("a handler panicked", "path", r.URL.Path, "panic", p)
				problem(http.StatusInternalServerError, "something went wrong here; the log says what").write(w)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// maxPath is longer than all paths that lead somewhere. An answer is kept by the path of its
// request, and PostgreSQL's indexes take 2,704 bytes.
const maxPath = 1024

// routed answers with a problem what no operation has: 404, or 405 with Allow. The mux would
// redirect a path such as //events, and a client that does not follow would take its event for
// published.
func routed(mux *http.ServeMux, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.URL.Path) > maxPath {
			notFound("path").write(w)
			return
		}
		if asked := r.URL.EscapedPath(); asked != cleaned(asked) {
			problem(http.StatusNotFound, "there is no such path: write "+cleaned(asked)+" in place of "+asked).write(w)
			return
		}
		h, pattern := mux.Handler(r)
		if pattern != "" {
			noteRoute(r, pattern)
			next.ServeHTTP(w, r)
			return
		}
		probe := &silent{header: http.Header{}}
		h.ServeHTTP(probe, r)
		if probe.status == http.StatusMethodNotAllowed {
			allow := probe.header.Get("Allow")
			w.Header().Set("Allow", allow)
			problem(http.StatusMethodNotAllowed, "this path takes "+allow).write(w)
			return
		}
		notFound("path").write(w)
	})
}

// cleaned is a path without empty and dotted parts, as the mux compares it.
func cleaned(asked string) string {
	clean := path.Clean("/" + asked)
	if strings.HasSuffix(asked, "/") && clean != "/" {
		clean += "/"
	}
	return clean
}

// silent learns what the mux would answer.
type silent struct {
	header http.Header
	status int
}

func (s *silent) Header() http.Header         { return s.header }
func (s *silent) WriteHeader(status int)      { s.status = status }
func (s *silent) Write(b []byte) (int, error) { return len(b), nil }

// metricsOperation describes /metrics, which Prometheus's own handler answers.
func (s *server) metricsOperation(mux *http.ServeMux) {
	metrics := s.metrics.handler()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		if !callerOf(r.Context()).operator() {
			problem(http.StatusForbidden, "this is for the operator's token alone").write(w)
			return
		}
		if p := unknownQuery(r.URL.Query(), []string{"name[]"}); p != nil { // as Prometheus's handler has it
			p.write(w)
			return
		}
		metrics.ServeHTTP(w, r)
	})
	refused := func(what string) *huma.Response {
		return &huma.Response{Description: what, Content: map[string]*huma.MediaType{"application/problem+json": {Schema: &huma.Schema{Ref: "#/components/schemas/Problem"}}}}
	}
	s.api.OpenAPI().AddOperation(&huma.Operation{
		OperationID: "get-metrics", Method: http.MethodGet, Path: "/metrics", Summary: "Metrics, as Prometheus reads them", Description: operatorOnly.inWords(), Tags: []string{"Service"},
		Security: []map[string][]string{{"bearer": {}}},
		Responses: map[string]*huma.Response{
			"200": {Description: "OK", Content: map[string]*huma.MediaType{"text/plain": {Schema: &huma.Schema{Type: huma.TypeString}}}},
			"400": refused("Bad Request"), "401": refused("Unauthorized"), "403": refused("Forbidden"), "408": refused("Request Timeout"), "413": refused("Request Entity Too Large"),
			"415": refused("Unsupported Media Type"), "422": refused("Unprocessable Entity"), "429": refused("Too Many Requests"),
			"500": refused("Internal Server Error"), "503": refused("Service Unavailable"), // whose token is it?
		},
	})
}
