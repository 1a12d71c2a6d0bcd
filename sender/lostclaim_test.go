package sender_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/sendertest"
)

// lostAnswerStore commits a claim, and loses the answer, when it is asked to.
type lostAnswerStore struct {
	sender.DispatchStore
	lose func(c sender.Claims) bool
}

func (s *lostAnswerStore) RecordAndClaim(ctx context.Context, b sender.Batch) (sender.Claims, error) {
	c, err := s.DispatchStore.RecordAndClaim(ctx, b)
	if err == nil && s.lose(c) {
		return sender.Claims{}, errors.New("the connection is gone")
	}
	return c, err
}

// What a process has claimed without knowing it does not wait for the end of the lease,
// even where there is no other process; nor does it if the process was known before.
func TestClaimWhoseAnswerWasLost(t *testing.T) {
	for name, nth := range map[string]int{"the first": 1, "a later one": 2} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBed(t)
				b.subscribe("sub_a", "http://endpoint/")
				var claims atomic.Int64
				store := &lostAnswerStore{b.store, func(c sender.Claims) bool {
					n := claims.Add(int64(len(c.Claimed)))
					return len(c.Claimed) > 0 && n == int64(nth)
				}}
				b.start(b.dispatcherOn(store, sender.DispatcherConfig{UnguardedTransport: sendertest.NewRoundTripper()}))
				for range nth {
					b.publish("sub_a")
					time.Sleep(200 * time.Millisecond)
				}
				time.Sleep(10 * time.Second)
				require.EqualValues(t, nth+1, claims.Load())
				list, _, err := b.store.Deliveries(t.Context(), sender.DeliveryQuery{Status: sender.StatusDelivered})
				require.NoError(t, err)
				require.Len(t, list, nth)
			})
		})
	}
}
