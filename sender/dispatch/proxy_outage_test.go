package dispatch_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/race"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/internal/bedtest"
)

type byMethod = map[string]func(net.Conn)

// proxied returns a dispatcher's configuration with proxies of these names.
func proxied(names ...string) dispatch.Config {
	cfg := dispatch.Config{Proxies: map[string]*url.URL{}}
	for _, name := range names {
		cfg.Proxies[name] = &url.URL{Scheme: "http", Host: name + ".internal:3128", User: url.UserPassword("operator", "hunter2")}
	}
	return cfg
}

// subscribeThrough subscribes through the proxy of a name.
func subscribeThrough(b *bedtest.Bed, proxy, subscriber, to string) {
	b.T.Helper()
	b.Subscribe(subscriber, to)
	subs, _, err := b.History.Subscriptions(b.T.Context(), sender.SubscriptionQuery{Subscriber: subscriber})
	require.NoError(b.T, err)
	reg, err := sender.NewRegistry(b.Store, b.Keys, &sender.RegistryConfig{Network: bedtest.Private, Proxies: []string{proxy}})
	require.NoError(b.T, err)
	_, err = reg.Update(b.T.Context(), subs[0].ID, sender.SubscriptionChange{Settings: &sender.Settings{Proxy: proxy}})
	require.NoError(b.T, err)
}

// Nothing comes back through a proxy. The dispatcher asks the proxy within the attempt's
// time, and so finds out whether the proxy hangs or the endpoint does not answer.
func TestSilenceThroughProxy(t *testing.T) {
	tunnels := func(more byMethod) func(*bufio.Reader, net.Conn) {
		by := byMethod{http.MethodConnect: after(0, 200), http.MethodPost: after(0, 204)}
		for method, answer := range more {
			by[method] = answer
		}
		return answering(by)
	}
	asks := func(answer func(net.Conn)) func(*bufio.Reader, net.Conn) {
		return answering(byMethod{http.MethodOptions: answer})
	}
	const (
		silent     = "the sender's proxy does not answer"
		unreached  = "the sender's proxy could not reach the host in time"
		unanswered = "no whole answer within the attempt's time"
	)
	for _, c := range []struct {
		name  string
		kept  func(*bufio.Reader, net.Conn) // a first delivery goes through the proxy's tunnel
		proxy func(*bufio.Reader, net.Conn)
		says  string
		fault bool // the proxy is at fault
	}{
		{"it hangs", nil, hung, silent, true},
		{"it answers 501, as it may", nil, asks(after(0, 501)), unreached, false},
		{"it answers 200", nil, asks(after(0, 204)), unreached, false},
		{"it does not know us", nil, asks(after(0, 407)), unreached, false},
		{"it takes four seconds", nil, asks(after(4*time.Second, 400)), unreached, false},
		{"it takes six", nil, asks(after(6*time.Second, 400)), silent, true},
		{"what it says is not HTTP", nil, asks(words("220 smtp ready\r\n")), silent, true},
		{"it hangs, and has a tunnel", func(r *bufio.Reader, conn net.Conn) { onePost(r, conn) }, hung, silent, true},
		{"it has a tunnel to who hangs", func(r *bufio.Reader, conn net.Conn) { onePost(r, conn) }, asks(after(0, 501)), unanswered, false},
		{"a new tunnel to who hangs", nil, tunnels(byMethod{http.MethodPost: nil, http.MethodOptions: after(0, 501)}), unanswered, false},
		{"a new tunnel, and then it hangs", nil, tunnels(byMethod{http.MethodPost: nil}), silent, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := bedtest.New(t)
				b.Subscribe("sub_a", "http://127.0.0.1:9/")
				var recorded bedtest.Noted[dispatch.Recorded]
				cfg := proxied("eu")
				cfg.Hooks.Recorded = func(_ context.Context, r *dispatch.Recorded) { recorded.Add(*r) }
				d := b.DispatcherWith(sender.Settings{Proxy: "eu"}, cfg)
				var proxy far
				defer proxy.serving.Wait()
				d.Connect("eu", proxy.dial)
				defer d.CloseIdle()
				if c.kept != nil {
					proxy.set(c.kept)
					b.Publish("sub_a")
					_, err := d.RunOnce(t.Context())
					require.NoError(t, err)
					require.Equal(t, sender.ClassNone, recorded.List()[0].Result.Class)
				}
				proxy.set(c.proxy)
				b.Publish("sub_a")
				_, err := d.RunOnce(t.Context())
				require.NoError(t, err)
				all := recorded.List()
				r := all[len(all)-1]
				require.Equal(t, sender.ClassTimeout, r.Result.Class, r.Result.Error)
				require.Equal(t, c.says, r.Result.Error)
				require.Equal(t, c.fault, r.Result.ProxyFailed)
				require.Equal(t, 10*time.Second, r.Result.Duration, "the attempt's own")
				require.Equal(t, c.fault, r.Decision.Health.Streak == 0)
			})
		})
	}
}

// onePost makes a tunnel, and answers one POST in it.
func onePost(r *bufio.Reader, conn net.Conn) {
	for _, status := range []int{200, 204} {
		request, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		_, _ = request.Body.Read(make([]byte, 64<<10))
		after(0, status)(conn)
	}
	hung(r, conn)
}

// Only one attempt at a time asks a proxy, however many wait for it, and an answer
// meanwhile counts for all.
func TestProxyIsAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const attempts = 20
		b := bedtest.New(t)
		var recorded bedtest.Noted[dispatch.Recorded]
		cfg := proxied("eu")
		cfg.Hooks.Recorded = func(_ context.Context, r *dispatch.Recorded) { recorded.Add(*r) }
		for i := range attempts {
			b.Subscribe(fmt.Sprintf("sub_%d", i), "http://127.0.0.1:9/")
			b.Publish(fmt.Sprintf("sub_%d", i))
		}
		d := b.DispatcherWith(sender.Settings{Proxy: "eu"}, cfg)
		var proxy far
		defer proxy.serving.Wait()
		d.Connect("eu", proxy.dial)
		defer d.CloseIdle()
		proxy.set(answering(byMethod{http.MethodOptions: after(time.Second, 501)}))
		_, err := d.RunOnce(t.Context())
		require.NoError(t, err)
		require.Len(t, recorded.List(), attempts)
		for _, r := range recorded.List() {
			require.False(t, r.Result.ProxyFailed)
		}
		require.Equal(t, attempts+1, proxy.dialled())
	})
}

// The dispatcher reports by name a proxy that keeps failing, and reports when it works
// again. Its failures say nothing about the rest of the network.
func TestFailingProxyIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		var log bedtest.LockedLog
		var down, up bedtest.Noted[time.Time]
		var network bedtest.Noted[string]
		cfg := proxied("eu", "us")
		cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		cfg.Hooks = dispatch.Hooks{
			NetworkDown: func(context.Context, time.Time) { network.Add("down") },
			ProxyDown:   func(_ context.Context, name string, since time.Time) { require.Equal(t, "eu", name); down.Add(since) },
			ProxyUp:     func(_ context.Context, name string, since time.Time) { require.Equal(t, "eu", name); up.Add(since) },
		}
		d := b.Dispatcher(cfg)
		var eu, us far
		d.Connect("eu", eu.dial)
		d.Connect("us", us.dial)
		works := answering(byMethod{http.MethodConnect: after(0, 200), http.MethodPost: after(0, 204)})
		us.set(works)
		for i := range 6 {
			subscribeThrough(b, "eu", fmt.Sprintf("sub_%d", i), fmt.Sprintf("http://127.0.0.%d:9/", i+1))
		}
		subscribeThrough(b, "us", "sub_us", "http://127.0.0.1:9/")
		b.Start(d)
		notices := func() []sender.Notice {
			list, _, err := b.History.Notices(t.Context(), history.NoticeQuery{})
			require.NoError(t, err)
			return list
		}

		since := time.Now()
		b.Publish("sub_0")
		b.Publish("sub_us")
		time.Sleep(time.Second)
		require.Empty(t, down.List(), "one failure can be one address that it forbids")
		b.Publish("sub_1")
		time.Sleep(time.Second)
		require.Equal(t, []time.Time{since}, trim(down.List()))
		require.Len(t, notices(), 1)
		n := notices()[0]
		require.Equal(t, []any{sender.NoticeProxy, sender.Operator}, []any{n.Kind, n.Subscriber})
		for _, text := range []string{n.Detail, log.String()} {
			require.Contains(t, text, since.UTC().Format(time.RFC3339)+": the sender's proxy cannot be reached")
			require.NotContains(t, text, "hunter2")
			require.NotContains(t, text, "internal", "nothing of our network")
		}
		for i := range 6 {
			b.Publish(fmt.Sprintf("sub_%d", i))
		}
		time.Sleep(time.Second)
		require.Empty(t, network.List(), "the network is not to blame")

		eu.set(works)
		time.Sleep(7 * time.Minute)
		require.Equal(t, []time.Time{since}, trim(up.List()))
		require.Contains(t, log.String(), `msg="the proxy \"eu\" is not failing any more"`)
		counts, err := b.History.Counts(t.Context())
		require.NoError(t, err)
		require.Zero(t, counts.Live, "all was delivered")

		fail := func() {
			eu.set(nil)
			d.CloseIdle()
			b.Publish("sub_0")
			b.Publish("sub_1")
			time.Sleep(time.Second)
		}
		fail()
		require.Len(t, down.List(), 2)
		require.Len(t, notices(), 1, "it comes and goes")
		eu.set(works)
		time.Sleep(7 * time.Minute)
		require.Len(t, up.List(), 2)
		fail()
		require.Len(t, notices(), 2)

		subs, _, err := b.History.Subscriptions(t.Context(), sender.SubscriptionQuery{})
		require.NoError(t, err)
		for _, s := range subs { // nothing is sent through it any more
			require.NoError(t, b.Registry.Unsubscribe(t.Context(), s.ID))
		}
		time.Sleep(16 * time.Minute)
		require.Len(t, up.List(), 3, "it is not believed for ever")
	})
}

// A proxy can forbid a single host. A notice tells of it, and attempts at other hosts are made
// as ever. A proxy that refuses two hosts gets only a few attempts.
func TestForbiddenHostHoldsUpNobody(t *testing.T) {
	for name, c := range map[string]struct {
		refused []string
		putOff  int
		says    string
	}{
		"one host":  {[]string{"127.0.0.2:9", "127.0.0.2:9"}, 0, "attempts at other hosts go on"},
		"two hosts": {[]string{"127.0.0.2:9", "127.0.0.3:9"}, 6, "few attempts go through it"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := bedtest.New(t)
				var putOff bedtest.Noted[dispatch.PutOffReason]
				cfg := proxied("eu")
				cfg.Hooks.PutOff = func(_ context.Context, p dispatch.PutOff) { putOff.Add(p.Reason) }
				d := b.Dispatcher(cfg)
				var eu far
				defer eu.serving.Wait()
				defer d.CloseIdle()
				d.Connect("eu", eu.dial)
				eu.set(func(r *bufio.Reader, conn net.Conn) {
					request, err := http.ReadRequest(r)
					switch {
					case err != nil:
					case slices.Contains(c.refused, request.Host):
						after(0, 403)(conn)
					default:
						after(time.Second, 200)(conn)
						answering(byMethod{http.MethodPost: after(0, 204)})(r, conn)
					}
				})
				for i, host := range c.refused {
					subscribeThrough(b, "eu", fmt.Sprintf("sub_refused_%d", i), "http://"+host+"/")
				}
				for i := range 10 {
					subscribeThrough(b, "eu", fmt.Sprintf("sub_%d", i), "http://127.0.0.1:9/")
				}
				b.Start(d)
				for i := range c.refused {
					b.Publish(fmt.Sprintf("sub_refused_%d", i))
				}
				time.Sleep(time.Second)
				list, _, err := b.History.Notices(t.Context(), history.NoticeQuery{})
				require.NoError(t, err)
				require.Len(t, list, 1)
				require.Contains(t, list[0].Detail, "403")
				require.Contains(t, list[0].Detail, c.says)
				for i := range 10 {
					b.Publish(fmt.Sprintf("sub_%d", i))
				}
				time.Sleep(5 * time.Second)
				require.Len(t, putOff.List(), c.putOff)
			})
		})
	}
}

// trim cuts the duration of a poll from the times.
func trim(times []time.Time) []time.Time {
	for i := range times {
		times[i] = times[i].Truncate(time.Second)
	}
	return times
}

// Thousands of deliveries through a proxy that hangs leave the others alone: the median and
// the 99th percentile of an endpoint without a proxy, from the commit to the POST, stay as
// they are without the proxy.
func TestHangingProxyIsIsolated(t *testing.T) {
	t.Parallel()
	subscribers, each := 200, 15
	if race.Enabled {
		each = 5
	}
	var alone, beside [2]time.Duration
	for _, others := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := bedtest.New(t)
			var putOff bedtest.Noted[dispatch.PutOffReason]
			cfg := proxied("eu")
			cfg.Hooks.PutOff = func(_ context.Context, p dispatch.PutOff) { putOff.Add(p.Reason) }
			d := b.DispatcherOn(costly{b.Store}, cfg)
			came := make(chan time.Time, 1)
			works := byMethod{http.MethodConnect: after(0, 200), http.MethodPost: func(conn net.Conn) {
				came <- time.Now()
				after(20*time.Millisecond, 204)(conn)
			}}
			var eu, direct far
			direct.set(answering(works))
			eu.set(answering(byMethod{http.MethodConnect: after(0, 200), http.MethodPost: after(20*time.Millisecond, 204)}))
			d.Connect("eu", eu.dial)
			d.Connect("", direct.dial)
			b.Subscribe("sub_healthy", "http://127.0.0.1:9/")
			post := func() time.Duration {
				began := time.Now()
				b.Publish("sub_healthy")
				return (<-came).Sub(began)
			}
			b.Start(d)
			for range 10 { // earns its places
				post()
				time.Sleep(time.Second)
			}
			if others {
				for i := range subscribers {
					subscribeThrough(b, "eu", fmt.Sprintf("sub_%d", i), "http://127.0.0.1:9/")
					b.Publish(fmt.Sprintf("sub_%d", i))
				}
				time.Sleep(time.Minute)
				eu.set(hung)
				for i := range subscribers {
					for range each {
						b.Publish(fmt.Sprintf("sub_%d", i))
					}
				}
			}
			var took []time.Duration
			for i := range 1000 { // more than three minutes
				took = append(took, post())
				time.Sleep(100*time.Millisecond + time.Duration(i%59)*3271*time.Microsecond)
				if synctest.Wait(); i > 300 && others {
					require.LessOrEqual(t, eu.open(), 5, "four attempts and a question")
				}
			}
			slices.Sort(took)
			if of := [...]time.Duration{took[len(took)/2], took[len(took)*99/100]}; !others {
				alone = of
				return
			}
			beside = [...]time.Duration{took[len(took)/2], took[len(took)*99/100]}
			t.Logf("the slowest took %v", took[len(took)-1])

			eu.set(answering(byMethod{http.MethodConnect: after(0, 200), http.MethodPost: after(20*time.Millisecond, 204)}))
			time.Sleep(7 * time.Minute)
			counts, err := b.History.Counts(t.Context())
			require.NoError(t, err)
			require.Zero(t, counts.Live, "all is delivered soon after it is back")
			require.Equal(t, []dispatch.PutOffReason{dispatch.PutOffProxy}, slices.Compact(putOff.List()))
		})
	}
	t.Logf("from the commit to the POST, median and p99: %v alone, %v beside them", alone, beside)
	require.LessOrEqual(t, beside[0], alone[0]*12/10, "median")
	require.LessOrEqual(t, beside[1], alone[1]*12/10+stepCost, "99th percentile")
}
