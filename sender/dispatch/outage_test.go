package dispatch_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/backoff"
	"github.com/surehook/surehook/internal/race"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/internal/bedtest"
)

// cable is a network that can be pulled out.
type cable struct {
	mu     sync.Mutex
	out    bool
	dead   map[string]bool // hosts to which nobody can connect
	wire   int
	most   int // attempts on the wire at once, from a minute after the cable was pulled
	posts  int // that arrived
	pulled time.Time
	took   time.Duration // until a request is answered
}

func (c *cable) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	c.wire++
	if c.out && time.Since(c.pulled) > time.Minute {
		c.most = max(c.most, c.wire)
	}
	took := c.took
	if c.out {
		took *= 100 // those that are made at once would be seen
	}
	c.mu.Unlock()
	time.Sleep(took)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wire--
	if c.out || c.dead[r.URL.Host] {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ENETUNREACH}
	}
	c.posts++
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

// pull pulls the cable out, or puts it in again with some hosts dead.
func (c *cable) pull(out bool, dead ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dead = map[string]bool{}
	for _, host := range dead {
		c.dead[host] = true
	}
	c.out, c.pulled = out, time.Now()
}

// told keeps the calls of the hooks.
type told struct {
	mu       sync.Mutex
	down, up []time.Time
	own      int // results that our own network was to blame for
	other    int // failures that counted
	status   map[sender.Status]int
	stands   map[dispatch.DeliveryKey]time.Duration
	streak   int // the highest streak
}

func (o *told) hooks() dispatch.Hooks {
	o.status, o.stands = map[sender.Status]int{}, map[dispatch.DeliveryKey]time.Duration{}
	return dispatch.Hooks{
		NetworkDown: func(_ context.Context, since time.Time) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.down = append(o.down, since)
		},
		NetworkUp: func(_ context.Context, since time.Time) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.up = append(o.up, since)
		},
		Recorded: func(_ context.Context, r *dispatch.Recorded) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.status[r.Decision.Status]++
			o.stands[r.Result.Key] += r.Decision.Stands
			o.streak = max(o.streak, r.Decision.Health.Streak)
			switch {
			case r.Result.OwnNetwork:
				o.own++
			case r.Result.Class != sender.ClassNone:
				o.other++
			}
		},
	}
}

// Our own network is down for an hour, with two hundred deliveries on their way. Nothing is
// charged to the endpoints, and all deliveries are made soon after the network is back.
func TestOwnNetworkIsDownForAnHour(t *testing.T) {
	t.Parallel()
	const subscribers = 50
	each := 4
	if race.Enabled {
		each = 1
	}
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		world := &cable{took: 5 * time.Millisecond}
		var o told
		var log bedtest.LockedLog
		look := func(check func()) {
			synctest.Wait()
			world.mu.Lock()
			defer world.mu.Unlock()
			o.mu.Lock()
			defer o.mu.Unlock()
			check()
		}
		for i := range subscribers {
			b.Subscribe(fmt.Sprintf("sub_%d", i), fmt.Sprintf("http://host%d/", i))
		}
		b.Start(b.Dispatcher(dispatch.Config{
			UnguardedTransport: world, Hooks: o.hooks(), Logger: slog.New(slog.NewTextHandler(&log, nil)),
			MaxIdle: 10 * time.Second, // fewer looks in the hours
			// An hour of failures would be past this horizon.
			Policy: dispatch.Policy{Backoff: backoff.Policy{Horizon: 40 * time.Minute}},
		}))
		for i := range subscribers { // all are proven
			b.Publish(fmt.Sprintf("sub_%d", i))
		}
		time.Sleep(time.Minute)
		look(func() {
			require.Equal(t, subscribers, world.posts)
		})

		world.pull(true)
		pulled := time.Now()
		// All fail at once, because failures before the fifth host's are charged like any
		// failure.
		events := make([]sender.Event, subscribers*each)
		for i := range events {
			events[i] = sender.Event{Type: "thing.changed", Object: sender.Object{Type: "thing", ID: fmt.Sprint(i)}, Subscriber: fmt.Sprintf("sub_%d", i%subscribers)}
		}
		_, err := b.Publisher.PublishMany(t.Context(), events)
		require.NoError(t, err)
		time.Sleep(time.Hour)
		look(func() {
			require.Equal(t, subscribers, world.posts)
			require.LessOrEqual(t, world.most, 4, "it is not hammered at")
			require.Greater(t, o.own, subscribers*each)
			require.Zero(t, o.other, "no failure is charged to an endpoint")
			require.Zero(t, o.streak)
			require.Len(t, o.down, 1)
			require.WithinRange(t, o.down[0], pulled, pulled.Add(time.Second))
			require.Empty(t, o.up)
			require.Len(t, o.stands, subscribers*(each+1))
			for key, stood := range o.stands {
				if key.Event > subscribers {
					require.Greater(t, stood, 50*time.Minute, "the horizon stands still but for what is spent waiting for a probe")
				}
			}
			require.Equal(t, 1, strings.Count(log.String(), "level=ERROR"), log.String())
			require.Contains(t, log.String(), "our own network seems to be down since")
		})

		world.pull(false, "host7", "host8")
		time.Sleep(80 * time.Second)
		look(func() {
			require.Equal(t, subscribers+(subscribers-2)*each, world.posts)
			require.Equal(t, world.posts, o.status[sender.StatusDelivered])
			require.Zero(t, o.status[sender.StatusDeadLettered])
			require.Equal(t, o.down, o.up)
			require.Contains(t, log.String(), "our own network is back")

			// Each delivery to the two hosts that stay away still has its horizon before it.
			require.GreaterOrEqual(t, o.other, 2*each, "and their failures count again")
		})
		time.Sleep(40 * time.Minute)
		look(func() {
			require.Equal(t, 2*each, o.status[sender.StatusDeadLettered], "%v", o.status)
		})
	})
}

// An attempt for which this machine had no descriptors left is not charged to its endpoint,
// though others answer.
func TestMachineWithoutResources(t *testing.T) {
	full := os.NewSyscallError("socket", syscall.EMFILE)
	unused := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}} // an address that no machine has: as good as no port left
	_, noPort := unused.Dial("tcp4", "127.0.0.1:80")
	require.ErrorIs(t, noPort, syscall.EADDRNOTAVAIL)
	for name, err := range map[string]error{
		"for the connection":       &net.OpError{Op: "dial", Net: "tcp", Err: full},
		"for any connection":       &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("socket", syscall.ENFILE)},
		"for the look-up":          &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "dial udp 192.0.2.1:53: " + full.Error(), Name: "endpoint.example"}},
		"for any look-up":          &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "dial udp 192.0.2.1:53: socket: " + syscall.ENFILE.Error(), Name: "endpoint.example"}},
		"for the connection's end": noPort,
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			var recorded bedtest.Noted[dispatch.Recorded]
			b := bedtest.New(t)
			b.Subscribe("sub_a", "http://endpoint.example/")
			b.Publish("sub_a")
			b.Publish("sub_a")
			d := b.Dispatcher(dispatch.Config{
				Logger: slog.New(slog.NewTextHandler(&log, nil)),
				Hooks:  dispatch.Hooks{Recorded: func(_ context.Context, r *dispatch.Recorded) { recorded.Add(*r) }},
			})
			d.Connect("", func(context.Context, string, string) (net.Conn, error) { return nil, err })
			_, ran := d.RunOnce(t.Context())
			require.NoError(t, ran)
			require.Len(t, recorded.List(), 2)
			r := recorded.List()[0]
			require.Equal(t, sender.ClassConnect, r.Result.Class)
			require.Equal(t, "the sender had no resources left for a connection", r.Result.Error)
			require.True(t, r.Decision.Uncounted)
			require.Equal(t, sender.Health{}, r.Decision.Health)
			require.Contains(t, log.String(), "no resources left")
			notices, _, err := b.History.Notices(t.Context(), history.NoticeQuery{Subscriber: sender.Operator, Kind: sender.NoticeNetwork})
			require.NoError(t, err)
			require.Len(t, notices, 1, "one for both")
			require.Contains(t, notices[0].Detail, "no resources left")
		})
	}
}
