package sender_test

import (
	"context"
	"errors"
	"net/http"
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
// and no attempt of it is counted: where there is no other process, if the process was
// known before, and if it holds something else all the time.
func TestClaimWhoseAnswerWasLost(t *testing.T) {
	for name, c := range map[string]struct {
		nth  int64
		busy bool
	}{"the first": {1, false}, "a later one": {2, false}, "of one that is busy": {2, true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBed(t)
				b.subscribe("sub_a", "http://endpoint/")
				b.subscribe("sub_slow", "http://slow/")
				var claims atomic.Int64
				store := &lostAnswerStore{b.store, func(claimed sender.Claims) bool {
					return len(claimed.Claimed) > 0 && claims.Add(int64(len(claimed.Claimed))) == c.nth
				}}
				fast, slow := sendertest.NewRoundTripper(), sendertest.NewRoundTripper(sendertest.Delay(9*time.Second, sendertest.Status(200)))
				b.start(b.dispatcherOn(store, sender.DispatcherConfig{UnguardedTransport: transportFunc(func(r *http.Request) (*http.Response, error) {
					if r.URL.Host == "slow" {
						return slow.RoundTrip(r)
					}
					return fast.RoundTrip(r)
				})}))
				published := c.nth
				if c.busy {
					b.publish("sub_slow")
					time.Sleep(200 * time.Millisecond)
					published--
				}
				for range published {
					b.publish("sub_a")
					time.Sleep(200 * time.Millisecond)
				}
				time.Sleep(3 * time.Second)
				list, _, err := b.store.Deliveries(t.Context(), sender.DeliveryQuery{Status: sender.StatusDelivered})
				require.NoError(t, err)
				require.Len(t, list, int(published))
				for _, d := range list {
					d, err := b.store.Delivery(t.Context(), d.ID)
					require.NoError(t, err)
					require.Len(t, d.Attempts, 1)
				}
				require.EqualValues(t, c.nth+1, claims.Load())
			})
		})
	}
}
