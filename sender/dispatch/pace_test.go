package dispatch_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
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

// stepsStore notes the times of steps that changed something, and the times of all other
// calls.
type stepsStore struct {
	dispatch.Store
	silent  bool // it never signals that something may be due, unless by hints
	hints   chan struct{}
	mu      sync.Mutex
	begins  time.Time
	wrote   []time.Duration
	records []time.Duration
	looked  int
	swept   int
	replays int
}

func (s *stepsStore) Step(ctx context.Context, p dispatch.ExpandParams, b dispatch.Batch) (dispatch.Expanded, dispatch.Claims, error) {
	x, c, err := s.Store.Step(ctx, p, b)
	s.mu.Lock()
	defer s.mu.Unlock()
	at := time.Since(s.begins)
	if len(b.Results) > 0 {
		s.records = append(s.records, at)
	}
	if len(b.Results)+len(c.Claimed) > 0 {
		s.wrote = append(s.wrote, at)
	} else {
		s.looked++
	}
	return x, c, err
}

func (s *stepsStore) Sweep(ctx context.Context, p dispatch.SweepParams) (dispatch.Swept, error) {
	s.mu.Lock()
	s.swept++
	s.mu.Unlock()
	return s.Store.Sweep(ctx, p)
}

func (s *stepsStore) StepReplays(ctx context.Context, limit int, announce func(n sender.Notice) (sender.Draft, bool)) (dispatch.ReplayStep, error) {
	s.mu.Lock()
	s.replays++
	s.mu.Unlock()
	return s.Store.StepReplays(ctx, limit, announce)
}

// begin forgets all notes.
func (s *stepsStore) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begins, s.wrote, s.records, s.looked, s.swept, s.replays = time.Now(), nil, nil, 0, 0, 0
}

// noted returns the counts.
func (s *stepsStore) noted() (records, looked, swept, replays int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.records), s.looked, s.swept, s.replays
}

// steps returns the times of steps that changed something.
func (s *stepsStore) steps() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.wrote)
}

func (s *stepsStore) Woken() <-chan struct{} {
	if s.silent {
		return s.hints
	}
	return s.Store.Woken()
}

// paced runs a dispatcher that rests, in virtual time.
func paced(t *testing.T, cfg dispatch.Config, fn func(t *testing.T, b *bedtest.Bed, s *stepsStore)) {
	pacedOn(t, &stepsStore{}, cfg, fn)
}

func pacedOn(t *testing.T, s *stepsStore, cfg dispatch.Config, fn func(t *testing.T, b *bedtest.Bed, s *stepsStore)) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		s.Store, s.hints = b.Store, make(chan struct{}) // of this test's bubble
		if cfg.UnguardedTransport == nil {
			cfg.UnguardedTransport = sendertest.NewRoundTripper()
		}
		stop := b.Start(b.DispatcherOn(s, cfg))
		time.Sleep(10 * time.Second)
		s.begin()
		fn(t, b, s)
		require.NoError(t, stop())
	})
}

// A single event is claimed at once, and its result is recorded a little later. While other
// events follow, the step of each event records the result of the event before.
func TestResultsWaitForTheNextStep(t *testing.T) {
	paced(t, dispatch.Config{}, func(t *testing.T, b *bedtest.Bed, s *stepsStore) {
		b.Subscribe("sub_a", "http://endpoint/")
		time.Sleep(10 * time.Second)
		s.begin()
		b.Publish("sub_a")
		time.Sleep(time.Second + 5*time.Millisecond)
		require.Equal(t, []time.Duration{0, 200 * time.Millisecond}, s.steps())
		_, looked, _, _ := s.noted()
		require.Equal(t, 4, looked, "one each 200 ms, after these steps")
		require.Equal(t, sender.StatusDelivered, b.Delivery().Status)

		s.begin()
		const events = 50
		for range events {
			b.Publish("sub_a")
			time.Sleep(20 * time.Millisecond)
		}
		time.Sleep(time.Second)
		require.Len(t, s.steps(), events+1, "one step for each event, which records the one before, and the last result's")
	})
}

// An attempt that is on the wire causes no looks, whether it is answered soon, late or never.
// Its result is recorded by a look that comes a little before the result's own time.
func TestAttemptsCauseNoLooks(t *testing.T) {
	var took atomic.Int64
	set := func(d time.Duration) { took.Store(int64(d)) }
	set(5 * time.Millisecond)
	endpoint := bedtest.TransportFunc(func(r *http.Request) (*http.Response, error) {
		select {
		case <-r.Context().Done():
			return nil, r.Context().Err()
		case <-time.After(time.Duration(took.Load())):
			return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody}, nil
		}
	})
	paced(t, dispatch.Config{UnguardedTransport: endpoint}, func(t *testing.T, b *bedtest.Bed, s *stepsStore) {
		b.Subscribe("sub_a", "http://endpoint/")
		b.Publish("sub_a")
		const apart = 10*time.Second + 67*time.Millisecond // a look at the moment of a commit might find the event before its hint
		time.Sleep(apart)
		for _, d := range []time.Duration{5 * time.Millisecond, 120 * time.Millisecond, 900 * time.Millisecond} {
			set(d)
			s.begin()
			for range 20 {
				b.Publish("sub_a")
				time.Sleep(150 * time.Millisecond)
			}
			_, looked, _, _ := s.noted()
			require.Zero(t, looked, "%v: each event's step records what came before it", d)
			time.Sleep(apart)
		}

		set(5 * time.Millisecond)
		s.begin()
		b.Publish("sub_a")
		time.Sleep(time.Second + 5*time.Millisecond)
		require.Equal(t, []time.Duration{0, 200 * time.Millisecond}, s.steps())
		_, looked, _, _ := s.noted()
		require.Equal(t, 4, looked)

		set(time.Hour)
		b.Publish("sub_a")
		time.Sleep(5 * time.Second)
		s.begin()
		time.Sleep(2 * time.Second) // its timeout comes later
		_, looked, _, _ = s.noted()
		require.InDelta(t, 10, looked, 1)
	})
}

// However long the pump may rest, it sees in time that attempts hang, and gives their places
// to others that wait for them.
func TestHangingAttemptsAreSeenDuringARest(t *testing.T) {
	var hangs atomic.Bool
	begun := make(chan string, 100)
	endpoints := bedtest.TransportFunc(func(r *http.Request) (*http.Response, error) {
		begun <- r.URL.Host
		if hangs.Load() && r.URL.Host != "fast" {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody}, nil
	})
	cfg := dispatch.Config{UnguardedTransport: endpoints, Slots: 8, MaxIdle: 20 * time.Second} // six places for proven endpoints
	paced(t, cfg, func(t *testing.T, b *bedtest.Bed, _ *stepsStore) {
		for _, host := range []string{"a", "b", "c", "d", "e", "f", "fast"} {
			b.Subscribe(host, "http://"+host+"/")
			b.Publish(host) // this makes it proven
			time.Sleep(time.Second)
		}
		hangs.Store(true)
		for _, host := range []string{"a", "b", "c", "d", "e", "f"} {
			b.Publish(host)
		}
		time.Sleep(300 * time.Millisecond)
		for len(begun) > 0 {
			<-begun
		}
		b.Publish("fast")
		time.Sleep(600 * time.Millisecond)
		require.Empty(t, begun, "the others have all places")
		time.Sleep(300 * time.Millisecond)
		require.Len(t, begun, 1)
	})
}

// Hints that come in a burst make one step for each MaxDelay, the first of them at once. Once
// a second, a step with several events is followed by a look MaxDelay later, which may find
// others that nobody hinted at.
func TestMaxDelay(t *testing.T) {
	ms := func(of ...float64) (all []time.Duration) {
		for _, n := range of {
			all = append(all, time.Duration(n*float64(time.Millisecond)))
		}
		return all
	}
	for name, c := range map[string]struct {
		maxDelay time.Duration
		n        int
		apart    time.Duration
		want     []time.Duration // the last one records
	}{
		"a burst":        {n: 16, apart: 2200 * time.Microsecond, want: ms(0, 12, 24, 36, 236)},
		"too far apart":  {n: 3, apart: 20 * time.Millisecond, want: ms(0, 20, 40, 240)},
		"a longer delay": {maxDelay: 50 * time.Millisecond, n: 69, apart: 2200 * time.Microsecond, want: ms(0, 52.2, 102.2, 153.4, 353.4)},
		// If steps kept their distance alone, each of these events would wait for its own one.
		"about as far apart as it":    {maxDelay: 100 * time.Millisecond, n: 6, apart: 90 * time.Millisecond, want: ms(0, 190, 290, 460, 660)},
		"less than it twice":          {maxDelay: 100 * time.Millisecond, n: 2, apart: 150 * time.Millisecond, want: ms(0, 200, 400)},
		"further apart than it twice": {maxDelay: 100 * time.Millisecond, n: 3, apart: 320 * time.Millisecond, want: ms(0, 200, 320, 520, 640, 840)},
	} {
		t.Run(name, func(t *testing.T) {
			paced(t, dispatch.Config{MaxDelay: c.maxDelay}, func(t *testing.T, b *bedtest.Bed, s *stepsStore) {
				b.Subscribe("sub_a", "http://endpoint/")
				b.Publish("sub_a")                               // this makes it proven
				time.Sleep(10*time.Second + 17*time.Millisecond) // between two looks
				s.begin()
				for range c.n {
					b.Publish("sub_a")
					time.Sleep(c.apart)
				}
				time.Sleep(time.Second)
				require.Equal(t, c.want, s.steps())
			})
		})
	}
}

// A result of a subscription with a cap of its own makes room for its other deliveries, and
// one of a subscription with an order lets the next version go. It waits for no other
// attempt, nor with results that nobody waits for.
func TestResultsThatOthersWaitForAreRecordedAtOnce(t *testing.T) {
	took := map[string]time.Duration{"endpoint": 3 * time.Millisecond, "other": time.Millisecond, "patient": 900 * time.Millisecond}
	endpoints := bedtest.TransportFunc(func(r *http.Request) (*http.Response, error) {
		time.Sleep(took[r.URL.Host])
		return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody}, nil
	})
	for name, settings := range map[string]sender.Settings{"a cap": {MaxInFlight: 1}, "an order": {Order: sender.OrderObject}} {
		for _, beside := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, beside others %t", name, beside), func(t *testing.T) {
				paced(t, dispatch.Config{UnguardedTransport: endpoints}, func(t *testing.T, b *bedtest.Bed, s *stepsStore) {
					sub, _ := b.Subscribe("sub_a", "http://endpoint/")
					_, err := b.Registry.Update(t.Context(), sub.ID, sender.SubscriptionChange{Settings: &settings})
					require.NoError(t, err)
					for subscriber, url := range map[string]string{"sub_b": "http://other/", "sub_c": "http://patient/"} {
						b.Subscribe(subscriber, url)
						b.Publish(subscriber) // this makes it proven
					}
					time.Sleep(10 * time.Second)
					if beside {
						b.Publish("sub_c")
						time.Sleep(500 * time.Millisecond)
						b.Publish("sub_b")
					}
					s.begin()
					for range 10 {
						b.PublishOn(sender.Object{Type: "thing", ID: "one"}, "sub_a")
					}
					time.Sleep(150 * time.Millisecond)
					records, _, _, _ := s.noted()
					require.GreaterOrEqual(t, records, 10)
				})
			})
		}
	}
}

// The dispatcher finds events that are committed without a hint by looking. It finds them
// soon while there are some, and a second later it looks no more often than before.
func TestEventsWithoutHints(t *testing.T) {
	pacedOn(t, &stepsStore{silent: true}, dispatch.Config{MaxDelay: 10 * time.Millisecond}, func(t *testing.T, b *bedtest.Bed, s *stepsStore) {
		b.Subscribe("sub_a", "http://endpoint/")
		var late time.Duration
		for i := range 20 {
			s.begin()
			b.Publish("sub_a")
			time.Sleep(200 * time.Millisecond)
			require.NotEmpty(t, s.steps(), "within MaxIdle")
			if i > 0 {
				late = max(late, s.steps()[0])
			}
		}
		require.LessOrEqual(t, late, 10*time.Millisecond)
		time.Sleep(time.Second)
		s.begin()
		time.Sleep(10 * time.Second)
		_, looked, _, _ := s.noted()
		require.InDelta(t, 50, looked, 5)
	})
}

// An event that a look finds a little before its hint comes has a hint, so no others are
// looked for.
func TestHintsThatComeLate(t *testing.T) {
	pacedOn(t, &stepsStore{silent: true}, dispatch.Config{}, func(t *testing.T, b *bedtest.Bed, s *stepsStore) {
		b.Subscribe("sub_a", "http://endpoint/")
		b.Publish("sub_a") // this makes it proven
		for range 3 {
			time.Sleep(10 * time.Second)
			s.begin()
			b.Publish("sub_a")
			for len(s.steps()) == 0 {
				time.Sleep(time.Millisecond)
			}
			time.Sleep(5 * time.Millisecond)
			s.hints <- struct{}{}
			time.Sleep(time.Second)
			_, looked, _, _ := s.noted()
			require.LessOrEqual(t, looked, 7)
		}
	})
}

// Events without hints are found as soon beside others that have hints.
func TestEventsWithoutHintsBesideOthers(t *testing.T) {
	pacedOn(t, &stepsStore{silent: true}, dispatch.Config{MaxDelay: 10 * time.Millisecond}, func(t *testing.T, b *bedtest.Bed, s *stepsStore) {
		b.Subscribe("sub_a", "http://endpoint/")
		publish := func(during time.Duration) {
			for i := range during / (5 * time.Millisecond) {
				b.Publish("sub_a")
				if i%10 == 0 {
					s.hints <- struct{}{}
				}
				time.Sleep(5 * time.Millisecond)
			}
		}
		publish(2 * time.Second)
		s.begin()
		publish(10 * time.Second)
		last := time.Duration(0)
		for _, at := range s.steps() {
			require.LessOrEqual(t, at-last, 20*time.Millisecond)
			last = at
		}
	})
}

// A dispatcher that has nothing to do looks for events five times a second, and for the
// rest once a second.
func TestIdleLooks(t *testing.T) {
	paced(t, dispatch.Config{}, func(t *testing.T, _ *bedtest.Bed, s *stepsStore) {
		time.Sleep(10 * time.Second)
		require.Empty(t, s.steps())
		_, looked, swept, replays := s.noted()
		require.InDelta(t, 50, looked, 2)
		require.InDelta(t, 10, swept, 1)
		require.InDelta(t, 10, replays, 1)
	})
}

// heldStore holds one of its calls until the test lets it go.
type heldStore struct {
	dispatch.Store
	sweep, claim chan struct{} // nil: not held
	claiming     chan struct{} // closed when a claim is held
	ended        error         // of the context of a held claim
}

func (s *heldStore) Sweep(ctx context.Context, p dispatch.SweepParams) (dispatch.Swept, error) {
	if s.sweep != nil {
		<-s.sweep
	}
	return s.Store.Sweep(ctx, p)
}

func (s *heldStore) Step(ctx context.Context, p dispatch.ExpandParams, b dispatch.Batch) (dispatch.Expanded, dispatch.Claims, error) {
	x, c, err := s.Store.Step(ctx, p, b)
	if len(c.Claimed) > 0 && s.claim != nil { // upkeep claims nothing and runs on another goroutine
		close(s.claiming)
		<-s.claim
		s.ended = ctx.Err()
		s.claim = nil
	}
	return x, c, err
}

// A sweep that takes long holds up no delivery.
func TestUpkeepHoldsNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		b.Subscribe("sub_a", "http://endpoint/")
		s := &heldStore{Store: b.Store, sweep: make(chan struct{})}
		endpoint := sendertest.NewRoundTripper()
		stop := b.Start(b.DispatcherOn(s, dispatch.Config{UnguardedTransport: endpoint}))
		synctest.Wait()
		b.Publish("sub_a")
		time.Sleep(time.Second)
		require.Len(t, endpoint.Requests(), 1)
		close(s.sweep)
		require.NoError(t, stop())
	})
}

// A run may have to end while its claim commits. Then it waits for the claim, and gives the
// claimed deliveries back, or sends them.
func TestStopWaitsForItsStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		b.Subscribe("sub_a", "http://endpoint/")
		s := &heldStore{Store: b.Store, claim: make(chan struct{}), claiming: make(chan struct{})}
		let := s.claim
		stop := b.Start(b.DispatcherOn(s, dispatch.Config{UnguardedTransport: bedtest.TransportFunc(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody}, nil
		})}))
		for range 40 {
			b.Publish("sub_a")
		}
		<-s.claiming
		stopped := make(chan error)
		go func() { stopped <- stop() }()
		time.Sleep(time.Second)
		close(let)
		require.NoError(t, <-stopped)
		require.NoError(t, s.ended)
		list, _, err := b.History.Deliveries(t.Context(), history.DeliveryQuery{Limit: 100})
		require.NoError(t, err)
		for _, d := range list {
			require.Contains(t, []sender.Status{sender.StatusPending, sender.StatusDelivered}, d.Status, "nothing is left in flight")
		}
	})
}

// The next step need not keep its distance from a look that finds nothing.
func TestMaxDelayAfterARest(t *testing.T) {
	paced(t, dispatch.Config{MaxDelay: 100 * time.Millisecond}, func(t *testing.T, b *bedtest.Bed, s *stepsStore) {
		b.Subscribe("sub_a", "http://endpoint/")
		b.Publish("sub_a")
		for range 10 {
			time.Sleep(10*time.Second + 17*time.Millisecond)
			s.begin()
			b.Publish("sub_a")
			time.Sleep(time.Second)
			require.NotEmpty(t, s.steps())
			require.Zero(t, s.steps()[0])
		}
	})
}
