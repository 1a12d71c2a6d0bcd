package receiver_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/dedup/memory"
	"github.com/surehook/surehook/dedup/sqlite"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/receivertest"
	"github.com/surehook/surehook/signing"
)

// bed is a store with its transactions, and with an effect that tests can count.
type bed[Tx any] struct {
	inTx    receiver.InTx[Tx]
	store   letterStore[Tx]
	effect  receiver.HandlerFunc[Tx]
	effects func(t testing.TB, id string) int
	// rows counts all rows in the database.
	rows   func(t testing.TB) int
	secret signing.Secret
}

type letterStore[Tx any] interface {
	dedup.Store[Tx]
	dedup.DeadLetters[Tx]
}

var testSecret = mustSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")

func mustSecret(text string) signing.Secret {
	s, err := signing.ParseSecret(text)
	if err != nil {
		panic(err)
	}
	return s
}

func openSQLite(t testing.TB, path, more string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=journal_mode(wal)&_pragma=synchronous(full)"+more)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	require.NoError(t, sqlite.Migrate(context.Background(), db))
	_, err = db.Exec("CREATE TABLE IF NOT EXISTS effects (id TEXT NOT NULL)")
	require.NoError(t, err)
	return db
}

func sqliteEffect(ctx context.Context, tx *sql.Tx, ev receiver.Event) error {
	_, err := tx.ExecContext(ctx, "INSERT INTO effects (id) VALUES (?)", ev.ID)
	return err
}

func count(t testing.TB, db *sql.DB, query string, args ...any) (n int) {
	t.Helper()
	require.NoError(t, db.QueryRow(query, args...).Scan(&n))
	return n
}

func onSQLite(t testing.TB) (bed[*sql.Tx], *sql.DB) {
	return inFile(t, filepath.Join(t.TempDir(), "app.db"))
}

func inFile(t testing.TB, path string) (bed[*sql.Tx], *sql.DB) {
	db := openSQLite(t, path, "&_pragma=busy_timeout(5000)")
	return bed[*sql.Tx]{
		inTx:   receiver.SQL(db, nil),
		store:  sqlite.New(),
		effect: sqliteEffect,
		effects: func(t testing.TB, id string) int {
			return count(t, db, "SELECT count(*) FROM effects WHERE id = ?", id)
		},
		rows: func(t testing.TB) int {
			return count(t, db, `SELECT (SELECT count(*) FROM effects) + (SELECT count(*) FROM surehook_dedup_markers)
				+ (SELECT count(*) FROM surehook_dedup_versions) + (SELECT count(*) FROM surehook_dedup_dead_letters)`)
		},
		secret: testSecret,
	}, db
}

// The effect in memory is a marker in a scope of its own. It is rolled back with the
// transaction like any other marker.
func onMemory() bed[*memory.Tx] {
	store := memory.New()
	return bed[*memory.Tx]{
		inTx:  store.InTx,
		store: store,
		effect: func(ctx context.Context, tx *memory.Tx, ev receiver.Event) error {
			fresh, err := store.Mark(ctx, tx, "effects", ev.ID, time.Now())
			if err == nil && !fresh {
				err = errors.New("a second effect")
			}
			return err
		},
		effects: func(t testing.TB, id string) int {
			if marked(t, store.InTx, store, "effects", id) {
				return 1
			}
			return 0
		},
		rows:   func(testing.TB) int { return 0 },
		secret: testSecret,
	}
}

var errLook = errors.New("only looking")

func marked[Tx any](t testing.TB, inTx receiver.InTx[Tx], store dedup.Store[Tx], scope, id string) (found bool) {
	t.Helper()
	err := inTx(context.Background(), func(tx Tx) error {
		fresh, err := store.Mark(context.Background(), tx, scope, id, time.Now())
		found = !fresh
		return errors.Join(err, errLook)
	})
	require.Equal(t, errLook.Error(), err.Error())
	return found
}

// state is the database's state of an event.
type state struct {
	Marker     bool
	Effects    int
	Version    int64
	DeadLetter bool
}

func (b bed[Tx]) state(t testing.TB, ev receivertest.Event) state {
	t.Helper()
	s := state{Marker: marked(t, b.inTx, b.store, "default", ev.ID), Effects: b.effects(t, ev.ID)}
	require.NoError(t, b.inTx(context.Background(), func(tx Tx) (err error) {
		s.Version, err = b.store.Version(context.Background(), tx, "default", ev.Object)
		if err != nil {
			return err
		}
		_, err = b.store.DeadLetter(context.Background(), tx, "default", ev.ID)
		s.DeadLetter = err == nil
		if errors.Is(err, dedup.ErrNotFound) {
			return nil
		}
		return err
	}))
	return s
}

func (b bed[Tx]) receiver(t testing.TB, cfg *receiver.Config) *receiver.Receiver[Tx] {
	t.Helper()
	return newReceiver(t, b.inTx, b.store, cfg)
}

func newReceiver[Tx any](t testing.TB, inTx receiver.InTx[Tx], store dedup.Store[Tx], cfg *receiver.Config) *receiver.Receiver[Tx] {
	t.Helper()
	if cfg == nil {
		cfg = &receiver.Config{}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	scope := "default"
	if cfg.ScopeOf != nil {
		scope = ""
	}
	rcv, err := receiver.New(newVerifier(t, nil), inTx, store, scope, cfg)
	require.NoError(t, err)
	return rcv
}

func newVerifier(t testing.TB, cfg *signing.VerifierConfig) *signing.Verifier {
	t.Helper()
	keys, err := signing.NewKeyring(signing.Key{ID: "key_1", Secret: testSecret})
	require.NoError(t, err)
	v, err := signing.NewVerifier(keys, cfg)
	require.NoError(t, err)
	return v
}

func newSender(t testing.TB) *receivertest.Sender {
	return receivertest.NewSender(t, testSecret, nil)
}

func newEvent(version int64) receivertest.Event {
	return receivertest.NewEvent("subscriber", "sub_1", version)
}

// buffer is a log for several goroutines.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func (b *buffer) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug}))
}
