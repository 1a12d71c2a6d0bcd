package scenario_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	dedupmemory "github.com/surehook/surehook/dedup/memory"
	"github.com/surehook/surehook/internal/race"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/memory"
	"github.com/surehook/surehook/signing"
)

const (
	// rotationPace is the distance between events, and rotationWay how long a request takes
	// to an endpoint.
	rotationPace = 10 * time.Second
	rotationWay  = 30 * time.Millisecond

	rotationOverlap = 20 * time.Minute
	rotationFrom    = rotationOverlap / 2 // when the new secret signs, for those who need it
	rotationFlight  = 5 * time.Second     // by then all is answered that was signed before
)

// rotatedOwner gets events at an endpoint of its own, while its secret is replaced.
type rotatedOwner struct {
	id      string
	schemes []signing.Scheme // of its verifier; nil: the defaults
	skew    time.Duration    // of its clock
	keeps   bool             // the old secret beside the new one; false: it has one at a time
	learns  time.Duration    // the new secret, so long after a rotation
	later   bool             // the new secret signs later
	active  bool             // it says that it has learned, and the new secret signs at once

	markers  *dedupmemory.Store
	secret   signing.Secret // the newest
	endpoint atomic.Pointer[http.Handler]
	mu       sync.Mutex
	refused  []time.Time
	taken    map[string]bool // ids of events
}

func (o *rotatedOwner) String() string {
	return fmt.Sprintf("%s: schemes %v, clock off by %v, learns after %v, keeps the old secret: %v", o.id, o.schemes, o.skew, o.learns, o.keeps)
}

// trust replaces the secrets that an owner's receiver verifies with.
func (o *rotatedOwner) trust(t *testing.T, secrets ...signing.Secret) {
	keys := make([]signing.Key, len(secrets))
	for i, s := range secrets {
		keys[i].Secret = s
	}
	ring, err := signing.NewKeyring(keys...)
	require.NoError(t, err)
	now := func() time.Time { return time.Now().Add(o.skew) }
	var cfg *signing.VerifierConfig
	if o.schemes != nil || o.skew != 0 {
		cfg = &signing.VerifierConfig{Schemes: o.schemes, Now: now}
	}
	verifier, err := signing.NewVerifier(ring, cfg)
	require.NoError(t, err)
	rcv, err := receiver.New(verifier, o.markers.InTx, o.markers, "sender", &receiver.Config{Now: now, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	handler := rcv.Handler(receiver.State(func(_ context.Context, _ *dedupmemory.Tx, ev receiver.Event) error {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.taken[ev.ID] = true
		return nil
	}))
	o.endpoint.Store(&handler)
}

// ServeHTTP takes a request once it has made its way.
func (o *rotatedOwner) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	time.Sleep(rotationWay)
	noted := &statusNoted{ResponseWriter: w}
	(*o.endpoint.Load()).ServeHTTP(noted, r)
	if noted.status == http.StatusUnauthorized {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.refused = append(o.refused, time.Now())
	}
}

type statusNoted struct {
	http.ResponseWriter
	status int
}

func (s *statusNoted) WriteHeader(status int) {
	s.status = status
	s.ResponseWriter.WriteHeader(status)
}

// rotating is a service that sends events to owners, over HTTP and in virtual time.
type rotating struct {
	t         *testing.T
	registry  *sender.Registry[*memory.Tx]
	pub       *sender.Publisher[*memory.Tx]
	owners    map[string]*rotatedOwner // by the host of the endpoint
	published atomic.Int64
}

// pipes is a listener whose connections stay in the process.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error { return nil }

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// whileEventsFlow runs a dispatcher and publishes an event to all owners every
// rotationPace until all of the acts are over, one of each owner. Then it waits until every
// event is delivered.
func whileEventsFlow(t *testing.T, owners []*rotatedOwner, act func(*rotating, *rotatedOwner)) *rotating {
	store, err := memory.New(nil)
	require.NoError(t, err)
	keys, err := sender.NewKeys(sender.SealingKey{ID: "1", Key: bytes.Repeat([]byte{1}, 32)})
	require.NoError(t, err)
	network := sender.Network{AllowPrivateNetworks: true}
	s := &rotating{t: t, owners: map[string]*rotatedOwner{}}
	s.registry, err = sender.NewRegistry(store, keys, &sender.RegistryConfig{Network: network})
	require.NoError(t, err)
	s.pub, err = sender.NewPublisher(store, nil)
	require.NoError(t, err)
	for i, o := range owners {
		o.id, o.markers, o.taken = fmt.Sprintf("sub_%d", i), dedupmemory.New(), map[string]bool{}
		_, secret, err := s.registry.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: o.id})
		require.NoError(t, err)
		host := fmt.Sprintf("owner-%d.example.com", i)
		_, err = s.registry.Subscribe(t.Context(), sender.NewSubscription{Subscriber: o.id, URL: "http://" + host + "/", EventTypes: []string{"thing.*"}})
		require.NoError(t, err)
		s.owners[host], o.secret = o, secret
		o.trust(t, secret)
	}

	wires := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.owners[r.Host].ServeHTTP(w, r) })}
	var running sync.WaitGroup
	running.Go(func() {
		if err := server.Serve(wires); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			t.Errorf("serving: %v", err)
		}
	})
	transport := &http.Transport{DialContext: wires.dial}
	dispatcher, err := dispatch.New(store, keys, &dispatch.Config{
		UnguardedTransport: transport, Network: network, MaxIdle: rotationPace / 2, Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	running.Go(func() {
		if err := dispatcher.Run(ctx); err != nil {
			t.Errorf("running the dispatcher: %v", err)
		}
	})

	var acting sync.WaitGroup
	for _, o := range owners {
		acting.Go(func() { act(s, o) })
	}
	over := make(chan struct{})
	go func() {
		acting.Wait()
		close(over)
	}()
	s.publishUntil(over)
	time.Sleep(24 * time.Hour) // for what was refused
	stop()
	transport.CloseIdleConnections()
	close(wires.done)
	_ = server.Close()
	running.Wait()
	for _, o := range owners {
		require.Len(t, o.taken, int(s.published.Load()), "events of %v", o)
	}
	return s
}

func (s *rotating) publishUntil(over chan struct{}) {
	for {
		select {
		case <-over:
			return
		case <-time.After(rotationPace):
		}
		n := s.published.Add(1)
		_, err := s.pub.Publish(s.t.Context(), sender.Event{Type: "thing.changed", Object: sender.Object{Type: "thing", ID: fmt.Sprint(n)}})
		require.NoError(s.t, err)
	}
}

// rotate replaces an owner's secret once, as it needs it, and returns when the old one has
// ended.
func (s *rotating) rotate(o *rotatedOwner) {
	time.Sleep(rotationPace + rotationWay/2) // a request is on its way
	rotation := &sender.Rotation{Overlap: rotationOverlap}
	if o.later {
		rotation.SignFrom = time.Now().Add(rotationFrom)
	}
	began, old := time.Now(), o.secret
	fresh, until, err := s.registry.RotateSecret(s.t.Context(), o.id, rotation)
	require.NoError(s.t, err)
	o.secret = fresh
	time.Sleep(o.learns)
	if o.keeps {
		o.trust(s.t, old, fresh)
		if o.active {
			require.NoError(s.t, s.registry.ActivateSecret(s.t.Context(), o.id))
		} else {
			time.Sleep(time.Until(began.Add(rotationFrom)))
		}
		time.Sleep(rotationFlight)
	}
	o.trust(s.t, fresh)
	time.Sleep(time.Until(until) + rotationPace - rotationWay/2)
}

// Secrets are replaced while events flow. No delivery is refused, whenever within the
// overlap an endpoint learns of the new secret and however far its clock is off within the
// window. The default verifier refuses none in any case, and one that knows the header of
// TimestampBody alone none if the new secret signs later.
func TestRotationWhileEventsFlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rotations := 4
		if race.Enabled {
			rotations = 2
		}
		own := []signing.Scheme{signing.TimestampBody{}}
		var owners []*rotatedOwner
		for _, skew := range []time.Duration{-299 * time.Second, 0, 299 * time.Second} {
			owners = append(owners,
				&rotatedOwner{skew: skew, keeps: true},
				&rotatedOwner{skew: skew, learns: rotationFlight},
				&rotatedOwner{skew: skew, learns: rotationOverlap / 2},
				&rotatedOwner{skew: skew, learns: rotationOverlap - rotationFlight},
				&rotatedOwner{skew: skew, schemes: own, later: true, keeps: true},
				&rotatedOwner{skew: skew, schemes: own, later: true, keeps: true, learns: rotationFrom / 2},
				&rotatedOwner{skew: skew, schemes: own, later: true, keeps: true, learns: rotationFrom - time.Millisecond},
				&rotatedOwner{skew: skew, schemes: own, later: true, keeps: true, learns: rotationFrom / 4, active: true},
				// It has the new secret alone before that signs.
				&rotatedOwner{skew: skew, later: true, learns: rotationFrom / 2},
			)
		}
		s := whileEventsFlow(t, owners, func(s *rotating, o *rotatedOwner) {
			for range rotations {
				s.rotate(o)
			}
		})
		require.Greater(t, int(s.published.Load())*len(owners), 2_500*rotations, "deliveries")
		for _, o := range owners {
			require.Empty(t, o.refused, "%v: refused with 401", o)
		}
	})
}

// Where one header has one signature and the new secret signs at once, an endpoint refuses
// what comes until it learns of the new secret, and nothing else. Nothing is lost.
func TestRotationAtOnceForOneSignature(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &rotatedOwner{schemes: []signing.Scheme{signing.TimestampBody{}}, learns: rotationOverlap / 2}
		var rotated time.Time
		whileEventsFlow(t, []*rotatedOwner{o}, func(s *rotating, o *rotatedOwner) {
			rotated = time.Now().Add(rotationPace + rotationWay/2)
			s.rotate(o)
		})
		require.GreaterOrEqual(t, len(o.refused), int(rotationOverlap/2/rotationPace), "each first attempt is refused")
		for _, at := range o.refused {
			require.WithinRange(t, at, rotated, rotated.Add(rotationOverlap/2+rotationWay))
		}
	})
}
