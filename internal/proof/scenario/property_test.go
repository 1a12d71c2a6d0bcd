package scenario_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	dedupmemory "github.com/surehook/surehook/dedup/memory"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/memory"
	"github.com/surehook/surehook/sender/sendertest"
	"github.com/surehook/surehook/signing"
)

// bothSides is a publisher whose events are posted by hand to a receiver.
type bothSides struct {
	outbox *sendertest.Outbox[*memory.Tx]
	pub    *sender.Publisher[*memory.Tx]
	keys   *signing.Keyring
	rcv    *receiver.Receiver[*dedupmemory.Tx]
}

func newBothSides(t *rapid.T) bothSides {
	store, err := memory.New(nil)
	require.NoError(t, err)
	b := bothSides{outbox: sendertest.NewOutbox[*memory.Tx](store)}
	b.pub, err = sender.NewPublisher(b.outbox, nil)
	require.NoError(t, err)
	b.keys, err = signing.NewKeyring(signing.Key{Secret: signing.GenerateSecret()})
	require.NoError(t, err)
	verifier, err := signing.NewVerifier(b.keys, nil)
	require.NoError(t, err)
	markers := dedupmemory.New()
	b.rcv, err = receiver.New(verifier, markers.InTx, markers, "default", &receiver.Config{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	return b
}

// post signs a published event anew and hands it to the receiver.
func (b bothSides) post(t *rapid.T, p sendertest.Published, apply receiver.HandlerFunc[*dedupmemory.Tx]) (receiver.Result, error) {
	m := signing.Message{Method: http.MethodPost, Header: http.Header{"Content-Type": {"application/json"}}, Body: p.Body}
	require.NoError(t, signing.Sign(m.Header, signing.DefaultSchemes(), p.ID, time.Now(), m.Body, b.keys))
	return b.rcv.Receive(context.Background(), m, receiver.State(apply))
}

var (
	errNotApplied = errors.New("it cannot be applied now")

	anyType   = rapid.StringMatching(`[A-Za-z0-9_-]{1,12}(\.[A-Za-z0-9_-]{1,12}){0,3}`)
	anyObject = rapid.StringMatching(`[^\x00-\x1f\x7f-\x{9f}]{1,40}`)
	anyJSON   = rapid.Custom(func(t *rapid.T) json.RawMessage {
		value := rapid.SampledFrom([]any{nil, true, 0.5, "<&>\u2028\"\\", "é\U0001f600", []any{}, []any{1, nil}, map[string]any{}, map[string]any{"a": map[string]any{"b": "c"}}}).Draw(t, "value")
		text, err := json.Marshal(value)
		require.NoError(t, err)
		space := rapid.SampledFrom([]string{"", " ", "\n\t"}).Draw(t, "space")
		return json.RawMessage(space + string(text) + space)
	})
)

// The consumer gets an event exactly as the producer published it, whatever its
// content.
func TestPropertyEventsArriveAsTheyWerePublished(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newBothSides(t)
		e := sender.Event{
			Type: anyType.Draw(t, "type"), Object: sender.Object{Type: anyType.Draw(t, "object type"), ID: anyObject.Draw(t, "object")},
			Version: rapid.Int64Range(0, 1<<53-1).Draw(t, "version"), OccurredAt: time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "at"), rapid.Int64Range(0, 1e9-1).Draw(t, "ns")),
		}
		if rapid.Bool().Draw(t, "with data") {
			e.Data = anyJSON.Draw(t, "data")
		}
		ref, err := b.pub.Publish(context.Background(), e)
		if len(e.Type) > 128 || len(e.Object.Type) > 64 || len(e.Object.ID) > 255 {
			require.ErrorIs(t, err, sender.ErrInvalidEvent)
			return
		}
		require.NoError(t, err)
		published := b.outbox.Published()[0]
		var got receiver.Event
		result, err := b.post(t, published, func(_ context.Context, _ *dedupmemory.Tx, ev receiver.Event) error {
			got = ev
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, receiver.Applied, result)
		require.Equal(t, ref.ID, got.ID)
		require.Equal(t, e.Type, got.Type)
		require.Equal(t, e.Object, sender.Object(got.Object))
		require.Equal(t, ref.Version, got.Version)
		require.True(t, e.OccurredAt.Equal(got.OccurredAt), "%v became %v", e.OccurredAt, got.OccurredAt)
		require.Equal(t, string(published.Body), string(got.Body))
		if e.Data == nil {
			require.Nil(t, got.Data)
		} else {
			require.JSONEq(t, string(e.Data.(json.RawMessage)), string(got.Data))
		}
	})
}

// Events arrive in any order, any number of times, and applying them fails at random.
// Each has at most one effect, the last version wins and is never followed by an older
// one, and a failed application leaves no trace.
func TestPropertyEachAtMostOnceAndNeverAnOlderOverANewer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newBothSides(t)
		objects := []string{"a", "b"}
		for range rapid.IntRange(1, 10).Draw(t, "events") {
			_, err := b.pub.Publish(context.Background(), sender.Event{Type: "t", Object: sender.Object{Type: "t", ID: rapid.SampledFrom(objects).Draw(t, "object")}})
			require.NoError(t, err)
		}
		events := b.outbox.Published()
		applied, state := map[string]int{}, map[string]int64{}
		seen := map[string]bool{}
		arrive := func(t *rapid.T, p sendertest.Published, fails bool) {
			before := state[p.Object.ID]
			result, err := b.post(t, p, func(_ context.Context, _ *dedupmemory.Tx, ev receiver.Event) error {
				if fails {
					return errNotApplied
				}
				applied[ev.ID]++
				require.Greater(t, ev.Version, state[ev.Object.ID], "an older one over a newer")
				state[ev.Object.ID] = ev.Version
				return nil
			})
			switch {
			case seen[p.ID]:
				require.Equal(t, receiver.Duplicate, result)
			case p.Version <= before:
				require.Equal(t, receiver.Stale, result)
				seen[p.ID] = true
			case fails:
				require.ErrorIs(t, err, errNotApplied)
				return
			default:
				require.Equal(t, receiver.Applied, result)
				seen[p.ID] = true
			}
			require.NoError(t, err)
		}
		for range rapid.IntRange(0, 40).Draw(t, "posts") {
			arrive(t, rapid.SampledFrom(events).Draw(t, "event"), rapid.IntRange(0, 3).Draw(t, "fails") == 0)
		}
		last := map[string]int64{}
		for _, p := range events { // at least once each
			arrive(t, p, false)
			last[p.Object.ID] = max(last[p.Object.ID], p.Version)
		}
		require.Equal(t, last, state)
		for id, n := range applied {
			require.Equal(t, 1, n, id)
		}
	})
}
