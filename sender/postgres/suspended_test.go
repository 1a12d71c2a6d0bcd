package postgres_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/postgres"
)

const (
	suspendedDSN    = "SUREHOOK_TEST_SUSPENDED_DSN"
	suspendedSchema = "SUREHOOK_TEST_SUSPENDED_SCHEMA"
)

// dispatchUntilToldTo is a process that prints a line when it has read 2 MiB from the
// database. It reads on when it gets a line, and ends when there are no more lines.
func dispatchUntilToldTo(dsn, schema string) error {
	end := make(chan struct{})
	slow := deaf{read: &atomic.Int64{}, most: 2 << 20, heard: make(chan struct{}), end: end}
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return err
	}
	cfg.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		here := slow
		here.Conn = c
		return here, err
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), cfg)
	if err != nil {
		return err
	}
	defer pool.Close()
	s, err := postgres.New(pool, &postgres.Config{Schema: schema})
	if err != nil {
		return err
	}
	d, err := suspendableDispatcher(s, accepts{}, dispatch.Hooks{})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-slow.heard
		_, _ = os.Stdout.WriteString("reading\n")
		lines := bufio.NewReader(os.Stdin)
		_, _ = lines.ReadString('\n')
		close(end)
		_, _ = io.Copy(io.Discard, lines)
		cancel()
	}()
	return d.Run(ctx)
}

// suspendableDispatcher has room for forty first attempts, and claims their large bodies at
// once: a claim gets half of the room for bodies.
func suspendableDispatcher(s *pgxStore, to http.RoundTripper, hooks dispatch.Hooks) (*dispatch.Dispatcher, error) {
	keys, err := replayKeys()
	if err != nil {
		return nil, err
	}
	return dispatch.New(s, keys, &dispatch.Config{UnguardedTransport: to, Slots: 400, BodyBytes: 128 << 20, Hooks: hooks, Logger: quiet})
}
