package sender_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	dedup "github.com/surehook/surehook/dedup/memory"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/internal/bedtest"
	"github.com/surehook/surehook/sender/memory"
	"github.com/surehook/surehook/sender/sendertest"
	"github.com/surehook/surehook/signing"
)

func event() sender.Event {
	return sender.Event{Type: "thing.changed", Object: sender.Object{Type: "thing", ID: "1"}}
}

func TestPublishRefuses(t *testing.T) {
	b := bedtest.New(t)
	b.Subscribe("sub_a", "http://endpoint/")
	for _, c := range []struct {
		name   string
		change func(*sender.Event)
		is     error
		says   string
	}{
		{"no type", func(e *sender.Event) { e.Type = "" }, sender.ErrInvalidEvent, "event type is empty"},
		{"type with a space", func(e *sender.Event) { e.Type = "a b" }, sender.ErrInvalidEvent, "event type has the character ' ' at offset 1"},
		{"type that is a pattern", func(e *sender.Event) { e.Type = "a.*" }, sender.ErrInvalidEvent, "event type"},
		{"no object type", func(e *sender.Event) { e.Object.Type = "" }, sender.ErrInvalidEvent, "object type is empty"},
		{"no object id", func(e *sender.Event) { e.Object.ID = "" }, sender.ErrInvalidEvent, "object id is empty"},
		{"object id with NUL", func(e *sender.Event) { e.Object.ID = "a\x00" }, sender.ErrInvalidEvent, "U+0000"},
		{"object id not UTF-8", func(e *sender.Event) { e.Object.ID = "\xff" }, sender.ErrInvalidEvent, "UTF-8"},
		{"negative version", func(e *sender.Event) { e.Version = -1 }, sender.ErrInvalidEvent, "it must be from 1 to 9007199254740991"},
		{"version beyond 2^53-1", func(e *sender.Event) { e.Version = 1 << 53 }, sender.ErrInvalidEvent, "it must be from 1"},
		{"data that is not JSON", func(e *sender.Event) { e.Data = json.RawMessage(`{"a":`) }, sender.ErrInvalidEvent, "not valid JSON"},
		{"empty data", func(e *sender.Event) { e.Data = json.RawMessage{} }, sender.ErrInvalidEvent, "not valid JSON"},
		{"data that is not UTF-8", func(e *sender.Event) { e.Data = json.RawMessage("\"\xff\"") }, sender.ErrInvalidEvent, "not valid UTF-8"},
		{"too large", func(e *sender.Event) { e.Data = json.RawMessage(`"` + strings.Repeat("x", 1<<20) + `"`) }, sender.ErrInvalidEvent, "at most 1048576 are allowed"},
		{"a subscription without its subscriber", func(e *sender.Event) { e.Subscription = "wsub_1" }, sender.ErrInvalidEvent, "without its subscriber"},
		{"an object of the library's", func(e *sender.Event) { e.Object.Type = "surehook.subscription" }, sender.ErrInvalidEvent, "begins with \"surehook.\", which only the library's own objects do"},
		{"a key with NUL", func(e *sender.Event) { e.IdempotencyKey = "k\x00" }, sender.ErrInvalidEvent, "idempotency key has a NUL at offset 1: it must be UTF-8 without NUL"},
		{"a key that is not UTF-8", func(e *sender.Event) { e.IdempotencyKey = "\xff" }, sender.ErrInvalidEvent, "idempotency key is not valid UTF-8"},
		{"a scope with NUL", func(e *sender.Event) { e.IdempotencyKey, e.KeyScope = "k", "\x00" }, sender.ErrInvalidEvent, "key scope has a NUL"},
		{"a subscriber with NUL", func(e *sender.Event) { e.Subscriber = "sub_\x00" }, sender.ErrInvalidEvent, "subscriber has a NUL"},
		{"a subscription with NUL", func(e *sender.Event) { e.Subscriber, e.Subscription = "sub_a", "wsub_\x00" }, sender.ErrInvalidEvent, "subscription has a NUL"},
		{"a year that RFC 3339 cannot say", func(e *sender.Event) { e.OccurredAt = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }, sender.ErrInvalidEvent, "year 10000"},
		{"a key that is too long", func(e *sender.Event) { e.IdempotencyKey = strings.Repeat("k", 256) }, sender.ErrInvalidEvent, "idempotency key has 256 bytes"},
		{"a scope that is too long", func(e *sender.Event) { e.IdempotencyKey, e.KeyScope = "k", strings.Repeat("k", 129) }, sender.ErrInvalidEvent, "key scope has 129 bytes"},
		{"an unknown subscriber", func(e *sender.Event) { e.Subscriber = "sub_x" }, sender.ErrNotFound, "\"sub_x\": make it in the transaction that makes your customer, or set Event.IfSubscriberExists"},
		{"if nobody exists", func(e *sender.Event) { e.IfSubscriberExists = true }, sender.ErrInvalidEvent, "IfSubscriberExists is set without a subscriber"},
		{"an unknown subscription", func(e *sender.Event) { e.Subscriber, e.Subscription = "sub_a", "wsub_x" }, sender.ErrNotFound, "wsub_x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := event()
			c.change(&e)
			_, err := b.Publisher.PublishMany(t.Context(), []sender.Event{event(), e})
			require.ErrorIs(t, err, c.is)
			require.ErrorContains(t, err, c.says)
			ref, err := b.Publisher.Publish(t.Context(), event())
			require.NoError(t, err)
			require.Equal(t, int64(1), ref.Version, "nothing was written, not even the good event beside it")
			b = bedtest.New(t)
			b.Subscribe("sub_a", "http://endpoint/")
		})
	}
	bad := event()
	bad.Type, bad.Object = "", sender.Object{}
	_, err := b.Publisher.Publish(t.Context(), bad)
	for _, part := range []string{"event type", "object type", "object id"} {
		require.ErrorContains(t, err, part, "all problems at once")
	}
}

func TestPublishVersions(t *testing.T) {
	b := bedtest.New(t)
	publish := func(version int64, key string) (sender.Ref, error) {
		e := event()
		e.Version, e.IdempotencyKey = version, key
		return b.Publisher.Publish(t.Context(), e)
	}
	first, err := publish(0, "k")
	require.NoError(t, err)
	require.Equal(t, int64(1), first.Version)
	ten, err := publish(10, "")
	require.NoError(t, err)
	require.Equal(t, int64(10), ten.Version)
	next, err := publish(0, "")
	require.NoError(t, err)
	require.Equal(t, int64(11), next.Version)

	_, err = publish(11, "")
	require.ErrorIs(t, err, sender.ErrVersion)
	var v *sender.VersionError
	require.ErrorAs(t, err, &v)
	require.Equal(t, sender.VersionError{Object: event().Object, Given: 11, Stored: 11}, *v)

	again, err := publish(0, "k")
	require.NoError(t, err)
	require.Equal(t, sender.Ref{ID: first.ID, Version: 1, Duplicate: true}, again)
	_, err = publish(99, "k")
	require.ErrorIs(t, err, sender.ErrIdempotencyKey, "the same key with another content")
	for name, change := range map[string]func(*sender.Event){
		"type":        func(e *sender.Event) { e.Type = "thing.gone" },
		"object type": func(e *sender.Event) { e.Object.Type = "thin" },
		"object id":   func(e *sender.Event) { e.Object.ID = "2" },
		"data":        func(e *sender.Event) { e.Data = json.RawMessage(`1`) },
		"subscriber":  func(e *sender.Event) { e.Subscriber = "sub_a" },
	} {
		e := event()
		e.IdempotencyKey = "k"
		change(&e)
		_, err := b.Publisher.Publish(t.Context(), e)
		require.ErrorIs(t, err, sender.ErrIdempotencyKey, name)
	}
	next, err = publish(0, "")
	require.NoError(t, err)
	require.Equal(t, int64(12), next.Version, "none of them moved the version")
	other := event()
	other.IdempotencyKey, other.KeyScope = "k", "another caller"
	ref, err := b.Publisher.Publish(t.Context(), other)
	require.NoError(t, err)
	require.False(t, ref.Duplicate, "scopes keep the keys of callers apart")
}

func TestPublishTx(t *testing.T) {
	b := bedtest.New(t)
	endpoint := sendertest.NewRoundTripper()
	b.Subscribe("sub_a", "http://endpoint/")
	undo := errors.New("undo")
	require.ErrorIs(t, b.Publisher.InTx(t.Context(), func(tx *memory.Tx) error {
		_, err := b.Publisher.PublishTx(t.Context(), tx, event())
		require.NoError(t, err)
		return undo
	}), undo)
	var ref sender.Ref
	require.NoError(t, b.Publisher.InTx(t.Context(), func(tx *memory.Tx) (err error) {
		ref, err = b.Publisher.PublishTx(t.Context(), tx, event())
		return err
	}))
	_, err := b.Dispatcher(dispatch.Config{UnguardedTransport: endpoint}).RunOnce(t.Context())
	require.NoError(t, err)
	posts := endpoint.Requests()
	require.Len(t, posts, 1, "what was rolled back is never sent")
	require.Equal(t, ref.ID, posts[0].Header.Get("Webhook-Id"))
	require.Equal(t, int64(1), ref.Version)

	none, err := b.Publisher.PublishMany(t.Context(), nil)
	require.NoError(t, err)
	require.Empty(t, none)
}

// A customer without webhooks does not fail the producer's transaction, if the producer says so.
func TestPublishIfSubscriberExists(t *testing.T) {
	b := bedtest.New(t)
	b.Subscribe("sub_a", "http://endpoint/")
	to := func(subscriber string) sender.Event {
		e := event()
		e.Subscriber, e.IfSubscriberExists = subscriber, true
		return e
	}
	ref, err := b.Publisher.Publish(t.Context(), to("sub_x"))
	require.NoError(t, err)
	require.Equal(t, sender.Ref{Dropped: true}, ref)
	refs, err := b.Publisher.PublishMany(t.Context(), []sender.Event{to("sub_x"), to("sub_a"), to("sub_x")})
	require.NoError(t, err)
	require.Equal(t, []sender.Ref{{Dropped: true}, {ID: refs[1].ID, Version: 1}, {Dropped: true}}, refs)
	stored, _, err := b.History.Events(t.Context(), history.EventQuery{})
	require.NoError(t, err)
	require.Len(t, stored, 1, "nothing was written of the others")
	require.Equal(t, refs[1].ID, stored[0].ID)
}

// Our own receiver decodes every rendered event to the same event, whatever is in it.
func FuzzBodyIsWhatTheReceiverReads(f *testing.F) {
	f.Add("thing.changed", "thing", "1", `{"a":1}`, int64(7))
	f.Add("a", "b", "é\"\\<&>\u2028", "null", int64(1))
	f.Add("a", "b", "x", "", int64(1<<53-1))
	secret := signing.GenerateSecret()
	f.Fuzz(func(t *testing.T, typ, objectType, objectID, data string, version int64) {
		b := bedtest.New(t)
		_, _, err := b.Registry.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: "sub_a", Secret: secret})
		require.NoError(t, err)
		_, err = b.Registry.Subscribe(t.Context(), sender.NewSubscription{Subscriber: "sub_a", URL: "http://endpoint/"})
		require.NoError(t, err)
		e := sender.Event{Type: typ, Object: sender.Object{Type: objectType, ID: objectID}, Version: version}
		if data != "" {
			e.Data = json.RawMessage(data)
		}
		ref, err := b.Publisher.Publish(t.Context(), e)
		if err != nil {
			require.ErrorIs(t, err, sender.ErrInvalidEvent)
			return
		}
		endpoint := sendertest.NewRoundTripper()
		_, err = b.Dispatcher(dispatch.Config{UnguardedTransport: endpoint}).RunOnce(t.Context())
		require.NoError(t, err)
		post := endpoint.Requests()[0]

		keyring, err := signing.NewKeyring(signing.Key{ID: "1", Secret: secret})
		require.NoError(t, err)
		verifier, err := signing.NewVerifier(keyring, nil)
		require.NoError(t, err)
		seen := dedup.New()
		rcv, err := receiver.New(verifier, seen.InTx, seen, "default", nil)
		require.NoError(t, err)
		var got receiver.Event
		_, err = rcv.Receive(t.Context(), signing.Message{Method: "POST", Header: post.Header, Body: post.Body},
			receiver.State(func(_ context.Context, _ *dedup.Tx, ev receiver.Event) error { got = ev; return nil }))
		require.NoError(t, err)
		require.Equal(t, ref.ID, got.ID)
		require.Equal(t, ref.Version, got.Version)
		require.Equal(t, typ, got.Type)
		require.Equal(t, objectType, got.Object.Type)
		require.Equal(t, objectID, got.Object.ID)
		require.Equal(t, strings.Trim(data, " \t\r\n"), string(got.Data))
	})
}
