//go:build linux

package dispatch_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/servertest"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/internal/bedtest"
)

var keepalivePosts = flag.Int("keepalive.posts", 300, "how many events TestKeepAliveRace publishes")

const (
	oneWay = 40 * time.Millisecond
	// Node closes an idle connection this much later than its keepAliveTimeout.
	nodeLater = time.Second
	// The bound holds however long the first retry of a failed attempt takes.
	allDelivered = 3 * time.Minute
)

// A server far away closes idle connections after a time that it does not tell, and that
// becomes shorter while it runs. Events come at about the time of these closes. Events that
// are lost on the way are delivered in the end, no request is sent twice, and a closed
// connection is recognised as closed. The log says how much time this cost.
func TestKeepAliveRace(t *testing.T) {
	t.Parallel()
	r := newKeepAliveRace(t)
	subscriptions := min(100, *keepalivePosts/4)
	rounds := *keepalivePosts / subscriptions / 2
	// The two times are so far apart that a client that has learned the first is wrong
	// about the second.
	before, after := 2500*time.Millisecond, 500*time.Millisecond
	r.keepAlive(before)
	for i := range subscriptions {
		r.bed.Subscribe(fmt.Sprintf("sub_%d", i), "https://"+delayed(t, "127.0.0.1:0", r.server, oneWay)+"/")
	}
	r.phase(subscriptions, rounds, rounds, before+nodeLater)
	r.keepAlive(after)
	r.phase(subscriptions, rounds, rounds-1, after+nodeLater)
	r.finish(2 * rounds * subscriptions)
}

// keepAliveRace is a Dispatcher that posts to a server whose keepAliveTimeout changes.
type keepAliveRace struct {
	t       *testing.T
	bed     *bedtest.Bed
	node    *servertest.Server
	server  string
	control string

	mu         sync.Mutex
	deliveries map[string]*racedDelivery
	streak     int // the longest
}

type racedDelivery struct {
	ended     chan struct{} // the first attempt has
	attempts  []dispatch.Result
	first     time.Time // the end of the first attempt
	delivered time.Time
}

func newKeepAliveRace(t *testing.T) *keepAliveRace {
	t.Helper()
	r := &keepAliveRace{t: t, bed: bedtest.New(t), deliveries: map[string]*racedDelivery{}, node: servertest.New(t, "node")}
	authority := servertest.NewAuthority(t)
	certificate, key := authority.Issue()
	r.node.Write("server.pem", certificate, nil)
	r.node.Write("server.key", key, nil)
	port, control := r.node.Port(), r.node.Port()
	config, err := json.Marshal(map[string]int{"https": port, "control": control, "keepAliveTimeout": 5000})
	require.NoError(t, err)
	r.node.Write("config.json", string(config), nil)
	text, err := os.ReadFile("testdata/idle.js")
	require.NoError(t, err)
	r.node.Start(r.node.Write("idle.js", string(text), nil))
	r.server, r.control = fmt.Sprintf("127.0.0.1:%d", port), fmt.Sprintf("http://127.0.0.1:%d/", control)

	d := r.bed.Dispatcher(dispatch.Config{Hooks: dispatch.Hooks{AttemptEnd: r.attemptEnd, Recorded: r.recorded}})
	d.TrustEverywhere(authority.Pool())
	r.bed.Start(d)
	return r
}

// keepAlive changes the server's keepAliveTimeout.
func (r *keepAliveRace) keepAlive(timeout time.Duration) {
	r.t.Helper()
	request, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, r.control+strconv.FormatInt(timeout.Milliseconds(), 10), nil)
	require.NoError(r.t, err)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(r.t, err)
	require.NoError(r.t, answer.Body.Close())
}

// phase publishes to each subscription several times, with gaps of about a given time after
// the end of the attempt before. A request that leaves within a round trip before the
// server closes is lost. Behind the last event of all there is no gap.
func (r *keepAliveRace) phase(subscriptions, rounds, gaps int, closes time.Duration) {
	var publishing sync.WaitGroup
	for i := range subscriptions {
		publishing.Go(func() {
			for n := range rounds {
				ref, err := r.bed.Publisher.Publish(r.t.Context(), sender.Event{
					Type: "thing.changed", Object: sender.Object{Type: "thing", ID: "1"}, Subscriber: fmt.Sprintf("sub_%d", i),
				})
				if err != nil {
					r.t.Errorf("publishing: %v", err)
					return
				}
				r.mu.Lock()
				ended := r.delivery(ref.ID).ended
				r.mu.Unlock()
				select {
				case <-ended:
				case <-r.t.Context().Done():
					return
				}
				if n == gaps {
					return
				}
				time.Sleep(closes - oneWay - 100*time.Millisecond + rand.N(200*time.Millisecond)) // the experiment's input
			}
		})
	}
	publishing.Wait()
}

// delivery returns the delivery of an event, which may have been attempted before its
// publisher knows its id. r.mu guards it.
func (r *keepAliveRace) delivery(event string) *racedDelivery {
	d := r.deliveries[event]
	if d == nil {
		d = &racedDelivery{ended: make(chan struct{})}
		r.deliveries[event] = d
	}
	return d
}

func (r *keepAliveRace) attemptEnd(_ context.Context, c *dispatch.Claimed, result *dispatch.Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.delivery(c.Event.ID)
	d.attempts = append(d.attempts, *result)
	if len(d.attempts) == 1 {
		d.first = time.Now()
		close(d.ended)
	}
	if result.Class == sender.ClassNone {
		d.delivered = time.Now()
	}
}

func (r *keepAliveRace) recorded(_ context.Context, x *dispatch.Recorded) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.streak = max(r.streak, x.Decision.Health.Streak)
}

// finish waits until all events are delivered, and checks the records.
func (r *keepAliveRace) finish(published int) {
	r.t.Helper()
	require.Len(r.t, r.deliveries, published)
	require.Eventually(r.t, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, d := range r.deliveries {
			if d.delivered.IsZero() {
				return false
			}
		}
		return true
	}, allDelivered, 20*time.Millisecond, "what was lost is not delivered")
	seen := map[string]int{} // by event
	for line := range strings.Lines(r.node.Read("requests.log")) {
		seen[strings.Fields(line)[0]]++
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	lost, longest := 0, time.Duration(0)
	for id, d := range r.deliveries {
		require.Positive(r.t, seen[id], "%s is recorded as delivered, and the server has not seen it", id)
		require.LessOrEqual(r.t, seen[id], len(d.attempts), "more posts of %s than attempts", id)
		for _, a := range d.attempts {
			if a.Class == sender.ClassNone {
				continue
			}
			lost++
			require.Equal(r.t, sender.ClassReset, a.Class, a.Error)
			require.True(r.t, a.ClosedIdle, "a closed connection is not told from an endpoint that fails: %s", a.Error)
			longest = max(longest, d.delivered.Sub(d.first))
		}
	}
	require.Zero(r.t, r.streak, "nobody is at fault")
	r.t.Logf("of %d deliveries %d attempts were lost to closed connections; the longest wait for another %v; the longest streak %d",
		published, lost, longest.Round(time.Millisecond), r.streak)
}
