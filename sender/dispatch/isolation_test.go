package dispatch_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/race"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/internal/bedtest"
	"github.com/surehook/surehook/sender/sendertest"
)

// Subscriptions that hang, crawl, refuse, flap or pile up do not delay another: the healthy
// one's median and 99th percentile, from the commit to the POST, stay within 1.2 times
// their values without the others. A step for the others may be under way at the commit,
// and another one may begin before the healthy one's, and they delay it. None of its events
// waits until it is seen that the others are slow.
func TestIsolationInVirtualTime(t *testing.T) {
	t.Parallel()
	hang := sendertest.Hang()
	crawl := sendertest.Delay(9*time.Second, sendertest.Status(200))
	fast := sendertest.Delay(20*time.Millisecond, sendertest.Status(200))
	up := sendertest.Delay(200*time.Millisecond, sendertest.Status(200))
	barely := sendertest.Delay(950*time.Millisecond, sendertest.Status(200))
	alone := isolated(t, fast, 0, nil)
	for i, c := range []struct {
		name        string
		subscribers int
		each        int   // subscriptions
		events      int   // events for each subscriber, all at once, when the measurement begins
		bodies      int64 // 0: small ones; otherwise the dispatcher may hold as many
		before      sendertest.Step
		step        sendertest.Step
		busy        bool // there is work all the time
	}{
		{"three hundred hanging endpoints of one subscriber", 1, 300, 20, 0, hang, hang, false},
		{"a thousand subscribers with one hanging endpoint each", 1000, 1, 20, 0, hang, hang, false},
		{"a thousand that answer 200 after nine seconds", 1000, 1, 5, 0, crawl, crawl, false},
		{"a hundred proven ones that begin to hang together", 100, 1, 20, 0, fast, hang, false},
		{"a thousand proven ones of one subscriber that begin to hang together", 1, 1000, 20, 0, fast, hang, false},
		{"two subscribers with three hundred that are barely fast each", 2, 300, 45, 0, fast, barely, true},
		{"one that is barely fast, with large bodies", 1, 1, 5000, 64, fast, barely, true},
		{"twenty with a backlog that hang for five seconds of every ten", 20, 1, 600, 0, up, flapping(up, hang), true},
		{"twenty with a backlog that fail for five seconds of every ten", 20, 1, 2000, 0, up, flapping(up, sendertest.Delay(900*time.Millisecond, sendertest.Status(500))), true},
		{"a backlog of twenty thousand", 1, 1, 20_000, 0, up, up, true},
	} {
		if race.Enabled && i > 0 {
			continue // in virtual time these have no more to race than the first one, and take many times as long
		}
		t.Run(c.name, func(t *testing.T) {
			beside := isolated(t, fast, c.bodies, func(t *testing.T, b *bedtest.Bed, world *hosts) {
				world.set("other", c.before)
				for i := range c.subscribers {
					for range c.each {
						b.Subscribe(fmt.Sprintf("sub_%d", i), "http://other/")
					}
					b.Publish(fmt.Sprintf("sub_%d", i))
				}
				time.Sleep(10 * time.Second)
				world.set("other", c.step)
				for i := range c.subscribers {
					for range c.events {
						publish(b, fmt.Sprintf("sub_%d", i), c.bodies > 0)
					}
				}
				if !c.busy {
					return
				}
				time.Sleep(time.Minute) // the flapping endpoint was found out
				t.Cleanup(func() {
					counts, err := b.History.Counts(context.Background())
					require.NoError(t, err)
					require.NotZero(t, counts.Live, "the backlog has lasted")
				})
			})
			t.Logf("from the commit to the POST, median, p99 and slowest: %v alone, %v beside them", alone, beside)
			require.LessOrEqual(t, beside[0], alone[0]*12/10, "median")
			require.LessOrEqual(t, beside[1], alone[1]*12/10+2*stepCost, "99th percentile")
			require.Less(t, beside[2], time.Second, "what Policy.FastAnswer is")
		})
	}
}

const largeBody = 4 << 10

// publish publishes an event about an object of its own.
func publish(b *bedtest.Bed, subscriber string, large bool) {
	if !large {
		b.Publish(subscriber)
		return
	}
	_, err := b.Publisher.Publish(b.T.Context(), sender.Event{
		Type: "thing.changed", Object: sender.Object{Type: "thing", ID: rand.Text()}, Subscriber: subscriber, Data: strings.Repeat("x", largeBody),
	})
	require.NoError(b.T, err)
}

// isolated returns the median, the 99th percentile and the slowest from the commit to the
// POST of an endpoint that plays a step, after others were begun beside it, if there are
// any. The dispatcher has memory for that many large bodies; 0: what it has by default.
func isolated(t *testing.T, step sendertest.Step, bodies int64, others func(*testing.T, *bedtest.Bed, *hosts)) (of [3]time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		world := newHosts()
		world.set("healthy", step)
		b.Subscribe("sub_healthy", "http://healthy/")
		b.Start(b.DispatcherOn(costly{b.Store}, dispatch.Config{UnguardedTransport: world, BodyBytes: bodies * largeBody}))
		for range 10 { // earns its places
			b.Publish("sub_healthy")
			time.Sleep(time.Second)
		}
		if others != nil {
			others(t, b, world)
		}
		var took []time.Duration
		for i := range 300 {
			took = append(took, world.latency("healthy", func() { b.Publish("sub_healthy") }))
			time.Sleep(100*time.Millisecond + time.Duration(i%59)*3271*time.Microsecond) // at any moment of a step, and between two
		}
		slices.Sort(took)
		of = [...]time.Duration{took[len(took)/2], took[len(took)*99/100], took[len(took)-1]}
	})
	return of
}

// Many first attempts do not begin at once while others are at work, because they would
// delay the others. They begin at once if no others are at work.
func TestFirstAttemptsAreSpread(t *testing.T) {
	most := func(t *testing.T, beside bool) (most int) {
		synctest.Test(t, func(t *testing.T) {
			b := bedtest.New(t)
			world := newHosts()
			world.set("healthy", sendertest.Status(200))
			world.set("other", sendertest.Hang())
			b.Subscribe("sub_healthy", "http://healthy/")
			claims := &claimSizes{Store: b.Store}
			b.Start(b.DispatcherOn(claims, dispatch.Config{UnguardedTransport: world}))
			for range 2 { // the first one proves it
				if beside {
					b.Publish("sub_healthy")
					time.Sleep(100 * time.Millisecond)
				}
			}
			claims.most.Store(0)
			var events []sender.Event
			for i := range 32 {
				to := fmt.Sprintf("sub_%d", i)
				b.Subscribe(to, "http://other/")
				events = append(events, sender.Event{Type: "thing.changed", Object: sender.Object{Type: "thing", ID: to}, Subscriber: to})
			}
			_, err := b.Publisher.PublishMany(t.Context(), events)
			require.NoError(t, err)
			time.Sleep(100 * time.Millisecond)
			require.Len(t, world.came["other"], 32, "all have begun soon")
			most = int(claims.most.Load())
			time.Sleep(2 * time.Second)
			require.EqualValues(t, 32, claims.rooms.Load(), "what was recorded is the database's to know")
		})
		return most
	}
	require.Equal(t, 32, most(t, false))
	require.LessOrEqual(t, most(t, true), 12)
}

// claimSizes notes the largest claim.
type claimSizes struct {
	dispatch.Store
	most  atomic.Int64
	rooms atomic.Int64 // of subscriptions, in the last one
}

func (c *claimSizes) Step(ctx context.Context, p dispatch.ExpandParams, b dispatch.Batch) (dispatch.Expanded, dispatch.Claims, error) {
	x, out, err := c.Store.Step(ctx, p, b)
	c.rooms.Store(int64(len(b.Claim.SubscriptionRoom)))
	c.most.Store(max(c.most.Load(), int64(len(out.Claimed))))
	return x, out, err
}

// The first delivery of a new subscriber does not wait for failing subscribers.
func TestNewSubscriptionsDoNotWaitForFailingOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		world := newHosts()
		world.set("other", sendertest.Hang())
		for i := range 500 {
			b.Subscribe(fmt.Sprintf("sub_%d", i), "http://other/")
			b.Publish(fmt.Sprintf("sub_%d", i))
		}
		b.Start(b.Dispatcher(dispatch.Config{UnguardedTransport: world}))
		time.Sleep(5 * time.Minute) // each has had its first timeout, and is on probation now
		world.set("new", sendertest.Status(200))
		b.Subscribe("sub_new", "http://new/")
		require.Less(t, world.latency("new", func() { b.Publish("sub_new") }), 100*time.Millisecond)
	})
}

// Subscribers whose hosts cannot be reached, and of which one learns that slowly, can make
// our own network look down while nobody else has work. The attempts that find out when it
// is back do not all hang then: an endpoint that used to answer gets its event at once.
func TestUnreachableOnesLeaveProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		came := make(chan struct{}, 10)
		world := bedtest.TransportFunc(func(r *http.Request) (*http.Response, error) {
			if r.URL.Hostname() != "healthy" {
				time.Sleep(9 * time.Second)
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.EHOSTUNREACH}
			}
			came <- struct{}{}
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
		})
		b.Subscribe("sub_healthy", "http://healthy/")
		var o told
		b.Start(b.Dispatcher(dispatch.Config{UnguardedTransport: world, Hooks: o.hooks()}))
		for i := range 30 {
			b.Subscribe(fmt.Sprintf("sub_%d", i%3), fmt.Sprintf("http://host%d/", i))
		}
		for range 5 {
			b.Publish("sub_healthy")
			<-came
			time.Sleep(2 * time.Minute)
			for i := range 3 {
				b.Publish(fmt.Sprintf("sub_%d", i))
			}
			time.Sleep(30 * time.Second)
			synctest.Wait()
			began := time.Now()
			b.Publish("sub_healthy")
			<-came
			require.Less(t, time.Since(began), 100*time.Millisecond)
		}
		synctest.Wait()
		require.NotEmpty(t, o.down)
	})
}

// flapping plays one step for five seconds, then another one, by turns.
func flapping(up, down sendertest.Step) sendertest.Step {
	return sendertest.Func(func(w http.ResponseWriter, r *http.Request) {
		step := up
		if time.Now().Unix()%10 >= 5 {
			step = down
		}
		answer, err := sendertest.NewRoundTripper(step).RoundTrip(r)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(answer.StatusCode)
	})
}

// costly is a store whose transactions take their time, as those of a database do.
type costly struct{ dispatch.Store }

const stepCost = 3 * time.Millisecond

func (c costly) Step(ctx context.Context, p dispatch.ExpandParams, b dispatch.Batch) (dispatch.Expanded, dispatch.Claims, error) {
	time.Sleep(stepCost)
	return c.Store.Step(ctx, p, b)
}

func (c costly) Release(ctx context.Context, rs []dispatch.Release) error {
	time.Sleep(time.Millisecond)
	return c.Store.Release(ctx, rs)
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
	for len(came) > 0 { // the requests from before
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
