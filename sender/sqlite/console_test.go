package sqlite_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/cputime"
	"github.com/surehook/surehook/internal/race"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/console"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/feed"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/replay"
	"github.com/surehook/surehook/sender/sqlite"
)

// Every page of the console reads a bounded number of rows, however many there are.
// SUREHOOK_CONSOLE_ROWS sets the number of deliveries. With -v the test logs the time of each
// page, too: go test -run TestConsoleReadsFewRows -v ./sender/sqlite.
func TestConsoleReadsFewRows(t *testing.T) {
	t.Parallel()
	n := 100_000
	if race.Enabled {
		n = 40_000
	}
	looks := 1
	if text := os.Getenv("SUREHOOK_CONSOLE_ROWS"); text != "" {
		var err error
		looks = 5
		n, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	file, clock := path(t), newClock()
	db := open(t, file, fit)
	store := newStore(t, db, clock.now)
	fill(t, db, n, clock.now())
	for range 3 { // the hours of the last day
		_, err := store.Sweep(t.Context(), dispatch.SweepParams{Limit: 100})
		require.NoError(t, err)
	}

	counted := &countedRows{of: db.Driver(), dsn: "file:" + file + "?" + fit}
	reading := sql.OpenDB(counted)
	defer reading.Close()
	looked := newStore(t, reading, clock.now)
	pages := consoleOn(t, looked, clock.now)
	d := "dlv_" + strconv.Itoa(n/20*20-10) + "_1"       // a dead letter about the object that changes all the time
	const few, examined = 2500, 2 * history.MaxExamined // where candidates are looked at, each is a row or two, and three for a list with a filter
	for path, most := range map[string]int64{
		"/?range=1h": few, "/": few, "/?range=7d": few, "/?range=30d": few,
		"/subscriptions": few, "/subscriptions?failing=1": few, "/subscriptions?status=disabled": few, "/subscriptions?status=paused": examined, "/subscriptions?q=nowhere": examined,
		"/subscriptions/wsub_1": few, "/subscriptions/wsub_1?range=30d": few,
		"/deliveries": few, "/deliveries?status=delivered": few, "/deliveries?status=dead_lettered": few, "/deliveries?status=awaiting_retry": few, "/deliveries?subscription=wsub_1": few, "/deliveries?subscriber=sub_2": few,
		"/deliveries?object_type=invoice&object_id=hot": few, "/deliveries?class=tls": 3 * examined, "/deliveries?type=never.published": 3 * examined,
		"/deliveries/" + d: 2 * examined, "/dead-letters": examined, "/dead-letters?subscription=wsub_1": examined, "/dead-letters?subscriber=sub_2": examined,
		"/events": few, "/events?range=30d": few, "/events?type=never.published": examined, "/events/evt_10": few,
		"/replays": few, "/replays/new": few, "/notices": examined, "/notices?all=1": few, "/notices?all=1&kind=replay.finished": examined,
		"/customers/sub_2": few, "/search?q=wsub_1": few, "/search?q=nowhere": examined, "/search?q=invoice+hot": examined,
	} {
		read, first, took, firstCPU, cpu := costOf(looks, counted, func() {
			w := httptest.NewRecorder()
			pages.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
			require.Contains(t, []int{http.StatusOK, http.StatusFound}, w.Code, "%s: %s", path, w.Body)
		})
		require.LessOrEqual(t, read, most, "rows that %s reads", path)
		t.Logf("%-50s %6d rows, at first %8.1f ms (CPU %.1f), median %8.1f ms (CPU %.1f)", path, read, first, firstCPU, took, cpu)
	}
	for _, form := range []string{
		"status=dead_lettered", "status=dead_lettered&force=1", "status=dead_lettered&subscription=wsub_1&type=never.published", "status=dead_lettered&subscriber=sub_2&force=1",
		"status=delivered", "status=delivered&force=1", "status=delivered&type=never.published", "status=delivered&subscription=wsub_1&force=1",
	} {
		read, first, took, firstCPU, cpu := costOf(looks, counted, func() {
			w := httptest.NewRecorder()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/replays", strings.NewReader(form))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			pages.ServeHTTP(w, r)
			require.Contains(t, []int{http.StatusSeeOther, http.StatusConflict}, w.Code, "%s: %s", form, w.Body)
		})
		require.LessOrEqual(t, read, int64(2*replay.MaxCounted+few), "rows that are read to create a replay: %s", form)
		t.Logf("%-50s %6d rows, at first %8.1f ms (CPU %.1f), median %8.1f ms (CPU %.1f)", "POST "+form, read, first, firstCPU, took, cpu)
	}
	for name, list := range longLists(t, looked, clock.now) {
		read, first, took, firstCPU, cpu := costOf(looks, counted, func() { require.NoError(t, list(), name) })
		require.LessOrEqual(t, read, int64(3*examined), "rows that a list reads: %s", name)
		t.Logf("%-50s %6d rows, at first %8.1f ms (CPU %.1f), median %8.1f ms (CPU %.1f)", name, read, first, firstCPU, took, cpu)
	}
}

// longLists are lists as an API gets them, as long as they may be, and of what is rare.
func longLists(t *testing.T, store *sqlite.Store, now func() time.Time) map[string]func() error {
	t.Helper()
	all, err := history.New(store, &history.Config{Now: now})
	require.NoError(t, err)
	deliveries := func(q history.DeliveryQuery) func() error {
		q.Limit = 200
		return func() error {
			_, _, err := all.Deliveries(t.Context(), q)
			return err
		}
	}
	events := func(viewer string, after int64) func() error {
		return func() error {
			_, err := store.Feed(t.Context(), feed.StoreQuery{Viewer: viewer, After: after, Limit: 200})
			return err
		}
	}
	return map[string]func() error{
		"deliveries": deliveries(history.DeliveryQuery{}), "dead-lettered deliveries of an owner": deliveries(history.DeliveryQuery{Subscriber: "sub_2", Status: sender.StatusDeadLettered}),
		"deliveries that failed in a way that none did": deliveries(history.DeliveryQuery{Subscription: "wsub_1", StatusCode: http.StatusTeapot}),
		"deliveries about an object, of the first days": deliveries(history.DeliveryQuery{Object: sender.Object{Type: "invoice", ID: "hot"}, Until: now().Add(-28 * 24 * time.Hour)}),
		"events for the operator":                       events(sender.Operator, 0), "events for a subscriber": events("sub_2", 100),
		"notices of a kind that there is none of": func() error {
			_, _, err := all.Notices(t.Context(), history.NoticeQuery{Kind: sender.NoticeProxy, Limit: 200})
			return err
		},
	}
}

// costOf looks several times, and returns the rows of the last look, and the time and the CPU
// time of the first one and the medians, in ms. The first one prepares statements, and reads
// the file's pages.
func costOf(looks int, counted *countedRows, look func()) (rows int64, first, took, firstCPU, cpu float64) {
	var all, used []float64
	for range looks {
		before, usedBefore, begun := counted.rows.Load(), cputime.Used(), time.Now()
		look()
		all, used = append(all, time.Since(begun).Seconds()*1e3), append(used, (cputime.Used()-usedBefore).Seconds()*1e3)
		rows = counted.rows.Load() - before
	}
	first, firstCPU = all[0], used[0]
	slices.Sort(all)
	slices.Sort(used)
	return rows, first, all[looks/2], firstCPU, used[looks/2]
}

func consoleOn(t *testing.T, store *sqlite.Store, now func() time.Time) http.Handler {
	t.Helper()
	keys, err := replayKeys()
	require.NoError(t, err)
	registry, err := sender.NewRegistry(store, keys, &sender.RegistryConfig{Now: now})
	require.NoError(t, err)
	all, err := history.New(store, &history.Config{Now: now})
	require.NoError(t, err)
	replays, err := replay.New(store, &replay.Config{Now: now})
	require.NoError(t, err)
	pages, err := console.New(console.Backend{Registry: registry, History: all, Replays: replays},
		func(http.ResponseWriter, *http.Request) (string, bool) { return "grace", true },
		&console.Config{Now: now, Timeout: 10 * time.Minute, DisableAfter: 120 * time.Hour, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	return pages
}

// fill makes n deliveries of the last month: half of them to one subscription, the others to
// 499; a quarter of them about one object; one in ten dead-lettered, and one awaiting a
// retry; a notice of each fifth dead letter; and the figures of a month.
func fill(t *testing.T, db *sql.DB, n int, now time.Time) {
	t.Helper()
	const series = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1) `
	const subscription = `CASE WHEN i % 2 = 0 THEN 1 ELSE i % 499 + 2 END`
	at := now.UnixMicro()
	month := (30 * 24 * time.Hour).Microseconds()
	begun := time.Now()
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	defer func() { _ = tx.Rollback() }()
	for _, s := range []struct {
		query string
		args  []any
	}{
		{series + `INSERT INTO surehook_subscribers (no, id, created_at, keyring_version, deleted) SELECT i, 'sub_' || i, ?2, 1, 0 FROM n`, []any{50, at - month}},
		{series + `INSERT INTO surehook_subscriptions (no, id, subscriber, url, event_types, description, settings, created_at, status, until, disabled_at, disabled_reason)
			SELECT i, 'wsub_' || i, i % 50 + 1, 'https://hooks.' || i || '.example/in', '["*"]', '', '{}', ?2, CASE i % 25 WHEN 3 THEN 'disabled' ELSE 'active' END,
				9223372036854775807, CASE i % 25 WHEN 3 THEN ?2 ELSE 0 END, '' FROM n`, []any{500, at - month}},
		{series + `INSERT INTO surehook_events (seq, id, type, object_type, object_id, version, subscriber, subscription, created_at, notice, body)
			SELECT i, 'evt_' || i, 'invoice.paid', 'invoice', CASE i % 4 WHEN 2 THEN 'hot' ELSE 'in_' || i END, i, 0, 0, ?2 + i * (?3 / ?1), 0, CAST('{"id":"evt_' || i || '","version":1}' AS BLOB) FROM n`, []any{n, at - month, month}},
		{series + `INSERT INTO surehook_attempts (event, subscription, number, started_at, duration, status_code, class, error, next_at)
			SELECT i, ` + subscription + `, 1, ?2 + i * (?3 / ?1), 20000, CASE i % 10 WHEN 0 THEN 503 WHEN 1 THEN 0 ELSE 204 END, CASE i % 10 WHEN 0 THEN 'status' WHEN 1 THEN 'timeout' ELSE '' END, '', 0 FROM n`, []any{n, at - month, month}},
		{series + `INSERT INTO surehook_ended (subscription, event, status, class, ended_at) SELECT ` + subscription + `, i, 'dead_lettered', 'status', ?2 + i * (?3 / ?1) FROM n WHERE i % 10 = 0`, []any{n, at - month, month}},
		{series + `INSERT INTO surehook_waiting (subscription, event, due, number, tries, first_at, stood, single, epoch, rank)
			SELECT ` + subscription + `, i, ?2, 1, 1, ?2, 0, 0, 0, 0 FROM n WHERE i % 10 = 1`, []any{n, at + time.Hour.Microseconds()}},
		{`INSERT INTO surehook_heads (subscription, subscriber, lane, open, next_due, turn, pending, waiting, leased, dead, leases_end, epoch, resumed_at, left_to, rate_at, streak, failing_since, last_success, last_failure, warned, warned_at)
			SELECT no, subscriber, no % 3, status = 'active', NULL, 0, 0, coalesce(w.c, 0), 0, coalesce(e.c, 0), 0, 0, 0, 0, 0, no % 7, CASE no % 7 WHEN 0 THEN 0 ELSE ?1 - no END, 0, 0, 0, 0
			FROM surehook_subscriptions LEFT JOIN (SELECT subscription s, count(*) c FROM surehook_waiting GROUP BY 1) w ON w.s = no
				LEFT JOIN (SELECT subscription s, count(*) c FROM surehook_ended GROUP BY 1) e ON e.s = no`, []any{at}},
		{`INSERT INTO surehook_objects (type, id, version) VALUES ('invoice', 'hot', ?)`, []any{n}},
		{`UPDATE surehook_expanded SET event = ?1, seen = ?1`, []any{n}},
		{`UPDATE surehook_counts SET live = ?1, dead = ?1`, []any{n / 10}},
		{series + `INSERT INTO surehook_notices (id, kind, subscriber, subscription, delivery, replay, detail, percent, created_at, acknowledged_at, notified_at, notify_due, notify_tries)
			SELECT 'ntc_' || i, 'delivery.dead_lettered', 'sub_' || (i % 50 + 1), 'wsub_' || (i % 500 + 1), '', '', 'it is not attempted any more', 0, ?2 + i, 0, ?2, 0, 0 FROM n`, []any{n / 50, at - month}},
		{series + `INSERT INTO surehook_rollups (minute, shard, rollup)
			SELECT m, 1, '{"Minute":"' || strftime('%Y-%m-%dT%H:%M:00Z', m / 1000000, 'unixepoch') || '","Published":4,"Deliveries":4,"Delivered":3,"Failed":1,"Failures":{"timeout":1},"Succeeded":3,"FirstTry":3,"FirstAttempt":{"Longest":1000000,"Buckets":[[3,4]]}}'
			FROM (SELECT ?2 - i * 60000000 AS m FROM n)`, []any{31 * 24 * 60, now.Truncate(time.Minute).UnixMicro()}},
		{`INSERT INTO surehook_hour_rollups (hour, rollup) SELECT minute, rollup FROM surehook_rollups WHERE minute % 3600000000 = 0 AND minute < ?`, []any{at - (25 * time.Hour).Microseconds()}},
		{series + `INSERT INTO surehook_subscription_rollups (subscription, hour, shard, rollup) SELECT s.no, ?2 - i * 3600000000, 1, '{"Deliveries":2,"Delivered":2,"Succeeded":2}' FROM n, surehook_subscriptions s WHERE s.no <= 60`, []any{720, now.Truncate(time.Hour).UnixMicro()}},
	} {
		_, err := tx.ExecContext(t.Context(), s.query, s.args...)
		require.NoError(t, err, s.query)
	}
	require.NoError(t, tx.Commit())
	t.Logf("filled in %v", time.Since(begun))
}

// countedRows opens connections that count the rows that they return, and their queries.
type countedRows struct {
	of   driver.Driver
	dsn  string
	rows countedQueries
}

type countedQueries struct {
	atomic.Int64
	queries atomic.Int64
}

func (c *countedRows) Driver() driver.Driver { return c.of }

func (c *countedRows) Connect(context.Context) (driver.Conn, error) {
	conn, err := c.of.Open(c.dsn)
	if err != nil {
		return nil, err
	}
	return countedConn{conn, &c.rows}, nil
}

type countedConn struct {
	driver.Conn
	rows *countedQueries
}

func (c countedConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	return c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
}

func (c countedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
}

func (c countedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
	if err != nil {
		return nil, err
	}
	c.rows.queries.Add(1)
	return counting{rows, c.rows}, nil
}

func (c countedConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	s, err := c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	return countedStmt{s, c.rows}, nil
}

type countedStmt struct {
	driver.Stmt
	rows *countedQueries
}

func (s countedStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
}

func (s countedStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
	if err != nil {
		return nil, err
	}
	s.rows.queries.Add(1)
	return counting{rows, s.rows}, nil
}

type counting struct {
	driver.Rows
	rows *countedQueries
}

func (c counting) Next(to []driver.Value) error {
	err := c.Rows.Next(to)
	if err == nil {
		c.rows.Add(1)
	}
	return err
}
