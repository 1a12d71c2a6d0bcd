package dispatch_test

import (
	"bytes"
	"context"
	"crypto/elliptic"
	"crypto/tls"
	"encoding/json"
	"io"
	"log"
	"log/slog"
	"math"
	"math/bits"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/backoff"
	"github.com/surehook/surehook/internal/porttest"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/internal/bedtest"
	"github.com/surehook/surehook/sender/sendertest"
)

func TestDeliverOverTheWire(t *testing.T) {
	b := bedtest.New(t)
	ep := sendertest.NewEndpoint(t)
	sub, secret := b.Subscribe("sub_a", ep.URL()+"/hooks?x=1")
	ref, err := b.Publisher.Publish(t.Context(), sender.Event{
		Type: "thing.changed", Object: sender.Object{Type: "thing", ID: `a"<é>`}, Data: json.RawMessage(`{"n": 1.0}`),
		OccurredAt: time.Date(2026, 1, 2, 3, 4, 5, 600, time.FixedZone("", 3600)),
	})
	require.NoError(t, err)
	stats, err := b.Dispatcher(dispatch.Config{}).RunOnce(t.Context())
	require.NoError(t, err)
	require.Equal(t, dispatch.Stats{Expanded: 1, Attempted: 1, Delivered: 1}, stats)

	posts := ep.Requests()
	require.Len(t, posts, 1)
	p := posts[0]
	require.NoError(t, p.Verify(secret), "both signatures")
	require.Equal(t, http.MethodPost, p.Method)
	require.Equal(t, "/hooks?x=1", p.URL.RequestURI())
	require.Equal(t, `{"id":"`+ref.ID+`","type":"thing.changed","occurred_at":"2026-01-02T02:04:05.0000006Z",`+
		`"object":{"type":"thing","id":"a\"<é>"},"version":1,"data":{"n": 1.0}}`, string(p.Body))
	for name, want := range map[string]string{
		"Content-Type": "application/json", "User-Agent": "surehook", "Webhook-Id": ref.ID, "Webhook-Attempt": "1",
		"Content-Length": strconv.Itoa(len(p.Body)),
	} {
		require.Equal(t, []string{want}, p.Header[name], name)
	}
	require.NotContains(t, p.Header, "Idempotency-Key", "with it net/http would send a request twice")
	require.NotContains(t, p.Header, "Accept-Encoding")

	d := b.Delivery()
	require.Equal(t, sender.StatusDelivered, d.Status)
	require.Equal(t, sub.ID, d.Subscription)
	require.Equal(t, string(p.Body), string(d.Body))
	require.Len(t, d.Attempts, 1)
	require.Equal(t, 200, d.Attempts[0].StatusCode)
	require.Positive(t, d.Attempts[0].Duration)
}

// An attempt is recorded with its class, and there is one POST, whatever the endpoint does.
func TestAttemptClasses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		step    sendertest.Step
		class   sender.Class
		status  int
		snippet string
		posts   int
	}{
		{"200", sendertest.Answer(200, nil, "thank you"), sender.ClassNone, 200, "", 1},
		{"204", sendertest.Status(204), sender.ClassNone, 204, "", 1},
		{"299", sendertest.Status(299), sender.ClassNone, 299, "", 1},
		{"300", sendertest.Status(300), sender.ClassRedirect, 300, "", 1},
		{"304", sendertest.Status(304), sender.ClassRedirect, 304, "", 1},
		{"301", sendertest.Redirect(301, "/elsewhere"), sender.ClassRedirect, 301, "", 1},
		{"307", sendertest.Redirect(307, "http://169.254.169.254/"), sender.ClassRedirect, 307, "", 1},
		{"308", sendertest.Redirect(308, "/elsewhere"), sender.ClassRedirect, 308, "", 1},
		{"400", sendertest.Answer(400, nil, "what is this?"), sender.ClassStatus, 400, "what is this?", 1},
		{"410", sendertest.Status(410), sender.ClassStatus, 410, "", 1},
		{"500", sendertest.Status(500), sender.ClassStatus, 500, "", 1},
		{"hangs", sendertest.Hang(), sender.ClassTimeout, 0, "", 1},
		{"slow headers", sendertest.SlowHeaders(time.Second), sender.ClassTimeout, 0, "", 1},
		{"slow body", sendertest.Drip(50*time.Millisecond, 1000), sender.ClassTimeout, 200, "", 1},
		{"endless body", sendertest.Endless(), sender.ClassNone, 200, "", 1},
		{"closes without an answer", sendertest.CloseWithoutAnswer(), sender.ClassReset, 0, "", 1},
		{"resets", sendertest.Reset(), sender.ClassReset, 0, "", 1},
		{"huge headers", sendertest.HugeHeaders(1 << 20), sender.ClassProtocol, 0, "", 1},
		{"not HTTP", sendertest.Garbage(), sender.ClassProtocol, 0, "", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := bedtest.New(t)
			ep := sendertest.NewEndpoint(t, c.step)
			b.Subscribe("sub_a", ep.URL())
			b.Publish("sub_a")
			timeout := time.Duration(0) // the default
			if c.class == sender.ClassTimeout {
				timeout = 5 * time.Second // the request arrives in that time
			}
			_, err := b.Dispatcher(dispatch.Config{Timeout: timeout}).RunOnce(t.Context())
			require.NoError(t, err)
			d := b.Delivery()
			require.Len(t, d.Attempts, 1)
			a := d.Attempts[0]
			require.Equal(t, c.class, a.Class, a.Error)
			if c.name == "huge headers" {
				require.Equal(t, "the answer's headers are longer than 64 KiB", a.Error)
			}
			if c.status == 304 {
				require.Equal(t, "answered 304 (not modified), which is no answer to a POST: only 2xx is success", a.Error)
			}
			require.Equal(t, c.status, a.StatusCode)
			require.Contains(t, string(a.Snippet), c.snippet)
			if c.status/100 == 2 {
				require.Empty(t, a.Snippet, "an answer of 2xx is not kept")
			}
			require.Len(t, ep.Requests(), c.posts)
			if c.class == sender.ClassNone {
				require.Equal(t, sender.StatusDelivered, d.Status)
				require.Empty(t, a.Error)
			} else {
				require.Equal(t, sender.StatusAwaitingRetry, d.Status)
				require.NotEmpty(t, a.Error)
				require.Equal(t, d.NextAttemptAt, a.NextAttemptAt)
			}
		})
	}
}

func TestAttemptClassesWithoutAnAnswer(t *testing.T) {
	untrusted := sendertest.NewTLSEndpoint(t)
	plain := sendertest.NewEndpoint(t)
	a := bedtest.NewAuthority(t)
	issued := func(by *bedtest.Authority, from, until time.Duration) tls.Certificate {
		c := by.IssueFrom("localhost", bedtest.NewECDSAKey(t, elliptic.P256()), time.Now().Add(from), time.Now().Add(until))
		pair, err := tls.X509KeyPair(c.CertificatePEM, c.KeyPEM)
		require.NoError(t, err)
		return pair
	}
	certified := func(c tls.Certificate) string {
		srv := httptest.NewUnstartedServer(nil)
		srv.TLS, srv.Config.ErrorLog = &tls.Config{Certificates: []tls.Certificate{c}}, log.New(io.Discard, "", 0)
		srv.StartTLS()
		t.Cleanup(srv.Close)
		return bedtest.AtLocalhost(srv.URL)
	}
	for _, c := range []struct {
		name, url string
		class     sender.Class
		says      string
	}{
		{"refused", "http://" + porttest.Refusing(t), sender.ClassConnect, "the connection was refused"},
		{"unknown name", "http://name.invalid/", sender.ClassDNS, "the host's name could not be resolved"},
		{"self-signed certificate", untrusted.URL(), sender.ClassTLS, "the server's certificate is self-signed: it must be from a known authority"},
		{"certificate of an unknown authority", certified(issued(bedtest.NewAuthority(t), -time.Hour, time.Hour)), sender.ClassTLS, "the server's certificate is not from a known authority, or an intermediate certificate is missing"},
		{"certificate of another", certified(a.Server("elsewhere")), sender.ClassTLS, "the server's certificate is for another host"},
		{"old certificate", certified(issued(a, -2*time.Hour, -time.Hour)), sender.ClassTLS, "the server's certificate has expired"},
		{"early certificate", certified(issued(a, time.Hour, 2*time.Hour)), sender.ClassTLS, "the server's certificate is not valid yet"},
		{"no client certificate", bedtest.AtLocalhost(bedtest.NewCertServer(t, a).URL), sender.ClassTLS, `the server ended TLS by the alert "certificate required"`},
		{"no TLS there", "https" + plain.URL()[len("http"):], sender.ClassTLS, "the server does not speak TLS at this port"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := bedtest.New(t)
			b.Subscribe("sub_a", c.url)
			b.Publish("sub_a")
			d := b.Dispatcher(dispatch.Config{})
			d.TrustEverywhere(a.Pool)
			_, err := d.RunOnce(t.Context())
			require.NoError(t, err)
			a := b.Delivery().Attempts[0]
			require.Equal(t, c.class, a.Class, a.Error)
			require.Equal(t, c.says, a.Error)
			require.NotContains(t, a.Error, "127.0.0.1", "nothing of our network")
		})
	}
	require.Empty(t, untrusted.Requests())
}

// A status has three digits in HTTP/1.1. HTTP/2 has it as a text, which net/http reads as a
// number. A store need not take others, nor all stores in the same way.
func TestAttemptAnsweredWithoutAStatus(t *testing.T) {
	for _, status := range []int{-200, 0, 20, 1000, 1<<(bits.UintSize/2) + 200} {
		b := bedtest.New(t)
		b.Subscribe("sub_a", "http://endpoint.example/")
		b.Publish("sub_a")
		_, err := b.Dispatcher(dispatch.Config{UnguardedTransport: bedtest.TransportFunc(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: status, ProtoMajor: 2, Body: http.NoBody}, nil
		})}).RunOnce(t.Context())
		require.NoError(t, err)
		a := b.Delivery().Attempts[0]
		require.Equal(t, sender.ClassProtocol, a.Class)
		require.Zero(t, a.StatusCode)
		require.Equal(t, "the answer is malformed: its status is not one of three digits (over HTTP/2)", a.Error)
	}
}

// The bytes after an answer that switches protocols are no body, and may never end.
func TestAttemptAnsweredByASwitch(t *testing.T) {
	b := bedtest.New(t)
	b.Subscribe("sub_a", "http://endpoint.example/")
	b.Publish("sub_a")
	follows, _ := io.Pipe()
	_, err := b.Dispatcher(dispatch.Config{UnguardedTransport: bedtest.TransportFunc(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusSwitchingProtocols, ProtoMajor: 1, Body: follows}, nil
	})}).RunOnce(t.Context())
	require.NoError(t, err)
	a := b.Delivery().Attempts[0]
	require.Equal(t, sender.ClassStatus, a.Class)
	require.Equal(t, "answered 101", a.Error)
	_, err = follows.Read(nil)
	require.ErrorIs(t, err, io.ErrClosedPipe)
}

// The guard stands between the dispatcher and the network, whatever is in the
// registry.
func TestAttemptBlocked(t *testing.T) {
	b := bedtest.New(t)
	ep := sendertest.NewEndpoint(t)
	b.Subscribe("sub_a", ep.URL())
	b.Publish("sub_a")
	d, err := dispatch.New(b.Store, b.Keys, nil)
	require.NoError(t, err)
	_, err = d.RunOnce(t.Context())
	require.NoError(t, err)
	a := b.Delivery().Attempts[0]
	require.Equal(t, sender.ClassBlocked, a.Class)
	require.Equal(t, "the address may not be called", a.Error)
	require.Empty(t, ep.Requests())
}

// net/http would send a request a second time to a server that closes kept-alive
// connections just as they are used again.
func TestOnePostPerRecordedAttempt(t *testing.T) {
	b := bedtest.New(t)
	ep := sendertest.NewEndpoint(t, sendertest.Status(200), sendertest.CloseWithoutAnswer(), sendertest.Status(200), sendertest.Reset(), sendertest.Status(200))
	b.Subscribe("sub_a", ep.URL())
	d := b.Dispatcher(dispatch.Config{})
	for range 5 {
		b.Publish("sub_a")
		_, err := d.RunOnce(t.Context())
		require.NoError(t, err)
	}
	list, _, err := b.History.Deliveries(t.Context(), history.DeliveryQuery{})
	require.NoError(t, err)
	attempts := 0
	for _, d := range list {
		attempts += d.AttemptCount
	}
	require.Equal(t, 5, attempts)
	require.Len(t, ep.Requests(), attempts)
}

// A delivery goes from the first attempt to the dead letter by the reference schedule.
func TestScheduleInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		endpoint := sendertest.NewRoundTripper(sendertest.Answer(500, nil, "broken"))
		_, secret := b.Subscribe("sub_a", "http://endpoint/")
		stop := b.Start(b.Dispatcher(dispatch.Config{
			UnguardedTransport: endpoint, MaxIdle: time.Minute, Policy: dispatch.Policy{Backoff: backoff.Policy{Jitter: backoff.None()}},
		}))
		began := time.Now()
		b.Publish("sub_a")
		time.Sleep(80 * time.Hour)

		posts := endpoint.Requests()
		var at []time.Duration
		for i, p := range posts {
			at = append(at, p.ReceivedAt.Sub(began).Truncate(10*time.Second)) // a result may wait a little for its step
			require.NoError(t, p.Verify(secret), "signed anew")
			require.Equal(t, strconv.FormatInt(p.ReceivedAt.Unix(), 10), p.Header.Get("Webhook-Timestamp"))
			require.Equal(t, posts[0].Body, p.Body, "the same bytes")
			require.Equal(t, posts[0].Header.Get("Webhook-Id"), p.Header.Get("Webhook-Id"))
			require.Equal(t, strconv.Itoa(i+1), p.Header.Get("Webhook-Attempt"))
		}
		h := time.Hour
		require.Equal(t, []time.Duration{0, time.Minute, 6 * time.Minute, 36 * time.Minute, 2*h + 36*time.Minute,
			14*h + 36*time.Minute, 26*h + 36*time.Minute, 38*h + 36*time.Minute, 50*h + 36*time.Minute, 62*h + 36*time.Minute, 72 * h}, at)

		d := b.Delivery()
		require.Equal(t, sender.StatusDeadLettered, d.Status)
		require.Equal(t, string(posts[0].Body), string(d.Body), "a dead letter keeps its body")
		require.Len(t, d.Attempts, len(posts), "and its history")
		require.Equal(t, "broken", string(d.Attempts[0].Snippet))
		for i, a := range d.Attempts[1:] {
			require.False(t, a.StartedAt.Before(d.Attempts[i].NextAttemptAt), "no attempt before it is due")
		}

		// It is sent again on demand: its attempt numbers go on, and its schedule begins
		// anew.
		require.NoError(t, b.History.Redeliver(t.Context(), d.ID))
		time.Sleep(time.Second)
		require.Len(t, endpoint.Requests(), 12)
		require.Equal(t, "12", endpoint.Requests()[11].Header.Get("Webhook-Attempt"))
		require.Equal(t, sender.StatusAwaitingRetry, b.Delivery().Status)
		endpoint.Set(sendertest.Status(200))
		time.Sleep(time.Minute)
		require.Equal(t, sender.StatusDelivered, b.Delivery().Status)

		// A delivered delivery is sent again once.
		endpoint.Set(sendertest.Status(500))
		require.NoError(t, b.History.Redeliver(t.Context(), d.ID))
		time.Sleep(100 * time.Hour)
		require.Len(t, endpoint.Requests(), 14)
		require.Equal(t, sender.StatusDelivered, b.Delivery().Status, "the failure of a single attempt leaves it delivered")
		require.NoError(t, stop())
	})
}

func TestRetryAfterIsHonoured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		endpoint := sendertest.NewRoundTripper(
			sendertest.Answer(503, http.Header{"Retry-After": {"7200"}}, ""),
			sendertest.Answer(429, http.Header{"Retry-After": {"9999999"}}, ""), sendertest.Status(200))
		b.Subscribe("sub_a", "http://endpoint/")
		b.Start(b.Dispatcher(dispatch.Config{UnguardedTransport: endpoint, MaxIdle: time.Minute}))
		began := time.Now()
		b.Publish("sub_a")
		time.Sleep(48 * time.Hour)
		posts := endpoint.Requests()
		require.Len(t, posts, 3)
		require.WithinRange(t, posts[1].ReceivedAt, began.Add(2*time.Hour), began.Add(2*time.Hour+time.Second))
		require.WithinRange(t, posts[2].ReceivedAt, began.Add(26*time.Hour), began.Add(26*time.Hour+time.Second), "up to 24 h")
	})
}

// A drain lets attempts in flight end and records them, gives back deliveries that were not
// begun, and claims nothing more.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		endpoint := sendertest.NewRoundTripper(sendertest.Delay(5*time.Second, sendertest.Status(200)))
		b.Subscribe("sub_a", "http://endpoint/")
		for range 3 {
			b.Publish("sub_a")
		}
		stop := b.Start(b.Dispatcher(dispatch.Config{UnguardedTransport: endpoint}))
		time.Sleep(time.Second)
		require.NoError(t, stop())
		require.Len(t, endpoint.Requests(), 1, "a new subscription has one place")
		status := map[sender.Status]int{}
		list, _, err := b.History.Deliveries(t.Context(), history.DeliveryQuery{})
		require.NoError(t, err)
		for _, d := range list {
			status[d.Status]++
			require.False(t, d.InFlight)
		}
		require.Equal(t, map[sender.Status]int{sender.StatusDelivered: 1, sender.StatusPending: 2}, status)
	})
}

// For a proven subscription the dispatcher claims more deliveries than it puts on the wire.
func TestDrainGivesBackWhatIsQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		endpoint := sendertest.NewRoundTripper(sendertest.Delay(500*time.Millisecond, sendertest.Status(200)))
		b.Subscribe("sub_a", "http://endpoint/")
		stop := b.Start(b.Dispatcher(dispatch.Config{UnguardedTransport: endpoint}))
		b.Publish("sub_a")
		time.Sleep(time.Second)
		for range 20 {
			b.Publish("sub_a")
		}
		time.Sleep(100 * time.Millisecond)
		list, _, err := b.History.Deliveries(t.Context(), history.DeliveryQuery{Status: sender.StatusPending})
		require.NoError(t, err)
		for _, d := range list {
			require.True(t, d.InFlight, "all are claimed")
		}
		require.NoError(t, stop())
		posted := len(endpoint.Requests())
		require.Less(t, posted, 21)
		list, _, err = b.History.Deliveries(t.Context(), history.DeliveryQuery{Status: sender.StatusPending})
		require.NoError(t, err)
		require.Len(t, list, 21-posted)
		for _, d := range list {
			require.False(t, d.InFlight, "what was not begun is due for others at once")
		}
	})
}

func TestDrainTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		endpoint := sendertest.NewRoundTripper(sendertest.Hang(), sendertest.Status(200))
		b.Subscribe("sub_a", "http://endpoint/")
		b.Publish("sub_a")
		stop := b.Start(b.Dispatcher(dispatch.Config{UnguardedTransport: endpoint, DrainTimeout: time.Second}))
		time.Sleep(time.Second)
		began := time.Now()
		require.ErrorIs(t, stop(), dispatch.ErrDrainTimeout)
		require.Equal(t, time.Second, time.Since(began))

		// The next process finds the delivery when the lease has ended.
		b.Start(b.Dispatcher(dispatch.Config{UnguardedTransport: endpoint}))
		time.Sleep(2 * time.Minute)
		d := b.Delivery()
		require.Equal(t, sender.StatusDelivered, d.Status)
		require.Equal(t, []sender.Class{sender.ClassInterrupted, sender.ClassNone}, []sender.Class{d.Attempts[0].Class, d.Attempts[1].Class})
		require.Len(t, endpoint.Requests(), 2)
	})
}

func TestTransportThatPanics(t *testing.T) {
	b := bedtest.New(t)
	b.Subscribe("sub_a", "http://endpoint/")
	b.Publish("sub_a")
	var log bytes.Buffer
	d := b.Dispatcher(dispatch.Config{
		UnguardedTransport: bedtest.TransportFunc(func(*http.Request) (*http.Response, error) { panic("a customer's name") }),
		Hooks:              dispatch.Hooks{AttemptEnd: func(context.Context, *dispatch.Claimed, *dispatch.Result) { panic("a customer's name") }, Recorded: func(context.Context, *dispatch.Recorded) { panic("a customer's name") }},
		Logger:             slog.New(slog.NewTextHandler(&log, nil)),
	})
	_, err := d.RunOnce(t.Context())
	require.NoError(t, err)
	require.Equal(t, sender.ClassProtocol, b.Delivery().Attempts[0].Class)
	require.Equal(t, sender.StatusAwaitingRetry, b.Delivery().Status)
	require.Contains(t, log.String(), "an attempt panicked")
	require.Contains(t, log.String(), "our own machine fails attempts")
	require.Contains(t, log.String(), "a hook panicked")
	require.NotContains(t, log.String(), "a customer's name", "what a program panics with may be an event")
}

func TestRunTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		d := b.Dispatcher(dispatch.Config{})
		stop := b.Start(d)
		synctest.Wait()
		require.ErrorIs(t, d.Run(t.Context()), dispatch.ErrRunning)
		_, err := d.RunOnce(t.Context())
		require.ErrorIs(t, err, dispatch.ErrRunning)
		require.NoError(t, stop())
		_, err = d.RunOnce(t.Context())
		require.NoError(t, err, "after a run it can be run again")
	})
}

func TestNewRefuses(t *testing.T) {
	_, err := dispatch.New(nil, nil, &dispatch.Config{
		Timeout: time.Minute, Slots: 1, PerSubscription: -1, Lease: time.Second, MaxIdle: time.Microsecond, DrainTimeout: -1,
		Policy:  dispatch.Policy{FastAnswer: -1, Backoff: backoff.Policy{Horizon: -1}, Own: sender.PolicyBounds{Allowed: true, MinDelay: 1, MaxHorizon: 29 * 24 * time.Hour}},
		Network: sender.Network{Deny: []netip.Prefix{{}}}, UserAgent: "acme\n",
	})
	for _, part := range []string{`Config.UserAgent is "acme\n"`, "needs a store", "nothing is ever sent unsigned", "Timeout is 1m0s", "Slots is 1", "PerSubscription is -1", "Lease is 1s", "MaxIdle is 1µs", "DrainTimeout is -1ns", "FastAnswer is -1ns", "orizon", "PolicyBounds.MinDelay is 1ns", "at least the horizon of the retries, 696h0m0s", "dispatch: Config.Network"} {
		require.ErrorContains(t, err, part, "all problems at once")
	}
	_, err = dispatch.New(nil, nil, &dispatch.Config{Slots: math.MaxInt})
	require.ErrorContains(t, err, "it must be from 4 to 1000000")
}
