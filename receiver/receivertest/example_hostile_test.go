package receivertest_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/surehook/surehook/dedup/sqlite"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/receivertest"
	"github.com/surehook/surehook/signing"
)

// shop is an application with a database. It ships something for each event. The examples
// below try its handlers.
type shop struct {
	db       *sql.DB
	secret   signing.Secret
	verifier *signing.Verifier
}

func openShop(folder string) *shop {
	s := &shop{secret: signing.GenerateSecret()}
	var err error
	s.db, err = sql.Open("sqlite", "file:"+filepath.Join(folder, "shop.db")+"?_txlock=immediate&_pragma=journal_mode(wal)&_pragma=busy_timeout(10000)")
	must(err)
	must(sqlite.Migrate(context.Background(), s.db))
	for _, statement := range []string{
		"CREATE TABLE shipped (event TEXT NOT NULL)",
		"CREATE TABLE seen (event TEXT NOT NULL)",
		"CREATE TABLE versions (object TEXT PRIMARY KEY, version INTEGER NOT NULL)",
	} {
		_, err = s.db.Exec(statement)
		must(err)
	}
	s.verifier, err = signing.NewVerifier(s.keys(), nil)
	must(err)
	return s
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func (s *shop) keys(more ...signing.Secret) *signing.Keyring {
	keys := []signing.Key{{Secret: s.secret}}
	for _, secret := range more {
		keys = append(keys, signing.Key{Secret: secret})
	}
	ring, err := signing.NewKeyring(keys...)
	must(err)
	return ring
}

// subject is the value that a test of your own handler gives to Hostile.
func (s *shop) subject(handler http.Handler) receivertest.Subject {
	return receivertest.Subject{
		Handler: handler,
		Secret:  s.secret,
		Effects: func(ctx context.Context, ev receivertest.Event) (n int, err error) {
			err = s.db.QueryRowContext(ctx, "SELECT count(*) FROM shipped WHERE event = ?", ev.ID).Scan(&n)
			return n, err
		},
		Fail: func() func() {
			_, err := s.db.Exec("ALTER TABLE shipped RENAME TO gone")
			must(err)
			return func() {
				_, err := s.db.Exec("ALTER TABLE gone RENAME TO shipped")
				must(err)
			}
		},
	}
}

// The handlers below are made of these parts, each of which is correct.

type order struct {
	ID     string
	Object struct{ ID string }

	Version  int64
	HeaderID string `json:"-"` // not covered by the signature
}

// read answers by itself if it returns false.
func (s *shop) read(verifier *signing.Verifier, w http.ResponseWriter, r *http.Request) (o order, ok bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		http.Error(w, "", http.StatusBadRequest)
		return o, false
	}
	if _, err := verifier.Verify(signing.Message{Header: r.Header, Body: body}); err != nil {
		http.Error(w, "", http.StatusUnauthorized)
		return o, false
	}
	if json.Unmarshal(body, &o) != nil {
		http.Error(w, "", http.StatusBadRequest)
		return o, false
	}
	o.HeaderID = r.Header.Get("Webhook-Id")
	return o, true
}

func (s *shop) begin() *sql.Tx {
	tx, err := s.db.Begin()
	must(err)
	return tx
}

type execer interface {
	Exec(query string, args ...any) (sql.Result, error)
}

func changed(e execer, query string, args ...any) bool {
	res, err := e.Exec(query, args...)
	must(err)
	n, err := res.RowsAffected()
	must(err)
	return n > 0
}

func mark(e execer, id string) bool {
	return changed(e, "INSERT INTO seen SELECT ?1 WHERE NOT EXISTS (SELECT 1 FROM seen WHERE event = ?1)", id)
}

func newer(e execer, o order) bool {
	return changed(e, `INSERT INTO versions VALUES (?, ?) ON CONFLICT (object) DO UPDATE SET version = excluded.version
		WHERE excluded.version > version`, o.Object.ID, o.Version)
}

func ship(e execer, o order) error {
	_, err := e.Exec("INSERT INTO shipped VALUES (?)", o.ID)
	return err
}

// try runs Hostile on a handler as a test would, and prints the broken promises.
func try(make func(s *shop) http.Handler) {
	folder, err := os.MkdirTemp("", "shop")
	must(err)
	defer os.RemoveAll(folder)
	s := openShop(folder)
	defer s.db.Close()
	t := &reporting{told: map[string]bool{}}
	receivertest.Hostile(t, s.subject(make(s)), nil)
	if len(t.told) == 0 {
		fmt.Println("nothing is broken")
	}
}

// reporting stands in for the *testing.T that a test has.
type reporting struct {
	testing.TB
	told map[string]bool
	last string // the whole of the last report
}

func (*reporting) Helper()                   {}
func (*reporting) Log(...any)                {}
func (*reporting) Context() context.Context  { return context.Background() }
func (*reporting) Fatal(args ...any)         { panic(fmt.Sprint(args...)) }
func (*reporting) Fatalf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }
func (t *reporting) Errorf(format string, args ...any) {
	t.last = fmt.Sprintf(format, args...)
	promise, _, _ := strings.Cut(t.last, "\n")
	if !t.told[promise] {
		t.told[promise] = true
		fmt.Println(promise)
	}
}

var quiet = slog.New(slog.DiscardHandler)

// With package receiver all promises hold.
func ExampleHostile() {
	try(func(s *shop) http.Handler {
		rcv, err := receiver.New(s.verifier, receiver.SQL(s.db, nil), sqlite.New(), "default", &receiver.Config{Logger: quiet})
		must(err)
		return rcv.Handler(receiver.State(func(ctx context.Context, tx *sql.Tx, ev receiver.Event) error {
			return ship(tx, order{ID: ev.ID})
		}))
	})
	// Output: nothing is broken
}

// A handler that answers before the commit promises an effect that may not happen.
func ExampleHostile_answersBeforeTheCommit() {
	try(func(s *shop) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			o, ok := s.read(s.verifier, w, r)
			if !ok {
				return
			}
			tx := s.begin()
			defer tx.Rollback()
			if mark(tx, o.ID) && newer(tx, o) {
				if ship(tx, o) != nil {
					http.Error(w, "", http.StatusInternalServerError)
					return
				}
			}
			w.WriteHeader(http.StatusOK) // wrong: what if the commit fails?
			_ = tx.Commit()
		})
	})
	// Output: receivertest: broken: no 2xx before the commit
}

// A handler that commits the marker on its own loses the event if applying it then fails:
// the event is taken for a duplicate when it is sent again.
func ExampleHostile_marksOnItsOwn() {
	try(func(s *shop) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			o, ok := s.read(s.verifier, w, r)
			if !ok {
				return
			}
			if !mark(s.db, o.ID) { // wrong: in a transaction of its own
				return
			}
			tx := s.begin()
			defer tx.Rollback()
			if newer(tx, o) && ship(tx, o) != nil || tx.Commit() != nil {
				http.Error(w, "", http.StatusInternalServerError)
			}
		})
	})
	// Output: receivertest: broken: a marker if and only if effect, stale, or local dead letter
}

// A handler that first looks and then marks lets through all requests that look at the same
// time.
func ExampleHostile_looksBeforeItMarks() {
	try(func(s *shop) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			o, ok := s.read(s.verifier, w, r)
			if !ok {
				return
			}
			var seen int
			must(s.db.QueryRow("SELECT count(*) FROM seen WHERE event = ?", o.ID).Scan(&seen))
			if seen > 0 {
				return
			}
			time.Sleep(20 * time.Millisecond) // it asks another service
			tx := s.begin()
			defer tx.Rollback()
			mark(tx, o.ID) // wrong: whether it was the first is known only here
			if newerOrSame(tx, o) && ship(tx, o) != nil || tx.Commit() != nil {
				http.Error(w, "", http.StatusInternalServerError)
			}
		})
	})
	// Output: receivertest: broken: per (scope, id) at most one effect
}

// Such a handler does not expect the same version again.
func newerOrSame(e execer, o order) bool {
	return changed(e, `INSERT INTO versions VALUES (?, ?) ON CONFLICT (object) DO UPDATE SET version = excluded.version
		WHERE excluded.version >= version`, o.Object.ID, o.Version)
}

// A handler that takes events in the order of their arrival writes older states over newer
// ones, because retries overtake each other.
func ExampleHostile_trustsTheOrder() {
	try(func(s *shop) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			o, ok := s.read(s.verifier, w, r)
			if !ok {
				return
			}
			tx := s.begin()
			defer tx.Rollback()
			// wrong: the version is not looked at
			if mark(tx, o.ID) && ship(tx, o) != nil || tx.Commit() != nil {
				http.Error(w, "", http.StatusInternalServerError)
			}
		})
	})
	// Output: receivertest: broken: never an older one over a newer
}

// A handler that deduplicates by a header that no signature covers has a second effect
// whenever an attacker sends a captured request with another header.
func ExampleHostile_trustsTheHeader() {
	try(func(s *shop) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			o, ok := s.read(s.verifier, w, r)
			if !ok {
				return
			}
			tx := s.begin()
			defer tx.Rollback()
			fresh := mark(tx, o.HeaderID) // wrong: the id is in the signed body
			if fresh && newerOrSame(tx, o) && ship(tx, o) != nil || tx.Commit() != nil {
				http.Error(w, "", http.StatusInternalServerError)
			}
		})
	})
	// Output: receivertest: broken: per (scope, id) at most one effect
}

// A handler that checks the signature and not the time accepts requests that were
// captured long ago.
func ExampleHostile_ignoresTheWindow() {
	try(func(s *shop) http.Handler {
		patient, err := signing.NewVerifier(s.keys(), &signing.VerifierConfig{Tolerance: 365 * 24 * time.Hour}) // wrong
		must(err)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			o, ok := s.read(patient, w, r)
			if !ok {
				return
			}
			tx := s.begin()
			defer tx.Rollback()
			if mark(tx, o.ID) && newer(tx, o) && ship(tx, o) != nil || tx.Commit() != nil {
				http.Error(w, "", http.StatusInternalServerError)
			}
		})
	})
	// Output: receivertest: broken: outside the window; wrong signature: no effect and 401, one body for all
}
