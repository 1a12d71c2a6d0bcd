package storetest

import (
	"bytes"
	"log/slog"
	"net/http"
	"slices"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/replay"
)

// taking is an endpoint that takes everything.
type taking struct{}

func (taking) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusNoContent, Header: http.Header{}, Body: http.NoBody}, nil
}

// replayOnce works replays through by RunOnce. The clock stands still, so no pause ends by
// itself, and no rate grants more.
func replayOnce(w *world) {
	const members, granted = 1300, 2 // more than may be ahead, and the burst of the rate
	keys, err := sender.NewKeys(sender.SealingKey{ID: "k", Key: bytes.Repeat([]byte{1}, 32)})
	w.noError(err, "making keys")
	reg, err := sender.NewRegistry(w.Store, keys, nil)
	w.noError(err, "making a registry")
	d, err := dispatch.New(forDispatcher(w.Store), keys, &dispatch.Config{UnguardedTransport: taking{}, Logger: slog.New(slog.DiscardHandler)})
	w.noError(err, "making a dispatcher")
	owner := w.name("sub_")
	_, _, err = reg.CreateSubscriber(w.ctx, sender.NewSubscriber{ID: owner})
	w.noError(err, "creating a subscriber")
	replayed := func(n int, settings sender.Settings, rate float64, before func()) (sent int, r replay.Replay) {
		w.Helper()
		sub, err := reg.Subscribe(w.ctx, sender.NewSubscription{Subscriber: owner, URL: "https://example.com/" + w.name(""), EventTypes: []string{"only.addressed"}})
		w.noError(err, "subscribing")
		var drafts []sender.Draft
		for range n {
			drafts = append(drafts, w.addressed(owner, sub.ID))
		}
		for some := range slices.Chunk(drafts, 500) {
			w.publish(some...)
		}
		w.expand()
		w.endAll(sender.ClassStatus)
		_, err = reg.Update(w.ctx, sub.ID, sender.SubscriptionChange{Settings: &settings})
		w.noError(err, "changing the settings")
		r = w.createReplay(replay.Replay{Filter: replay.Filter{Subscription: sub.ID}, Rate: rate})
		before()
		stats, err := d.RunOnce(w.ctx)
		w.noError(err, "RunOnce")
		return stats.Delivered, w.readReplay(r.ID)
	}

	// It has admitted all that it may be ahead, so it is left alone.
	sent, r := replayed(members, sender.Settings{}, 0, func() { w.steps(plenty) })
	w.equal([]any{sent, r.Status, r.Admitted}, []any{members, replay.Finished, int64(members)}, "delivered of a replay that RunOnce has worked through, its status and what it has admitted")
	sent, r = replayed(10, sender.Settings{}, 10*granted, func() {})
	w.equal([]any{sent, r.Status, r.Admitted}, []any{granted, replay.Running, int64(granted)}, "delivered of a replay with a rate, its status and what it has admitted")
	w.setReplay(r.ID, replay.Cancelled)
	sent, r = replayed(members, sender.Settings{Rate: 10 * granted}, 0, func() {})
	w.equal([]any{sent, r.Status}, []any{granted, replay.Running}, "delivered of a replay to a subscription with a rate, and its status")
}
