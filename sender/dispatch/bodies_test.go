package dispatch_test

import (
	"context"
	"crypto/rand"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/internal/bedtest"
	"github.com/surehook/surehook/sender/sendertest"
)

// blindStore claims without events, like a store whose connection breaks between the commit
// of a claim and the read of its events. If without is set, it claims without those alone.
type blindStore struct {
	dispatch.Store
	fail    atomic.Int64         // as many calls of Payloads fail
	without func(id string) bool // the event is not there
	ids     sync.Map             // events, by number
	calls   atomic.Int64
	early   atomic.Int64 // deliveries that were claimed while Payloads would have failed
}

func (s *blindStore) Step(ctx context.Context, p dispatch.ExpandParams, b dispatch.Batch) (dispatch.Expanded, dispatch.Claims, error) {
	x, c, err := s.Store.Step(ctx, p, b)
	if s.fail.Load() > 0 {
		s.early.Add(int64(len(c.Claimed)))
	}
	for i := range c.Claimed {
		cl := &c.Claimed[i]
		s.ids.Store(cl.Key.Event, cl.Event.ID)
		if s.without != nil && !s.without(cl.Event.ID) {
			continue
		}
		cl.Body, cl.Event = nil, sender.EventInfo{}
	}
	return x, c, err
}

func (s *blindStore) Payloads(ctx context.Context, events []int64) (map[int64]dispatch.Payload, error) {
	s.calls.Add(1)
	if s.fail.Add(-1) >= 0 {
		return nil, errAway
	}
	all, err := s.Store.Payloads(ctx, events)
	for no := range all {
		if id, _ := s.ids.Load(no); s.without != nil && s.without(id.(string)) {
			delete(all, no)
		}
	}
	return all, err
}

// Claims whose events could not be read are attempted once they can be.
func TestClaimsWithoutEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		endpoint := sendertest.NewRoundTripper()
		b.Subscribe("sub_a", "http://endpoint/")
		store := &blindStore{Store: b.Store}
		store.fail.Store(3)
		log := &bedtest.LockedLog{}
		b.Start(b.DispatcherOn(store, dispatch.Config{UnguardedTransport: endpoint, Logger: slog.New(slog.NewTextHandler(log, nil))}))
		ref := b.Publish("sub_a")
		time.Sleep(10 * time.Second)
		d := b.Delivery()
		require.Equal(t, sender.StatusDelivered, d.Status)
		require.Len(t, d.Attempts, 1, "the claim stands")
		require.Len(t, endpoint.Requests(), 1)
		require.Equal(t, ref.ID, endpoint.Requests()[0].Header.Get("Webhook-Id"))
		require.JSONEq(t, string(d.Body), string(endpoint.Requests()[0].Body))
		require.Contains(t, log.String(), "reading the events of claims: the database is away")

		store.fail.Store(3)
		b.Publish("sub_a")
		time.Sleep(10 * time.Millisecond)
		b.Publish("sub_a")
		time.Sleep(10 * time.Second)
		require.Len(t, endpoint.Requests(), 3)
		require.EqualValues(t, 1+1, store.early.Load(), "no more is claimed until it is read")
	})
}

// A stop gives claims back whose events could not be read.
func TestClaimsWithoutEventsAreGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		b.Subscribe("sub_a", "http://endpoint/")
		store := &blindStore{Store: b.Store}
		store.fail.Store(1 << 40)
		stop := b.Start(b.DispatcherOn(store, dispatch.Config{UnguardedTransport: sendertest.NewRoundTripper()}))
		b.Publish("sub_a")
		time.Sleep(10 * time.Second)
		require.True(t, b.Delivery().InFlight)
		require.NoError(t, stop())
		d := b.Delivery()
		require.False(t, d.InFlight)
		require.Empty(t, d.Attempts)

		_, err := b.Dispatcher(dispatch.Config{UnguardedTransport: sendertest.NewRoundTripper()}).RunOnce(t.Context())
		require.NoError(t, err)
		require.Equal(t, sender.StatusDelivered, b.Delivery().Status)
	})
}

// A delivery whose event does not exist is put off and logged. The others are made.
func TestEventThatIsNotThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		endpoint := sendertest.NewRoundTripper()
		b.Subscribe("sub_a", "http://endpoint/")
		b.Subscribe("sub_b", "http://endpoint/")
		gone := b.Publish("sub_a").ID
		var back atomic.Bool
		store := &blindStore{Store: b.Store, without: func(id string) bool { return id == gone && !back.Load() }}
		log := &bedtest.LockedLog{}
		var putOff bedtest.Noted[dispatch.PutOffReason]
		b.Start(b.DispatcherOn(store, dispatch.Config{
			UnguardedTransport: endpoint, Logger: slog.New(slog.NewTextHandler(log, nil)),
			Hooks: dispatch.Hooks{PutOff: func(_ context.Context, p dispatch.PutOff) { putOff.Add(p.Reason) }},
		}))
		for range 3 {
			b.Publish("sub_b")
		}
		time.Sleep(30 * time.Second)
		require.Equal(t, []dispatch.PutOffReason{dispatch.PutOffEvent}, putOff.List())
		require.Len(t, endpoint.Requests(), 3)
		require.Contains(t, log.String(), "since its event cannot be read")
		require.LessOrEqual(t, store.calls.Load(), int64(10), "it is put off")
		back.Store(true)
		time.Sleep(2 * time.Minute)
		require.Len(t, endpoint.Requests(), 4)
	})
}

// A dispatcher holds no more bytes of bodies than it may, and one body for all deliveries
// of an event.
func TestBodiesAreBounded(t *testing.T) {
	const subscriptions, size = 20, 10 << 10
	for name, c := range map[string]struct {
		everyone bool // one event for all subscriptions; otherwise one for each
		flying   int  // attempts at a time
	}{"an event for each": {false, 3}, "one for all": {true, subscriptions}} { // new ones get more while they have no more than half
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := bedtest.New(t)
				event := sender.Event{Type: "thing.changed", Object: sender.Object{Type: "thing", ID: "1"}, Data: strings.Repeat("x", size)}
				for i := range subscriptions {
					b.Subscribe("sub_"+strconv.Itoa(i), "http://endpoint/")
				}
				for i := range subscriptions {
					if event.Subscriber = "sub_" + strconv.Itoa(i); c.everyone {
						event.Subscriber = ""
					}
					if !c.everyone || i == 0 {
						_, err := b.Publisher.Publish(t.Context(), event)
						require.NoError(t, err)
					}
				}
				var flying atomic.Int64
				answer := make(chan struct{})
				endpoint := bedtest.TransportFunc(func(r *http.Request) (*http.Response, error) {
					flying.Add(1)
					<-answer
					return &http.Response{StatusCode: 204, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
				})
				b.Start(b.DispatcherOn(b.Store, dispatch.Config{UnguardedTransport: endpoint, BodyBytes: 4*size + 3000}))
				time.Sleep(500 * time.Millisecond)
				require.EqualValues(t, c.flying, flying.Load())
				close(answer)
				time.Sleep(10 * time.Second)
				require.EqualValues(t, subscriptions, flying.Load(), "what had no room goes later")
				list, _, err := b.History.Deliveries(t.Context(), history.DeliveryQuery{Status: sender.StatusDelivered, Limit: 100})
				require.NoError(t, err)
				require.Len(t, list, subscriptions)
			})
		})
	}
}

// While the bodies of busy endpoints take all of the memory, a delivery of a subscription on
// probation is attempted all the same.
func TestBodiesLeaveRoomForProbation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const subscribers, rounds = 30, 120
		b := bedtest.New(t)
		var busy, recovers, left atomic.Int64
		endpoint := bedtest.TransportFunc(func(r *http.Request) (*http.Response, error) {
			answer := &http.Response{StatusCode: 204, Header: http.Header{}, Body: http.NoBody, Request: r}
			switch {
			case r.URL.Host == "busy":
				time.Sleep(200 * time.Millisecond)
				busy.Add(1)
			case recovers.Add(1) == 1:
				answer.StatusCode = 500
			default:
				left.Store(subscribers*rounds - busy.Load())
			}
			return answer, nil
		})
		publish := func(subscriber int) {
			_, err := b.Publisher.Publish(t.Context(), sender.Event{
				Type: "thing.changed", Object: sender.Object{Type: "thing", ID: rand.Text()}, Data: strings.Repeat("x", 9900), Subscriber: "sub_" + strconv.Itoa(subscriber),
			})
			require.NoError(t, err)
		}
		b.Start(b.DispatcherOn(b.Store, dispatch.Config{UnguardedTransport: endpoint, BodyBytes: 80_000}))
		b.Subscribe("sub_0", "http://recovers/")
		publish(0)
		time.Sleep(time.Second)
		for i := range subscribers {
			b.Subscribe("sub_"+strconv.Itoa(i+1), "http://busy/")
		}
		for range rounds {
			for i := range subscribers {
				publish(i + 1)
			}
		}
		time.Sleep(10 * time.Minute)
		require.EqualValues(t, subscribers*rounds, busy.Load())
		require.EqualValues(t, 2, recovers.Load())
		require.Greater(t, left.Load(), int64(subscribers*rounds/10), "it was due after a minute, and did not wait for the others")
	})
}

// Whatever a bound is, everything is delivered. A body that is larger than all that a
// dispatcher may hold goes alone.
func TestBounds(t *testing.T) {
	for name, c := range map[string]dispatch.Config{
		"a body is larger than all of them": {BodyBytes: 1},
		"bodies are not bounded":            {BodyBytes: math.MaxInt64},
		"the fewest slots":                  {Slots: 4, PerSubscription: 1},
		"the most slots":                    {Slots: 1_000_000, PerSubscription: math.MaxInt},
		"the longest times":                 {Lease: math.MaxInt64, DrainTimeout: math.MaxInt64, MaxIdle: math.MaxInt64, Policy: dispatch.Policy{FastAnswer: math.MaxInt64, DisableAfter: math.MaxInt64}},
	} {
		t.Run(name, func(t *testing.T) {
			b := bedtest.New(t)
			b.Subscribe("sub_a", "http://endpoint/")
			for range 5 {
				b.Publish("sub_a")
			}
			c.UnguardedTransport = sendertest.NewRoundTripper()
			stats, err := b.Dispatcher(c).RunOnce(t.Context())
			require.NoError(t, err)
			require.Equal(t, 5, stats.Delivered)
		})
	}
}
