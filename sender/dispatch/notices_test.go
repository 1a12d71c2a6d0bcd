package dispatch_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"slices"
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
	"github.com/surehook/surehook/sender/sendertest"
)

// shortLife dead-letters after one retry.
func shortLife(t *testing.T) dispatch.Policy {
	t.Helper()
	schedule, err := backoff.Fixed(time.Minute)
	require.NoError(t, err)
	return dispatch.Policy{Backoff: backoff.Policy{Schedule: schedule, Horizon: time.Minute, Jitter: backoff.None()}}
}

func TestNotifierIsToldUntilItAccepts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		s, _ := b.Subscribe("sub_a", "http://dead/")
		var noticed bedtest.Noted[sender.Notice]
		var when bedtest.Noted[time.Time]
		stop := b.Start(b.Dispatcher(dispatch.Config{
			UnguardedTransport: sendertest.NewRoundTripper(sendertest.Answer(500, nil, "")), Policy: shortLife(t), MaxIdle: time.Second,
			Notifier: func(_ context.Context, n sender.Notice) error {
				noticed.Add(n)
				when.Add(time.Now())
				switch len(noticed.List()) {
				case 1:
					return errors.New("the mail server is down")
				case 2:
					panic("it is broken")
				case 3:
					runtime.Goexit()
				}
				return nil
			},
		}))
		b.Publish("sub_a")
		time.Sleep(time.Hour)
		told, at := noticed.List(), when.List()
		require.Len(t, told, 4, "until it accepts, and not after")
		for i, pause := range []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second} {
			require.Equal(t, pause, at[i+1].Sub(at[i]).Truncate(10*time.Second), "with growing pauses")
		}
		require.Equal(t, []any{sender.NoticeDeadLettered, "sub_a", s.ID, b.Delivery().ID}, []any{told[0].Kind, told[0].Subscriber, told[0].Subscription, told[0].Delivery})

		list, _, err := b.History.Notices(t.Context(), history.NoticeQuery{Unread: true})
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.False(t, list[0].NotifiedAt.IsZero())
		_, err = b.History.Acknowledge(t.Context(), list[0].ID, "sub_other")
		require.ErrorIs(t, err, sender.ErrNotFound, "another's")
		_, err = b.History.Acknowledge(t.Context(), list[0].ID, "sub_a")
		require.NoError(t, err)
		list, _, err = b.History.Notices(t.Context(), history.NoticeQuery{Unread: true})
		require.NoError(t, err)
		require.Empty(t, list)
		require.NoError(t, stop())
	})
}

// A run that ends leaves the notices that it has not told to the next one at once, and those
// that it has told to nobody.
func TestNoticesOfARunThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		b.Subscribe("sub_a", "http://dead/")
		var told bedtest.Noted[string]
		start := func(notifier dispatch.Notifier) (stop func() error) {
			return b.Start(b.Dispatcher(dispatch.Config{
				UnguardedTransport: sendertest.NewRoundTripper(sendertest.Answer(500, nil, "")), Policy: shortLife(t), Notifier: notifier,
			}))
		}
		stop := start(func(ctx context.Context, n sender.Notice) error {
			told.Add(n.ID)
			<-ctx.Done()
			return nil // it was accepted all the same
		})
		const notices = 3
		for range notices {
			b.Publish("sub_a")
		}
		for len(told.List()) == 0 {
			time.Sleep(time.Second)
		}
		require.NoError(t, stop())
		require.Len(t, told.List(), 1)
		stop = start(func(_ context.Context, n sender.Notice) error {
			told.Add(n.ID)
			return nil
		})
		time.Sleep(time.Minute)
		require.NoError(t, stop())
		ids := told.List()
		slices.Sort(ids)
		require.Len(t, slices.Compact(ids), notices)
		require.Len(t, told.List(), notices, "each was told once")
	})
}

// unsettled is a store whose first call of SettleNotice fails.
type unsettled struct {
	dispatch.Store
	calls atomic.Int64
}

func (s *unsettled) SettleNotice(ctx context.Context, id string, again time.Duration) error {
	if s.calls.Add(1) == 1 {
		return errAway
	}
	return s.Store.SettleNotice(ctx, id, again)
}

// A database that fails once has no notice told twice, and delays none.
func TestNoticeThatCannotBeSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		b.Subscribe("sub_a", "http://dead/")
		var told bedtest.Noted[string]
		stop := b.Start(b.DispatcherOn(&unsettled{Store: b.Store}, dispatch.Config{
			UnguardedTransport: sendertest.NewRoundTripper(sendertest.Answer(500, nil, "")), Policy: shortLife(t),
			Notifier: func(_ context.Context, n sender.Notice) error {
				told.Add(n.ID)
				return nil
			},
		}))
		const notices = 3
		for range notices {
			b.Publish("sub_a")
		}
		time.Sleep(3 * time.Minute)
		require.Len(t, told.List(), notices)
		time.Sleep(time.Hour)
		require.NoError(t, stop())
		require.Len(t, told.List(), notices)
	})
}

// RunOnce comes to an end, whatever the Notifier does, and gives it no notice twice. One that
// answers soon, or accepts what it is given, gets all.
func TestRunOnceGivesEachNoticeOnce(t *testing.T) {
	const notices = 130 // to tell all of them takes longer than the longest pause of a notice
	for name, c := range map[string]struct {
		takes time.Duration
		err   error
		all   bool
	}{"accepts": {50 * time.Second, nil, true}, "refuses": {0, errAway, true}, "never answers": {time.Hour, nil, false}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := bedtest.New(t)
				b.Subscribe("sub_a", "http://dead/")
				var told bedtest.Noted[string]
				d := b.Dispatcher(dispatch.Config{
					UnguardedTransport: sendertest.NewRoundTripper(sendertest.Answer(500, nil, "")), Policy: shortLife(t),
					Notifier: func(ctx context.Context, n sender.Notice) error {
						told.Add(n.ID)
						select {
						case <-ctx.Done():
							return ctx.Err()
						case <-time.After(c.takes):
							return c.err
						}
					},
				})
				for range notices {
					b.Publish("sub_a")
				}
				for range 2 {
					_, err := d.RunOnce(t.Context())
					require.NoError(t, err)
					time.Sleep(time.Minute)
				}
				ids := told.List()
				slices.Sort(ids)
				require.Len(t, slices.Compact(slices.Clone(ids)), len(ids), "one was given twice")
				require.NotEmpty(t, ids)
				if c.all {
					require.Len(t, ids, notices)
				}
			})
		})
	}
}

// A Notifier that does not heed its context is no attempt: a run that ends waits for it, and
// has given up none.
func TestNotifierThatGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		b.Subscribe("sub_a", "http://dead/")
		told := make(chan struct{})
		stop := b.Start(b.Dispatcher(dispatch.Config{
			UnguardedTransport: sendertest.NewRoundTripper(sendertest.Answer(500, nil, "")), Policy: shortLife(t), DrainTimeout: time.Second,
			Notifier: func(context.Context, sender.Notice) error {
				close(told)
				time.Sleep(30 * time.Second)
				return nil
			},
		}))
		b.Publish("sub_a")
		<-told
		require.NoError(t, stop())
		list, _, err := b.History.Notices(t.Context(), history.NoticeQuery{})
		require.NoError(t, err)
		require.False(t, list[0].NotifiedAt.IsZero())
	})
}

// A Notifier that hangs and heeds no context delays other notices by about a minute, and loses
// none. It is not called any more when it hangs everywhere.
func TestNotifierThatHangs(t *testing.T) {
	for name, hangs := range map[string]func(call int) bool{
		"once":   func(call int) bool { return call == 1 },
		"always": func(int) bool { return true },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const notices = 12
				b := bedtest.New(t)
				b.Subscribe("sub_a", "http://dead/")
				over := make(chan struct{})
				defer close(over)
				var calls, accepted bedtest.Noted[string]
				stop := b.Start(b.Dispatcher(dispatch.Config{
					UnguardedTransport: sendertest.NewRoundTripper(sendertest.Answer(500, nil, "")), Policy: shortLife(t), MaxIdle: 10 * time.Second,
					Notifier: func(_ context.Context, n sender.Notice) error {
						calls.Add(n.ID)
						if hangs(len(calls.List())) {
							<-over
						}
						accepted.Add(n.ID)
						return nil
					},
				}))
				for range notices {
					b.Publish("sub_a")
				}
				time.Sleep(time.Hour)
				if name == "always" {
					require.Len(t, calls.List(), 8, "calls that hang")
				} else {
					ids := accepted.List()
					slices.Sort(ids)
					require.Len(t, slices.Compact(slices.Clone(ids)), notices)
					require.Len(t, ids, notices)
					require.Contains(t, ids, calls.List()[0], "it was given again")
				}
				require.NoError(t, stop())
			})
		})
	}
}

// A process that hangs while it notifies, or is lost, keeps one notice to itself for a while,
// and no other.
func TestNoticesBesideAProcessThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const notices = 12
		b := bedtest.New(t)
		b.Subscribe("sub_a", "http://dead/")
		start := func(notifier dispatch.Notifier) (stop func() error) {
			return b.Start(b.Dispatcher(dispatch.Config{
				UnguardedTransport: sendertest.NewRoundTripper(sendertest.Answer(500, nil, "")), Policy: shortLife(t), Notifier: notifier,
			}))
		}
		hangs, over := make(chan struct{}), make(chan struct{})
		stopHanging := start(func(context.Context, sender.Notice) error {
			close(hangs)
			<-over
			return nil
		})
		for range notices {
			b.Publish("sub_a")
		}
		<-hangs
		time.Sleep(10 * time.Second) // until all are dead letters
		var told bedtest.Noted[string]
		stop := start(func(_ context.Context, n sender.Notice) error {
			told.Add(n.ID)
			return nil
		})
		time.Sleep(30 * time.Second)
		require.Len(t, told.List(), notices-1)
		close(over)
		require.NoError(t, stopHanging())
		require.NoError(t, stop())
	})
}

// A dead letter is announced to its owner and to the operator, who ask for it, and to
// nobody else. The deliveries of these announcements fail too, and raise no further
// announcements.
func TestNoticesAreEventsAndDoNotBreed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		b.Subscribe("sub_a", "http://dead/")
		asks := func(subscriber, url string) {
			if _, _, err := b.Registry.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: subscriber}); err != nil {
				require.ErrorIs(t, err, sender.ErrExists)
			}
			_, err := b.Registry.Subscribe(t.Context(), sender.NewSubscription{Subscriber: subscriber, URL: url, EventTypes: []string{"delivery.*", "subscription.*"}})
			require.NoError(t, err)
		}
		asks("sub_a", "http://owner/")
		asks("sub_b", "http://stranger/")
		asks(sender.Operator, "http://operator/")
		endpoint := sendertest.NewRoundTripper(sendertest.Answer(500, nil, ""))
		var noticed bedtest.Noted[sender.Notice]
		stop := b.Start(b.Dispatcher(dispatch.Config{
			UnguardedTransport: endpoint, Policy: shortLife(t), MaxIdle: time.Minute, // it is a long day
			Hooks: dispatch.Hooks{Noticed: func(_ context.Context, n sender.Notice) { noticed.Add(n) }},
		}))
		b.Publish("sub_a")
		time.Sleep(24 * time.Hour)

		hooked := noticed.List()
		to := map[string]int{}
		for _, r := range endpoint.Requests() {
			to[r.URL.Host]++
			if r.URL.Host == "dead" {
				continue
			}
			var event struct {
				Type   string
				Object struct{ Type, ID string }
				Data   struct {
					Notice   string `json:"notice_id"`
					Delivery string `json:"delivery_id"`
					Detail   string
				}
			}
			require.NoError(t, json.Unmarshal(r.Body, &event))
			require.Equal(t, "delivery.dead_lettered", event.Type)
			require.Equal(t, []string{"surehook.delivery", event.Data.Delivery}, []string{event.Object.Type, event.Object.ID})
			require.Equal(t, hooked[0].ID, event.Data.Notice)
			require.Equal(t, hooked[0].Detail, event.Data.Detail)
		}
		require.Equal(t, map[string]int{"dead": 2, "owner": 2, "operator": 2}, to)
		require.Len(t, hooked, 1, "one notice of one dead letter")
		list, _, err := b.History.Notices(t.Context(), history.NoticeQuery{})
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.NoError(t, stop())
	})
}
