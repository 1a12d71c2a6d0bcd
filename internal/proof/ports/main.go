// Command ports is a busy neighbour for a test suite: it takes ports of loopback and lets
// them go, thousands a second. Beside it a test fails if it chooses a port first and
// listens there later, or if it relies on a port staying closed.
//
//	go run ./internal/proof/ports            for ten minutes, or until it is interrupted
//	go run ./internal/proof/ports -for 1h    as long as the tests beside it
//
// The system chooses the ports, as it does for almost everybody. The command holds a
// fifth of the available ports at any time. Its listeners accept connections and send
// nothing.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"
)

type options struct {
	lasts time.Duration
	held  int // places at once, each a listener or a listener with a connection
	rate  int // places that are taken anew, a second
}

func main() {
	var o options
	flag.DurationVar(&o.lasts, "for", 10*time.Minute, "how long")
	flag.IntVar(&o.held, "held", 4000, "hold so many listeners at once, half of them with a connection")
	flag.IntVar(&o.rate, "rate", 2000, "replace so many of them a second")
	flag.Parse()
	if o.lasts <= 0 || o.held < 1 || o.held > 8000 || o.rate < 100 || o.rate > 20000 {
		fmt.Fprintln(os.Stderr, "ports: -for must be more than 0, -held from 1 to 8000, and -rate from 100 to 20000")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, o.lasts)
	defer cancel()
	if err := load(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "ports:", err)
		os.Exit(1)
	}
}

// place is a listener, or a listener with a connection, that is held for a time.
type place struct {
	listener *net.TCPListener
	conn     *net.TCPConn // to the listener; nil if there is none
}

// load replaces places until ctx ends. Each lasts for a random time: some are gone at
// once, and some last for many seconds.
func load(ctx context.Context, o options) error {
	places := make([]place, o.held)
	defer func() {
		for _, p := range places {
			p.close()
		}
	}()
	const tick = 10 * time.Millisecond
	every := time.NewTicker(tick)
	defer every.Stop()
	taken, failed := 0, 0
	var last error
	for begun := time.Now(); ; {
		select {
		case <-ctx.Done():
			fmt.Printf("ports: taken %d times in %s, %d times in vain\n", taken, time.Since(begun).Round(time.Second), failed)
			if taken < failed { // this made no load for the test suite
				return fmt.Errorf("most could not be taken: %w", last)
			}
			return nil
		case <-every.C:
		}
		for range o.rate / int(time.Second/tick) {
			p := &places[rand.IntN(len(places))]
			p.close()
			if err := p.take(rand.IntN(2) == 0); err != nil {
				failed, last = failed+1, err
				continue
			}
			taken++
		}
	}
}

func (p *place) take(connect bool) error {
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return err
	}
	p.listener = l
	if connect {
		p.conn, err = net.DialTCP("tcp4", nil, l.Addr().(*net.TCPAddr))
	}
	return err
}

// close resets the connection: a connection that is closed in good order keeps its port for
// a minute, and soon no ports would remain.
func (p *place) close() {
	if p.conn != nil {
		_ = errors.Join(p.conn.SetLinger(0), p.conn.Close())
	}
	if p.listener != nil {
		_ = p.listener.Close()
	}
	*p = place{}
}
