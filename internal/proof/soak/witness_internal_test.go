package soak

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// witnessed is a cycle of which only the witness works, with a reach of a minute.
func witnessed(t *testing.T) *cycle {
	cfg, err := Config{Dir: t.TempDir(), Reach: time.Minute}.withDefaults()
	require.NoError(t, err)
	w := newWitness(&findings{kinds: map[string]*Finding{}}, &figures{n: map[string]int64{}})
	return &cycle{cfg: cfg, w: w, feed: &reader{versions: map[sender.Object]int64{}}, ends: &endpoints{w: w, slots: map[string]*slot{}}}
}

func (c *cycle) texts() (all []string) {
	for _, f := range c.w.findings.all() {
		all = append(all, f.Invariant+": "+f.Text)
	}
	return all
}

// An event that was pruned must have been seen to end, unless nobody could look.
func TestPrunedBeforeItWasSeen(t *testing.T) {
	now := time.Now()
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for name, x := range map[string]struct {
		event event
		found string
	}{
		"checked":               {event{checked: true, inFeed: 1}, ""},
		"never seen":            {event{looked: ago(time.Second), inFeed: 1}, "not all deliveries of it were ever seen"},
		"alive a while ago":     {event{looked: ago(time.Second), alive: ago(time.Second), inFeed: 1}, "a delivery of it had not ended"},
		"sent again, in vain":   {event{looked: ago(time.Second), alive: ago(time.Second), resent: true, inFeed: 1}, ""},
		"posted after its end":  {event{looked: ago(time.Second), ended: true, inFeed: 1}, ""},
		"sent again, alive":     {event{looked: ago(time.Second), ended: true, alive: ago(time.Second), inFeed: 1}, "a delivery of it had not ended"},
		"nobody looked":         {event{looked: ago(time.Minute), inFeed: 1}, ""},
		"nobody looked before":  {event{looked: ago(time.Second), gap: true, inFeed: 1}, ""},
		"not in the feed":       {event{checked: true}, "never came in the feed"},
		"neither looked nor in": {event{gap: true}, "never came in the feed"},
	} {
		c := witnessed(t)
		e := x.event
		e.nonce, e.id, e.outcome = 1, "evt_1", committed
		c.farewell(&e)
		if x.found == "" {
			require.Empty(t, c.texts(), name)
			continue
		}
		require.Len(t, c.texts(), 1, name)
		require.Contains(t, c.texts()[0], x.found, name)
	}
}

// A post whose delivery is not on record is a finding, as long as the delivery cannot
// have been pruned.
func TestPostWithoutDelivery(t *testing.T) {
	c := witnessed(t)
	c.ends.slots["a"] = &slot{name: "a"}
	asked := time.Now()
	e := event{id: "evt_1", wires: map[string]*wire{"a": {posts: []*post{{number: 1, at: asked}}}}}
	c.stray(&e, map[string]bool{"a": true}, asked)
	e.done = map[string]int{"a": 1}
	c.stray(&e, map[string]bool{}, asked)
	require.Empty(t, c.texts())
	e.done = nil
	c.stray(&e, map[string]bool{}, asked)
	require.Len(t, c.texts(), 1)
}

// A delivery is cancelled by a resume that skips it, and by no other.
func TestCancelledByWhom(t *testing.T) {
	s := &slot{}
	since := time.Now().Add(-time.Minute)
	held := &sender.Delivery{CreatedAt: since.Add(-time.Second)}
	taken := &sender.Delivery{CreatedAt: since.Add(time.Second)}
	tried := &sender.Delivery{CreatedAt: since.Add(-time.Second), Attempts: []sender.Attempt{{StartedAt: time.Now().Add(time.Minute)}}}
	claimed := &sender.Delivery{CreatedAt: since.Add(-time.Second), Attempts: []sender.Attempt{{StartedAt: time.Now().Add(time.Second / 2)}}}
	var got []bool
	look := func() {
		for _, d := range []*sender.Delivery{held, taken, tried, claimed} {
			got = append(got, s.cancelled(d, time.Second))
		}
	}
	look()
	require.NoError(t, s.shear(since, func() error { look(); return nil }))
	look()
	require.ErrorIs(t, (&slot{}).shear(since, func() error { return sender.ErrRetention }), sender.ErrRetention)
	s.at = true
	look()
	want := []bool{false, false, false, false, true, true, true, true, true, false, false, true, true, true, true, true}
	require.Empty(t, cmp.Diff(want, got), "before, meanwhile, afterwards, and when it was closed at once")
	refused := &slot{}
	_ = refused.shear(since, func() error { return sender.ErrRetention })
	require.False(t, refused.cancelled(held, time.Second), "it did nothing")
}

// An attempt before its time is a finding, unless a resume that its claim could see made it due.
func TestAttemptBeforeItsTime(t *testing.T) {
	began := time.Now().Add(-time.Minute)
	resumed := began.Add(30 * time.Second)
	d := &sender.Delivery{Subscription: "wsub_1", Attempts: []sender.Attempt{
		{Number: 1, StartedAt: began, NextAttemptAt: began.Add(50 * time.Second), Class: sender.ClassTimeout},
		{Number: 2, StartedAt: resumed.Add(-20 * time.Second)},
	}}
	d.Event.ID = "evt_1"
	for name, x := range map[string]struct {
		claimed time.Duration // before now
		of      dispatch.Claimed
		early   bool
	}{
		"a claim that met it":     {30 * time.Second, dispatch.Claimed{Number: 2}, false},
		"a claim of before it":    {0, dispatch.Claimed{Number: 2}, true},
		"of another attempt":      {30 * time.Second, dispatch.Claimed{Number: 1}, true},
		"of another subscription": {30 * time.Second, dispatch.Claimed{Number: 2, Target: &dispatch.Target{Subscription: "wsub_2"}}, true},
	} {
		c := witnessed(t)
		s := &slot{name: "a", resumes: []span{{from: resumed, to: resumed}}}
		x.of.Event.ID = "evt_1"
		if x.of.Target == nil {
			x.of.Target = &dispatch.Target{Subscription: "wsub_1"}
		}
		c.w.claimed(&dispatch.Claims{Now: time.Now().Add(-x.claimed), Claimed: []dispatch.Claimed{x.of}})
		c.order(&event{id: "evt_1"}, s, d)
		if !x.early {
			require.Empty(t, c.texts(), name)
			continue
		}
		require.Len(t, c.texts(), 1, name)
		require.Contains(t, c.texts()[0], "before it was due", name)
	}
}

// A job that is gone must have ended, and must have been announced once if it has a
// callback.
func TestJobsThatAreGone(t *testing.T) {
	for name, x := range map[string]struct {
		job  job
		told int
		want int
	}{
		"ended":          {job{ended: true}, 0, 0},
		"announced":      {job{ended: true, callback: "a"}, 1, 0},
		"not announced":  {job{ended: true, callback: "a"}, 0, 1},
		"twice":          {job{ended: true, callback: "a"}, 2, 1},
		"for no reason":  {job{ended: true}, 1, 1},
		"not ended":      {job{looked: time.Now()}, 0, 1},
		"nobody looked":  {job{looked: time.Now().Add(-time.Minute)}, 0, 0},
		"lost by others": {job{id: "other", looked: time.Now()}, 0, 0},
	} {
		c := witnessed(t)
		j := x.job
		c.w.jobs["job_1"], c.w.told["job_1"] = &j, x.told
		if j.id == "" {
			j.id = "job_1"
		}
		c.lose(&j)
		require.Len(t, c.texts(), x.want, name)
	}
}

// A first attempt must not be made after that of a later version of its object. It may if
// its delivery was interrupted before, since perhaps no process has learned of the claim.
func TestOvertaken(t *testing.T) {
	for name, x := range map[string]struct {
		interrupted string
		first       int64 // the version that is attempted first
		want        int
	}{
		"in order":                         {"", 1, 0},
		"overtaken":                        {"", 2, 1},
		"the earlier version, interrupted": {"evt_1", 2, 0},
		"the later version, interrupted":   {"evt_2", 2, 0},
		"another event, interrupted":       {"evt_3", 2, 1},
	} {
		c := witnessed(t)
		if x.interrupted != "" {
			c.w.recorded(&dispatch.Recorded{Event: sender.EventInfo{ID: x.interrupted}, Result: dispatch.Result{Class: sender.ClassInterrupted}})
		}
		for i, version := range []int64{x.first, 3 - x.first} {
			about := content{ID: fmt.Sprint("evt_", version), Object: sender.Object{Type: "thing", ID: "1"}, Version: version}
			c.w.attempted("slot", &about, int64(i))
		}
		require.Len(t, c.texts(), x.want, name)
	}
}

// A gap in the feed excuses the events that were published before it.
func TestGapInFeed(t *testing.T) {
	r := &reader{versions: map[sender.Object]int64{{Type: "thing", ID: "1"}: 3}}
	before := &event{began: time.Now()}
	require.False(t, r.excuses(before))
	r.read = time.Now().Add(-time.Minute)
	require.GreaterOrEqual(t, r.expired("next"), time.Minute)
	require.True(t, r.excuses(before))
	require.False(t, r.excuses(&event{began: time.Now().Add(time.Second)}))
	require.Empty(t, r.versions)
	require.Equal(t, "next", r.cursor)
}

// A secret, or what an event says, is found wherever it must not be, the logs included.
func TestWhatMustNotBeSaid(t *testing.T) {
	w := witnessed(t).w
	w.conceal("whsec_c2VjcmV0+/c2VjcmV0Zm9yYWxs")
	log := slog.New(slog.NewJSONHandler(w, nil))
	log.Info("nothing", "key", "c2VjcmV0")
	require.Empty(t, w.findings.all())
	log.Info("a header", "key", "whsec_c2VjcmV0+/c2VjcmV0Zm9yYWxs")
	w.search("a notice", []byte(`{"for":"`+canary+`"}`))
	require.Len(t, w.findings.all(), 2)
}
