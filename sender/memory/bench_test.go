package memory_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/memory"
)

// BenchmarkBatch records 100 results and claims 100 deliveries, with more or less
// of a backlog. Its time must not depend on the backlog.
func BenchmarkBatch(b *testing.B) {
	for _, backlog := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("backlog=%d", backlog), func(b *testing.B) {
			now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			store, _ := memory.New(&memory.Config{Now: func() time.Time { return now }})
			const subscriptions = 100
			err := store.InTx(b.Context(), func(tx *memory.Tx) error {
				for i := range subscriptions {
					owner := fmt.Sprintf("sub_%d", i)
					if err := store.CreateSubscriberTx(b.Context(), tx, sender.Subscriber{ID: owner}, nil); err != nil {
						return err
					}
					s := sender.Subscription{ID: "w" + owner, Subscriber: owner, EventTypes: []string{"*"}}
					if err := store.CreateSubscriptionTx(b.Context(), tx, s); err != nil {
						return err
					}
				}
				drafts := make([]sender.Draft, backlog/subscriptions)
				for i := range drafts {
					drafts[i] = sender.Draft{ID: fmt.Sprintf("evt_%d", i), Type: "a", Object: sender.Object{Type: "a", ID: "1"}}
				}
				_, err := store.PublishTx(b.Context(), tx, drafts)
				return err
			})
			if err != nil {
				b.Fatal(err)
			}
			if _, _, err := store.Step(b.Context(), dispatch.ExpandParams{Events: backlog, Deliveries: backlog}, dispatch.Batch{}); err != nil {
				b.Fatal(err)
			}
			batch := dispatch.Batch{
				// Every attempt fails and is due again at once, behind the others.
				Decide: func(_ dispatch.Live, h sender.Health, _ dispatch.Result, at time.Time) dispatch.Decision {
					return dispatch.Decision{Status: sender.StatusAwaitingRetry, Due: at, Health: h}
				},
				Claim: all,
			}
			for b.Loop() {
				now = now.Add(time.Millisecond)
				_, c, err := store.Step(b.Context(), dispatch.ExpandParams{}, batch)
				if err != nil || len(c.Claimed) != 100 {
					b.Fatal(len(c.Claimed), err)
				}
				batch.Results = batch.Results[:0]
				for _, d := range c.Claimed {
					batch.Results = append(batch.Results, dispatch.Result{Key: d.Key, Token: d.Token, Class: sender.ClassStatus})
				}
			}
		})
	}
}
