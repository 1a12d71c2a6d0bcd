package kill_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/storetest"
)

// producer publishes and delivers, in the processes that are killed and in the test.
type producer[Tx any] struct {
	registry   *sender.Registry[Tx]
	pub        *sender.Publisher[Tx]
	history    *history.History
	dispatcher *dispatch.Dispatcher
	insert     func(ctx context.Context, tx Tx, thing string) error
}

func newProducer[Tx any](t testing.TB, store storetest.Store[Tx], cfg dispatch.Config, insert func(ctx context.Context, tx Tx, thing string) error) *producer[Tx] {
	keys := testKeys(t)
	cfg.Network = sender.Network{AllowPrivateNetworks: true}
	cfg.Logger = quiet
	p := &producer[Tx]{insert: insert}
	var err error
	p.registry, err = sender.NewRegistry(store, keys, &sender.RegistryConfig{Network: cfg.Network, Retention: cfg.Retention})
	require.NoError(t, err)
	p.pub, err = sender.NewPublisher(store, nil)
	require.NoError(t, err)
	p.history, err = history.New(store, nil)
	require.NoError(t, err)
	p.dispatcher, err = dispatch.New(store, keys, &cfg)
	require.NoError(t, err)
	return p
}

// publishOne commits a thing with its event, or rolls both back.
func (p *producer[Tx]) publishOne(ctx context.Context, eventType string) error {
	undo, id := errors.New("undo"), fmt.Sprintf("%s-%d", eventType, rand.Uint64())
	if rand.IntN(5) == 0 {
		id = "undone-" + id
	}
	err := p.pub.InTx(ctx, func(tx Tx) error {
		if err := p.insert(ctx, tx, id); err != nil {
			return err
		}
		_, err := p.pub.PublishTx(ctx, tx, sender.Event{Type: eventType, Object: sender.Object{Type: "thing", ID: id}})
		if err == nil && strings.HasPrefix(id, "undone-") {
			return undo
		}
		return err
	})
	if errors.Is(err, undo) || ctx.Err() != nil {
		return nil
	}
	return err
}

// produce dispatches, and publishes with several publishers, each of which publishes a
// thing a tick. It prints a line for each thing that was committed or rolled back.
func (p *producer[Tx]) produce(ctx context.Context, publishers int, tick time.Duration, eventType func() string) error {
	var g errgroup.Group
	g.Go(func() error { return p.dispatcher.Run(ctx) })
	for range publishers {
		g.Go(func() error {
			for range time.Tick(tick) {
				if err := p.publishOne(ctx, eventType()); err != nil {
					fmt.Fprintln(os.Stderr, "publishing:", err)
					continue
				}
				fmt.Println("published")
			}
			return nil
		})
	}
	return g.Wait()
}

// finish dispatches until nothing is live.
func (p *producer[Tx]) finish(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { // the next retry is due
		_, err := p.dispatcher.RunOnce(t.Context())
		require.NoError(t, err)
		live := 0
		for _, s := range []sender.Status{sender.StatusPending, sender.StatusAwaitingRetry} {
			page, _, err := p.history.Deliveries(t.Context(), history.DeliveryQuery{Status: s, Limit: 1})
			require.NoError(t, err)
			live += len(page)
		}
		return live == 0
	}, 5*time.Minute, 20*time.Millisecond)
}

// deliveries returns all deliveries, with their bodies and attempts.
func (p *producer[Tx]) deliveries(t *testing.T) (all []sender.Delivery) {
	t.Helper()
	cursor := ""
	for {
		page, next, err := p.history.Deliveries(t.Context(), history.DeliveryQuery{Limit: 200, Cursor: cursor})
		require.NoError(t, err)
		for _, d := range page {
			d, err := p.history.Delivery(t.Context(), d.ID)
			require.NoError(t, err)
			all = append(all, d)
		}
		if next == "" {
			return all
		}
		cursor = next
	}
}

// heldType is the type of events to a subscription that is paused and resumed.
const heldType = "thing.held"

// requireKept checks a delivery that has ended against the receiver's effects.
func requireKept(t *testing.T, d sender.Delivery, posts []post) (interrupted int) {
	t.Helper()
	require.Contains(t, []sender.Status{sender.StatusDelivered, sender.StatusDeadLettered}, d.Status)
	for i, a := range d.Attempts {
		require.Equal(t, i+1, a.Number, "attempt numbers rise by one")
		if a.Class == sender.ClassInterrupted {
			interrupted++
		}
		if i < len(d.Attempts)-1 {
			require.NotEqual(t, sender.ClassNone, a.Class, "nothing is attempted again that was delivered")
			// A resume makes waiting deliveries due at once.
			require.False(t, d.Event.Type != heldType && d.Attempts[i+1].StartedAt.Before(a.NextAttemptAt), "no attempt is made before it is due")
		}
	}
	last := d.Attempts[len(d.Attempts)-1]
	require.Equal(t, d.Status == sender.StatusDelivered, last.Class == sender.ClassNone)
	require.LessOrEqual(t, len(posts), len(d.Attempts), "posts on the wire are at most the attempts recorded")
	if d.Status == sender.StatusDelivered { // the publisher of any other delivery may never have got so far
		require.NotEmpty(t, posts)
	}
	for _, p := range posts {
		require.Equal(t, string(d.Body), p.body, "a duplicate has the same bytes")
	}
	return interrupted
}
