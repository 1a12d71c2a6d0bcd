package dispatch_test

import (
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/backoff"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/internal/bedtest"
	"github.com/surehook/surehook/sender/memory"
	"github.com/surehook/surehook/sender/sendertest"
)

const m = time.Minute

func TestOwnPolicyDelivery(t *testing.T) {
	common := backoff.Policy{Jitter: backoff.None()}
	wide := sender.PolicyBounds{Allowed: true, MinDelay: time.Second, MaxTries: 100, MaxHorizon: 100 * h}
	own := &sender.Settings{RetryDelays: []time.Duration{2 * m, 3 * m}, Horizon: 20 * m}
	failed := dispatch.Result{Class: sender.ClassStatus, StatusCode: 500}
	lost := dispatch.Result{Class: sender.ClassInterrupted}
	throttled := dispatch.Result{Class: sender.ClassStatus, StatusCode: 429, RetryAfter: 10 * m}
	unplugged := dispatch.Result{Class: sender.ClassConnect, OwnNetwork: true}
	proxied := dispatch.Result{Class: sender.ClassProtocol, ProxyFailed: true}
	for _, c := range []struct {
		name    string
		backoff backoff.Policy
		bounds  sender.PolicyBounds
		live    dispatch.Live
		result  dispatch.Result
		after   time.Duration
		status  sender.Status
		delay   time.Duration
	}{
		{"the first delay", common, wide, dispatch.Live{Tries: 1}, failed, 0, sender.StatusAwaitingRetry, 2 * m},
		{"the last delay", common, wide, dispatch.Live{Tries: 2}, failed, 2 * m, sender.StatusAwaitingRetry, 3 * m},
		{"the last delay again", common, wide, dispatch.Live{Tries: 3}, failed, 5 * m, sender.StatusAwaitingRetry, 3 * m},
		{"up to the horizon", common, wide, dispatch.Live{Tries: 7}, failed, 19 * m, sender.StatusAwaitingRetry, m},
		{"at the horizon", common, wide, dispatch.Live{Tries: 8}, failed, 20 * m, sender.StatusDeadLettered, 0},
		{"with the jitter of all", backoff.Policy{}, wide, dispatch.Live{Tries: 1}, dispatch.Result{Class: sender.ClassReset, Chance: 0.75}, 0, sender.StatusAwaitingRetry, 132 * time.Second},
		{"Retry-After lengthens", common, wide, dispatch.Live{Tries: 1}, throttled, 0, sender.StatusAwaitingRetry, 10 * m},
		{"Retry-After ends at the horizon", common, wide, dispatch.Live{Tries: 3}, throttled, 15 * m, sender.StatusAwaitingRetry, 5 * m},
		{"a lost attempt", common, wide, dispatch.Live{Tries: 1}, lost, m, sender.StatusAwaitingRetry, 0},
		{"an outage of ours", common, wide, dispatch.Live{Tries: 8}, unplugged, 20 * m, sender.StatusAwaitingRetry, 3 * m},
		{"an outage that took twice the horizon", common, wide, dispatch.Live{Tries: 8, Stood: 40 * m}, unplugged, 60 * m, sender.StatusDeadLettered, 0},
		{"the proxy", common, wide, dispatch.Live{Tries: 1}, proxied, 0, sender.StatusAwaitingRetry, 2 * m},
		{"time that stood still", common, wide, dispatch.Live{Tries: 8, Stood: 10 * m}, failed, 20 * m, sender.StatusAwaitingRetry, 3 * m},
		{"an object that is held for less", common, wide, dispatch.Live{Tries: 2, HoldFor: 4 * m}, failed, 2 * m, sender.StatusAwaitingRetry, 2 * m},
		{"a success", common, wide, dispatch.Live{Tries: 9}, dispatch.Result{}, h, sender.StatusDelivered, 0},

		{"a longer least delay", common, sender.PolicyBounds{Allowed: true, MinDelay: 150 * time.Second}, dispatch.Live{Tries: 1}, failed, 0, sender.StatusAwaitingRetry, 150 * time.Second},
		{"a shorter horizon", common, sender.PolicyBounds{Allowed: true, MaxHorizon: 4 * m}, dispatch.Live{Tries: 2}, failed, 2 * m, sender.StatusAwaitingRetry, 2 * m},
		{"a shorter horizon, at it", common, sender.PolicyBounds{Allowed: true, MaxHorizon: 4 * m}, dispatch.Live{Tries: 3}, failed, 4 * m, sender.StatusDeadLettered, 0},
		{"fewer tries", common, sender.PolicyBounds{Allowed: true, MaxTries: 4}, dispatch.Live{Tries: 2}, failed, 2 * m, sender.StatusAwaitingRetry, 3 * m},
		{"fewer tries, of which one is left", common, sender.PolicyBounds{Allowed: true, MaxTries: 4}, dispatch.Live{Tries: 3}, failed, 5 * m, sender.StatusAwaitingRetry, 15 * m},
		{"fewer tries, of which one is lost", common, sender.PolicyBounds{Allowed: true, MaxTries: 4}, dispatch.Live{Tries: 3}, lost, 5 * m, sender.StatusAwaitingRetry, 0},
		{"fewer tries, at the horizon", common, sender.PolicyBounds{Allowed: true, MaxTries: 4}, dispatch.Live{Tries: 4}, failed, 20 * m, sender.StatusDeadLettered, 0},
		{"not allowed any more", common, sender.PolicyBounds{}, dispatch.Live{Tries: 2}, failed, 2 * m, sender.StatusAwaitingRetry, 5 * m},
		{"not allowed any more, beyond its horizon", common, sender.PolicyBounds{MaxHorizon: m}, dispatch.Live{Tries: 8}, failed, 20 * m, sender.StatusAwaitingRetry, 12 * h},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := t0.Add(c.after)
			c.live.First, c.live.Own, c.result.StartedAt = t0, own, now
			d := dispatch.Policy{Backoff: c.backoff, Own: c.bounds}.Decide(c.live, sender.Health{}, c.result, now)
			require.Equal(t, c.status, d.Status)
			if c.status == sender.StatusAwaitingRetry {
				require.Equal(t, c.delay, d.Due.Sub(now))
			}
		})
	}
}

func TestOwnPolicyParts(t *testing.T) {
	p := dispatch.Policy{Backoff: backoff.Policy{Jitter: backoff.None()}, Own: sender.PolicyBounds{Allowed: true}}
	failed := dispatch.Result{Class: sender.ClassStatus, StatusCode: 500}
	d := p.Decide(dispatch.Live{First: t0, Tries: 5, Own: &sender.Settings{Horizon: 4 * h}}, sender.Health{}, failed, t0.Add(3*h))
	require.Equal(t, t0.Add(4*h), d.Due, "the horizon alone, with the schedule of all")
	d = p.Decide(dispatch.Live{First: t0, Tries: 5, Own: &sender.Settings{RetryDelays: []time.Duration{5 * h}}}, sender.Health{}, failed, t0.Add(70*h))
	require.Equal(t, t0.Add(72*h), d.Due, "the schedule alone, with the horizon of all")

	for _, c := range []struct {
		name    string
		bounds  sender.PolicyBounds
		own     time.Duration
		failing time.Duration
		disable bool
	}{
		{"before", sender.PolicyBounds{Allowed: true}, 10 * h, 10*h - 1, false},
		{"at", sender.PolicyBounds{Allowed: true}, 10 * h, 10 * h, true},
		{"a narrower bound, before", sender.PolicyBounds{Allowed: true, MaxDisableAfter: 5 * h}, 10 * h, 5*h - 1, false},
		{"a narrower bound, at", sender.PolicyBounds{Allowed: true, MaxDisableAfter: 5 * h}, 10 * h, 5 * h, true},
		{"never", sender.PolicyBounds{Allowed: true, Never: true}, sender.NeverDisable, 1000 * h, false},
		{"never, not allowed any more", sender.PolicyBounds{Allowed: true, MaxDisableAfter: 5 * h}, sender.NeverDisable, 5 * h, true},
		{"none allowed any more", sender.PolicyBounds{Never: true}, sender.NeverDisable, 120 * h, true},
		{"the time of all", sender.PolicyBounds{Allowed: true}, 0, 120*h - 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			own := &sender.Settings{DisableAfter: c.own}
			now := t0.Add(c.failing)
			health := sender.Health{Streak: 9, FailingSince: t0, LastFailure: now.Add(-h), Warned: 90}
			d := dispatch.Policy{Own: c.bounds}.Decide(dispatch.Live{First: now, Tries: 1, Own: own}, health, failed, now)
			require.Equal(t, c.disable, d.Disable != "")
			e := dispatch.Policy{Own: c.bounds}.Of(*own)
			at := e.DisabledAt(health, now)
			require.Equal(t, c.disable, !at.IsZero() && !at.After(now), "what is shown")
		})
	}
}

// However soon a subscription's own schedule ends: an outage of ours is charged to no endpoint
// before it has lasted for twice the horizon of all.
func TestOwnHorizonChargesNoOutage(t *testing.T) {
	p := dispatch.Policy{Backoff: backoff.Policy{Jitter: backoff.None()}, Own: sender.PolicyBounds{Allowed: true}}
	own := &sender.Settings{Horizon: m, DisableAfter: h}
	failing := sender.Health{Lane: sender.LaneProven, Streak: 9, FailingSince: t0.Add(-2 * h), LastFailure: t0.Add(-m), Warned: 90, WarnedAt: t0.Add(-h)}
	r := dispatch.Result{Class: sender.ClassConnect, OwnNetwork: true, StartedAt: t0}
	live := dispatch.Live{First: t0.Add(-3 * m), Tries: 2, Stood: 2 * m, Own: own}
	d := p.Decide(live, failing, r, t0)
	require.Equal(t, sender.StatusDeadLettered, d.Status, "it stands still for twice its own horizon at most")
	require.Equal(t, failing, d.Health)
	require.Empty(t, d.Disable)
	require.Len(t, d.Notices, 1, "of the dead letter")

	live.Stood, live.First = 2*72*h, t0.Add(-145*h)
	require.NotEmpty(t, p.Decide(live, failing, r, t0).Disable, "it has lasted for too long to be ours")
}

func TestGoneStops(t *testing.T) {
	p := dispatch.Policy{Backoff: backoff.Policy{Jitter: backoff.None()}}
	gone := dispatch.Result{Class: sender.ClassStatus, StatusCode: 410}
	stopped := []sender.Notice{{Kind: sender.NoticeDisabled, Detail: sender.DisabledByGone}}
	failing := sender.Health{Streak: 9, FailingSince: t0.Add(-119 * h), LastFailure: t0.Add(-h), Warned: 90}
	for _, c := range []struct {
		name    string
		live    dispatch.Live
		health  sender.Health
		result  dispatch.Result
		status  sender.Status
		due     time.Time
		disable string
		notices []sender.Notice
	}{
		{"the first attempt", dispatch.Live{First: t0, Tries: 1, GoneStops: true}, sender.Health{}, gone, sender.StatusAwaitingRetry, t0.Add(m), sender.DisabledByGone, stopped},
		{"the last attempt", dispatch.Live{First: t0.Add(-72 * h), Tries: 11, GoneStops: true}, sender.Health{}, gone, sender.StatusAwaitingRetry, t0.Add(m), sender.DisabledByGone, stopped},
		{"of a held object", dispatch.Live{First: t0, Tries: 3, HoldTries: 3, GoneStops: true}, sender.Health{}, gone, sender.StatusAwaitingRetry, t0.Add(m), sender.DisabledByGone, stopped},
		{"of one that was delivered", dispatch.Live{First: t0, Tries: 1, Single: true, GoneStops: true}, sender.Health{}, gone, sender.StatusDelivered, time.Time{}, sender.DisabledByGone, stopped},
		{"to tell of a notice", dispatch.Live{First: t0, Tries: 1, Notice: true, GoneStops: true}, sender.Health{}, gone, sender.StatusAwaitingRetry, t0.Add(m), sender.DisabledByGone, stopped},
		{"where it would be disabled soon", dispatch.Live{First: t0, Tries: 1, GoneStops: true}, failing, gone, sender.StatusAwaitingRetry, t0.Add(m), sender.DisabledByGone, stopped},
		{"not chosen", dispatch.Live{First: t0, Tries: 1}, sender.Health{}, gone, sender.StatusAwaitingRetry, t0.Add(m), "", nil},
		{"another status", dispatch.Live{First: t0, Tries: 1, GoneStops: true}, sender.Health{}, dispatch.Result{Class: sender.ClassStatus, StatusCode: 404}, sender.StatusAwaitingRetry, t0.Add(m), "", nil},
		{"an answer that is not whole", dispatch.Live{First: t0, Tries: 1, GoneStops: true}, sender.Health{}, dispatch.Result{Class: sender.ClassTimeout, StatusCode: 410}, sender.StatusAwaitingRetry, t0.Add(m), "", nil},
		{"the proxy's answer", dispatch.Live{First: t0, Tries: 1, GoneStops: true, Stood: 144 * h}, sender.Health{}, dispatch.Result{Class: sender.ClassStatus, StatusCode: 410, ProxyFailed: true}, sender.StatusAwaitingRetry, t0.Add(m), "", nil},
		{"a success", dispatch.Live{First: t0, Tries: 1, GoneStops: true}, sender.Health{}, dispatch.Result{}, sender.StatusDelivered, time.Time{}, "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.result.StartedAt = t0
			d := p.Decide(c.live, c.health, c.result, t0)
			require.Equal(t, []any{c.status, c.due, c.disable, c.notices}, []any{d.Status, d.Due, d.Disable, d.Notices})
			if c.disable != "" {
				require.Equal(t, c.health.Streak+1, d.Health.Streak, "it is a failure, too")
			}
		})
	}
}

func TestPolicyOf(t *testing.T) {
	p := dispatch.Policy{Own: sender.PolicyBounds{Allowed: true, MinDelay: m, MaxTries: 4, MaxHorizon: 10 * h, MaxDisableAfter: 50 * h, Never: true}}
	reference := []time.Duration{0, m, 6 * m, 36 * m, 2*h + 36*m, 14*h + 36*m, 26*h + 36*m, 38*h + 36*m, 50*h + 36*m, 62*h + 36*m, 72 * h}
	for _, c := range []struct {
		name string
		p    dispatch.Policy
		s    sender.Settings
		want sender.EffectivePolicy
	}{
		{"that of all", p, sender.Settings{Rate: 3}, sender.EffectivePolicy{Tries: reference, Horizon: 72 * h, DisableAfter: 120 * h}},
		{"all of it", p, sender.Settings{RetryDelays: []time.Duration{m, h}, Horizon: 2 * h, DisableAfter: 20 * h, Gone: sender.GoneStops}, sender.EffectivePolicy{
			Tries: []time.Duration{0, m, h + m, 2 * h}, Horizon: 2 * h, DisableAfter: 20 * h, Gone: sender.GoneStops, Own: true,
		}},
		{"beyond narrower bounds", p, sender.Settings{RetryDelays: []time.Duration{time.Second, 2 * m}, Horizon: 20 * h, DisableAfter: 60 * h}, sender.EffectivePolicy{
			Tries: []time.Duration{0, m, 3 * m, 10 * h}, Horizon: 10 * h, DisableAfter: 50 * h, Own: true,
		}},
		{"not allowed any more", dispatch.Policy{DisableAfter: -5}, sender.Settings{Horizon: h, DisableAfter: h}, sender.EffectivePolicy{Tries: reference, Horizon: 72 * h, DisableAfter: sender.NeverDisable}},
		{"410 alone", dispatch.Policy{}, sender.Settings{Gone: sender.GoneStops}, sender.EffectivePolicy{Tries: reference, Horizon: 72 * h, DisableAfter: 120 * h, Gone: sender.GoneStops, Own: true}},
	} {
		require.Equal(t, c.want, c.p.Of(c.s), c.name)
	}
	many := dispatch.Policy{Backoff: backoff.Policy{Schedule: backoff.Exponential{Base: time.Second, Max: time.Second}}}
	require.Len(t, many.Of(sender.Settings{}).Tries, 100)
}

// Whatever the delays and the chance, a schedule of its own comes to no more attempts than it
// may, its last attempt is at its horizon, and without jitter it is the one that is shown.
func TestOwnScheduleOfAnyKind(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		bounds := sender.PolicyBounds{Allowed: true, MinDelay: time.Second, MaxTries: 2 + random.IntN(20), MaxHorizon: h}
		own := sender.Settings{Horizon: m + time.Duration(random.Int64N(int64(2*h)))}
		for range 1 + random.IntN(5) {
			own.RetryDelays = append(own.RetryDelays, time.Duration(random.Int64N(int64(20*m))))
		}
		for _, jitter := range []backoff.Jitter{backoff.None(), backoff.Full(), backoff.Proportional(1), {}} {
			p := dispatch.Policy{Backoff: backoff.Policy{Jitter: jitter}, Own: bounds}
			var at []time.Duration
			for now := t0; ; {
				at = append(at, now.Sub(t0))
				d := p.Decide(dispatch.Live{First: t0, Tries: len(at), Own: &own}, sender.Health{}, dispatch.Result{Class: sender.ClassReset, Chance: random.Float64()}, now)
				if d.Status == sender.StatusDeadLettered {
					break
				}
				now = d.Due
			}
			shown := p.Of(own)
			require.LessOrEqual(t, len(at), bounds.MaxTries, "%v %v", own, bounds)
			require.Equal(t, shown.Horizon, at[len(at)-1], "%v %v", own, bounds)
			if jitter == backoff.None() {
				require.Equal(t, shown.Tries, at, "%v %v", own, bounds)
			}
		}
	}
}

// Policies of their own cost the subscriptions nothing that have none.
func TestDecisionsAllocateNothing(t *testing.T) {
	p := dispatch.Policy{Own: sender.PolicyBounds{Allowed: true}}
	for name, r := range map[string]dispatch.Result{"success": {}, "failure": {Class: sender.ClassStatus, StatusCode: 410}} {
		l := dispatch.Live{First: t0, Tries: 1}
		require.Zero(t, testing.AllocsPerRun(100, func() { decision = p.Decide(l, sender.Health{}, r, t0) }), name)
	}
}

var decision dispatch.Decision

func BenchmarkDecide(b *testing.B) {
	for name, l := range map[string]dispatch.Live{
		"common": {First: t0, Tries: 1},
		"own":    {First: t0, Tries: 1, Own: &sender.Settings{RetryDelays: []time.Duration{m, h}}},
	} {
		b.Run(name, func(b *testing.B) {
			p := dispatch.Policy{Own: sender.PolicyBounds{Allowed: true}}
			r := dispatch.Result{Class: sender.ClassStatus, StatusCode: 500, Chance: 0.5}
			b.ReportAllocs()
			for b.Loop() {
				decision = p.Decide(l, sender.Health{}, r, t0)
			}
		})
	}
}

// ownRegistry is a registry that allows policies of their own, on a bed's store.
func ownRegistry(b *bedtest.Bed, bounds sender.PolicyBounds) *sender.Registry[*memory.Tx] {
	r, err := sender.NewRegistry(b.Store, b.Keys, &sender.RegistryConfig{Network: bedtest.Private, OwnPolicies: bounds})
	require.NoError(b.T, err)
	return r
}

// Two subscriptions get the same event: one by the schedule of all, and one by its own.
func TestOwnScheduleInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		bounds := sender.PolicyBounds{Allowed: true}
		endpoint := sendertest.NewRoundTripper(sendertest.Status(500))
		d := b.Dispatcher(dispatch.Config{
			UnguardedTransport: endpoint, MaxIdle: time.Minute, Policy: dispatch.Policy{Backoff: backoff.Policy{Jitter: backoff.None()}, Own: bounds},
		})
		stop := b.Start(d)
		common, _ := b.Subscribe("sub_a", "http://common/")
		own := sender.Settings{RetryDelays: []time.Duration{30 * time.Second, 10 * m}, Horizon: h, DisableAfter: sender.NeverDisable}
		registry := ownRegistry(b, sender.PolicyBounds{Allowed: true, Never: true})
		subscribed, err := registry.Subscribe(t.Context(), sender.NewSubscription{Subscriber: "sub_a", URL: "http://own/", EventTypes: []string{"thing.*"}, Settings: own})
		require.NoError(t, err)
		began := time.Now()
		b.Publish("sub_a")
		time.Sleep(80 * time.Hour)

		at := map[string][]time.Duration{}
		for _, p := range endpoint.Requests() {
			at[p.URL.Host] = append(at[p.URL.Host], p.ReceivedAt.Sub(began).Truncate(10*time.Second))
		}
		require.Equal(t, d.PolicyOf(subscribed.Settings).Tries, at["own"])
		require.Equal(t, []time.Duration{0, 30 * time.Second, 10*m + 30*time.Second, 20*m + 30*time.Second, 30*m + 30*time.Second, 40*m + 30*time.Second, 50*m + 30*time.Second, h}, at["own"])
		require.Equal(t, d.PolicyOf(common.Settings).Tries, at["common"])
		for _, id := range []string{common.ID, subscribed.ID} {
			list, _, err := b.History.Deliveries(t.Context(), history.DeliveryQuery{Subscription: id})
			require.NoError(t, err)
			require.Equal(t, sender.StatusDeadLettered, list[0].Status)
		}
		require.NoError(t, stop())
	})
}

// An endpoint over the wire retires with 410, which stops its subscription: nothing is lost,
// the reason is shown, and what was held is delivered after a resume. The schedule and the
// horizon are the subscription's own before and after.
func TestGoneStopsOverTheWire(t *testing.T) {
	var answers, posts atomic.Int64
	answers.Store(503)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		posts.Add(1)
		w.WriteHeader(int(answers.Load()))
	}))
	defer server.Close()
	clock := time.Now()
	store, err := memory.New(&memory.Config{Now: func() time.Time { return clock }})
	require.NoError(t, err)
	b := bedtest.NewOn(t, store)
	bounds := sender.PolicyBounds{Allowed: true}
	_, _, err = b.Registry.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: "sub_a"})
	require.NoError(t, err)
	sub, err := ownRegistry(b, bounds).Subscribe(t.Context(), sender.NewSubscription{
		Subscriber: "sub_a", URL: server.URL, EventTypes: []string{"thing.*"},
		Settings: sender.Settings{RetryDelays: []time.Duration{10 * m}, Horizon: 15 * m, Gone: sender.GoneStops},
	})
	require.NoError(t, err)
	d := b.Dispatcher(dispatch.Config{
		Policy: dispatch.Policy{Backoff: backoff.Policy{Jitter: backoff.None()}, Own: bounds},
	})
	step := func(after time.Duration) dispatch.Stats {
		t.Helper()
		clock = clock.Add(after)
		stats, err := d.RunOnce(t.Context())
		require.NoError(t, err)
		return stats
	}
	b.Publish("sub_a")
	require.Equal(t, dispatch.Stats{Expanded: 1, Attempted: 1, Failed: 1}, step(0))
	require.Equal(t, dispatch.Stats{}, step(10*m-time.Second), "it is not due by its own schedule")
	require.Equal(t, dispatch.Stats{Attempted: 1, Failed: 1}, step(time.Second))
	require.Equal(t, dispatch.Stats{}, step(5*m-time.Second))

	answers.Store(410) // to the last attempt of its schedule, at its own horizon
	require.Equal(t, dispatch.Stats{Attempted: 1, Failed: 1, Expanded: 1}, step(time.Second), "and the notice is an event")
	require.EqualValues(t, 3, posts.Load())
	sub, err = b.Registry.Subscription(t.Context(), sub.ID)
	require.NoError(t, err)
	require.Equal(t, []any{sender.SubscriptionDisabled, sender.DisabledByGone}, []any{sub.Status, sub.DisabledReason})
	delivery := b.Delivery()
	require.Equal(t, sender.StatusHeld, delivery.Status)
	why, err := b.History.Why(t.Context(), delivery.ID)
	require.NoError(t, err)
	require.Equal(t, history.WhyDisabled, why.Reason)
	require.Contains(t, why.Sentence, "("+sender.DisabledByGone+"). Resume the subscription to send it.")
	told, _, err := b.History.Notices(t.Context(), history.NoticeQuery{})
	require.NoError(t, err)
	require.Len(t, told, 1)
	require.Equal(t, []any{sender.NoticeDisabled, "sub_a", sub.ID}, []any{told[0].Kind, told[0].Subscriber, told[0].Subscription})

	b.Publish("sub_a")
	require.Equal(t, dispatch.Stats{Expanded: 1}, step(100*time.Hour))
	require.EqualValues(t, 3, posts.Load(), "nothing is posted while it is stopped")

	answers.Store(200)
	require.NoError(t, b.Registry.Resume(t.Context(), sub.ID, sender.Resume{}))
	require.Equal(t, dispatch.Stats{Attempted: 2, Delivered: 2}, step(0))
	require.EqualValues(t, 5, posts.Load())
}
