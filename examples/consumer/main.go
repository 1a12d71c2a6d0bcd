// Command consumer is the other side of the reference server: it receives, verifies
// and deduplicates events with the library, and keeps a copy of the subscribers,
// whose current state it reads by GET.
//
//	go run ./examples/consumer -token TOKEN
//
// It listens on http://127.0.0.1:9090/webhooks: register that as a callback URL. With
// the operator's token it asks for the signing secret by itself; a subscriber gives
// its own with -secret.
package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	_ "modernc.org/sqlite" // the driver

	dedup "github.com/surehook/surehook/dedup/sqlite"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/signing"
)

type options struct {
	addr, database, server, token, secret string
}

func main() {
	var o options
	flag.StringVar(&o.addr, "addr", "127.0.0.1:9090", "listen `address`")
	flag.StringVar(&o.database, "database", "consumer.db", "SQLite `file`")
	flag.StringVar(&o.server, "server", "http://127.0.0.1:8080", "the reference server's `URL`")
	flag.StringVar(&o.token, "token", "", "bearer `token` to read the current state with (or SUREHOOK_TOKEN)")
	flag.StringVar(&o.secret, "secret", "", "signing `secret` (or SUREHOOK_SECRET; default: the operator's own, from the server)")
	flag.Parse()
	if o.token == "" {
		o.token = os.Getenv("SUREHOOK_TOKEN")
	}
	if o.secret == "" {
		o.secret = os.Getenv("SUREHOOK_SECRET")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := consume(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "consumer:", err)
		os.Exit(1)
	}
}

// consume listens until ctx ends. An event that it has answered with 2xx is committed.
// Any other event comes again.
func consume(ctx context.Context, o options) error {
	db, err := sql.Open("sqlite", "file:"+o.database+"?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(5000)&_txlock=immediate")
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	if err := dedup.Migrate(ctx, db); err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS copies (id TEXT PRIMARY KEY, name TEXT NOT NULL, attributes TEXT NOT NULL, version INTEGER NOT NULL)`); err != nil {
		return err
	}
	source, err := newSource(o.server, o.token)
	if err != nil {
		return err
	}
	handler, err := receive(ctx, db, source, o.secret)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /webhooks", handler)
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.addr)
	if err != nil {
		return err
	}
	fmt.Printf("listening on http://%s/webhooks\n", listener.Addr())
	done := make(chan error, 1)
	go func() { done <- web.Serve(listener) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		return web.Shutdown(patience)
	}
}

// receive makes the handler. It verifies events with the secret, applies each at most
// once, and never writes an older state over a newer one.
func receive(ctx context.Context, db *sql.DB, from *source, text string) (http.Handler, error) {
	if text == "" {
		var err error
		if text, err = from.operatorSecret(ctx); err != nil {
			return nil, fmt.Errorf("asking for the signing secret: %w", err)
		}
	}
	secret, err := signing.ParseSecret(text)
	if err != nil {
		return nil, err
	}
	keys, err := signing.NewKeyring(signing.Key{Secret: secret})
	if err != nil {
		return nil, err
	}
	verifier, err := signing.NewVerifier(keys, nil)
	if err != nil {
		return nil, err
	}
	say := func(outcome string) func(context.Context, receiver.Event) {
		return func(_ context.Context, ev receiver.Event) {
			fmt.Printf("%s %s %s, version %d, attempt %d\n", outcome, ev.Type, ev.Object.ID, ev.Version, ev.Attempt)
		}
	}
	rcv, err := receiver.New(verifier, receiver.SQL(db, nil), dedup.New(), &receiver.Config{
		// The server's sender redelivers and replays events of up to 28 days.
		Horizon: 28 * 24 * time.Hour,
		Hooks:   receiver.Hooks{Applied: say("applied"), Duplicate: say("duplicate"), Stale: say("stale")},
		Logger:  slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return nil, err
	}
	// Events of other types are acknowledged, and ignored.
	routes, err := receiver.Router(receiver.OnState("subscriber.*", from.fetch, store))
	if err != nil {
		return nil, err
	}
	return rcv.Handler(routes), nil
}

var errToken = errors.New("-token is missing: the current state is read with it")
