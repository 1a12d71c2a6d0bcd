package storetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

func orderRules() []rule {
	return append([]rule{
		{"by event", "A subscription's deliveries that have had no attempt are claimed in the order of their events, in a claim and from one claim to the next.", orderByEvent},
		{"released", "Deliveries that are released at once before their first attempt are claimed before those that were never claimed, in the order of the events.", orderReleased},
		{"released among resumed", "What is released at once before its first attempt, and what a resume lets go on, is claimed in the order of the events.", orderReleasedAmongResumed},
		{"released among retries", "A delivery that is released before its first attempt is claimed before those behind it, also where more retries are due than a claim takes.", orderReleasedAmongRetries},
		{"dispatched", "A Dispatcher makes no first attempt for a subscription while one of a lower version of the object is under way, nor after one of a higher version; one that failed holds nobody back.", orderDispatched},
	}, orderProcessRules()...)
}

// indexes returns where in drafts the claimed events stand.
func indexes(drafts []sender.Draft, claimed []dispatch.Claimed) (all []int) {
	for _, c := range claimed {
		all = append(all, slices.IndexFunc(drafts, func(d sender.Draft) bool { return d.ID == c.Event.ID }))
	}
	return all
}

// series publishes events about one object, several in each transaction, while the
// clock moves on.
func (w *world) series(owner, sub string, transactions, each int) (drafts []sender.Draft) {
	w.Helper()
	for range transactions {
		var some []sender.Draft
		for range each {
			d := w.draftOn("a.b", sender.Object{Type: "thing", ID: "one"})
			d.Subscriber, d.Subscription = owner, sub
			some = append(some, d)
		}
		w.publish(some...)
		w.expand()
		w.Advance(time.Millisecond)
		drafts = append(drafts, some...)
	}
	return drafts
}

func orderByEvent(w *world) {
	owner := w.subscriber()
	sub := w.subscribe(owner, "only.addressed")
	drafts := w.series(owner, sub, 4, 5)
	var order []int
	for _, n := range []int{3, 1, 7, plenty} {
		order = append(order, indexes(drafts, w.claim(n))...)
		w.Advance(time.Millisecond)
	}
	var want []int
	for i := range drafts {
		want = append(want, i)
	}
	w.equal(order, want, "events in the order of the claims")
}

func orderReleased(w *world) {
	owner := w.subscriber()
	sub := w.subscribe(owner, "only.addressed")
	drafts := w.series(owner, sub, 1, 6)
	claimed := w.claim(4)
	drafts = append(drafts, w.series(owner, sub, 2, 2)...)
	w.Advance(time.Second)
	w.giveBack(claimed[3], claimed[2])
	w.Advance(time.Millisecond)
	w.giveBack(claimed[0], claimed[1])
	w.Advance(time.Millisecond)
	var order []int
	for _, n := range []int{1, 4, plenty} {
		order = append(order, indexes(drafts, w.claim(n))...)
		w.Advance(time.Millisecond)
	}
	w.equal(order, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, "events in the order of the claims, of which the first four were released")
}

func orderReleasedAmongResumed(w *world) {
	owner := w.subscriber()
	sub := w.subscribe(owner, "only.addressed")
	drafts := w.series(owner, sub, 1, 6)
	claimed := w.claim(plenty)
	w.giveBack(claimed[1:]...)
	w.pause(sub)
	w.Advance(time.Second)
	w.resume(sub, sender.Resume{})
	w.Advance(time.Millisecond)
	w.giveBack(claimed[0]) // it was claimed before the resume
	for range 2 {
		w.Advance(time.Second)
		claimed = w.claim(2)
		w.equal(indexes(drafts, claimed), []int{0, 1}, "events claimed, which were released at once and are first again")
		w.giveBack(claimed...)
	}
	w.Advance(time.Millisecond)
	w.equal(indexes(drafts, w.claim(plenty)), []int{0, 1, 2, 3, 4, 5}, "events in the order of the claims, of which two were released among those that were resumed")
}

func orderReleasedAmongRetries(w *world) {
	owner := w.subscriber()
	sub := w.subscribe(owner, "only.addressed")
	w.series(owner, sub, 1, 8)
	var failed []dispatch.Result
	for _, c := range w.claim(plenty) {
		failed = append(failed, result(c, sender.ClassStatus))
	}
	w.record(failed...)
	drafts := w.series(owner, sub, 3, 1)
	w.Advance(time.Hour)                                // the retries are due, and later than the three
	for taken, released := 0, 0; taken < len(drafts); { // each is released once, and then taken
		claimed := w.claim(1)
		w.equal(len(claimed), 1, "deliveries claimed")
		if at := indexes(drafts, claimed)[0]; at >= 0 {
			w.check(at == taken, "event %d of three was claimed for its first attempt, where event %d had been released", at, taken)
			if released == taken {
				w.Advance(time.Second)
				w.giveBack(claimed...)
				released++
				continue
			}
			taken++
		}
		w.record(result(claimed[0], sender.ClassNone))
		w.Advance(time.Millisecond)
	}
}

// versions has endpoints that answer after a while, and checks that objects' versions
// arrive in order.
type versions struct {
	mu       sync.Mutex
	rand     *rand.Rand
	begun    map[string]int64 // the last version, by endpoint and object
	underWay map[string]int64
	first    int // attempts
	broken   string
	ended    chan struct{} // one was
}

func (v *versions) RoundTrip(r *http.Request) (*http.Response, error) {
	var e struct {
		Object  sender.Object
		Version int64
	}
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, &e)
	}
	if err != nil {
		return nil, err
	}
	name := r.URL.Path + " " + e.Object.ID
	v.mu.Lock()
	took, status := time.Duration(v.rand.IntN(3000))*time.Microsecond, http.StatusNoContent
	if r.URL.Path == "/failing" && v.rand.IntN(20) == 0 {
		status = http.StatusServiceUnavailable
	}
	switch {
	case v.underWay[name] != 0:
		v.broken = fmt.Sprintf("version %d is begun at %s while the first attempt of version %d is under way", e.Version, name, v.underWay[name])
	case e.Version != v.begun[name]+1:
		v.broken = fmt.Sprintf("version %d is begun at %s after version %d", e.Version, name, v.begun[name])
	}
	v.begun[name], v.underWay[name] = e.Version, e.Version
	v.mu.Unlock()
	time.Sleep(took)
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.underWay, name)
	v.first++
	select {
	case v.ended <- struct{}{}:
	default:
	}
	return &http.Response{StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

// standsStill is how long no attempt ends before no more are waited for. Nobody waits for it
// but where an order was broken.
var standsStill = time.Minute

// wait waits until n attempts were made, one has broken the order, or no more come.
func (v *versions) wait(attempts int) {
	standstill := time.NewTimer(standsStill)
	defer standstill.Stop()
	for {
		select {
		case <-v.ended:
			standstill.Reset(standsStill)
		case <-standstill.C:
			return
		}
		v.mu.Lock()
		over := v.first == attempts || v.broken != ""
		v.mu.Unlock()
		if over {
			return
		}
	}
}

// orderRun is the size of a run.
type orderRun struct{ subscriptions, events, objects int }

func orderDispatched(w *world) {
	w.dispatched(orderRun{subscriptions: 6, events: 400, objects: 20}, w.Store)
}

// dispatched runs a Dispatcher on each of some stores. The stores' clock stands still,
// so no retry is ever due: all first attempts are made only if failures hold back no
// later version.
func (w *world) dispatched(of orderRun, stores ...Store[any]) {
	w.Helper()
	keys, err := sender.NewKeys(sender.SealingKey{ID: "k", Key: bytes.Repeat([]byte{1}, 32)})
	w.noError(err, "making keys")
	w.endpoints(keys, of.subscriptions)
	v := &versions{rand: rand.New(rand.NewPCG(1, 1)), begun: map[string]int64{}, underWay: map[string]int64{}, ended: make(chan struct{}, 1)}
	ctx, stop := context.WithCancel(w.ctx)
	defer stop()
	ran := make(chan error, len(stores))
	for _, store := range stores {
		d, err := dispatch.New(forDispatcher(store), keys, &dispatch.Config{UnguardedTransport: v, Logger: slog.New(slog.DiscardHandler)})
		w.noError(err, "making a dispatcher")
		go func() { ran <- d.Run(ctx) }()
	}
	random := rand.New(rand.NewPCG(2, 2))
	for i := range of.events {
		pub, err := sender.NewPublisher(stores[i%len(stores)], nil)
		w.noError(err, "making a publisher")
		_, err = pub.Publish(w.ctx, sender.Event{Type: "thing.changed", Object: sender.Object{Type: "thing", ID: fmt.Sprint(random.IntN(of.objects))}})
		w.noError(err, "publishing")
	}
	v.wait(of.subscriptions * of.events)
	stop()
	for range stores {
		w.noError(<-ran, "running a dispatcher")
	}
	w.equal(v.broken, "", "what went wrong with the order")
	w.equal(v.first, of.subscriptions*of.events, "first attempts made: those that failed hold others back")
}

// endpoints makes subscriptions. The endpoint of the first one fails now and then.
func (w *world) endpoints(keys *sender.Keys, n int) {
	w.Helper()
	reg, err := sender.NewRegistry(w.Store, keys, nil)
	w.noError(err, "making a registry")
	for i := range n {
		path := []string{"failing", "sound"}[min(i, 1)]
		if i > 0 {
			path += fmt.Sprint(i)
		}
		_, _, err := reg.CreateSubscriber(w.ctx, sender.NewSubscriber{ID: path})
		w.noError(err, "creating a subscriber")
		_, err = reg.Subscribe(w.ctx, sender.NewSubscription{Subscriber: path, URL: "https://example.com/" + path, EventTypes: []string{"thing.*"}})
		w.noError(err, "subscribing")
	}
}
