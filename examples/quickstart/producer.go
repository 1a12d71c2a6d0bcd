package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"time"

	_ "modernc.org/sqlite" // the driver

	"github.com/surehook/surehook"
	"github.com/surehook/surehook/backoff"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/catalogue"
	"github.com/surehook/surehook/sender/catalogue/shop"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/sqlite"
	"github.com/surehook/surehook/signing"
)

// planUpdated is the type of all events here, one of the shop's fifty.
const planUpdated = "plan.updated"

// producer is a service with customers, who are on plans.
type producer struct {
	db       *sql.DB
	hooks    *surehook.Sender[*sql.Tx]
	state    map[string]any // what the catalogue has as a plan's state in its newest version
	customer string         // the subscriber's id
	callback string         // its subscription's
	close    func()
}

// dsn opens a SQLite file so that commits survive a loss of power.
func dsn(path string) string {
	return "file:" + path + "?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(5000)&_txlock=immediate"
}

func newProducer(ctx context.Context, path string) (*producer, error) {
	db, err := sql.Open("sqlite", dsn(path))
	if err != nil {
		return nil, err
	}
	if _, err := db.ExecContext(ctx, "CREATE TABLE customers (name TEXT PRIMARY KEY, plan TEXT NOT NULL)"); err != nil {
		return nil, err
	}
	store, err := sqlite.New(db, nil)
	if err != nil {
		return nil, err
	}
	if err := store.Migrate(ctx); err != nil {
		return nil, err
	}

	// The catalogue has each type's versions, and the functions that make the older ones. A
	// service has one of its own: see sender/catalogue/shop, and docs/catalogue.md.
	types, err := shop.New()
	if err != nil {
		return nil, err
	}
	p := &producer{db: db}
	if p.state, err = planState(types); err != nil {
		return nil, err
	}

	// Signing secrets are sealed at rest. A real service keeps this key with its
	// other secrets, outside the database.
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	schedule, err := backoff.Fixed(700 * time.Millisecond)
	if err != nil {
		return nil, err
	}
	p.hooks, err = surehook.NewSender(store, sender.SealingKey{ID: "2026-11", Key: key}, &surehook.SenderConfig{
		Network:   sender.Network{AllowPrivateNetworks: true}, // the consumer is on loopback
		Catalogue: types,
		Logger:    slog.New(slog.NewTextHandler(io.Discard, nil)),
		Dispatch: dispatch.Config{ // the schedule is made of seconds instead of hours, to be watched
			Policy: dispatch.Policy{Backoff: backoff.Policy{Schedule: schedule, Horizon: 2 * time.Second}},
		},
	})
	if err != nil {
		return nil, err
	}
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() { done <- p.hooks.Run(run) }()
	p.close = func() {
		stop()
		if err := <-done; err != nil { // drained
			fmt.Println("the dispatcher:", err)
		}
		_ = db.Close()
	}
	return p, nil
}

// planState is the state of a plan in the newest version of its type.
func planState(types *catalogue.Catalogue) (state map[string]any, err error) {
	updated, there := types.Lookup(planUpdated)
	if !there {
		return nil, errors.New("the catalogue has no " + planUpdated)
	}
	newest := updated.Versions[len(updated.Versions)-1]
	err = json.Unmarshal(newest.Examples[0].Data, &state)
	return state, err
}

// subscribe registers a callback URL and returns the secret to verify with.
func (p *producer) subscribe(ctx context.Context, url string) (signing.Secret, error) {
	owner, secret, err := p.hooks.Registry.CreateSubscriber(ctx, sender.NewSubscriber{})
	if err != nil {
		return signing.Secret{}, err
	}
	subscription, err := p.hooks.Registry.Subscribe(ctx, sender.NewSubscription{
		Subscriber: owner.ID, URL: url, EventTypes: []string{"plan.*"},
		Settings: sender.Settings{PayloadVersion: shop.First}, // a consumer of today leaves it out
	})
	p.customer, p.callback = owner.ID, subscription.ID
	return secret, err
}

// setPlan changes a customer and publishes the event in the same transaction. If
// it is given an error, it fails with it after both.
func (p *producer) setPlan(ctx context.Context, name, plan string, fail ...error) error {
	return p.hooks.InTx(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO customers VALUES (?1, ?2) ON CONFLICT DO UPDATE SET plan = ?2", name, plan)
		if err != nil {
			return err
		}
		state := maps.Clone(p.state)
		state["id"], state["name"] = name, plan
		_, err = p.hooks.PublishTx(ctx, tx, sender.Event{
			Type: planUpdated, Object: sender.Object{Type: "plan", ID: name}, Data: state,
		})
		if err != nil {
			return err
		}
		for _, err := range fail {
			return err
		}
		return nil
	})
}

// changePlans gives a customer one plan after the other, a moment apart.
func (p *producer) changePlans(ctx context.Context, name string, plans ...string) error {
	for _, plan := range plans {
		if err := p.setPlan(ctx, name, plan); err != nil {
			return err
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
	return nil
}

// newest waits until the newest delivery has that status, and returns it with its attempts.
func (p *producer) newest(ctx context.Context, status sender.Status) (sender.Delivery, error) {
	for {
		page, _, err := p.hooks.History.Deliveries(ctx, history.DeliveryQuery{Limit: 1})
		if err != nil {
			return sender.Delivery{}, err
		}
		if len(page) > 0 && page[0].Status == status {
			return p.hooks.History.Delivery(ctx, page[0].ID)
		}
		if err := pause(ctx); err != nil {
			return sender.Delivery{}, err
		}
	}
}

// settled waits until nothing is on its way, and counts what was delivered.
func (p *producer) settled(ctx context.Context) (delivered int, err error) {
	for {
		all, _, err := p.hooks.History.Deliveries(ctx, history.DeliveryQuery{})
		if err != nil {
			return 0, err
		}
		delivered, live := 0, 0
		for _, d := range all {
			switch d.Status {
			case sender.StatusDelivered:
				delivered++
			case sender.StatusPending, sender.StatusAwaitingRetry:
				live++
			}
		}
		if live == 0 {
			return delivered, nil
		}
		if err := pause(ctx); err != nil {
			return 0, err
		}
	}
}

func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(20 * time.Millisecond):
		return nil
	}
}

func (p *producer) plans(ctx context.Context) (plans string, err error) {
	err = p.db.QueryRowContext(ctx, "SELECT group_concat(name || ': ' || plan, ', ') FROM (SELECT * FROM customers ORDER BY name)").Scan(&plans)
	return plans, err
}
