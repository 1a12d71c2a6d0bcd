package scenario_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/race"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/replay"
)

// yearWire is the transport.
type yearWire func(r *http.Request) (*http.Response, error)

func (w yearWire) RoundTrip(r *http.Request) (*http.Response, error) { return w(r) }

// post is the subscriptions' endpoints.
func (y *year[Tx]) post(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	y.wire.Lock()
	defer y.wire.Unlock()
	id := r.Header.Get("Webhook-Id")
	s := y.hosts[r.URL.Host]
	if s == nil {
		y.t.Errorf("%s was posted to %s, which is no URL any more", id, r.URL)
		return nil, io.ErrUnexpectedEOF
	}
	if y.undone[id] {
		y.t.Errorf("%s was rolled back, and posted", id)
	}
	if s.status != sender.SubscriptionActive && s.status != sender.SubscriptionClosing {
		y.t.Errorf("%s was posted to %s, which is %q", id, s.id, s.status)
	}
	if before, posted := s.bodies[id]; posted && string(before) != string(body) {
		y.t.Errorf("%s has other bytes than before", id)
	}
	s.bodies[id] = body
	d := y.byKey[yearKey{id, s.id}]
	if d == nil { // of a notice that this run has raised
		d = y.discovered(id, s)
	}
	d.posts++
	if n, _ := strconv.Atoi(r.Header.Get("Webhook-Attempt")); n != d.posts {
		y.t.Errorf("attempt %d of %s to %s is its post number %d", n, id, s.id, d.posts)
	}
	if at, _ := strconv.ParseInt(r.Header.Get("Webhook-Timestamp"), 10, 64); y.clock.now.Unix()-at > 60 {
		y.t.Errorf("the timestamp of %s is %v, and it is %v", id, time.Unix(at, 0).UTC(), y.clock.now)
	}
	answer := y.answer(s, r, body)
	if answer != nil && answer.StatusCode < 300 {
		s.acked[id] = true
		s.streak, s.failingSince, s.warned = 0, time.Time{}, 0
		return answer, nil
	}
	y.failed(s)
	if answer == nil {
		return nil, io.ErrUnexpectedEOF
	}
	return answer, nil
}

// answer is an endpoint's answer; nil: it breaks off.
func (y *year[Tx]) answer(s *yearSub, r *http.Request, body []byte) *http.Response {
	w := httptest.NewRecorder()
	switch s.outage {
	case "500":
		w.WriteHeader(http.StatusInternalServerError)
		return w.Result()
	case "redirects":
		http.Redirect(w, r, "https://elsewhere.example.com/", http.StatusFound)
		return w.Result()
	case "breaks":
		return nil
	}
	in := httptest.NewRequest(http.MethodPost, r.URL.String(), newBody(body))
	in.Header = r.Header.Clone()
	s.rcv.ServeHTTP(w, in)
	if w.Code != http.StatusOK {
		y.t.Errorf("the receiver of %s refused %s: %d %s", s.id, r.Header.Get("Webhook-Id"), w.Code, w.Body)
	}
	if n := s.applied[r.Header.Get("Webhook-Id")]; n > 1 {
		y.t.Errorf("%s was applied %d times", r.Header.Get("Webhook-Id"), n)
	}
	if s.outage == "applies and breaks" {
		return nil
	}
	return w.Result()
}

// failed states again the rule that disables a subscription.
func (y *year[Tx]) failed(s *yearSub) {
	now := y.clock.now
	if s.streak > 0 && now.Sub(s.lastFailure) > yearSilence {
		s.streak, s.failingSince, s.warned = 0, time.Time{}, 0
	}
	if s.streak == 0 {
		s.failingSince = now
	}
	s.streak++
	s.lastFailure = now
	if s.streak < yearDisableStreak {
		return
	}
	failing, warn := now.Sub(s.failingSince), 0
	for _, percent := range []int{50, 75, 90} {
		if failing >= yearDisableAfter*time.Duration(percent)/100 {
			warn = percent
		}
	}
	switch {
	case warn > s.warned:
		s.warned, s.warnedAt = warn, now
		y.counts["warned"]++
	case s.status == sender.SubscriptionActive && failing >= yearDisableAfter && now.Sub(s.warnedAt) >= yearDisableAfter/10:
		s.due = true // once it is recorded
	}
}

// discover finds new deliveries.
func (y *year[Tx]) discover() {
	y.wire.Lock()
	defer y.wire.Unlock()
	q := history.DeliveryQuery{Limit: 30}
	for {
		page, next, err := y.history.Deliveries(y.ctx(), q)
		require.NoError(y.t, err)
		news := 0
		for _, read := range page {
			if known := y.byKey[yearKey{read.Event.ID, read.Subscription}]; known != nil {
				if known.id == "" { // it was discovered on the wire
					known.id = read.ID
					news++
				}
			} else {
				i := slices.IndexFunc(y.subs, func(s *yearSub) bool { return s.id == read.Subscription })
				require.GreaterOrEqual(y.t, i, 0)
				y.discovered(read.Event.ID, y.subs[i]).id = read.ID
				news++
			}
		}
		if next == "" || news == 0 {
			break
		}
		q.Cursor = next
	}
}

// discovered notes a delivery.
func (y *year[Tx]) discovered(event string, s *yearSub) *yearDelivery {
	d := &yearDelivery{yearKey: yearKey{event, s.id}, sub: s}
	known := slices.IndexFunc(y.events, func(e *yearEvent) bool { return e.id == event })
	d.notice = known < 0
	if known >= 0 && !slices.Contains(y.events[known].audience, s) {
		y.t.Errorf("%s is delivered to %s, which should not get it", event, s.id)
	}
	y.byKey[d.yearKey], y.deliveries = d, append(y.deliveries, d)
	return d
}

func terminal(s sender.Status) bool {
	return s == sender.StatusDelivered || s == sender.StatusDeadLettered || s == sender.StatusCancelled
}

// check checks every invariant against the store.
func (y *year[Tx]) check() {
	y.checkSubscriptions()
	for _, id := range y.running {
		r, err := y.replays.Get(y.ctx(), id)
		require.NoError(y.t, err)
		require.Equal(y.t, replay.Finished, r.Status)
		require.Equal(y.t, r.Matched, r.Admitted+r.Skipped)
		y.finished++
	}
	y.running = nil
	for _, e := range y.events {
		if e.expanded {
			continue
		}
		e.expanded = true
		for _, s := range e.audience {
			require.NotNil(y.t, y.byKey[yearKey{e.id, s.id}], "%s was expanded", e.id) // Contains would compare all keys
		}
	}
	for _, d := range y.deliveries {
		// It looks at all deliveries that were posted, and at some of the
		// others.
		odds := 8
		if terminal(d.status) {
			odds = 200
		}
		if d.status != "" && d.posts == d.seen && y.rand.IntN(odds) > 0 {
			continue
		}
		y.checkDelivery(d)
	}
}

// look checks all deliveries of a subscription.
func (y *year[Tx]) look(s *yearSub) {
	for _, d := range y.deliveries {
		if d.sub == s {
			y.checkDelivery(d)
		}
	}
}

func (y *year[Tx]) checkSubscriptions() {
	for _, s := range y.subs {
		got, err := y.reg.Subscription(y.ctx(), s.id)
		if s.status == sender.SubscriptionClosing && errors.Is(err, sender.ErrNotFound) {
			for _, d := range y.deliveries {
				if d.sub == s && !terminal(d.status) {
					y.checkDelivery(d)
					require.True(y.t, terminal(d.status), "%s is gone, and %s is %s", s.id, d.id, d.status)
				}
			}
			s.status = ""
			continue
		}
		if s.status == "" {
			require.ErrorIs(y.t, err, sender.ErrNotFound)
			continue
		}
		require.NoError(y.t, err, "%s is %s", s.id, s.status)
		if s.due {
			s.due = false
			s.status = sender.SubscriptionDisabled
			s.autoDisabled++
			y.counts["disabled by failing"]++
			y.say("%s is disabled", s.id)
		}
		require.Equal(y.t, s.status, got.Status, "status of %s, which fails since %v, %d times", s.id, s.failingSince, s.streak)
		require.Equal(y.t, s.streak, got.Health.Streak, "streak of %s", s.id)
		require.Equal(y.t, s.warned, got.Health.Warned, "warned of %s", s.id)
		require.True(y.t, s.failingSince.Equal(got.Health.FailingSince), "failing since of %s: %v, want %v", s.id, got.Health.FailingSince, s.failingSince)
	}
}

func (y *year[Tx]) checkDelivery(d *yearDelivery) {
	got, err := y.history.Delivery(y.ctx(), d.id)
	if d.pruned || errors.Is(err, sender.ErrNotFound) && y.prunable(d) {
		require.ErrorIs(y.t, err, sender.ErrNotFound)
		d.pruned = true
		return
	}
	require.NoError(y.t, err, "%s, which was %s, asked for again at %v, of %q", d.id, d.status, d.hurried, d.sub.status)
	require.Len(y.t, got.Attempts, d.posts, "attempts of %s, against its posts", d.id)
	for i, a := range got.Attempts {
		require.Equal(y.t, i+1, a.Number, "numbers of the attempts of %s", d.id)
		if i > 0 {
			due := got.Attempts[i-1].NextAttemptAt
			require.False(y.t, a.StartedAt.Before(due) && !slices.Contains(d.early, i+1),
				"attempt %d of %s was made at %v, and was due at %v", i+1, d.id, a.StartedAt, due)
		}
	}
	if terminal(d.status) && got.Status != d.status && d.hurried.IsZero() {
		y.t.Errorf("%s was %s, and is %s, and nobody has redelivered it", d.id, d.status, got.Status)
	}
	live := !terminal(got.Status)
	switch {
	case live && d.sub.status == "":
		y.t.Errorf("%s is %s, and its subscription is gone", d.id, got.Status)
	case live && (d.sub.status == sender.SubscriptionPaused || d.sub.status == sender.SubscriptionDisabled):
		require.Equal(y.t, sender.StatusHeld, got.Status, "%s of %s, which is %s", d.id, d.sub.id, d.sub.status)
	case live:
		require.NotEqual(y.t, sender.StatusHeld, got.Status, "%s of %s, which is %s", d.id, d.sub.id, d.sub.status)
		require.False(y.t, got.NextAttemptAt.IsZero(), "%s is %s, and nothing is planned", d.id, got.Status)
	}
	if got.Status == sender.StatusDelivered {
		require.True(y.t, d.sub.acked[d.event], "%s is delivered, and its endpoint has never answered 2xx", d.id)
	}
	if !terminal(d.status) && terminal(got.Status) {
		d.hurried = time.Time{} // its end is final, until somebody asks for another attempt
		y.counts["end "+string(got.Status)]++
	}
	d.status, d.seen = got.Status, d.posts
}

// prunable tells whether a record may be gone: its delivery has ended, perhaps since it
// was looked at, and its event is past the retention.
func (y *year[Tx]) prunable(d *yearDelivery) bool {
	ended := d.status == sender.StatusDelivered || d.status == sender.StatusCancelled
	again := d.status == sender.StatusDeadLettered && !d.hurried.IsZero() && d.posts == d.seen
	return (ended || again) && y.clock.now.Sub(y.event(d.event)) >= 30*24*time.Hour
}

// finish makes all endpoints succeed, and brings every delivery to its end.
func (y *year[Tx]) finish() {
	y.say("finish")
	for _, s := range y.subs {
		s.outage = ""
		if s.status == sender.SubscriptionPaused || s.status == sender.SubscriptionDisabled {
			y.expand()
			require.NoError(y.t, y.reg.Resume(y.ctx(), s.id, sender.Resume{Force: true}))
			for _, d := range y.deliveries {
				if d.sub == s {
					d.hurry(y.clock.now)
				}
			}
			if s.status == sender.SubscriptionDisabled {
				s.streak, s.failingSince, s.warned = 0, time.Time{}, 0
			}
			s.status = sender.SubscriptionActive
		}
	}
	for range 5 {
		y.clock.now = y.clock.now.Add(24 * time.Hour)
		y.dispatch()
		y.check()
	}
	for _, d := range y.deliveries {
		if !d.pruned {
			y.checkDelivery(d)
			require.True(y.t, d.pruned || terminal(d.status), "%s is %s in the end", d.id, d.status)
		}
	}
	y.checkNotices()
	if race.Enabled {
		return
	}
	for _, of := range []string{"end delivered", "end dead_lettered", "end cancelled", "disabled by failing", "pruned records", "pruned events"} {
		require.Positive(y.t, y.counts[of], "the year has everything in it: %v", y.counts)
	}
}

// checkNotices checks that a disabled subscription has its warning and its notice each
// time, and each dead letter its notice.
func (y *year[Tx]) checkNotices() {
	told := map[string]int{}
	q := history.NoticeQuery{Limit: 200}
	for {
		page, next, err := y.history.Notices(y.ctx(), q)
		require.NoError(y.t, err)
		for _, n := range page {
			told[fmt.Sprint(n.Kind, n.Subscription)]++
		}
		if next == "" {
			break
		}
		q.Cursor = next
	}
	require.Equal(y.t, y.finished, told[string(sender.NoticeReplayFinished)], "notices of replays")
	for _, s := range y.subs {
		require.Equal(y.t, s.autoDisabled, told[fmt.Sprint(sender.NoticeDisabled, s.id)], "notices of %s", s.id)
	}
}
