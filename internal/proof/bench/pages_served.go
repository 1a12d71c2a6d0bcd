package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/console"
	"github.com/surehook/surehook/sender/feed"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/portal"
	"github.com/surehook/surehook/sender/replay"
)

// served are the pages on a filled database, which read it by one connection.
type served struct {
	pages   []page
	console http.Handler
	portal  http.Handler
	visitor *http.Cookie // of the portal: its owner is the largest one
	below   string       // the visitor's part of the path
	pool    *pgxpool.Pool
	backend int // the process of its connection
	history *history.History
	feed    feed.Store
	close   func() error

	largest, paused, ordered string // ids of the first owner's subscriptions
	day                      string // a query's condition
}

// page is a page, or a form that is sent there, and how many rows may have been read for it of
// tables and indexes.
type page struct {
	path   string
	form   string // "": none
	portal bool
	most   int64
}

// name is the page's name in tables. The first subscription, which has half of the
// deliveries, is the large one.
func (s *served) name(p page) string {
	name := "console "
	if p.portal {
		name = "portal "
	}
	name += p.path
	if p.form != "" {
		name += ": " + p.form
	}
	return strings.NewReplacer(s.largest, "LARGE", s.paused, "PAUSED", s.ordered, "ORDERED", s.day, "a day", pagesOwner(0), "OWNER", strings.Repeat("0", 18), "…").Replace(name)
}

// Bounds of rows: of pages that read what they show, beside what stands around each page; of
// those with a chart of each minute; of those that look at up to MaxExamined candidates,
// with a few rows of tables and indexes for each.
const (
	fewRows      = 6000
	minuteRows   = 12_000
	examinedRows = 12 * history.MaxExamined
	countedRows  = 20 * replay.MaxCounted // where a replay is created
)

// servePages opens the database again, with one connection.
func servePages(ctx context.Context, dsn string, n int) (*served, error) {
	p, err := postgresAt(ctx, dsn, 1)
	if err != nil {
		return nil, err
	}
	s := &served{pool: p.pool, close: p.close}
	if err := s.open(ctx, p, n); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return s, nil
}

func (s *served) open(ctx context.Context, p *place[pgx.Tx], n int) error {
	registry, err := sender.NewRegistry(p.store, p.keys, &sender.RegistryConfig{Network: network()})
	if err != nil {
		return err
	}
	all, err := history.New(p.store, nil)
	if err != nil {
		return err
	}
	replays, err := replay.New(p.store, nil)
	if err != nil {
		return err
	}
	s.history, s.feed = all, p.store
	faults := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})) // a page does not say what was wrong
	s.console, err = console.New(console.Backend{Registry: registry, History: all, Replays: replays},
		func(http.ResponseWriter, *http.Request) (string, bool) { return "grace", true },
		&console.Config{Timeout: time.Minute, DisableAfter: 120 * time.Hour, Logger: faults})
	if err != nil {
		return err
	}
	visited, err := portal.New(portal.Backend{Registry: registry, History: all, Replays: replays}, [][]byte{bytes.Repeat([]byte{7}, 32)},
		&portal.Config{Timeout: time.Minute, Logger: faults})
	if err != nil {
		return err
	}
	s.portal = visited
	if err := s.visit(visited); err != nil {
		return err
	}
	err = p.pool.QueryRow(ctx, `SELECT max(id) FILTER (WHERE no = 1), max(id) FILTER (WHERE no = $1), max(id) FILTER (WHERE no = $2) FROM surehook_subscriptions`,
		pagesPaused, pagesOrder).Scan(&s.largest, &s.paused, &s.ordered)
	day := func(ago time.Duration) string {
		return time.Now().Add(-ago * 24 * time.Hour).UTC().Format(time.RFC3339)
	}
	s.day = url.Values{"since": {day(20)}, "until": {day(19)}}.Encode()
	s.pages = append(s.consolePages(n), s.portalPages(n)...)
	return err
}

// visit opens a session of the largest subscriber's.
func (s *served) visit(p *portal.Portal) error {
	token, err := p.Token(portal.Grant{Subscriber: pagesOwner(0)})
	if err != nil {
		return err
	}
	r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/open", strings.NewReader(url.Values{"token": {token}}.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	answer := w.Result()
	if err := answer.Body.Close(); err != nil {
		return err
	}
	if len(answer.Cookies()) != 1 {
		return fmt.Errorf("the portal is not opened: %d: %s", w.Code, w.Body)
	}
	s.visitor = answer.Cookies()[0]
	s.below = "/" + strings.TrimSuffix(answer.Header.Get("Location"), "/open")
	return nil
}

// asVisitor is a request within the visitor's session.
func (s *served) asVisitor(r *http.Request) *http.Request {
	path, query, _ := strings.Cut(r.URL.RequestURI(), "?")
	to := s.below + path
	if query != "" {
		to += "?" + query
	}
	visit := httptest.NewRequestWithContext(r.Context(), r.Method, to, r.Body)
	visit.Header = r.Header
	r = visit
	r.AddCookie(s.visitor)
	return r
}

// delivery is the id of a delivery of the ith event.
func pagesDelivery(i, subscription int) string {
	return fmt.Sprintf("dlv_%026d_%x", i, subscription)
}

func (s *served) consolePages(n int) (all []page) {
	add := func(most int64, paths ...string) {
		for _, p := range paths {
			all = append(all, page{path: p, most: most})
		}
	}
	add(minuteRows, "/", "/?range=1h", "/?range=7d", "/?range=30d", "/subscriptions", "/subscriptions?status=paused", "/deliveries?object_type=invoice&object_id=hot", "/deliveries?"+s.day)
	add(fewRows,
		"/subscriptions?failing=1", "/subscriptions?status=disabled", "/subscriptions?q=nowhere",
		"/subscriptions/"+s.largest, "/subscriptions/"+s.largest+"?range=30d", "/subscriptions/"+s.paused, "/subscriptions/"+s.ordered,
		"/deliveries", "/deliveries?status=delivered", "/deliveries?status=dead_lettered", "/deliveries?status=awaiting_retry", "/deliveries?status=pending",
		"/deliveries?status=held", "/deliveries?status=superseded", "/deliveries?status=cancelled", "/deliveries?subscription="+s.largest, "/deliveries?subscriber="+pagesOwner(0),
		"/deliveries?subscriber="+pagesOwner(7)+"&status=dead_lettered", "/deliveries?status=dead_lettered&"+s.day,
		"/events", "/events?range=30d", "/events?"+s.day, "/events/"+pagesEvent(n/2), "/replays", "/replays/new", "/replays/rpl_1", "/notices?all=1",
		"/deliveries?status=dead_lettered&subscription="+s.paused, "/deliveries?status=delivered&subscription="+s.paused,
		"/deliveries?status=cancelled&subscription="+s.paused, "/deliveries?status=superseded&subscription="+s.paused, "/dead-letters?subscription="+s.paused, "/replays/new?preview=1&status=dead_lettered&subscription="+s.paused,
		"/replays/new?preview=1&status=delivered&subscription="+s.paused, "/customers/"+pagesOwner(0), "/search?q="+s.largest, "/search?q="+pagesEvent(n/2))
	add(examinedRows, "/deliveries?class=tls", "/deliveries?code=418", "/deliveries?type=never.published", "/deliveries?object_type=invoice&object_id=in_3",
		"/deliveries/"+pagesDelivery(n-n%100-98, 1), "/deliveries/"+pagesDelivery(n-n%100-94, 1), "/dead-letters", "/dead-letters?subscription="+s.largest, "/dead-letters?subscriber="+pagesOwner(0),
		"/events?type=never.published", "/notices", "/notices?kind=replay.finished", "/notices?all=1&kind=replay.finished",
		"/replays/new?preview=1&status=dead_lettered", "/replays/new?preview=1&status=dead_lettered&subscription="+s.largest, "/replays/new?preview=1&status=delivered&subscription="+s.largest,
		"/search?q=nowhere", "/search?q=invoice:hot")
	for _, form := range []string{"status=dead_lettered", "status=dead_lettered&force=1", "status=dead_lettered&type=never.published", "status=dead_lettered&subscription=" + s.largest + "&type=never.published",
		"status=dead_lettered&subscriber=" + pagesOwner(0) + "&force=1", "status=delivered&force=1", "status=delivered&type=never.published", "status=delivered&subscription=" + s.largest + "&force=1"} {
		all = append(all, page{path: "/replays", form: form, most: countedRows})
	}
	return all
}

func (s *served) portalPages(n int) (all []page) {
	add := func(most int64, paths ...string) {
		for _, p := range paths {
			all = append(all, page{path: p, portal: true, most: most})
		}
	}
	add(fewRows, "/", "/endpoints/new", "/endpoints/"+s.largest, "/endpoints/"+s.paused, "/endpoints/"+s.paused+"/resume?since=2000-01-01T00:00:00Z", "/deliveries", "/deliveries?status=dead_lettered", "/deliveries?status=delivered",
		"/deliveries?endpoint="+s.largest, "/replays", "/replays/new", "/replays/rpl_2", "/secret")
	add(examinedRows, "/deliveries?type=never.published", "/deliveries/"+pagesDelivery(n-n%100-98, 1), "/replays/new?preview=1", "/replays/new?preview=1&endpoint="+s.largest)
	return all
}
