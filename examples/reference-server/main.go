// Command reference-server offers a whole webhook service over HTTP: subscribers
// and their subscriptions, signed events by push and by pull, jobs that report by
// callback, redelivery, replay, rotation of secrets, notices.
//
//	go run ./examples/reference-server
//
// It is built from the library's public packages alone, to show how a producer
// embeds them. service.go puts them together; every other file is one concept.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	os.Exit(program(os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr))
}

// program returns the exit code: 0 after a drain, 2 for flags that cannot be, 1 for
// everything else.
func program(args []string, env func(string) (string, bool), stdout, stderr io.Writer) int {
	o, err := parse(args, env, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(stderr, err)
		return 2
	case o.showVersion:
		fmt.Fprintln(stdout, version())
		return 0
	}
	calm := unflooded(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: o.level}))
	defer calm.flush()
	log := slog.New(calm)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-signals
		log.Info("draining; a second signal exits at once")
		cancel()
		<-signals
		log.Warn("exiting at once: what was in flight is due again when its lease ends")
		os.Exit(1)
	}()
	run := serve
	switch {
	case o.probe:
		run = func(ctx context.Context, o options, _ *slog.Logger, _ io.Writer) error { return probe(ctx, o.addr) }
	case o.backup != "":
		run = backUp
	}
	if err := run(ctx, o, log, stdout); err != nil {
		log.Error("cannot go on", "error", err)
		return 1
	}
	return 0
}

// backUp needs no key, and migrates nothing.
func backUp(ctx context.Context, o options, log *slog.Logger, stdout io.Writer) error {
	if !o.postgres() {
		if _, err := os.Stat(o.database); err != nil { // it would be made, and be empty
			return fmt.Errorf("-database: %w", err)
		}
	}
	db, err := openDatabase(ctx, o, log)
	if err != nil {
		return err
	}
	defer db.close()
	if err := db.backup(ctx, o.backup); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "backed up to %s: keep a copy of the sealing keys, too, in another place\n", o.backup)
	return nil
}

// serve runs the service until ctx ends, and drains it.
func serve(ctx context.Context, o options, log *slog.Logger, stdout io.Writer) error {
	s, err := newService(ctx, o, log)
	if err != nil {
		if ctx.Err() != nil {
			return nil // told to end before it had begun
		}
		return err
	}
	defer s.close()
	if o.operatorToken != "" && len(o.operatorToken) < goodOperatorToken {
		log.Warn("the operator's token is short: guesses are not slowed down on the API, so give it 22 random characters or more (openssl rand -hex 32 makes one)")
	}
	if o.restored {
		done, err := s.db.sender.Restored(ctx, s.types.Convert)
		if err != nil {
			return err
		}
		events := "events"
		if done.Expanded == 1 {
			events = "event"
		}
		fmt.Fprintf(stdout, "restored: %d %s expanded; the next versions are above %d, the next positions above %d\n", done.Expanded, events, done.Version, done.Position)
		return nil
	}
	if err := s.db.check(ctx); err != nil { // the dispatcher would find it too, once clients rely on the line below
		return err
	}
	h, err := newServer(s)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(context.WithoutCancel(ctx), "tcp", o.addr)
	if err != nil {
		return err
	}
	log.Info("ready", "version", version(), "database", s.db.kind, "workers", o.workers)
	fmt.Fprintf(stdout, "listening on http://%s\n", listener.Addr())
	return h.run(ctx, listener)
}
