package inbox_test

import (
	"cmp"
	"context"
	"database/sql"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/surehook/surehook/backoff"
	"github.com/surehook/surehook/dedup"
	dedupPostgres "github.com/surehook/surehook/dedup/postgres"
	dedupSQLite "github.com/surehook/surehook/dedup/sqlite"
	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/inbox"
	"github.com/surehook/surehook/receiver/inbox/postgres"
	"github.com/surehook/surehook/receiver/inbox/sqlite"
	"github.com/surehook/surehook/receiver/receivertest"
	"github.com/surehook/surehook/signing"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// base is an application's database with all tables that a receiver and an inbox need.
type base[Tx any] struct {
	inTx   receiver.InTx[Tx]
	dedup  dedup.Store[Tx]
	store  inbox.Store[Tx]
	effect receiver.HandlerFunc[Tx]
	db     *sql.DB
	hours  string // two of them, in its SQL
}

func openSQLite(t require.TestingT, path string) base[*sql.Tx] {
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(60000)")
	require.NoError(t, err)
	require.NoError(t, dedupSQLite.Migrate(context.Background(), db))
	require.NoError(t, sqlite.Migrate(context.Background(), db))
	_, err = db.Exec("CREATE TABLE IF NOT EXISTS effects (no INTEGER PRIMARY KEY, id TEXT NOT NULL)")
	require.NoError(t, err)
	return base[*sql.Tx]{dedupSQLite.InTx(db), dedupSQLite.New(), sqlite.New(), func(ctx context.Context, tx *sql.Tx, ev receiver.Event) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO effects (id) VALUES (?)", ev.ID)
		return err
	}, db, "7200 * 1000000"}
}

func onSQLite(t testing.TB) base[*sql.Tx] {
	b := openSQLite(t, filepath.Join(t.TempDir(), "app.db"))
	t.Cleanup(func() { require.NoError(t, b.db.Close()) })
	return b
}

// pgURL returns the URL of a new schema.
func pgURL(t testing.TB) string {
	admin, err := sql.Open("pgx", pgtest.DSN(t))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, admin.Close()) })
	return pgtest.With(pgtest.DSN(t), "search_path", pgtest.Schema(t, admin), "pool_max_conns", "24")
}

func pgPool(t testing.TB, url string) (*pgxpool.Pool, *sql.DB) {
	pool, err := pgxpool.New(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	db := stdlib.OpenDBFromPool(pool)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	require.NoError(t, dedupPostgres.Migrate(t.Context(), db, nil))
	require.NoError(t, postgres.Migrate(t.Context(), db, nil))
	_, err = db.Exec("CREATE TABLE IF NOT EXISTS effects (no bigint GENERATED ALWAYS AS IDENTITY, id text NOT NULL)")
	require.NoError(t, err)
	return pool, db
}

func onPgx(t testing.TB) base[pgx.Tx] { return openPgx(t, pgURL(t)) }

func openPgx(t testing.TB, url string) base[pgx.Tx] {
	pool, db := pgPool(t, url)
	markers, err := dedupPostgres.New(nil)
	require.NoError(t, err)
	store, err := postgres.New(nil)
	require.NoError(t, err)
	return base[pgx.Tx]{
		func(ctx context.Context, fn func(pgx.Tx) error) error { return pgx.BeginFunc(ctx, pool, fn) }, markers, store,
		func(ctx context.Context, tx pgx.Tx, ev receiver.Event) error {
			_, err := tx.Exec(ctx, "INSERT INTO effects (id) VALUES ($1)", ev.ID)
			return err
		}, db, "interval '2 hours'",
	}
}

func onPostgresSQL(t testing.TB) base[*sql.Tx] {
	_, db := pgPool(t, pgURL(t))
	markers, err := dedupPostgres.NewSQL(nil)
	require.NoError(t, err)
	store, err := postgres.NewSQL(nil)
	require.NoError(t, err)
	return base[*sql.Tx]{dedupPostgres.InTxSQL(db, nil), markers, store, func(ctx context.Context, tx *sql.Tx, ev receiver.Event) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO effects (id) VALUES ($1)", ev.ID)
		return err
	}, db, "interval '2 hours'"}
}

// hastyOnce is a store whose first lease is short: it ends during the receiver's Timeout, as
// the lease of a process that stands still does.
type hastyOnce[Tx any] struct {
	inbox.Store[Tx]
	claimed *atomic.Bool
	// begun is closed once the first attempt is under way: nothing else is claimed before.
	// Nil: a later attempt may be faster.
	begun <-chan struct{}
}

func (h hastyOnce[Tx]) ClaimTx(ctx context.Context, tx Tx, scope string, limit int, lease time.Duration) ([]inbox.Claim, error) {
	if !h.claimed.Load() {
		lease = time.Millisecond
	} else if h.begun != nil {
		select {
		case <-h.begun:
		default:
			return nil, nil
		}
	}
	claims, err := h.Store.ClaimTx(ctx, tx, scope, limit, lease)
	if len(claims) > 0 {
		h.claimed.Store(true)
	}
	return claims, err
}

// ends counts events by their results.
type ends struct {
	mu     sync.Mutex
	counts map[receiver.Result]int
	change chan struct{}
}

func (e *ends) add(res receiver.Result) {
	e.mu.Lock()
	e.counts[res]++
	e.mu.Unlock()
	select {
	case e.change <- struct{}{}:
	default:
	}
}

// all counts the events that have ended.
func (e *ends) all() (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for res, count := range e.counts {
		if res != receiver.Recorded {
			n += count
		}
	}
	return n
}

func (e *ends) of(res receiver.Result) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.counts[res]
}

// bed is a consumer with an inbox, and a sender.
type bed[Tx any] struct {
	base[Tx]
	t       testing.TB
	ends    *ends
	in      *inbox.Inbox[Tx]
	handler http.Handler
	sender  *receivertest.Sender
}

var at1ms = backoff.Policy{Schedule: backoff.Exponential{Base: time.Millisecond, Max: time.Millisecond}, Jitter: backoff.None()}

func newBed[Tx any](t testing.TB, b base[Tx], h receiver.HandlerFunc[Tx], cfg inbox.Config) *bed[Tx] {
	t.Helper()
	return newBedUnder(t, b, receiver.Config{}, h, cfg)
}

// patient is the time of a request on a busy machine, below an inbox's Lease. Who waits for
// SQLite's write lock polls for it, so that one of many can wait for long.
const patient = 50 * time.Second

// newBedUnder has a receiver with these settings.
func newBedUnder[Tx any](t testing.TB, b base[Tx], under receiver.Config, h receiver.HandlerFunc[Tx], cfg inbox.Config) *bed[Tx] {
	t.Helper()
	if h == nil {
		h = b.effect
	}
	return newBedOf(t, b, under, receiver.State(h), cfg)
}

func newBedOf[Tx any](t testing.TB, b base[Tx], under receiver.Config, w receiver.Work[Tx], cfg inbox.Config) *bed[Tx] {
	t.Helper()
	return newBedIn(t, b, "default", under, w, cfg)
}

func newBedIn[Tx any](t testing.TB, b base[Tx], scope string, under receiver.Config, w receiver.Work[Tx], cfg inbox.Config) *bed[Tx] {
	t.Helper()
	e := &ends{counts: map[receiver.Result]int{}, change: make(chan struct{}, 1)}
	secret := signing.GenerateSecret()
	under.Timeout = cmp.Or(under.Timeout, patient)
	if cfg.Policy.Schedule == nil {
		cfg.Policy = at1ms
	}
	if cfg.Poll == 0 {
		cfg.Poll = 5 * time.Millisecond
	}
	if cfg.Logger == nil {
		cfg.Logger = quiet
	}
	in, err := inbox.New(newReceiver(t, b, secret, e, scope, under), b.inTx, b.store, w, &cfg)
	require.NoError(t, err)
	return &bed[Tx]{base: b, t: t, ends: e, in: in, handler: in.Handler(), sender: receivertest.NewSender(t, secret, nil)}
}

func newReceiver[Tx any](t require.TestingT, b base[Tx], secret signing.Secret, e *ends, scope string, cfg receiver.Config) *receiver.Receiver[Tx] {
	keys, err := signing.NewKeyring(signing.Key{ID: "1", Secret: secret})
	require.NoError(t, err)
	verifier, err := signing.NewVerifier(keys, nil)
	require.NoError(t, err)
	count := func(res receiver.Result) func(context.Context, receiver.Event) {
		return func(context.Context, receiver.Event) { e.add(res) }
	}
	cfg.Logger = quiet
	cfg.Hooks = receiver.Hooks{
		Applied: count(receiver.Applied), Stale: count(receiver.Stale), Ignored: count(receiver.Ignored), Recorded: count(receiver.Recorded),
		DeadLettered: func(context.Context, receiver.Event, error) { e.add(receiver.DeadLettered) },
	}
	rcv, err := receiver.New(verifier, b.inTx, b.dedup, scope, &cfg)
	require.NoError(t, err)
	return rcv
}

func (b *bed[Tx]) post(ev receivertest.Event) receivertest.Answer {
	return b.sender.Request(ev).Serve(b.handler)
}

// run runs the inbox until n events have ended, and then stops it.
func (b *bed[Tx]) run(until func() bool) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 5*time.Minute)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- b.in.Run(ctx) }()
	for !until() {
		select {
		case <-b.ends.change:
		case <-time.After(10 * time.Millisecond): // the end of a duplicate is no change
		case <-ctx.Done():
			b.t.Fatal("it does not come to its end")
		}
	}
	cancel()
	require.NoError(b.t, <-done)
}

func (b base[Tx]) effects(t testing.TB) []string {
	t.Helper()
	return column(t, b.db, "SELECT id FROM effects ORDER BY no")
}

func (b *bed[Tx]) status() inbox.Status {
	b.t.Helper()
	s, err := b.in.Status(b.t.Context())
	require.NoError(b.t, err)
	return s
}

func column(t testing.TB, db *sql.DB, query string) []string {
	t.Helper()
	rows, err := db.Query(query)
	require.NoError(t, err)
	defer rows.Close()
	values := []string{}
	for rows.Next() {
		var v string
		require.NoError(t, rows.Scan(&v))
		values = append(values, v)
	}
	require.NoError(t, rows.Err())
	return values
}
