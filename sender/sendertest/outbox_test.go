package sendertest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"

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

// named is a store whose one transaction has a name, as a handle that is used again has.
type named struct{ sender.Outbox[string] }

func (named) InTx(_ context.Context, fn func(string) error) error { return fn("tx") }

func (named) PublishTx(_ context.Context, _ string, drafts []sender.Draft) ([]sender.Ref, error) {
	return make([]sender.Ref, len(drafts)), nil
}

// A function that does not return leaves nothing behind that takes the events of others for its
// own.
func TestOutboxOfAFunctionThatDoesNotReturn(t *testing.T) {
	t.Parallel()
	for how, end := range map[string]func(){"panics": func() { panic("on purpose") }, "ends its goroutine": runtime.Goexit} {
		outbox := sendertest.NewOutbox(named{})
		publish := func() {
			if _, err := outbox.PublishTx(t.Context(), "tx", []sender.Draft{{Type: "thing.changed"}}); err != nil {
				t.Error(err)
			}
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			defer func() { _ = recover() }()
			_ = outbox.InTx(t.Context(), func(string) error {
				publish()
				end()
				return nil
			})
		}()
		<-ended
		sendertest.RequireNothingPublished(t, outbox)
		publish()
		require.Len(t, outbox.Published(), 1, how)
	}
}

// forgetful knows an event once, as a store that prunes it afterwards.
type forgetful struct {
	sender.Outbox[*memory.Tx]
	asked int
}

func (f *forgetful) Event(context.Context, string) (sender.StoredEvent, error) {
	if f.asked++; f.asked > 1 {
		return sender.StoredEvent{}, sender.ErrNotFound
	}
	return sender.StoredEvent{}, nil
}

// Of a transaction that InTx did not begin, the store says whether it has committed.
func TestOutboxOfOtherTransactions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in whose time ten seconds pass at once
		store, err := memory.New(nil)
		require.NoError(t, err)
		thing := sender.Object{Type: "thing", ID: "1"}
		publish := func(outbox *sendertest.Outbox[*memory.Tx]) *memory.Tx {
			pub, err := sender.NewPublisher(outbox, nil)
			require.NoError(t, err)
			tx, err := store.Begin(t.Context())
			require.NoError(t, err)
			_, err = pub.PublishTx(t.Context(), tx, sender.Event{Type: "thing.changed", Object: thing})
			require.NoError(t, err)
			return tx
		}

		outbox := sendertest.NewOutbox(store)
		require.NoError(t, publish(outbox).Rollback())
		sendertest.RequireNothingPublished(t, outbox)
		require.NoError(t, publish(outbox).Commit())
		sendertest.RequirePublished(t, outbox, "thing.changed", thing)
		open := publish(outbox)
		require.Len(t, outbox.Published(), 2, "this store cannot say anything while a transaction is open")
		require.NoError(t, open.Rollback())
		require.Len(t, outbox.Published(), 1)

		outbox = sendertest.NewOutbox[*memory.Tx](&forgetful{Outbox: store})
		require.NoError(t, publish(outbox).Commit())
		require.Len(t, outbox.Published(), 1)
		require.Len(t, outbox.Published(), 1, "it was committed, and is pruned now")

		outbox = sendertest.NewOutbox[*memory.Tx](struct{ sender.Outbox[*memory.Tx] }{store})
		require.NoError(t, publish(outbox).Rollback())
		require.Len(t, outbox.Published(), 1, "this store cannot say anything")
	})
}
