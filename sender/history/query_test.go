package history_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/memory"
)

func newHistory(t *testing.T) *history.History {
	t.Helper()
	store, err := memory.New(nil)
	require.NoError(t, err)
	h, err := history.New(store, nil)
	require.NoError(t, err)
	return h
}

func TestHistoryRefuses(t *testing.T) {
	h, now := newHistory(t), time.Now()
	for name, q := range map[string]history.DeliveryQuery{
		"status":               {Status: "late"},
		"class":                {Class: "bad"},
		"limit":                {Limit: 201},
		"event type":           {EventType: "a..b"},
		"prefix without a dot": {EventType: "a*"},
		"object without type":  {Object: sender.Object{ID: "7"}},
		"times":                {Since: now, Until: now},
	} {
		_, _, err := h.Deliveries(t.Context(), q)
		require.ErrorIs(t, err, sender.ErrInvalid, name)
	}
	for name, q := range map[string]history.EventQuery{
		"limit": {Limit: -1}, "type": {Type: "a b"}, "object": {Object: sender.Object{ID: "7"}}, "times": {Since: now, Until: now.Add(-1)}, "bytes": {Bytes: -1},
	} {
		_, _, err := h.Events(t.Context(), q)
		require.ErrorIs(t, err, sender.ErrInvalid, name)
	}
	for name, q := range map[string]sender.SubscriptionQuery{"limit": {Limit: 201}, "status": {Status: "deleted"}} {
		_, _, err := h.Subscriptions(t.Context(), q)
		require.ErrorIs(t, err, sender.ErrInvalid, name)
	}
	for name, to := range map[string]time.Time{"backwards": now, "too long": now.Add(7*24*time.Hour + 1)} {
		_, err := h.Rollups(t.Context(), now, to)
		require.ErrorIs(t, err, sender.ErrInvalid, name)
	}
}

func TestHistoryAccepts(t *testing.T) {
	h, now := newHistory(t), time.Now()
	for _, q := range []history.DeliveryQuery{
		{}, {EventType: "*"}, {EventType: "a.*"}, {EventType: "a.b"}, {Object: sender.Object{Type: "a"}}, {Object: sender.Object{Type: "a", ID: "b"}},
		{Since: now}, {Until: now}, {Since: now, Until: now.Add(1)}, {Status: sender.StatusHeld}, {Class: sender.ClassProtocol}, {Limit: 200},
	} {
		_, _, err := h.Deliveries(t.Context(), q)
		require.NoError(t, err, "%+v", q)
	}
	_, err := h.Rollups(t.Context(), now, now.Add(7*24*time.Hour))
	require.NoError(t, err)
}
