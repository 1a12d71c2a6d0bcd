package fault_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/backoff"
	"github.com/surehook/surehook/internal/newid"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/storetest"
	"github.com/surehook/surehook/signing"
)

// service publishes and dispatches for as long as a test wants, on a database that it
// believes to be sound.
type service struct {
	store     storetest.Store[*sql.Tx]
	publisher *sender.Publisher[*sql.Tx]
	history   *history.History
	name      string
	timeout   time.Duration

	mu           sync.Mutex
	acknowledged map[string]bool
	since        map[string]time.Time // when the publishing of what is pending began
	classes      map[sender.Class]int // of attempts, as they were recorded
	delivered    map[string]bool
	posts        map[string]map[int]int // by event and attempt
	wrong        []string
	next         int
}

func newService(t *testing.T, store storetest.Store[*sql.Tx], timeout time.Duration) *service {
	t.Helper()
	s := &service{
		store: store, name: newid.New("sub_", time.Now()), timeout: timeout,
		acknowledged: map[string]bool{}, since: map[string]time.Time{}, classes: map[sender.Class]int{}, delivered: map[string]bool{}, posts: map[string]map[int]int{},
	}
	var err error
	s.publisher, err = sender.NewPublisher[*sql.Tx](store, nil)
	require.NoError(t, err)
	s.history, err = history.New(store, nil)
	require.NoError(t, err)
	return s
}

// register makes a subscription of all events, and returns the verifier of its
// endpoint.
func (s *service) register(t *testing.T, url string) receiver.Verifier {
	t.Helper()
	registry, err := sender.NewRegistry(s.store, keys(t), &sender.RegistryConfig{Network: sender.Network{AllowPrivateNetworks: true}})
	require.NoError(t, err)
	_, secret, err := registry.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: s.name})
	require.NoError(t, err)
	_, err = registry.Subscribe(t.Context(), sender.NewSubscription{Subscriber: s.name, URL: url})
	require.NoError(t, err)
	ring, err := signing.NewKeyring(signing.Key{ID: "1", Secret: secret})
	require.NoError(t, err)
	verifier, err := signing.NewVerifier(ring, nil)
	require.NoError(t, err)
	return verifier
}

// dispatch runs a dispatcher until the test ends.
func (s *service) dispatch(t *testing.T) {
	t.Helper()
	schedule, err := backoff.Fixed(20 * time.Millisecond)
	require.NoError(t, err)
	d, err := dispatch.New(s.store, keys(t), &dispatch.Config{
		Policy:  dispatch.Policy{Backoff: backoff.Policy{Schedule: schedule}, DisableAfter: -1},
		Timeout: s.timeout, Lease: 3 * s.timeout, Network: sender.Network{AllowPrivateNetworks: true}, Logger: quiet,
		Hooks: dispatch.Hooks{Recorded: func(_ context.Context, r *dispatch.Recorded) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.classes[r.Result.Class]++
			if r.Result.Class == sender.ClassNone && !r.Lost {
				s.delivered[r.Event.ID] = true
			}
		}},
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
}

// publish publishes an event until it is acknowledged.
func (s *service) publish(ctx context.Context) {
	s.mu.Lock()
	s.next++
	key := s.name + strconv.Itoa(s.next)
	s.mu.Unlock()
	began := time.Now()
	for ; ctx.Err() == nil; time.Sleep(20 * time.Millisecond) { // the database is away
		each, cancel := context.WithTimeout(ctx, 2*time.Second)
		ref, err := s.publisher.Publish(each, sender.Event{
			Type: "thing.made", Object: sender.Object{Type: "thing", ID: key}, Subscriber: s.name, IdempotencyKey: key,
		})
		cancel()
		if err == nil {
			s.mu.Lock()
			s.acknowledged[ref.ID], s.since[ref.ID] = true, began
			s.mu.Unlock()
			return
		}
	}
}

// observed is a handler that notes its posts.
func (s *service) observed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get("Webhook-Id")
		number, err := strconv.Atoi(r.Header.Get("Webhook-Attempt"))
		s.mu.Lock()
		if err != nil {
			s.wrong = append(s.wrong, fmt.Sprintf("%s: the number of its attempt: %v", id, err))
		}
		if s.posts[id] == nil {
			s.posts[id] = map[int]int{}
		}
		s.posts[id][number]++
		s.mu.Unlock()
		next.ServeHTTP(w, r)
	})
}

// pending is how many acknowledged events are not delivered yet.
func (s *service) pending() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.acknowledged {
		if !s.delivered[id] {
			n++
		}
	}
	return n
}

// oldest is a time before that of the oldest pending event, or zero if there is none.
func (s *service) oldest() (oldest time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, at := range s.since {
		if s.delivered[id] {
			delete(s.since, id)
		} else if oldest.IsZero() || at.Before(oldest) {
			oldest = at
		}
	}
	return oldest
}

func (s *service) failed(class sender.Class) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.classes[class]
}

// soon bounds the recovery, which takes seconds on an idle machine.
const soon = 5 * time.Minute

// settled waits until everything is delivered, and checks that nothing was lost, and
// that no attempt was posted twice, or not recorded.
func (s *service) settled(t *testing.T, what string) {
	t.Helper()
	require.Eventually(t, func() bool {
		s.lookUp(t.Context())
		return s.pending() == 0
	}, soon, 20*time.Millisecond, "%s: it recovers by itself", what)
}

// lookUp reads the pending events from the store: if a success was recorded and the
// answer was lost, the dispatcher records it again, too late, and reports that.
func (s *service) lookUp(ctx context.Context) {
	since := s.oldest()
	if since.IsZero() {
		return
	}
	for cursor := ""; ; {
		page, next, err := s.history.Deliveries(ctx, history.DeliveryQuery{
			Subscriber: s.name, Status: sender.StatusDelivered, Since: since, Limit: 200, Cursor: cursor,
		})
		if err != nil {
			return
		}
		s.mu.Lock()
		for _, d := range page {
			s.delivered[d.Event.ID] = true
		}
		s.mu.Unlock()
		if next == "" {
			return
		}
		cursor = next
	}
}

func (s *service) check(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Empty(t, s.wrong)
	stored := map[string]bool{}
	for cursor := ""; ; {
		page, next, err := s.history.Deliveries(t.Context(), history.DeliveryQuery{Subscriber: s.name, Limit: 200, Cursor: cursor})
		require.NoError(t, err)
		for _, d := range page {
			d, err := s.history.Delivery(t.Context(), d.ID)
			require.NoError(t, err)
			require.Equal(t, sender.StatusDelivered, d.Status)
			stored[d.Event.ID] = true
			for i, a := range d.Attempts {
				require.Equal(t, i+1, a.Number)
				require.Equal(t, i == len(d.Attempts)-1, a.Class == sender.ClassNone, "delivered by its last attempt, and by no other")
			}
			for number, n := range s.posts[d.Event.ID] {
				require.Equal(t, 1, n, "posts of attempt %d", number)
				require.LessOrEqual(t, number, len(d.Attempts), "an attempt that is not recorded was posted")
			}
		}
		if next == "" {
			break
		}
		cursor = next
	}
	require.Equal(t, s.acknowledged, stored, "what was acknowledged, and what is there")
}
