package replay_test

import (
	"bytes"
	"context"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/backoff"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/internal/bedtest"
	"github.com/surehook/surehook/sender/replay"
)

// answers is a transport that answers every POST with one status, and keeps the
// order in which events were posted.
type answers struct {
	mu     sync.Mutex
	status int
	posted []string
	times  []time.Time
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.posted = append(a.posted, r.Header.Get("Webhook-Id"))
	a.times = append(a.times, time.Now())
	return &http.Response{StatusCode: a.status, Header: http.Header{}, Body: http.NoBody}, nil
}

func (a *answers) answer(status int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.status, a.posted, a.times = status, nil, nil
}

func (a *answers) got() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string(nil), a.posted...)
}

// givesUpSoon tries twice, a millisecond apart.
func givesUpSoon(t *testing.T) dispatch.Policy {
	t.Helper()
	schedule, err := backoff.Fixed(time.Hour)
	require.NoError(t, err)
	return dispatch.Policy{Backoff: backoff.Policy{Schedule: schedule, Horizon: time.Millisecond}}
}

// deadLetters publishes n events that are dead letters afterwards.
func deadLetters(b *bedtest.Bed, d *dispatch.Dispatcher, n int) {
	b.T.Helper()
	b.Subscribe("sub_a", "https://example.com/")
	for range n {
		b.Publish("sub_a")
	}
	dead := 0
	for range 2 {
		stats, err := d.RunOnce(b.T.Context())
		require.NoError(b.T, err)
		dead += stats.DeadLettered
		time.Sleep(time.Millisecond)
	}
	require.Equal(b.T, n, dead)
}

func replays(b *bedtest.Bed, cfg *replay.Config) *replay.Replays {
	b.T.Helper()
	r, err := replay.New(b.Store, cfg)
	require.NoError(b.T, err)
	return r
}

func TestReplayIsWorkedThroughByRunOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, wire := bedtest.New(t), &answers{status: 500}
		var finished []replay.Replay
		var log bytes.Buffer
		d := b.Dispatcher(dispatch.Config{
			UnguardedTransport: wire, Policy: givesUpSoon(t), Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Hooks: dispatch.Hooks{ReplayFinished: func(_ context.Context, r replay.Replay) { finished = append(finished, r) }},
		})
		const dead = 1500 // more than a step looks at
		deadLetters(b, d, dead)
		_, err := b.Registry.Subscribe(t.Context(), sender.NewSubscription{
			Subscriber: "sub_a", URL: "https://example.com/", EventTypes: []string{string(sender.NoticeReplayFinished)},
		})
		require.NoError(t, err)

		replays := replays(b, nil)
		r, err := replays.Create(t.Context(), replay.Request{Filter: replay.Filter{Subscriber: "sub_a"}, By: "me", Reason: "they are back"})
		require.NoError(t, err)
		require.EqualValues(t, dead, r.Matched)
		wire.answer(204)
		stats, err := d.RunOnce(t.Context())
		require.NoError(t, err)
		require.Equal(t, dead+1, stats.Delivered, "all, and the event of the notice that the replay is finished")
		r, err = replays.Get(t.Context(), r.ID)
		require.NoError(t, err)
		require.Equal(t, replay.Finished, r.Status)
		require.EqualValues(t, dead, r.Admitted)
		require.Equal(t, []replay.Replay{r}, finished)
		require.Contains(t, log.String(), "a replay is finished")
		require.Contains(t, log.String(), r.ID)
	})
}

func TestReplayStandsBehindFreshWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, wire := bedtest.New(t), &answers{status: 500}
		d := b.Dispatcher(dispatch.Config{UnguardedTransport: wire, Policy: givesUpSoon(t), Slots: 4})
		deadLetters(b, d, 200)
		_, err := replays(b, nil).Create(t.Context(), replay.Request{})
		require.NoError(t, err)
		fresh := map[string]bool{}
		for range 100 {
			fresh[b.Publish("sub_a").ID] = true
		}
		wire.answer(204)
		_, err = d.RunOnce(t.Context())
		require.NoError(t, err)
		posted := wire.got()
		require.Len(t, posted, 300)
		for i, id := range posted[:100] {
			require.True(t, fresh[id], "post %d is of the replay, while fresh events wait", i+1)
		}
	})
}

// spared notes the slots that a claim has left, and checks that replays are not asked for
// more.
type spared struct {
	dispatch.Store
	t     *testing.T
	left  int
	asked int
}

func (s *spared) Step(ctx context.Context, p dispatch.ExpandParams, b dispatch.Batch) (dispatch.Expanded, dispatch.Claims, error) {
	x, c, err := s.Store.Step(ctx, p, b)
	s.left = -len(c.Claimed)
	for _, l := range b.Claim.Lanes {
		s.left += l.Slots
	}
	return x, c, err
}

func (s *spared) StepReplays(ctx context.Context, limit int, announce func(sender.Notice) (sender.Draft, bool)) (dispatch.ReplayStep, error) {
	require.Positive(s.t, limit)
	require.LessOrEqual(s.t, limit, s.left, "more than the claim before has left")
	s.asked = max(s.asked, limit)
	return s.Store.StepReplays(ctx, limit, announce)
}

func TestReplayTakesSpareSlotsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, wire := bedtest.New(t), &answers{status: 500}
		store := &spared{Store: b.Store, t: t}
		d := b.DispatcherOn(store, dispatch.Config{UnguardedTransport: wire, Policy: givesUpSoon(t), Slots: 8})
		deadLetters(b, d, 100)
		_, err := replays(b, nil).Create(t.Context(), replay.Request{})
		require.NoError(t, err)
		for range 50 {
			b.Publish("sub_a")
		}
		wire.answer(204)
		_, err = d.RunOnce(t.Context())
		require.NoError(t, err)
		require.Equal(t, 150, len(wire.got()))
		require.Greater(t, store.asked, 8)
	})
}

// There is always fresh work, and it leaves slots.
func TestReplayGetsOnBesideATrickle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, wire := bedtest.New(t), &answers{status: 500}
		d := b.Dispatcher(dispatch.Config{UnguardedTransport: wire, Policy: givesUpSoon(t)})
		deadLetters(b, d, 100)
		wire.answer(204)
		stop := b.Start(d)
		replays := replays(b, nil)
		r, err := replays.Create(t.Context(), replay.Request{})
		require.NoError(t, err)
		// Each step of the dispatcher finds something. Where the hint of the replay comes
		// together with that of an event, upkeep finds the replay a second later.
		for range 1500 {
			b.Publish("sub_a")
			time.Sleep(time.Millisecond)
		}
		r, err = replays.Get(t.Context(), r.ID)
		require.NoError(t, err)
		require.Equal(t, replay.Finished, r.Status)
		time.Sleep(time.Second)
		require.NoError(t, stop())
		require.Equal(t, 1600, len(wire.got()))
	})
}

func TestReplayKeepsItsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, wire := bedtest.New(t), &answers{status: 500}
		d := b.Dispatcher(dispatch.Config{UnguardedTransport: wire, Policy: givesUpSoon(t)})
		deadLetters(b, d, 20)
		wire.answer(204)
		start := time.Now()
		replays := replays(b, nil)
		r, err := replays.Create(t.Context(), replay.Request{Rate: 4})
		require.NoError(t, err)
		_, err = d.RunOnce(t.Context())
		require.NoError(t, err)
		require.Len(t, wire.got(), 1, "what the rate allows now")
		stop := b.Start(d)
		time.Sleep(10 * time.Second)
		require.NoError(t, stop())
		require.Len(t, wire.got(), 20)
		for i, at := range wire.times {
			due := start.Add(time.Duration(i) * 250 * time.Millisecond)
			require.False(t, at.Before(due), "post %d came %s after the start", i+1, at.Sub(start))
			require.Less(t, at.Sub(due), 10*time.Millisecond, "post %d came late", i+1)
		}
		r, err = replays.Get(t.Context(), r.ID)
		require.NoError(t, err)
		require.Equal(t, replay.Finished, r.Status)
	})
}

func TestReplayIsHeldBackByItsReach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, wire := bedtest.New(t), &answers{status: 500}
		d := b.Dispatcher(dispatch.Config{UnguardedTransport: wire, Policy: givesUpSoon(t)})
		published := time.Now()
		deadLetters(b, d, 1)
		id := b.Delivery().ID

		for _, c := range []struct {
			keeps sender.Retention // of the config
			reach time.Duration
		}{
			{sender.Retention{}, 28 * 24 * time.Hour},
			{sender.Retention{Reach: 30 * 24 * time.Hour, Receivers: 31 * 24 * time.Hour}, 30 * 24 * time.Hour},
		} {
			time.Sleep(c.reach - time.Since(published))
			replays := replays(b, &replay.Config{Retention: c.keeps})
			history, err := history.New(b.Store, &history.Config{Retention: c.keeps})
			require.NoError(t, err)
			r, err := replays.Create(t.Context(), replay.Request{})
			require.NoError(t, err, "at the reach")
			_, err = replays.Cancel(t.Context(), r.ID)
			require.NoError(t, err)
			time.Sleep(time.Second)
			var refused *sender.RetentionError
			_, err = replays.Create(t.Context(), replay.Request{})
			require.ErrorAs(t, err, &refused)
			require.ErrorIs(t, err, sender.ErrRetention)
			require.True(t, refused.Published.Equal(published))
			require.ErrorIs(t, history.Redeliver(t.Context(), id), sender.ErrRetention)
		}
		r, err := replays(b, nil).Create(t.Context(), replay.Request{Force: true})
		require.NoError(t, err)
		require.EqualValues(t, 1, r.Matched)
		require.NoError(t, b.History.RedeliverForced(t.Context(), id))
		wire.answer(204)
		stats, err := d.RunOnce(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, stats.Delivered, "once, though it was redelivered and replayed")
	})
}

// A replay that was paused for so long that its receivers may have forgotten what it sends
// does not send it, and says so.
func TestPausedReplaySkipsWhatHasGrownTooOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, wire := bedtest.New(t), &answers{status: 500}
		d := b.Dispatcher(dispatch.Config{UnguardedTransport: wire, Policy: givesUpSoon(t)})
		deadLetters(b, d, 3)
		replays := replays(b, nil)
		r, err := replays.Create(t.Context(), replay.Request{Rate: 1})
		require.NoError(t, err)
		wire.answer(204)
		stats, err := d.RunOnce(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, stats.Delivered)
		_, err = replays.Pause(t.Context(), r.ID)
		require.NoError(t, err)
		time.Sleep(28 * 24 * time.Hour)
		_, err = replays.Continue(t.Context(), r.ID)
		require.NoError(t, err)
		stats, err = d.RunOnce(t.Context())
		require.NoError(t, err)
		require.Zero(t, stats.Attempted)
		r, err = replays.Get(t.Context(), r.ID)
		require.NoError(t, err)
		require.Equal(t, replay.Finished, r.Status)
		require.Equal(t, []int64{3, 1, 2, 2}, []int64{r.Matched, r.Admitted, r.Skipped, r.TooOld})
		notices, _, err := b.History.Notices(t.Context(), history.NoticeQuery{Kind: sender.NoticeReplayFinished})
		require.NoError(t, err)
		require.Len(t, notices, 1)
		require.Equal(t, "deliveries sent again: 1 of 3; skipped: 2, 2 of them because their events had become so old that receivers may have forgotten them", notices[0].Detail)
	})
}

func TestReplaysRefuse(t *testing.T) {
	replays := replays(bedtest.New(t), nil)
	now := time.Now()
	for name, c := range map[string]struct {
		n    replay.Request
		says string
	}{
		"those that wait":   {replay.Request{Filter: replay.Filter{Status: sender.StatusAwaitingRetry}}, "pausing and resuming a subscription"},
		"pending":           {replay.Request{Filter: replay.Filter{Status: sender.StatusPending}}, "sent by themselves"},
		"held":              {replay.Request{Filter: replay.Filter{Status: sender.StatusHeld}}, "sent by themselves"},
		"cancelled":         {replay.Request{Filter: replay.Filter{Status: sender.StatusCancelled}}, "dead_lettered, delivered or superseded"},
		"no status":         {replay.Request{Filter: replay.Filter{Status: "x"}}, "dead_lettered, delivered or superseded"},
		"no pattern":        {replay.Request{Filter: replay.Filter{EventType: "a*"}}, "prefix.*"},
		"until before":      {replay.Request{Filter: replay.Filter{Since: now, Until: now}}, "later than since"},
		"no class":          {replay.Request{Filter: replay.Filter{ErrorClass: "x"}}, "error class"},
		"rate below zero":   {replay.Request{Rate: -1}, "rate"},
		"rate not a number": {replay.Request{Rate: math.NaN()}, "rate"},
		"rate without end":  {replay.Request{Rate: math.Inf(1)}, "rate"},
		"long by":           {replay.Request{By: strings.Repeat("x", 1025)}, "by"},
		"long reason":       {replay.Request{Reason: strings.Repeat("x", 1025)}, "reason"},
	} {
		_, err := replays.Create(t.Context(), c.n)
		require.ErrorIs(t, err, sender.ErrInvalid, name)
		require.ErrorContains(t, err, c.says, name)
		if c.n.Rate == 0 && c.n.By+c.n.Reason == "" {
			_, err = replays.Preview(t.Context(), c.n.Filter)
			require.ErrorIs(t, err, sender.ErrInvalid, name)
		}
	}
	all, err := replays.List(t.Context(), replay.Query{})
	require.NoError(t, err)
	require.Empty(t, all)
	_, err = replays.List(t.Context(), replay.Query{Limit: 201})
	require.ErrorIs(t, err, sender.ErrInvalid)
	_, err = replay.New(nil, &replay.Config{Retention: sender.Retention{Reach: -1, Rollups: -1}})
	require.ErrorContains(t, err, "needs a store")
	require.ErrorContains(t, err, "Retention.Reach is -1ns")
	require.ErrorContains(t, err, "Retention.Rollups is -1ns")
	_, err = history.New(nil, &history.Config{Retention: sender.Retention{Reach: 31*24*time.Hour + 1}})
	require.ErrorContains(t, err, "needs a store")
	require.ErrorContains(t, err, "Retention.Receivers for Retention.Reach")
}

// This test alone lays down which deliveries a filter selects.
func TestReplayFilterSelects(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c := replay.Candidate{Subscription: "w", Subscriber: "s", EventType: "a.b.c", Published: at, ErrorClass: sender.ClassTLS}
	for _, f := range []replay.Filter{
		{}, {Subscription: "w", Subscriber: "s"}, {EventType: "a.b.c"}, {EventType: "a.b.*"}, {EventType: "a.*"}, {EventType: "*"},
		{Since: at}, {Until: at.Add(1)}, {ErrorClass: sender.ClassTLS},
	} {
		require.True(t, f.Selects(c), "%+v", f)
	}
	for _, f := range []replay.Filter{
		{Subscription: "v"}, {Subscriber: "t"}, {EventType: "a.b"}, {EventType: "a.b.c.*"}, {EventType: "b.*"}, {Since: at.Add(1)}, {Until: at},
		{ErrorClass: sender.ClassDNS}, {Subscription: "w", Subscriber: "t"},
	} {
		require.False(t, f.Selects(c), "%+v", f)
	}
}
