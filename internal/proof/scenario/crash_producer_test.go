package scenario_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
)

// crashProducer is the producer of the killed processes and of the test.
type crashProducer[Tx any] struct {
	registry   *sender.Registry[Tx]
	pub        *sender.Publisher[Tx]
	history    *sender.History
	dispatcher *sender.Dispatcher
	insert     func(ctx context.Context, tx Tx, thing string) error
}

func newCrashProducer[Tx any](t require.TestingT, store sender.Store[Tx], cfg sender.DispatcherConfig, insert func(ctx context.Context, tx Tx, thing string) error) *crashProducer[Tx] {
	keys, err := sender.NewKeys(sender.SealingKey{ID: "1", Key: bytes.Repeat([]byte{1}, 32)})
	require.NoError(t, err)
	cfg.Network = sender.Network{AllowPrivateNetworks: true}
	cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	p := &crashProducer[Tx]{insert: insert}
	p.registry, err = sender.NewRegistry(store, keys, &sender.RegistryConfig{Network: cfg.Network, Retention: cfg.Retention})
	require.NoError(t, err)
	p.pub, err = sender.NewPublisher(store, nil)
	require.NoError(t, err)
	p.history, err = sender.NewHistory(store, nil)
	require.NoError(t, err)
	p.dispatcher, err = sender.NewDispatcher(store, keys, &cfg)
	require.NoError(t, err)
	return p
}

// publishOne commits a thing with its event, or rolls both back.
func (p *crashProducer[Tx]) publishOne(ctx context.Context, eventType string) error {
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

// finish dispatches until nothing is live.
func (p *crashProducer[Tx]) finish(ctx context.Context, t require.TestingT) {
	for live := 1; live > 0; time.Sleep(20 * time.Millisecond) { // until the next retry is due
		_, err := p.dispatcher.RunOnce(ctx)
		require.NoError(t, err)
		live = 0
		for _, s := range []sender.Status{sender.StatusPending, sender.StatusAwaitingRetry} {
			page, _, err := p.history.Deliveries(ctx, sender.DeliveryQuery{Status: s, Limit: 1})
			require.NoError(t, err)
			live += len(page)
		}
	}
}

// deliveries returns all deliveries, with their bodies and attempts.
func (p *crashProducer[Tx]) deliveries(t *testing.T, status sender.Status) (all []sender.Delivery) {
	t.Helper()
	cursor := ""
	for {
		page, next, err := p.history.Deliveries(t.Context(), sender.DeliveryQuery{Status: status, Limit: 200, Cursor: cursor})
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
	if d.Status == sender.StatusDelivered { // the publisher of another one may never have got so far
		require.NotEmpty(t, posts)
	}
	for _, p := range posts {
		require.Equal(t, string(d.Body), p.body, "a duplicate has the same bytes")
	}
	return interrupted
}
