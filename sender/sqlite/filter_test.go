package sqlite_test

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/filter"
)

// A step that comes to a large body leaves the event to the next one, which reads the body
// before it takes the write lock. A small body costs no second step. A decision from before
// the transaction counts only if the filter is still the same.
func TestLargeBodiesAreReadBefore(t *testing.T) {
	ctx := t.Context()
	s := newStore(t, open(t, filepath.Join(t.TempDir(), "filter.db"), ""), time.Now)
	subscribers := register(t, s, 1)
	sub := sender.Subscription{ID: "wsub_filtered", Subscriber: subscribers[0], URL: "https://example.com/", EventTypes: []string{"*"}}
	set := func(expression string) {
		sub.Filter = filter.Read(expression)
		require.NoError(t, s.InTx(ctx, func(tx *sql.Tx) error { return s.UpdateSubscriptionTx(ctx, tx, sub) }))
	}
	require.NoError(t, s.InTx(ctx, func(tx *sql.Tx) error { return s.CreateSubscriptionTx(ctx, tx, sub) }))
	set(`{"data.x":{"exists":false}}`)
	var convert sender.Convert
	step := func() dispatch.Expanded {
		x, _, err := s.Step(ctx, dispatch.ExpandParams{Events: 10, Deliveries: 10, Convert: convert}, dispatch.Batch{})
		require.NoError(t, err)
		return x
	}

	publish(t, s, 2, 100, subscribers)
	require.Equal(t, dispatch.Expanded{Events: 2, Deliveries: 4}, step())

	publish(t, s, 1, 100, subscribers)
	publish(t, s, 3, 10_000, subscribers)
	require.Equal(t, dispatch.Expanded{Events: 1, Deliveries: 2, More: true}, step())
	require.Equal(t, dispatch.Expanded{Events: 3, Deliveries: 6}, step())

	publish(t, s, 1, 10_000, subscribers)
	require.Equal(t, dispatch.Expanded{More: true}, step())
	set(`{"data.x":{"exists":true}}`)
	require.Equal(t, dispatch.Expanded{Events: 1, Deliveries: 1}, step(), "by the filter that is stored now")

	made := 0
	convert = func(_, _, _ string, data json.RawMessage) (string, json.RawMessage, error) {
		made++
		return "2025-03-01", bytes.Replace(data, []byte("new"), []byte("x"), 1), nil
	}
	versioned := draft(subscribers[0], 0)
	versioned.BodyTail = []byte(`,"payload_version":"2026-11-25","data":{"new":1}}`)
	publish(t, s, 1, 100, subscribers)
	require.NoError(t, publishInTx(ctx, s, versioned))
	require.Equal(t, dispatch.Expanded{Events: 1, Deliveries: 1, More: true}, step(), "another payload version is made before the lock is taken, too")
	require.Zero(t, made)
	require.Equal(t, dispatch.Expanded{Events: 1, Deliveries: 2}, step())
	require.Equal(t, 1, made)
}

// Once filters were asked about most bodies, the next ones come with their events, each with its
// own, and filters are asked while others are read; a large body does not. So it is for an event
// with more matches than are asked about early.
func TestBodiesThatComeWithTheirEvents(t *testing.T) {
	for _, filtered := range []int{2, 66} {
		t.Run(strconv.Itoa(filtered), func(t *testing.T) {
			ctx := t.Context()
			db := open(t, filepath.Join(t.TempDir(), "filter.db"), "")
			s := newStore(t, db, time.Now)
			subscribers := register(t, s, 1)
			for i := range filtered {
				sub := sender.Subscription{ID: fmt.Sprintf("wsub_filtered_%d", i), Subscriber: subscribers[0], URL: "https://example.com/", EventTypes: []string{"*"}}
				sub.Filter = filter.Read([]string{`{"data":"yes"}`, `{"not":{"data":"yes"}}`}[i%2])
				require.NoError(t, s.InTx(ctx, func(tx *sql.Tx) error { return s.CreateSubscriptionTx(ctx, tx, sub) }))
			}
			for range 2 {
				var drafts []sender.Draft
				for i := range 90 {
					d := draft(subscribers[0], 10)
					d.BodyTail = []byte(`,"data":"` + []string{"yes", "no", "no", strings.Repeat("no", 2000)}[i%3+i/80] + `"}`)
					drafts = append(drafts, d)
				}
				require.NoError(t, publishInTx(ctx, s, drafts...))
				var all dispatch.Expanded
				for more := true; more; {
					x, _, err := s.Step(ctx, dispatch.ExpandParams{Events: 100, Deliveries: 10_000}, dispatch.Batch{})
					require.NoError(t, err)
					all.Events, all.Deliveries, more = all.Events+x.Events, all.Deliveries+x.Deliveries, x.More
				}
				require.Equal(t, dispatch.Expanded{Events: 90, Deliveries: 90 + 90*filtered/2}, all)
			}
			for i := range filtered {
				var n int
				require.NoError(t, db.QueryRowContext(ctx, `SELECT count(*) FROM surehook_pending p JOIN surehook_subscriptions s ON s.no = p.subscription WHERE s.id = ?`, fmt.Sprintf("wsub_filtered_%d", i)).Scan(&n))
				require.Equal(t, []int{2 * 27, 2 * 63}[i%2], n, i)
			}
		})
	}
}
