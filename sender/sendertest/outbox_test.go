package sendertest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/memory"
	"github.com/surehook/surehook/sender/sendertest"
)

// failing is a testing.TB that notes how a test would end.
type failing struct {
	testing.TB
	said string
}

func (f *failing) Helper()                           {}
func (f *failing) Fatalf(format string, args ...any) { f.said = fmt.Sprintf(format, args...) }

func TestOutbox(t *testing.T) {
	store, err := memory.New(nil)
	require.NoError(t, err)
	outbox := sendertest.NewOutbox(store)
	pub, err := sender.NewPublisher(outbox, nil)
	require.NoError(t, err)
	thing := sender.Object{Type: "thing", ID: "1"}
	event := sender.Event{Type: "thing.changed", Object: thing, Data: json.RawMessage(`{"a":1}`), IdempotencyKey: "k"}

	sendertest.RequireNothingPublished(t, outbox)
	missing := &failing{}
	sendertest.RequirePublished(missing, outbox, "thing.changed", thing)
	require.Equal(t, `0 events of type "thing.changed" about thing "1" were published, not one; published were: none`, missing.said)

	undo := errors.New("undo")
	require.ErrorIs(t, pub.InTx(t.Context(), func(tx *memory.Tx) error {
		_, err := pub.PublishTx(t.Context(), tx, event)
		require.NoError(t, err)
		return undo
	}), undo)
	sendertest.RequireNothingPublished(t, outbox)

	ref, err := pub.Publish(t.Context(), event)
	require.NoError(t, err)
	_, err = pub.Publish(t.Context(), event)
	require.NoError(t, err)
	p := sendertest.RequirePublished(t, outbox, "thing.changed", thing)
	require.Equal(t, ref.ID, p.ID)
	require.Equal(t, int64(1), p.Version)
	require.JSONEq(t, `{"a":1}`, string(p.Data))
	require.Contains(t, string(p.Body), ref.ID)

	event.IdempotencyKey = ""
	_, err = pub.Publish(t.Context(), event)
	require.NoError(t, err)
	twice := &failing{}
	sendertest.RequirePublished(twice, outbox, "thing.changed", thing)
	require.Contains(t, twice.said, "2 events of type")
	some := &failing{}
	sendertest.RequireNothingPublished(some, outbox)
	require.Contains(t, some.said, "\n\tthing.changed about thing 1")
}
