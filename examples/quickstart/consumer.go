package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"

	"github.com/surehook/surehook"
	dedup "github.com/surehook/surehook/dedup/sqlite"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/signing"
)

// consumer is a service that follows the producer's customers.
type consumer struct {
	db       *sql.DB
	inTx     receiver.InTx[*sql.Tx] // of all receivers: they take turns
	server   *httptest.Server
	outcomes chan string
	failures atomic.Int64
	trusted  []string                     // the newest secret first
	webhooks atomic.Pointer[http.Handler] // verifies with them
}

func newConsumer(ctx context.Context, path string, subscribe func(ctx context.Context, url string) (signing.Secret, error)) (*consumer, error) {
	db, err := sql.Open("sqlite", dsn(path))
	if err != nil {
		return nil, err
	}
	if err := dedup.Migrate(ctx, db); err != nil {
		return nil, err
	}
	if _, err := db.ExecContext(ctx, "CREATE TABLE plans (name TEXT PRIMARY KEY, plan TEXT NOT NULL, changes INTEGER NOT NULL)"); err != nil {
		return nil, err
	}
	c := &consumer{db: db, inTx: dedup.InTx(db), outcomes: make(chan string, 100)}
	mux := http.NewServeMux()
	mux.Handle("POST /webhooks", c.failing(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		(*c.webhooks.Load()).ServeHTTP(w, r)
	})))
	c.server = httptest.NewServer(mux)
	secret, err := subscribe(ctx, c.server.URL+"/webhooks")
	if err != nil {
		return nil, err
	}
	return c, c.trust(secret)
}

// trust verifies with one more secret from now on, besides those before.
func (c *consumer) trust(secret signing.Secret) error {
	hooks, err := surehook.NewReceiver(c.inTx, dedup.New(), "producer", secret.Reveal(), &surehook.ReceiverConfig{
		OlderSecrets: c.trusted,
		Receive: receiver.Config{
			Hooks: receiver.Hooks{
				Applied:   func(_ context.Context, ev receiver.Event) { c.tell("applied", ev) },
				Duplicate: func(_ context.Context, ev receiver.Event) { c.tell("duplicate", ev) },
				Stale:     func(_ context.Context, ev receiver.Event) { c.tell("stale", ev) },
				Rejected:  func(_ context.Context, err *receiver.Error) { c.outcome(string(err.Reason)) },
			},
			Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		},
	})
	if err != nil {
		return err
	}
	c.trusted = append([]string{secret.Reveal()}, c.trusted...)
	handler := hooks.Handler(receiver.State(c.apply))
	c.webhooks.Store(&handler)
	return nil
}

// apply is called for each event that is new and newer than the stored version, in the
// transaction that also holds the event's marker and version. The event is a state: it has
// the customer's whole plan, so one that was overtaken has nothing to say any more.
func (c *consumer) apply(ctx context.Context, tx *sql.Tx, ev receiver.Event) error {
	var state struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal(ev.Data, &state); err != nil {
		return receiver.Permanent(err) // it would never succeed: keep it as a dead letter
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO plans VALUES (?1, ?2, 1)
		ON CONFLICT DO UPDATE SET plan = ?2, changes = changes + 1`, ev.Object.ID, state.Name)
	return err
}

// failing answers 503 as often as c.failures says, as a service in trouble would.
func (c *consumer) failing(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.failures.Add(-1) >= 0 {
			http.Error(w, "under maintenance", http.StatusServiceUnavailable)
			fmt.Println("   consumer: answered 503")
			c.outcome("503")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// failNext makes the endpoint fail the next times requests, and forgets the outcomes of
// earlier ones.
func (c *consumer) failNext(times int64) {
	c.failures.Store(times)
	for len(c.outcomes) > 0 {
		<-c.outcomes
	}
}

func (c *consumer) tell(outcome string, ev receiver.Event) {
	fmt.Printf("   consumer: %s %s %s, version %d, attempt %d\n", outcome, ev.Type, ev.Object.ID, ev.Version, ev.Attempt)
	c.outcome(outcome)
}

// outcome notes the outcome of a request, for expect. During a long outage nobody
// listens, and nobody needs to.
func (c *consumer) outcome(outcome string) {
	select {
	case c.outcomes <- outcome:
	default:
	}
}

// expect waits for the outcomes of the requests that follow.
func (c *consumer) expect(ctx context.Context, outcomes ...string) error {
	for _, want := range outcomes {
		select {
		case got := <-c.outcomes:
			if got != want {
				return fmt.Errorf("the consumer's outcome was %q, not %q", got, want)
			}
		case <-ctx.Done():
			return fmt.Errorf("waiting for %q: %w", want, ctx.Err())
		}
	}
	return nil
}

func (c *consumer) plans(ctx context.Context) (plans string, err error) {
	err = c.db.QueryRowContext(ctx, "SELECT group_concat(name || ': ' || plan, ', ') FROM (SELECT * FROM plans ORDER BY name)").Scan(&plans)
	return plans, err
}

func (c *consumer) applied(ctx context.Context) (n int, err error) {
	err = c.db.QueryRowContext(ctx, "SELECT sum(changes) FROM plans").Scan(&n)
	return n, err
}

func (c *consumer) close() {
	c.server.Close()
	_ = c.db.Close()
}
