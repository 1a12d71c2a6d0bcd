package sender_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/internal/bedtest"
	"github.com/surehook/surehook/sender/memory"
)

// The body of an event says in which version its data is: the newest of its type, unless the
// producer says another one.
func TestPayloadVersion(t *testing.T) {
	b := bedtest.New(t)
	pub, err := sender.NewPublisher[*memory.Tx](b.Store, &sender.PublisherConfig{
		PayloadVersion: func(eventType string) string { return map[string]string{"invoice.paid": "2026-11-25"}[eventType] },
	})
	require.NoError(t, err)
	for _, c := range []struct {
		eventType, given, want string
		data                   any
	}{
		{"invoice.paid", "", `,"version":1,"payload_version":"2026-11-25","data":{"total":1}}`, json.RawMessage(`{"total":1}`)},
		{"invoice.paid", "2025-03-01", `,"version":2,"payload_version":"2025-03-01","data":{"total":1}}`, json.RawMessage(`{"total":1}`)},
		{"invoice.paid", "", `,"version":3,"payload_version":"2026-11-25"}`, nil},
		{"invoice.created", "", `,"version":4,"data":1}`, 1},
	} {
		e := event()
		e.Type, e.PayloadVersion, e.Data = c.eventType, c.given, c.data
		ref, err := pub.Publish(t.Context(), e)
		require.NoError(t, err)
		stored, err := b.History.Event(t.Context(), ref.ID)
		require.NoError(t, err)
		require.True(t, json.Valid(stored.Body))
		require.Contains(t, string(stored.Body), c.want)
	}
	for _, bad := range []string{"2", "2026-13-01", "2026-11-25\"", "2026-1-1"} {
		e := event()
		e.PayloadVersion = bad
		_, err := pub.Publish(t.Context(), e)
		require.ErrorIs(t, err, sender.ErrInvalidEvent)
		require.ErrorContains(t, err, "must be a date as 2026-11-25")
	}
}

// A publish that the check refuses changes nothing, and says why.
func TestPublishCheck(t *testing.T) {
	b := bedtest.New(t)
	var seen []sender.Payload
	wrong := errors.New("at /total: got string, want integer")
	pub, err := sender.NewPublisher[*memory.Tx](b.Store, &sender.PublisherConfig{
		PayloadVersion: func(string) string { return "2026-11-25" },
		Check: func(_ context.Context, p sender.Payload) error {
			seen = append(seen, p)
			if string(p.Data) == `{"total":"1"}` {
				return wrong
			}
			return nil
		},
	})
	require.NoError(t, err)
	good, bad := event(), event()
	good.Data, bad.Data = json.RawMessage(`{"total":1}`), json.RawMessage(`{"total":"1"}`)
	_, err = pub.PublishMany(t.Context(), []sender.Event{good, bad})
	require.ErrorIs(t, err, sender.ErrInvalidEvent)
	require.ErrorIs(t, err, wrong)
	require.ErrorContains(t, err, "event 1:")
	require.Equal(t, []sender.Payload{{Type: good.Type, Version: "2026-11-25", Data: json.RawMessage(`{"total":1}`)}, {Type: bad.Type, Version: "2026-11-25", Data: json.RawMessage(`{"total":"1"}`)}}, seen)
	all, _, err := b.History.Events(t.Context(), history.EventQuery{})
	require.NoError(t, err)
	require.Empty(t, all)
	ref, err := pub.Publish(t.Context(), good)
	require.NoError(t, err)
	require.EqualValues(t, 1, ref.Version, "no version was used up")
}
