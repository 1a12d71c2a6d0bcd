package main

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/feed"
	"github.com/surehook/surehook/sender/history"
)

// With 60,000 deliveries each page of the console and of the portal, and each list of an
// API, reads no more rows than with ten million, up to a bound for each.
func TestPagesReadFewRows(t *testing.T) {
	t.Parallel()
	b, err := newBench(options{quick: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.close()) })
	s, err := openServed(t.Context(), b, 60_000)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.close()) }()
	require.Greater(t, len(s.pages), 60)
	for _, p := range s.pages {
		c, err := s.get(t.Context(), p)
		require.NoError(t, err)
		require.LessOrEqual(t, c.rows, p.most, s.name(p))
		t.Logf("%-80s %6d rows of %6d, %6d buffers, %6.1f ms", s.name(p), c.rows, p.most, c.blocks, c.took.Seconds()*1e3)
	}
	for name, list := range s.longLists(t) {
		before, _, err := s.read(t.Context())
		require.NoError(t, err)
		require.NoError(t, list(), name)
		rows, _, err := s.read(t.Context())
		require.NoError(t, err)
		require.LessOrEqual(t, rows-before, int64(examinedRows), name)
		t.Logf("%-80s %6d rows", name, rows-before)
	}
}

// longLists are lists as an API gets them, as long as they may be, and of what is rare.
func (s *served) longLists(t *testing.T) map[string]func() error {
	deliveries := func(q history.DeliveryQuery) func() error {
		q.Limit = 200
		return func() error {
			_, _, err := s.history.Deliveries(t.Context(), q)
			return err
		}
	}
	events := func(viewer string, after int64) func() error {
		return func() error {
			_, err := s.feed.Feed(t.Context(), feed.StoreQuery{Viewer: viewer, After: after, Limit: 200})
			return err
		}
	}
	return map[string]func() error{
		"deliveries": deliveries(history.DeliveryQuery{}), "dead-lettered deliveries of an owner": deliveries(history.DeliveryQuery{Subscriber: pagesOwner(7), Status: sender.StatusDeadLettered}),
		"deliveries that failed in a way that none did": deliveries(history.DeliveryQuery{Subscription: s.largest, StatusCode: http.StatusTeapot}),
		"deliveries about an object, of the first days": deliveries(history.DeliveryQuery{Object: sender.Object{Type: "invoice", ID: "hot"}, Until: time.Now().Add(-28 * 24 * time.Hour)}),
		"events for the operator":                       events(sender.Operator, 0), "events for a subscriber": events(pagesOwner(7), 100),
		"notices of a kind that there is none of": func() error {
			_, _, err := s.history.Notices(t.Context(), history.NoticeQuery{Kind: sender.NoticeProxy, Limit: 200})
			return err
		},
	}
}
