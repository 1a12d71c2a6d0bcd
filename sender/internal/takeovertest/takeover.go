//go:build unix

package takeovertest

import (
	"context"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/storetest"
)

const (
	warm   = 20 // events whose answers are fast, so that more is claimed than is on the wire
	events = 40 // after these
)

// world is a store, an endpoint that all events go to, and processes that dispatch.
type world[Tx any] struct {
	store storetest.Store[Tx]
	place string
	*endpoint
}

// first is a process that holds claims. Some of their attempts are on the wire, and
// hang.
const first, second = "first", "second"

func newWorld[Tx any](t *testing.T, store storetest.Store[Tx], place string) *world[Tx] {
	t.Helper()
	w := &world[Tx]{store, place, newEndpoint(t)}
	k, err := keys()
	noError(t, err)
	registry, err := sender.NewRegistry(store, k, &sender.RegistryConfig{Network: sender.Network{AllowPrivateNetworks: true}})
	noError(t, err)
	_, _, err = registry.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: "sub_a"})
	noError(t, err)
	_, err = registry.Subscribe(t.Context(), sender.NewSubscription{Subscriber: "sub_a", URL: w.url})
	noError(t, err)
	return w
}

func (w *world[Tx]) publish(t *testing.T, n int) {
	t.Helper()
	p, err := sender.NewPublisher(w.store, nil)
	noError(t, err)
	all := make([]sender.Event, n)
	for i := range all {
		all[i] = sender.Event{Type: "thing.changed", Object: sender.Object{Type: "thing", ID: strconv.Itoa(i)}}
	}
	_, err = p.PublishMany(t.Context(), all)
	noError(t, err)
}

// list returns all deliveries, without their attempts: a test asks for it again and again.
func (w *world[Tx]) list(t *testing.T) []sender.Delivery {
	t.Helper()
	list, _, err := w.store.Deliveries(context.Background(), history.DeliveryQuery{Limit: 200})
	noError(t, err)
	return list
}

// deliveries returns all of them, with their attempts.
func (w *world[Tx]) deliveries(t *testing.T) []sender.Delivery {
	t.Helper()
	list := w.list(t)
	for i := range list {
		var err error
		list[i], err = w.store.Delivery(context.Background(), list[i].ID, history.AttemptQuery{Limit: history.MaxAttempts})
		noError(t, err)
	}
	return list
}

// holding starts the first process. It returns when the process has attempts on the
// wire, and holds other deliveries that wait.
func (w *world[Tx]) holding(t *testing.T) *process {
	t.Helper()
	p := start(t, first, w.place)
	w.publish(t, warm)
	w.delivered(t, warm)
	w.hang(first)
	w.publish(t, events)
	eventually(t, func() bool {
		wire := len(w.of(first)) - warm
		return wire > 1 && len(w.inFlight(t)) > wire
	}, "the first process holds what it has not begun")
	return p
}

func (w *world[Tx]) inFlight(t *testing.T) (events []string) {
	t.Helper()
	for _, d := range w.list(t) {
		if d.InFlight {
			events = append(events, d.Event.ID)
		}
	}
	return events
}

// takenOver waits until all events are delivered. It checks that the second process has
// attempted each event that the first one held, and that each interruption is recorded
// once.
func (w *world[Tx]) takenOver(t *testing.T, held []string, since time.Time) {
	t.Helper()
	w.delivered(t, warm+events)
	check(t, time.Since(since) < within, "it took %s", time.Since(since))
	t.Logf("%d deliveries, %d of them on the wire, were delivered by another process within %s", len(held), len(w.of(first))-warm, time.Since(since).Round(100*time.Millisecond))
	attempts := map[string][]sender.Class{}
	for _, d := range w.deliveries(t) {
		for i, a := range d.Attempts {
			equal(t, i+1, a.Number)
			attempts[d.Event.ID] = append(attempts[d.Event.ID], a.Class)
		}
	}
	again := []sender.Class{sender.ClassInterrupted, sender.ClassNone}
	for _, event := range held {
		equal(t, again, attempts[event])
	}
	posts := w.of(second)
	for _, p := range posts {
		classes := attempts[p.event]
		equal(t, p.attempt, strconv.Itoa(len(classes)))
		equal(t, again[len(again)-min(len(classes), 2):], classes)
	}
	equal(t, events, len(posts))
}

func (w *world[Tx]) delivered(t *testing.T, n int) {
	t.Helper()
	eventually(t, func() bool {
		all := w.list(t)
		for i := range all {
			if all[i].Status != sender.StatusDelivered {
				return false
			}
		}
		return len(all) == n
	}, strconv.Itoa(n)+" deliveries")
}

// nobody checks that no process is known once all have ended.
func (w *world[Tx]) nobody(t *testing.T) {
	t.Helper()
	known, err := w.store.Present(t.Context())
	noError(t, err)
	equal(t, 0, len(known))
}

// Killed kills a process while its attempts hang, and tests that another one takes
// over. Other processes open the store at place.
func Killed[Tx any](t *testing.T, store storetest.Store[Tx], place string) {
	w := newWorld(t, store, place)
	p := w.holding(t)
	p.kill(t)
	killed := time.Now()
	held := w.inFlight(t)
	other := start(t, second, place)
	w.takenOver(t, held, killed)
	other.end(t)
	w.nobody(t)
}

// Stopped stops a process while its attempts hang, lets it go on once another one has
// taken over, and tests that its late results change nothing. Other processes open the
// store at place.
func Stopped[Tx any](t *testing.T, store storetest.Store[Tx], place string) {
	w := newWorld(t, store, place)
	p := w.holding(t)
	w.stop(t, p)
	stopped := time.Now()
	held, wire := w.inFlight(t), len(w.of(first))-warm
	other := start(t, second, place)
	w.takenOver(t, held, stopped)
	before := w.deliveries(t)

	w.answer(first)
	p.signal(t, syscall.SIGCONT)
	tooLate := p.tells(t, wire)
	equal(t, wire, len(tooLate))
	equal(t, before, w.deliveries(t))
	other.end(t)

	w.publish(t, 5)
	w.delivered(t, warm+events+5)
	tooLate = append(tooLate, p.end(t)...)
	// The stop can come between the beginning of an attempt and its post, which then comes after
	// the stop. Attempts that were not begun are not made.
	for _, began := range tooLate {
		check(t, began.Before(stopped), "an attempt of what others had taken over began at %s, after the stop at %s", began, stopped)
	}
	posts := w.of(first)
	equal(t, warm+len(tooLate)+5, len(posts))
	for _, p := range posts {
		equal(t, "1", p.attempt)
	}
	equal(t, events, len(w.of(second)))
	w.nobody(t)
}

// stop stops a process. It does not do so within a transaction that writes, if the
// database has a single writer: nobody could go on.
func (w *world[Tx]) stop(t *testing.T, p *process) {
	t.Helper()
	for {
		p.signal(t, syscall.SIGSTOP)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		err := w.store.Leave(ctx, dispatch.Presence{Process: 1, Beat: 1}) // it writes, and changes nothing
		cancel()
		if err == nil {
			return
		}
		p.signal(t, syscall.SIGCONT)
	}
}
