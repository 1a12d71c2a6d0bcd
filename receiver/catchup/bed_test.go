package catchup_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	markers "github.com/surehook/surehook/dedup"
	dedup "github.com/surehook/surehook/dedup/sqlite"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/catchup"
	cursors "github.com/surehook/surehook/receiver/catchup/sqlite"
	"github.com/surehook/surehook/signing"
)

// bed is a consumer on SQLite whose effects can be counted, and a feed in memory.
type bed struct {
	t    *testing.T
	db   *sql.DB
	rcv  *receiver.Receiver[*sql.Tx]
	feed *fakeFeed
}

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func openConsumer(t require.TestingT, path string) (*sql.DB, *receiver.Receiver[*sql.Tx]) {
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(20000)")
	require.NoError(t, err)
	require.NoError(t, dedup.Migrate(context.Background(), db))
	require.NoError(t, cursors.Migrate(context.Background(), db))
	_, err = db.Exec("CREATE TABLE IF NOT EXISTS effects (id TEXT NOT NULL)")
	require.NoError(t, err)
	return db, newReceiver(t, db, dedup.New(), receiver.Config{})
}

func newReceiver(t require.TestingT, db *sql.DB, store markers.Store[*sql.Tx], cfg receiver.Config) *receiver.Receiver[*sql.Tx] {
	return newReceiverOf(t, db, store, "default", cfg)
}

func newReceiverOf(t require.TestingT, db *sql.DB, store markers.Store[*sql.Tx], scope string, cfg receiver.Config) *receiver.Receiver[*sql.Tx] {
	keys, err := signing.NewKeyring(signing.Key{ID: "1", Secret: signing.GenerateSecret()})
	require.NoError(t, err)
	verifier, err := signing.NewVerifier(keys, nil)
	require.NoError(t, err)
	cfg.Logger = quiet
	rcv, err := receiver.New(verifier, receiver.SQL(db, nil), store, scope, &cfg)
	require.NoError(t, err)
	return rcv
}

func newBed(t *testing.T) *bed {
	b := &bed{t: t, feed: &fakeFeed{}}
	b.db, b.rcv = openConsumer(t, filepath.Join(t.TempDir(), "consumer.db"))
	t.Cleanup(func() { require.NoError(t, b.db.Close()) })
	return b
}

func effect(ctx context.Context, tx *sql.Tx, ev receiver.Event) error {
	_, err := tx.ExecContext(ctx, "INSERT INTO effects VALUES (?)", ev.ID)
	return err
}

func (b *bed) catchup(h receiver.HandlerFunc[*sql.Tx], cfg catchup.Config) *catchup.Catchup[*sql.Tx] {
	b.t.Helper()
	return b.catchupBy(receiver.State(h), cfg)
}

func (b *bed) catchupBy(w receiver.Work[*sql.Tx], cfg catchup.Config) *catchup.Catchup[*sql.Tx] {
	b.t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = quiet
	}
	if cfg.RetryMin == 0 {
		cfg.RetryMin = time.Millisecond
		cfg.RetryMax = 4 * time.Millisecond
	}
	c, err := catchup.New(b.feed, b.rcv, receiver.SQL(b.db, nil), cursors.New(), w, &cfg)
	require.NoError(b.t, err)
	return c
}

func (b *bed) effects() []string { return column(b.t, b.db, "SELECT id FROM effects ORDER BY rowid") }

func (b *bed) cursor() string {
	all := column(b.t, b.db, "SELECT cursor FROM surehook_catchup_cursors WHERE name = 'default'")
	if len(all) == 0 {
		return ""
	}
	return all[0]
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

// run runs a Catchup until the condition is true when the feed is asked.
func (b *bed) run(c *catchup.Catchup[*sql.Tx], until func() bool) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 5*time.Minute)
	defer cancel()
	done := false
	b.feed.onAsked(func(string) {
		if !done && until() {
			done = true
			cancel()
		}
	})
	require.NoError(b.t, c.Run(ctx))
	require.True(b.t, done, "Run ended early, or not in a minute")
	b.feed.onAsked(nil)
}

// fakeFeed has readable cursors: the number of events that were read.
type fakeFeed struct {
	mu     sync.Mutex
	events []json.RawMessage
	asks   []ask
	fail   []error // the errors that it answers first
	asked  func(after string)
}

type ask struct {
	after string
	limit int
	wait  time.Duration
}

func (f *fakeFeed) onAsked(fn func(after string)) {
	f.mu.Lock()
	f.asked = fn
	f.mu.Unlock()
}

// add adds events by their versions, each about an object of its own, and returns
// their ids.
func (f *fakeFeed) add(n int) (ids []string) {
	for range n {
		f.mu.Lock()
		id := fmt.Sprintf("evt_%03d", len(f.events)+1)
		f.mu.Unlock()
		f.put(fmt.Sprintf(`{"id":"%s","type":"thing.made","object":{"type":"thing","id":"%s"},"version":1}`, id, id))
		ids = append(ids, id)
	}
	return ids
}

func (f *fakeFeed) put(body string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events = append(f.events, json.RawMessage(body))
}

func (f *fakeFeed) Page(ctx context.Context, after string, limit int, wait time.Duration) (catchup.Page, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.asked != nil {
		f.asked(after)
	}
	f.asks = append(f.asks, ask{after, limit, wait})
	if len(f.fail) > 0 {
		err := f.fail[0]
		if f.fail = f.fail[1:]; err != nil {
			return catchup.Page{}, err
		}
	}
	from := 0
	if after != "" {
		if _, err := fmt.Sscanf(after, "at %d", &from); err != nil {
			return catchup.Page{}, err
		}
	}
	to := min(from+limit, len(f.events))
	return catchup.Page{Events: f.events[from:to], Next: fmt.Sprintf("at %d", to)}, ctx.Err()
}
