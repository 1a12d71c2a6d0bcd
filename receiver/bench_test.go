package receiver_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/dedup/memory"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/receivertest"
	"github.com/surehook/surehook/signing"
)

// noDatabase serves to measure the pipeline without a store: every event is fresh and
// newer.
type noDatabase struct{}

func (noDatabase) Mark(context.Context, struct{}, string, string, time.Time) (bool, error) {
	return true, nil
}
func (noDatabase) Advance(context.Context, struct{}, string, dedup.Object, int64) (bool, error) {
	return true, nil
}
func (noDatabase) Version(context.Context, struct{}, string, dedup.Object) (int64, error) {
	return 0, nil
}
func (noDatabase) Prune(context.Context, struct{}, time.Time, int) (int, error) { return 0, nil }

func benchmarkReceive[Tx any](b *testing.B, inTx receiver.InTx[Tx], store dedup.Store[Tx], h receiver.HandlerFunc[Tx]) {
	rcv := newReceiver(b, inTx, store, nil)
	snd := receivertest.NewSender(b, testSecret, nil)
	messages := make([]signing.Message, 0, 4096)
	version := int64(0)
	refill := func() {
		for messages = messages[:0]; len(messages) < cap(messages); {
			version++
			ev := newEvent(version)
			ev.Data = strings.Repeat("x", 1024-200)
			messages = append(messages, snd.Request(ev).Message())
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if i%cap(messages) == 0 {
			b.StopTimer()
			refill()
			b.StartTimer()
		}
		res, err := rcv.Receive(context.Background(), messages[i%cap(messages)], receiver.State(h))
		if err != nil || res != receiver.Applied {
			b.Fatal(res, err)
		}
	}
}

func BenchmarkReceive(b *testing.B) {
	b.Run("no database", func(b *testing.B) {
		inTx := func(_ context.Context, fn func(struct{}) error) error { return fn(struct{}{}) }
		benchmarkReceive(b, inTx, noDatabase{}, func(context.Context, struct{}, receiver.Event) error { return nil })
	})
	b.Run("memory", func(b *testing.B) {
		store := memory.New()
		benchmarkReceive(b, store.InTx, store, func(context.Context, *memory.Tx, receiver.Event) error { return nil })
	})
	b.Run("sqlite full", func(b *testing.B) {
		bed, _ := onSQLite(b)
		benchmarkReceive(b, bed.inTx, bed.store, bed.effect)
	})
	b.Run("sqlite full, bare insert and commit", func(b *testing.B) {
		bed, _ := onSQLite(b)
		ev := receiver.Event{ID: "evt_1"}
		b.ReportAllocs()
		for b.Loop() {
			require.NoError(b, bed.inTx(context.Background(), func(tx *sql.Tx) error {
				return bed.effect(context.Background(), tx, ev)
			}))
		}
	})
}
