package feed_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/feed"
	"github.com/surehook/surehook/sender/memory"
)

// bed is a feed on the memory store, for tests that do not depend on the store.
type bed struct {
	t      *testing.T
	store  *memory.Store
	spy    *spy
	reg    *sender.Registry[*memory.Tx]
	pub    *sender.Publisher[*memory.Tx]
	reader *feed.Reader
}

// spy counts the queries, and can make them fail.
type spy struct {
	*memory.Store
	pages, heads atomic.Int64
	broken       atomic.Bool
	afterPage    func() // called between a page's query and its answer, if it is not nil
}

var errBroken = errors.New("the database is on fire")

func (s *spy) Feed(ctx context.Context, q feed.StoreQuery) (feed.StorePage, error) {
	if q.Heads {
		s.heads.Add(1)
	} else {
		s.pages.Add(1)
	}
	if s.broken.Load() {
		return feed.StorePage{}, errBroken
	}
	p, err := s.Store.Feed(ctx, q)
	if !q.Heads && s.afterPage != nil {
		s.afterPage()
	}
	return p, err
}

func newBed(t *testing.T, cfg *feed.ReaderConfig, subscribers ...string) *bed {
	t.Helper()
	store, err := memory.New(nil)
	require.NoError(t, err)
	b := &bed{t: t, store: store, spy: &spy{Store: store}}
	keys, err := sender.NewKeys(sender.SealingKey{ID: "1", Key: bytes.Repeat([]byte{1}, 32)})
	require.NoError(t, err)
	b.reg, err = sender.NewRegistry(store, keys, nil)
	require.NoError(t, err)
	for _, id := range subscribers {
		_, _, err := b.reg.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: id})
		require.NoError(t, err)
	}
	b.pub, err = sender.NewPublisher(store, nil)
	require.NoError(t, err)
	b.reader, err = feed.NewReader(b.spy, cfg)
	require.NoError(t, err)
	return b
}

// publish publishes an event for a subscriber, or for everyone, and returns its id.
func (b *bed) publish(subscriber string) string {
	b.t.Helper()
	ref, err := b.pub.Publish(b.t.Context(), sender.Event{
		Type: "thing.changed", Object: sender.Object{Type: "thing", ID: "1"}, Subscriber: subscriber, Data: json.RawMessage(`{"a":"<b>"}`),
	})
	require.NoError(b.t, err)
	return ref.ID
}

// prune removes all events.
func (b *bed) prune() {
	b.t.Helper()
	_, _, err := b.store.Step(b.t.Context(), dispatch.ExpandParams{Events: 1000, Deliveries: 1000}, dispatch.Batch{})
	require.NoError(b.t, err)
	_, err = b.store.Prune(b.t.Context(), dispatch.PruneParams{Events: time.Now().Add(time.Hour), Limit: 1000})
	require.NoError(b.t, err)
}

func (b *bed) page(q feed.Query) feed.Page {
	b.t.Helper()
	p, err := b.reader.Page(b.t.Context(), q)
	require.NoError(b.t, err)
	require.NotEmpty(b.t, p.Next)
	return p
}

func ids(p feed.Page) []string {
	all := []string{}
	for _, e := range p.Events {
		all = append(all, e.ID)
	}
	return all
}

// publishKept publishes an event that is kept, because its delivery is held.
func (b *bed) publishKept() string {
	b.t.Helper()
	ref, err := b.pub.Publish(b.t.Context(), sender.Event{Type: "kept.made", Object: sender.Object{Type: "thing", ID: "2"}})
	require.NoError(b.t, err)
	return ref.ID
}

// keep makes the deliveries of publishKept's events held.
func (b *bed) keep() {
	b.t.Helper()
	_, _, err := b.reg.CreateSubscriber(b.t.Context(), sender.NewSubscriber{ID: "sub_kept"})
	require.NoError(b.t, err)
	s, err := b.reg.Subscribe(b.t.Context(), sender.NewSubscription{Subscriber: "sub_kept", URL: "https://example.com/", EventTypes: []string{"kept.*"}})
	require.NoError(b.t, err)
	require.NoError(b.t, b.reg.Pause(b.t.Context(), s.ID))
}
