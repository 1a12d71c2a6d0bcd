package surehook_test

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/surehook/surehook/backoff"
	dedup "github.com/surehook/surehook/dedup/sqlite"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/sqlite"
	"github.com/surehook/surehook/signing"
)

// A process that publishes and delivers is killed twenty times, in the middle of
// it; the endpoint fails, and breaks off after it has applied, at random. In the
// end nothing committed is lost, nothing rolled back was sent, and each event had
// one effect.
func TestKill(t *testing.T) {
	const kills = 20
	slowed := time.Millisecond
	if raceEnabled {
		slowed *= 4
	}
	dir := t.TempDir()
	rcv := newCrashReceiver(t, filepath.Join(dir, "receiver.db"))
	producer := openProducer(t.Context(), t, filepath.Join(dir, "sender.db"))
	_, secret, err := producer.registry.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: "sub_a"})
	require.NoError(t, err)
	rcv.verifyWith(secret)
	_, err = producer.registry.Subscribe(t.Context(), sender.NewSubscription{Subscriber: "sub_a", URL: rcv.server.URL})
	require.NoError(t, err)

	for range kills {
		child, ready := startChild(t, dir, "publish")
		require.NoError(t, ready)
		time.Sleep(time.Duration(20+rand.IntN(230)) * slowed) // when it dies is the test's random input
		require.NoError(t, child.Process.Kill())
		_ = child.Wait()
	}
	child, ready := startChild(t, dir, "finish")
	require.NoError(t, ready)
	require.NoError(t, child.Wait(), "the last process delivers what is left")

	var ok string
	require.NoError(t, producer.db.QueryRow("PRAGMA integrity_check").Scan(&ok))
	require.Equal(t, "ok", ok)
	committed := column(t, producer.db, "SELECT id FROM things")
	require.Greater(t, len(committed), kills, "the processes had time to work")
	effects := column(t, rcv.db, "SELECT thing FROM effects")
	require.ElementsMatch(t, committed, effects, "each that committed had one effect, and none that was rolled back")
	require.Empty(t, column(t, producer.db, "SELECT id FROM things WHERE id LIKE 'undone%'"))

	posted := rcv.posted()
	interrupted, deliveries := 0, 0
	cursor := ""
	for {
		page, next, err := producer.history.Deliveries(t.Context(), sender.DeliveryQuery{Limit: 200, Cursor: cursor})
		require.NoError(t, err)
		for _, d := range page {
			deliveries++
			d, err := producer.history.Delivery(t.Context(), d.ID)
			require.NoError(t, err)
			require.Equal(t, sender.StatusDelivered, d.Status)
			for i, a := range d.Attempts {
				require.Equal(t, i+1, a.Number, "attempt numbers rise by one")
				if a.Class == sender.ClassInterrupted {
					interrupted++
				}
			}
			posts := posted[d.Event.ID]
			require.LessOrEqual(t, len(posts), len(d.Attempts), "posts on the wire are at most the attempts recorded")
			require.NotEmpty(t, posts)
			for _, p := range posts {
				require.Equal(t, string(d.Body), p.body, "a duplicate has the same bytes")
			}
		}
		if next == "" {
			break
		}
		cursor = next
	}
	require.Equal(t, len(committed), deliveries)
	require.Len(t, posted, deliveries, "nothing else was posted")
	require.Positive(t, interrupted, "processes died with attempts in flight")
	t.Logf("%d events, %d attempts interrupted", deliveries, interrupted)
}

func column(t *testing.T, db *sql.DB, query string) (values []string) {
	t.Helper()
	rows, err := db.Query(query)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var v string
		require.NoError(t, rows.Scan(&v))
		values = append(values, v)
	}
	require.NoError(t, rows.Err())
	return values
}

// crashReceiver applies events in its own database, and misbehaves.
type crashReceiver struct {
	db     *sql.DB
	server *httptest.Server
	inner  http.Handler
	mu     sync.Mutex
	posts  map[string][]post // by event id
}

type post struct{ body string }

func newCrashReceiver(t *testing.T, path string) *crashReceiver {
	db, err := sql.Open("sqlite", crashDSN(path))
	require.NoError(t, err)
	require.NoError(t, dedup.Migrate(t.Context(), db))
	_, err = db.Exec("CREATE TABLE effects (thing TEXT NOT NULL)")
	require.NoError(t, err)
	r := &crashReceiver{db: db, posts: map[string][]post{}}
	r.server = httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(func() {
		r.server.CloseClientConnections()
		r.server.Close()
		_ = db.Close()
	})
	return r
}

func (r *crashReceiver) verifyWith(secret signing.Secret) {
	keyring, err := signing.NewKeyring(signing.Key{ID: "1", Secret: secret})
	if err != nil {
		panic(err)
	}
	verifier, err := signing.NewVerifier(keyring, nil)
	if err != nil {
		panic(err)
	}
	rcv, err := receiver.New(verifier, receiver.SQL(r.db, nil), dedup.New(), &receiver.Config{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		panic(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inner = rcv.Handler(func(ctx context.Context, tx *sql.Tx, ev receiver.Event) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO effects VALUES (?)", ev.Object.ID)
		return err
	})
}

func (r *crashReceiver) serve(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // the sender died while it sent
	}
	r.mu.Lock()
	id := req.Header.Get("Webhook-Id")
	r.posts[id] = append(r.posts[id], post{string(body)})
	inner := r.inner
	r.mu.Unlock()
	req.Body = io.NopCloser(bytes.NewReader(body))
	switch rand.IntN(10) {
	case 0:
		http.Error(w, "in trouble", http.StatusInternalServerError)
	case 1: // applied, and nobody learns of it
		inner.ServeHTTP(httptest.NewRecorder(), req)
		panic(http.ErrAbortHandler)
	default:
		inner.ServeHTTP(w, req)
	}
}

// posted is what came so far. Handlers whose senders died may end at any time.
func (r *crashReceiver) posted() map[string][]post {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.posts)
}

// crashProducer is what the killed process and the test both use.
type crashProducer struct {
	db         *sql.DB
	registry   *sender.Registry[*sql.Tx]
	pub        *sender.Publisher[*sql.Tx]
	history    *sender.History
	dispatcher *sender.Dispatcher
}

func crashDSN(path string) string {
	return "file:" + path + "?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(20000)&_txlock=immediate"
}

func openProducer(ctx context.Context, t require.TestingT, path string) *crashProducer {
	db, err := sql.Open("sqlite", crashDSN(path))
	require.NoError(t, err)
	_, err = db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS things (id TEXT PRIMARY KEY)")
	require.NoError(t, err)
	store, err := sqlite.New(db, nil)
	require.NoError(t, err)
	require.NoError(t, store.Migrate(ctx))
	keys, err := sender.NewKeys(sender.SealingKey{ID: "1", Key: bytes.Repeat([]byte{1}, 32)})
	require.NoError(t, err)
	network := sender.Network{AllowPrivateNetworks: true}
	p := &crashProducer{db: db}
	p.registry, err = sender.NewRegistry(store, keys, &sender.RegistryConfig{Network: network})
	require.NoError(t, err)
	p.pub, err = sender.NewPublisher(store, nil)
	require.NoError(t, err)
	p.history, err = sender.NewHistory(store, nil)
	require.NoError(t, err)
	schedule, err := backoff.Fixed(50 * time.Millisecond)
	require.NoError(t, err)
	p.dispatcher, err = sender.NewDispatcher(store, keys, &sender.DispatcherConfig{
		Network: network, Timeout: time.Second, Lease: 3 * time.Second,
		Policy: sender.Policy{Backoff: backoff.Policy{Schedule: schedule}},
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	require.NoError(t, err)
	return p
}

const childMode = "SUREHOOK_TEST_CRASH_CHILD"

func startChild(t *testing.T, dir, mode string) (*exec.Cmd, error) {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKillChild$", "-test.v")
	child.Env = append(os.Environ(), childMode+"="+mode, childMode+"_DIR="+dir)
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	child.Stderr = os.Stderr
	require.NoError(t, child.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "ready") {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return child, nil
		}
	}
	return child, fmt.Errorf("the process ended before it was ready: %w", child.Wait())
}

// TestKillChild is the process that TestKill kills; by itself it does nothing.
func TestKillChild(t *testing.T) {
	mode := os.Getenv(childMode)
	if mode == "" {
		return
	}
	p := openProducer(t.Context(), t, filepath.Join(os.Getenv(childMode+"_DIR"), "sender.db"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	fmt.Println("ready")
	if mode == "finish" {
		p.finish(ctx, t)
		return
	}
	go func() { _ = p.dispatcher.Run(ctx) }()
	var publishers sync.WaitGroup
	for range 2 {
		publishers.Go(func() {
			for ctx.Err() == nil {
				p.publishOne(ctx, t)
				time.Sleep(time.Millisecond)
			}
		})
	}
	publishers.Wait()
}

// finish dispatches until nothing is live.
func (p *crashProducer) finish(ctx context.Context, t *testing.T) {
	for live := 1; live > 0; time.Sleep(20 * time.Millisecond) { // until the next retry is due
		_, err := p.dispatcher.RunOnce(ctx)
		require.NoError(t, err)
		live = 0
		for _, s := range []sender.Status{sender.StatusPending, sender.StatusAwaitingRetry} {
			page, _, err := p.history.Deliveries(ctx, sender.DeliveryQuery{Status: s, Limit: 1})
			require.NoError(t, err)
			live += len(page)
		}
	}
}

// publishOne commits a thing with its event, or rolls both back.
func (p *crashProducer) publishOne(ctx context.Context, t *testing.T) {
	undo, id := errors.New("undo"), fmt.Sprintf("thing-%d", rand.Uint64())
	if rand.IntN(5) == 0 {
		id = "undone-" + id
	}
	err := p.pub.InTx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "INSERT INTO things VALUES (?)", id); err != nil {
			return err
		}
		_, err := p.pub.PublishTx(ctx, tx, sender.Event{Type: "thing.made", Object: sender.Object{Type: "thing", ID: id}})
		if err == nil && strings.HasPrefix(id, "undone-") {
			return undo
		}
		return err
	})
	if err != nil && !errors.Is(err, undo) && ctx.Err() == nil {
		t.Error(err)
	}
}
