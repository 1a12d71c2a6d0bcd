package sender_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/sendertest"
)

// Subscriptions that hang, crawl, refuse or pile up do not delay another: the
// healthy one's 99th percentile, from the publish to the POST, stays within 1.2
// times what it is alone (and 10 ms, which is what a step may take to notice).
func TestIsolationInVirtualTime(t *testing.T) {
	hang := sendertest.Hang()
	crawl := sendertest.Delay(9*time.Second, sendertest.Status(200))
	fast := sendertest.Delay(20*time.Millisecond, sendertest.Status(200))
	for _, c := range []struct {
		name        string
		subscribers int
		each        int // subscriptions
		events      int // for each subscriber, at once, as the measurement begins
		before      sendertest.Step
		step        sendertest.Step
	}{
		{"three hundred hanging endpoints of one subscriber", 1, 300, 20, hang, hang},
		{"a thousand subscribers with one hanging endpoint each", 1000, 1, 20, hang, hang},
		{"a thousand that answer 200 after nine seconds", 1000, 1, 5, crawl, crawl},
		{"a hundred proven ones that begin to hang together", 100, 1, 20, fast, hang},
		{"a backlog of twenty thousand", 1, 1, 20_000, fast, fast},
	} {
		t.Run(c.name, func(t *testing.T) {
			var alone, beside time.Duration
			for _, others := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					b := newBed(t)
					world := newHosts()
					world.set("healthy", fast)
					b.subscribe("sub_healthy", "http://healthy/")
					b.start(b.dispatcher(sender.DispatcherConfig{UnguardedTransport: world}))
					for range 10 { // earns its places
						b.publish("sub_healthy")
						time.Sleep(time.Second)
					}
					if others {
						world.set("other", c.before)
						for i := range c.subscribers {
							for range c.each {
								b.subscribe(fmt.Sprintf("sub_%d", i), "http://other/")
							}
							b.publish(fmt.Sprintf("sub_%d", i))
						}
						time.Sleep(10 * time.Second)
						world.set("other", c.step)
						for i := range c.subscribers {
							for range c.events {
								b.publish(fmt.Sprintf("sub_%d", i))
							}
						}
					}
					var took []time.Duration
					for range 300 {
						took = append(took, world.latency("healthy", func() { b.publish("sub_healthy") }))
						time.Sleep(100 * time.Millisecond)
					}
					slices.Sort(took)
					if p99 := took[len(took)*99/100]; others {
						beside = p99
					} else {
						alone = p99
					}
				})
			}
			t.Logf("p99 %v alone, %v beside", alone, beside)
			require.LessOrEqual(t, beside, alone*12/10+10*time.Millisecond)
		})
	}
}

// The first delivery of a new subscriber does not wait for those who fail.
func TestNewSubscriptionsDoNotWaitForFailingOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		world := newHosts()
		world.set("other", sendertest.Hang())
		for i := range 500 {
			b.subscribe(fmt.Sprintf("sub_%d", i), "http://other/")
			b.publish(fmt.Sprintf("sub_%d", i))
		}
		b.start(b.dispatcher(sender.DispatcherConfig{UnguardedTransport: world}))
		time.Sleep(5 * time.Minute) // each has had its first timeout, and is on probation now
		world.set("new", sendertest.Status(200))
		b.subscribe("sub_new", "http://new/")
		require.Less(t, world.latency("new", func() { b.publish("sub_new") }), 100*time.Millisecond)
	})
}

// hosts plays a step for each host.
type hosts struct {
	mu     sync.Mutex
	played map[string]*sendertest.RoundTripper
	came   map[string]chan time.Time
}

func newHosts() *hosts {
	return &hosts{played: map[string]*sendertest.RoundTripper{}, came: map[string]chan time.Time{}}
}

func (h *hosts) set(host string, step sendertest.Step) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.came[host] == nil {
		h.came[host] = make(chan time.Time, 1_000_000)
		h.played[host] = sendertest.NewRoundTripper(step)
		return
	}
	h.played[host].Set(step)
}

// latency is how long it takes from a publish to the host's next request.
func (h *hosts) latency(host string, publish func()) time.Duration {
	h.mu.Lock()
	came := h.came[host]
	h.mu.Unlock()
	for len(came) > 0 { // those of before
		<-came
	}
	began := time.Now()
	publish()
	return (<-came).Sub(began)
}

func (h *hosts) RoundTrip(r *http.Request) (*http.Response, error) {
	host := strings.TrimSuffix(r.URL.Host, ":80")
	h.mu.Lock()
	came, played := h.came[host], h.played[host]
	h.mu.Unlock()
	came <- time.Now()
	return played.RoundTrip(r)
}
