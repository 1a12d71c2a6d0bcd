package dispatch_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/backoff"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

const h = time.Hour

var (
	failed      = dispatch.Result{Class: sender.ClassStatus, StatusCode: 500}
	interrupted = dispatch.Result{Class: sender.ClassInterrupted}
	unplugged   = dispatch.Result{Class: sender.ClassConnect, OwnNetwork: true}
	proxyFailed = dispatch.Result{Class: sender.ClassConnect, ProxyFailed: true, Error: "the sender's proxy cannot be reached", StartedAt: t0}
)

func TestPolicyWarnsAndDisables(t *testing.T) {
	failing := func(streak, warned int, last time.Duration) sender.Health {
		hl := sender.Health{Lane: sender.LaneProbation, Streak: streak, FailingSince: t0, LastFailure: t0.Add(last), Warned: warned}
		if warned > 0 { // as soon as it can be disabled
			hl.WarnedAt = t0.Add(120 * h * time.Duration(warned) / 100)
		}
		return hl
	}
	late := func(hl sender.Health, at time.Duration) sender.Health {
		hl.WarnedAt = t0.Add(at)
		return hl
	}
	for _, c := range []struct {
		name    string
		after   time.Duration // Policy.DisableAfter
		live    dispatch.Live
		health  sender.Health
		result  dispatch.Result
		at      time.Duration // since FailingSince
		notice  sender.NoticeKind
		percent int
		warned  int
		disable bool
	}{
		{name: "before half of the time", health: failing(9, 0, 50*h), result: failed, at: 60*h - 1},
		{name: "half of the time", health: failing(9, 0, 50*h), result: failed, at: 60 * h, notice: sender.NoticeFailing, percent: 50, warned: 50},
		{name: "once only", health: failing(9, 50, 60*h), result: failed, at: 61 * h, warned: 50},
		{name: "three quarters", health: failing(9, 50, 80*h), result: failed, at: 90 * h, notice: sender.NoticeFailing, percent: 75, warned: 75},
		{name: "two passed at once are told as the higher one", health: failing(9, 0, 80*h), result: failed, at: 96 * h, notice: sender.NoticeFailing, percent: 75, warned: 75},
		{name: "nine tenths", health: failing(9, 75, 90*h), result: failed, at: 108 * h, notice: sender.NoticeFailing, percent: 90, warned: 90},
		{name: "just before the end", health: failing(9, 90, 108*h), result: failed, at: 120*h - 1, warned: 90},
		{name: "the end", health: failing(9, 90, 108*h), result: failed, at: 120 * h, notice: sender.NoticeDisabled, warned: 90, disable: true},
		{name: "the end, of which nobody was warned", health: failing(9, 0, 108*h), result: failed, at: 120 * h, notice: sender.NoticeFailing, percent: 90, warned: 90},
		{name: "the end, of which was warned at three quarters", health: failing(9, 75, 130*h), result: failed, at: 140 * h, notice: sender.NoticeFailing, percent: 90, warned: 90},
		{name: "the end, too soon after the last warning", health: late(failing(9, 90, 119*h), 110*h), result: failed, at: 122*h - 1, warned: 90},
		{name: "the end, a tenth of the time after the last warning", health: late(failing(9, 90, 119*h), 110*h), result: failed, at: 122 * h, notice: sender.NoticeDisabled, warned: 90, disable: true},
		{name: "the fourth failure", health: failing(3, 0, 110*h), result: failed, at: 120 * h},
		{name: "the fifth failure", health: failing(4, 0, 110*h), result: failed, at: 120 * h, notice: sender.NoticeFailing, percent: 90, warned: 90},
		{name: "the fourth, at half of the time", health: failing(3, 0, 50*h), result: failed, at: 60 * h},
		{name: "a silence of 24 h", health: failing(9, 90, 96*h), result: failed, at: 120 * h, notice: sender.NoticeDisabled, warned: 90, disable: true},
		{name: "a longer silence", health: failing(9, 90, 96*h-1), result: failed, at: 120 * h},
		{name: "a success", health: failing(9, 90, 119*h), result: dispatch.Result{}, at: 120 * h},
		{name: "an interrupted attempt", health: failing(9, 90, 119*h), result: interrupted, at: 120 * h, warned: 90},
		{name: "our own network", health: failing(9, 90, 119*h), result: unplugged, at: 120 * h, warned: 90},
		{name: "the operator's proxy", health: failing(9, 90, 119*h), result: proxyFailed, at: 120 * h, warned: 90},
		{name: "the operator's proxy, after it has stood still for as long as may be", live: dispatch.Live{Stood: 144 * h}, health: failing(9, 90, 119*h), result: proxyFailed, at: 120 * h, warned: 90},
		{name: "to tell of a notice", live: dispatch.Live{Notice: true}, health: failing(9, 90, 119*h), result: failed, at: 120 * h, notice: sender.NoticeDisabled, warned: 90, disable: true},
		{name: "to tell of a notice, half of the time", live: dispatch.Live{Notice: true}, health: failing(9, 0, 50*h), result: failed, at: 60 * h, notice: sender.NoticeFailing, percent: 50, warned: 50},
		{name: "a redelivered one", live: dispatch.Live{Single: true}, health: failing(9, 90, 119*h), result: failed, at: 120 * h, notice: sender.NoticeDisabled, warned: 90, disable: true},
		{name: "a time of its own", after: 10 * h, health: late(failing(9, 90, h), 9*h), result: failed, at: 10 * h, notice: sender.NoticeDisabled, warned: 90, disable: true},
		{name: "half of a time that was shorter when it was warned of", after: 240 * h, health: failing(9, 90, 119*h), result: failed, at: 120 * h, notice: sender.NoticeFailing, percent: 50, warned: 50},
		{name: "before half of such a time", after: 240 * h, health: failing(9, 90, 110*h), result: failed, at: 120*h - 1, warned: 90},
		{name: "the end of such a time, of which nobody was warned", after: 240 * h, health: failing(9, 90, 239*h), result: failed, at: 240 * h, notice: sender.NoticeFailing, percent: 90, warned: 90},
		{name: "a time that was longer when it was warned of", after: 60 * h, health: failing(9, 50, 60*h), result: failed, at: 61 * h, notice: sender.NoticeFailing, percent: 90, warned: 90},
		{name: "never", after: -1, health: failing(9, 0, 119*h), result: failed, at: 1000 * h},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := t0.Add(c.at)
			c.live.First, c.live.Tries, c.result.StartedAt = now, 1, now
			d := dispatch.Policy{DisableAfter: c.after}.Decide(c.live, c.health, c.result, now)
			require.Equal(t, c.disable, d.Disable != "", d.Disable)
			require.Equal(t, c.warned, d.Health.Warned)
			if c.notice == "" {
				require.Empty(t, d.Notices)
				return
			}
			require.Len(t, d.Notices, 1)
			require.Equal(t, c.notice, d.Notices[0].Kind)
			require.Equal(t, c.percent, d.Notices[0].Percent)
			if c.disable {
				require.Equal(t, d.Disable, d.Notices[0].Detail)
			}
		})
	}

	d := dispatch.Policy{}.Decide(dispatch.Live{First: t0, Tries: 1}, failing(11, 90, 110*h), failed, t0.Add(120*h))
	require.Equal(t, "it has been failing for 120h0m0s: 12 attempts without a success, the last one: status, answered 500", d.Disable)
	d = dispatch.Policy{}.Decide(dispatch.Live{First: t0.Add(130 * h), Tries: 1}, failing(11, 0, 110*h), failed, t0.Add(130*h))
	require.Equal(t, "it has been failing for 130h0m0s: 12 attempts without a success, the last one: status, answered 500. If that goes on for 12h0m0s it is disabled", d.Notices[0].Detail)
	require.Equal(t, t0.Add(130*h), d.Health.WarnedAt)
	d = dispatch.Policy{}.Decide(dispatch.Live{First: t0, Tries: 1}, failing(11, 0, 50*h), dispatch.Result{Class: sender.ClassTimeout}, t0.Add(60*h))
	require.Equal(t, "it has been failing for 60h0m0s: 12 attempts without a success, the last one: timeout. After 120h0m0s it is disabled", d.Notices[0].Detail)
}

// A silence of more than 24 h begins the failing time anew, and a success ends it.
func TestPolicyFailingTime(t *testing.T) {
	p := dispatch.Policy{}
	decide := func(hl sender.Health, r dispatch.Result, at time.Duration) sender.Health {
		return p.Decide(dispatch.Live{First: t0.Add(at), Tries: 1}, hl, r, t0.Add(at)).Health
	}
	before := sender.Health{Lane: sender.LaneProbation, Streak: 7, FailingSince: t0.Add(-80 * h), LastFailure: t0, Warned: 75}
	for at, want := range map[time.Duration]sender.Health{
		24 * h:   {Lane: sender.LaneProbation, Streak: 8, FailingSince: t0.Add(-80 * h), LastFailure: t0.Add(24 * h), Warned: 75},
		24*h + 1: {Lane: sender.LaneProbation, Streak: 1, FailingSince: t0.Add(24*h + 1), LastFailure: t0.Add(24*h + 1)},
	} {
		require.Equal(t, want, decide(before, failed, at), at)
	}
	require.Equal(t, sender.Health{Lane: sender.LaneProven, LastSuccess: t0.Add(h), LastFailure: t0}, decide(before, dispatch.Result{}, h))
	require.Equal(t, t0.Add(h+1), decide(decide(before, dispatch.Result{}, h), failed, h+1).FailingSince, "not the failures before the success")
}

func TestPolicyDeadLetterNotice(t *testing.T) {
	atHorizon := dispatch.Live{First: t0.Add(-72 * h), Number: 11, Tries: 11}
	told := func(change func(*dispatch.Live)) dispatch.Live {
		l := atHorizon
		change(&l)
		return l
	}
	for _, c := range []struct {
		name   string
		live   dispatch.Live
		result dispatch.Result
		detail string // "": no notice
	}{
		{"answered", atHorizon, failed, "it is not attempted any more: 11 attempts without a success, the last one: status, answered 500"},
		{"the only one", told(func(l *dispatch.Live) { l.Number = 1 }), failed, "it is not attempted any more: 1 attempt without a success, the last one: status, answered 500"},
		{"not answered", atHorizon, dispatch.Result{Class: sender.ClassTimeout}, "it is not attempted any more: 11 attempts without a success, the last one: timeout"},
		{"the operator's proxy", told(func(l *dispatch.Live) { l.Stood = 144 * h; l.First = l.First.Add(-144 * h) }), proxyFailed, "it is not attempted any more: 11 attempts without a success, the last one: connect, the sender's proxy cannot be reached"},
		{"interrupted", atHorizon, interrupted, "it is not attempted any more: 11 attempts without a success, the last one: interrupted"},
		{"delivered", atHorizon, dispatch.Result{}, ""},
		{"a redelivered one", told(func(l *dispatch.Live) { l.Single = true }), failed, ""},
		{"that of a notice", told(func(l *dispatch.Live) { l.Notice = true }), failed, ""},
		{"that of a notice, interrupted", told(func(l *dispatch.Live) { l.Notice = true }), interrupted, ""},
		{"not the last attempt", told(func(l *dispatch.Live) { l.First = t0.Add(-71 * h) }), failed, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := dispatch.Policy{}.Decide(c.live, sender.Health{}, c.result, t0)
			if c.detail == "" {
				require.Empty(t, d.Notices)
				return
			}
			require.Equal(t, []sender.Notice{{Kind: sender.NoticeDeadLettered, Detail: c.detail}}, d.Notices)
		})
	}

	both := dispatch.Policy{}.Decide(atHorizon, sender.Health{Streak: 20, FailingSince: t0.Add(-121 * h), LastFailure: t0.Add(-h), Warned: 90, WarnedAt: t0.Add(-13 * h)}, failed, t0)
	require.Len(t, both.Notices, 2, "a dead letter can be what disables")
	require.NotEmpty(t, both.Disable)
}

// While our own network is down, or the operator's proxy fails, schedules and streaks
// stand still.
func TestPolicyOwnNetwork(t *testing.T) {
	p := dispatch.Policy{Backoff: backoff.Policy{Jitter: backoff.None()}}
	before := sender.Health{Lane: sender.LaneProven, Streak: 4, FailingSince: t0.Add(-h), LastFailure: t0.Add(-h), Warned: 50}
	r, proxied := unplugged, proxyFailed
	r.StartedAt, r.Duration = t0.Add(-10*time.Second), 10*time.Second
	proxied.StartedAt, proxied.Duration = r.StartedAt, r.Duration
	for _, c := range []struct {
		name    string
		live    dispatch.Live
		counted bool
		delay   time.Duration
	}{
		{"the first", dispatch.Live{First: r.StartedAt, Tries: 1}, false, time.Minute},
		{"of one that was delivered before", dispatch.Live{First: r.StartedAt, Tries: 1, Single: true}, false, time.Minute},
		{"a later one", dispatch.Live{First: t0.Add(-h), Tries: 4}, false, 5 * time.Minute},
		{"the last one", dispatch.Live{First: r.StartedAt.Add(-72 * h), Tries: 11}, false, 5 * time.Minute},
		{"it has stood for nearly twice the horizon", dispatch.Live{First: t0.Add(-150 * h), Tries: 4, Stood: 144*h - 5*time.Minute - 10*time.Second}, false, 5 * time.Minute},
		{"it has stood for that long", dispatch.Live{First: t0.Add(-150 * h), Tries: 4, Stood: 144*h - 5*time.Minute - 10*time.Second + 1}, true, 2 * h},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := p.Decide(c.live, before, r, t0)
			byProxy := p.Decide(c.live, before, proxied, t0)
			require.Equal(t, before, byProxy.Health, "nothing of the proxy's is ever the endpoint's")
			require.Empty(t, byProxy.Notices)
			byProxy.Health = d.Health
			require.Equal(t, d, byProxy)
			require.Equal(t, sender.StatusAwaitingRetry, d.Status)
			require.Equal(t, c.delay, d.Due.Sub(t0))
			require.Equal(t, c.counted, !d.Uncounted)
			if c.counted {
				require.Equal(t, 5, d.Health.Streak)
				require.Zero(t, d.Stands)
				return
			}
			require.Equal(t, before, d.Health)
			require.Empty(t, d.Notices)
			age := func(at time.Time, stood time.Duration) time.Duration { return at.Sub(c.live.First) - stood }
			require.Equal(t, age(r.StartedAt, c.live.Stood), age(d.Due, c.live.Stood+d.Stands), "the age has not moved")
		})
	}

	lost := interrupted
	lost.OwnNetwork = true
	require.Equal(t, t0, p.Decide(dispatch.Live{First: t0, Tries: 1}, before, lost, t0).Due, "an attempt that was lost is made again at once")

	// The time for which the schedule stood still is not counted to the age afterwards.
	stood := dispatch.Live{First: t0.Add(-80 * h), Tries: 11, Stood: 10 * h}
	d := p.Decide(stood, sender.Health{}, failed, t0)
	require.Equal(t, sender.StatusAwaitingRetry, d.Status)
	require.Equal(t, t0.Add(2*h), d.Due, "at the horizon")
	stood.Stood = 8 * h
	require.Equal(t, sender.StatusDeadLettered, p.Decide(stood, sender.Health{}, failed, t0).Status)
}
