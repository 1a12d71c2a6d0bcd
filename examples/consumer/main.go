// Command consumer is the other side of the reference server. It receives, verifies and
// deduplicates events with the library, and keeps a copy of the subscribers, whose current
// state it reads by GET.
//
//	SUREHOOK_TOKEN=… go run ./examples/consumer
//
// It listens on http://127.0.0.1:9090/webhooks: register that as a callback URL. With
// the operator's token it asks for the signing secret by itself; a subscriber gives
// its own in SUREHOOK_SECRET. There are flags for both, which others can see in the list of
// processes.
package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	_ "modernc.org/sqlite" // the driver

	"github.com/surehook/surehook"
	dedup "github.com/surehook/surehook/dedup/sqlite"
	"github.com/surehook/surehook/receiver"
)

type options struct {
	addr, database, server, token, secret string
}

func main() {
	var o options
	flag.StringVar(&o.addr, "addr", "127.0.0.1:9090", "listen `address`")
	flag.StringVar(&o.database, "database", "consumer.db", "SQLite `file`")
	flag.StringVar(&o.server, "server", "http://127.0.0.1:8080", "the reference server's `URL`")
	flag.StringVar(&o.token, "token", "", "bearer `token` to read the current state with. Others can see it in the list of processes: set SUREHOOK_TOKEN in its place")
	flag.StringVar(&o.secret, "secret", "", "signing `secret` (default: the operator's own, from the server). Others can see it in the list of processes: set SUREHOOK_SECRET in its place")
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
	if err := private(o.database); err != nil {
		return err
	}
	path := strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(o.database) // sqlite.org/uri.html, section 3.1
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(5000)&_txlock=immediate")
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
	source, err := newSource(ctx, o.server, o.token)
	if err != nil {
		return err
	}
	rcv, routes, err := receive(ctx, db, source, o.secret)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /webhooks", rcv.Handler(routes))
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.addr)
	if err != nil {
		return err
	}
	fmt.Printf("listening on http://%s/webhooks\n", listener.Addr())
	go func() { _ = rcv.Run(ctx) }() // forgets old markers, until ctx ends
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

// private keeps others from reading the copies: it makes the file before the driver
// would, and takes away the rights that others have to one that is there. SQLite gives
// the files that it puts beside it the mode of the file itself.
func private(database string) error {
	const ownersAlone = 0o600
	f, err := os.OpenFile(database, os.O_RDWR|os.O_CREATE, ownersAlone)
	if err != nil {
		return fmt.Errorf("-database: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("-database: %w", err)
	}
	for _, suffix := range []string{"", "-wal", "-shm"} { // the last two are left by a process that was killed
		if err := os.Chmod(database+suffix, ownersAlone); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("-database: %w", err)
		}
	}
	return nil
}

// receive makes the receiver, which verifies events with the secret, and what it does with
// them. Each is applied at most once, and an older state never overwrites a newer one.
func receive(ctx context.Context, db *sql.DB, from *source, secret string) (*receiver.Receiver[*sql.Tx], receiver.Work[*sql.Tx], error) {
	var none receiver.Work[*sql.Tx]
	if secret == "" {
		var err error
		if secret, err = from.operatorSecret(ctx); err != nil {
			return nil, none, fmt.Errorf("asking for the signing secret: %w", err)
		}
	}
	say := func(outcome string) func(context.Context, receiver.Event) {
		return func(_ context.Context, ev receiver.Event) {
			fmt.Printf("%s %s %s, version %d, attempt %d\n", outcome, ev.Type, ev.Object.ID, ev.Version, ev.Attempt)
		}
	}
	rcv, err := surehook.NewReceiver(dedup.InTx(db), dedup.New(), "reference-server", secret, &surehook.ReceiverConfig{Receive: receiver.Config{
		Hooks:  receiver.Hooks{Applied: say("applied"), Duplicate: say("duplicate"), Stale: say("stale")},
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}})
	if err != nil {
		return nil, none, err
	}
	// Events of other types are acknowledged, and ignored.
	routes, err := receiver.Router(receiver.OnThin("subscriber.*", from.fetch, store))
	return rcv, routes, err
}
