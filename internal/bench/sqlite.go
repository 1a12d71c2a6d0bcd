package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	_ "modernc.org/sqlite" // the driver

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/sqlite"
	"github.com/surehook/surehook/signing"
)

type scenario struct {
	name, title   string
	subscriptions int
	commits       bool // measure the application's own commits meanwhile
}

// The first is the baseline.
var scenarios = []scenario{
	{name: "bare", title: "bare net/http POSTs"},
	{name: "sqlite-1", title: "SQLite, 1 subscription", subscriptions: 1},
	{name: "sqlite-10", title: "SQLite, 10 subscriptions", subscriptions: 10},
	{name: "sqlite-1000", title: "SQLite, 1,000 subscriptions", subscriptions: 1000},
	{name: "sqlite-commits", title: "SQLite, 10 subscriptions, the application committing beside it", subscriptions: 10, commits: true},
}

func send(name, target string, n int) error {
	for _, s := range scenarios {
		if s.name != name {
			continue
		}
		var m measured
		var err error
		if s.subscriptions == 0 {
			m, err = ceiling(target, n)
		} else {
			m, err = deliver(s, target, n)
		}
		if err != nil {
			return err
		}
		m.Scenario = name
		return json.NewEncoder(os.Stdout).Encode(m)
	}
	return fmt.Errorf("no scenario is named %q", name)
}

// deliver publishes n events, each for one subscription, then measures how long
// a dispatcher with the default configuration takes to deliver them.
func deliver(s scenario, target string, n int) (m measured, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "surehook-bench-")
	if err != nil {
		return m, err
	}
	defer os.RemoveAll(dir)
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "bench.db")+
		"?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(10000)&_txlock=immediate")
	if err != nil {
		return m, err
	}
	defer db.Close()
	store, err := sqlite.New(db, nil)
	if err != nil {
		return m, err
	}
	if err := store.Migrate(ctx); err != nil {
		return m, err
	}
	if _, err := db.ExecContext(ctx, "CREATE TABLE things (id INTEGER PRIMARY KEY, value TEXT)"); err != nil {
		return m, err
	}
	keys, err := sender.NewKeys(sender.SealingKey{ID: "1", Key: bytes.Repeat([]byte{7}, 32)})
	if err != nil {
		return m, err
	}
	network := sender.Network{AllowPrivateNetworks: true}
	if err := register(ctx, store, keys, network, s, target); err != nil {
		return m, err
	}
	if err := publish(ctx, store, s, n); err != nil {
		return m, err
	}

	var delivered atomic.Int64
	all := make(chan struct{})
	disp, err := sender.NewDispatcher(store, keys, &sender.DispatcherConfig{
		Network: network, Logger: slog.New(slog.DiscardHandler),
		Hooks: sender.Hooks{Recorded: func(_ context.Context, r *sender.Recorded) {
			if r.Decision.Status == sender.StatusDelivered && delivered.Add(1) == int64(n) {
				close(all)
			}
		}},
	})
	if err != nil {
		return m, err
	}
	m.Extra = map[string]float64{}
	if s.commits {
		commitLatency(ctx, "alone", store, db, m.Extra, after(2*time.Second))
	}
	run, stop := context.WithCancel(ctx)
	ran := make(chan error, 1)
	cpu, began := cpuTime(), time.Now()
	go func() { ran <- disp.Run(run) }()
	if s.commits {
		commitLatency(ctx, "draining", store, db, m.Extra, all)
	}
	select {
	case <-all:
	case err := <-ran:
		stop()
		return m, fmt.Errorf("the dispatcher ended: %w", err)
	case <-ctx.Done():
		stop()
		return m, fmt.Errorf("%d of %d delivered: %w", delivered.Load(), n, ctx.Err())
	}
	m.Deliveries, m.Seconds = n, time.Since(began).Seconds()
	m.SenderCPU = (cpuTime() - cpu) / float64(n)
	stop()
	return m, <-ran
}

func register(ctx context.Context, store *sqlite.Store, keys *sender.Keys, network sender.Network, s scenario, target string) error {
	reg, err := sender.NewRegistry(store, keys, &sender.RegistryConfig{Network: network})
	if err != nil {
		return err
	}
	parsed, err := signing.ParseSecret(secret)
	if err != nil {
		return err
	}
	return store.InTx(ctx, func(tx *sql.Tx) error {
		for i := range s.subscriptions {
			id := fmt.Sprintf("sub_%d", i)
			if _, _, err := reg.CreateSubscriberTx(ctx, tx, sender.NewSubscriber{ID: id, Secret: parsed}); err != nil {
				return err
			}
			if _, err := reg.SubscribeTx(ctx, tx, sender.NewSubscription{Subscriber: id, URL: fmt.Sprintf("%s/hook/%d", target, i)}); err != nil {
				return err
			}
		}
		return nil
	})
}

func publish(ctx context.Context, store *sqlite.Store, s scenario, n int) error {
	pub, err := sender.NewPublisher(store, nil)
	if err != nil {
		return err
	}
	data, err := json.Marshal(string(bytes.Repeat([]byte("x"), 1024-200)))
	if err != nil {
		return err
	}
	for done := 0; done < n; {
		batch := make([]sender.Event, min(1000, n-done))
		for i := range batch {
			batch[i] = sender.Event{
				Type: "thing.changed", Object: sender.Object{Type: "thing", ID: fmt.Sprint(done + i)},
				Subscriber: fmt.Sprintf("sub_%d", (done+i)%s.subscriptions), Data: data,
			}
		}
		if _, err := pub.PublishMany(ctx, batch); err != nil {
			return err
		}
		done += len(batch)
	}
	return nil
}

// commitLatency commits one row at a time, every few milliseconds, until the
// channel closes: through the store's InTx, and past it.
func commitLatency(ctx context.Context, when string, store *sqlite.Store, db *sql.DB, extra map[string]float64, until <-chan struct{}) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	for way, commit := range map[string]func() error{
		"InTx": func() error {
			return store.InTx(ctx, func(tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, "INSERT INTO things (value) VALUES ('x')")
				return err
			})
		},
		"own tx": func() error {
			_, err := db.ExecContext(ctx, "INSERT INTO things (value) VALUES ('x')")
			return err
		},
	} {
		wg.Go(func() {
			var took []float64
			tick := time.NewTicker(7 * time.Millisecond)
			defer tick.Stop()
			for running := true; running; {
				select {
				case <-until:
					running = false
				case <-tick.C:
					began := time.Now()
					if err := commit(); err != nil {
						fmt.Fprintln(os.Stderr, "bench: the application's commit:", err)
						return
					}
					took = append(took, float64(time.Since(began).Microseconds())/1000)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			for label, q := range map[string]float64{"p50": 0.5, "p99": 0.99} {
				extra[fmt.Sprintf("%s, %s, %s ms", way, when, label)] = quantile(took, q)
			}
		})
	}
	wg.Wait()
}

func after(d time.Duration) <-chan struct{} {
	c := make(chan struct{})
	time.AfterFunc(d, func() { close(c) })
	return c
}
