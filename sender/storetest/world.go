package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/surehook/surehook/internal/newid"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
)

// lease is that of the suite's claims.
const lease = time.Minute

// plenty is more than the due deliveries of any test.
const plenty = 100_000

// whole asks for all attempts of a delivery.
var whole = history.AttemptQuery{Limit: history.MaxAttempts}

// world is a store under test, with shorthands for common operations.
type world struct {
	*testing.T
	Harness[any]
	ctx    context.Context
	made   *int          // names given
	tokens *atomic.Int64 // given

	decide func(dispatch.Live, sender.Health, dispatch.Result, time.Time) dispatch.Decision
}

func newWorld(t *testing.T, h Harness[any]) *world {
	h.Begin = endedAnyway(h.Begin)
	return &world{T: t, Harness: h, ctx: t.Context(), made: new(int), tokens: new(atomic.Int64), decide: decide}
}

// endedAnyway rolls a transaction back that a rule has left open because it has failed: the
// harness's own clean-up may wait for its end.
func endedAnyway(begin func(t *testing.T) (any, func() error, func() error)) func(t *testing.T) (any, func() error, func() error) {
	return func(t *testing.T) (any, func() error, func() error) {
		tx, commit, rollback := begin(t)
		ended := false
		t.Cleanup(func() {
			if !ended {
				_ = rollback()
			}
		})
		ending := func(end func() error) func() error {
			return func() error {
				ended = true
				return end()
			}
		}
		return tx, ending(commit), ending(rollback)
	}
}

// noError ends the test if err is not nil.
func (w *world) noError(err error, doing string, args ...any) {
	w.Helper()
	if err != nil {
		w.Fatalf("%s: %v", fmt.Sprintf(doing, args...), err)
	}
}

// errorIs ends the test if err does not match want.
func (w *world) errorIs(err, want error, doing string, args ...any) {
	w.Helper()
	if !errors.Is(err, want) {
		w.Fatalf("%s: got error %v, want one that matches %q", fmt.Sprintf(doing, args...), err, want)
	}
}

// equal ends the test if got and want differ.
func (w *world) equal(got, want any, what string, args ...any) {
	w.Helper()
	if !reflect.DeepEqual(got, want) {
		w.Fatalf("%s: got %+v, want %+v", fmt.Sprintf(what, args...), got, want)
	}
}

// sameTime ends the test if two times differ by more than a store may cut off.
func (w *world) sameTime(got, want time.Time, what string, args ...any) {
	w.Helper()
	if d := got.Sub(want).Abs(); d > time.Microsecond || got.IsZero() != want.IsZero() {
		w.Fatalf("%s: got %v, want %v", fmt.Sprintf(what, args...), got, want)
	}
}

func (w *world) sameSubscription(got, want sender.Subscription) {
	w.Helper()
	w.sameTime(got.CreatedAt, want.CreatedAt, "CreatedAt of subscription %s", want.ID)
	got.CreatedAt = want.CreatedAt
	w.equal(got, want, "subscription")
}

// sameEvent ends the test if an event is not the draft's.
func (w *world) sameEvent(got sender.EventInfo, d sender.Draft, published time.Time) {
	w.Helper()
	w.sameTime(got.CreatedAt, published, "CreatedAt of event %s", d.ID)
	got.CreatedAt = time.Time{}
	w.equal(got, sender.EventInfo{ID: d.ID, Type: d.Type, Object: d.Object, Notice: d.Notice, Traceparent: d.Traceparent}, "event")
}

// sameAttempts ends the test unless a delivery has these attempts.
func (w *world) sameAttempts(d sender.Delivery, want ...sender.Attempt) {
	w.Helper()
	w.equal(len(d.Attempts), len(want), "number of attempts of %s", d.ID)
	w.equal(d.AttemptCount, len(want), "AttemptCount of %s", d.ID)
	for i, got := range d.Attempts {
		want := want[i]
		w.sameTime(got.StartedAt, want.StartedAt, "StartedAt of attempt %d", i+1)
		w.sameTime(got.NextAttemptAt, want.NextAttemptAt, "NextAttemptAt of attempt %d", i+1)
		w.check(bytes.Equal(got.Snippet, want.Snippet), "Snippet of attempt %d: got %q, want %q", i+1, got.Snippet, want.Snippet)
		got.StartedAt, got.NextAttemptAt, got.Snippet = want.StartedAt, want.NextAttemptAt, want.Snippet
		w.equal(got, want, "attempt %d", i+1)
	}
}

// attempt is how a result reads in the history.
func attempt(r dispatch.Result, next time.Time) sender.Attempt {
	return sender.Attempt{
		Number: r.Number, StartedAt: r.StartedAt, Duration: r.Duration, StatusCode: r.StatusCode,
		Class: r.Class, Error: r.Error, Snippet: r.Snippet, Headers: r.Headers, NextAttemptAt: next,
	}
}

// check ends the test unless ok.
func (w *world) check(ok bool, what string, args ...any) {
	w.Helper()
	if !ok {
		w.Fatalf(what, args...)
	}
}

// inTx runs fn in a transaction that must commit.
func (w *world) inTx(fn func(tx any) error) {
	w.Helper()
	w.noError(w.Store.InTx(w.ctx, fn), "InTx")
}

// now is the store's time.
func (w *world) now() time.Time {
	w.Helper()
	_, c, err := w.Store.Step(w.ctx, dispatch.ExpandParams{}, dispatch.Batch{Decide: w.decide})
	w.noError(err, "an empty step")
	return c.Now
}

// name makes an id that was not used before.
func (w *world) name(prefix string) string {
	*w.made++
	return fmt.Sprintf("%s%04d", prefix, *w.made)
}

// one makes a subscription with one delivery, which is due, and returns its event
// and the subscription's id.
func (w *world) one() (sender.Draft, string) {
	w.Helper()
	owner := w.subscriber()
	sub := w.subscribe(owner, "only.addressed")
	d := w.draft("a.b")
	d.Subscriber, d.Subscription = owner, sub
	w.publish(d)
	w.expand()
	return d, sub
}

// backlog makes n deliveries that are due, of events that are addressed to one
// subscription.
func (w *world) backlog(owner, subscription string, n int) {
	w.Helper()
	drafts := make([]sender.Draft, n)
	for i := range drafts {
		drafts[i] = w.draft("a.b")
		drafts[i].Subscriber, drafts[i].Subscription = owner, subscription
	}
	for chunk := range slices.Chunk(drafts, 500) {
		w.publish(chunk...)
	}
	w.expand()
}

// subscriber registers a subscriber with one secret and returns its id.
func (w *world) subscriber() string {
	w.Helper()
	id := w.name("sub_")
	w.createSubscriber(id)
	return id
}

func (w *world) createSubscriber(id string) {
	w.Helper()
	w.inTx(func(tx any) error {
		return w.Store.CreateSubscriberTx(w.ctx, tx, sender.Subscriber{ID: id, CreatedAt: createdAt}, []sender.SealedSecret{{ID: "sec_" + id, Sealed: []byte("sealed " + id)}})
	})
}

// createdAt is the creation time that the suite gives to stores.
var createdAt = time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC)

func (w *world) subscription(owner string, types ...string) sender.Subscription {
	id := w.name("wsub_")
	return sender.Subscription{
		ID: id, Subscriber: owner, URL: "https://example.com/" + id, EventTypes: types,
		Description: "of " + owner, Status: sender.SubscriptionActive, CreatedAt: createdAt,
	}
}

// subscribe registers a subscription and returns its id.
func (w *world) subscribe(owner string, types ...string) string {
	w.Helper()
	s := w.subscription(owner, types...)
	w.inTx(func(tx any) error { return w.Store.CreateSubscriptionTx(w.ctx, tx, s) })
	return s.ID
}

// unsubscribe deletes a subscription.
func (w *world) unsubscribe(id string) {
	w.Helper()
	w.inTx(func(tx any) error { return w.Store.DeleteSubscriptionTx(w.ctx, tx, id) })
}

// draft is an event of a type, about an object of its own.
func (w *world) draft(eventType string) sender.Draft {
	return w.draftOn(eventType, sender.Object{Type: "thing", ID: w.name("t")})
}

func (w *world) draftOn(eventType string, obj sender.Object) sender.Draft {
	id := newid.New("evt_", time.Now())
	return sender.Draft{
		ID: id, Type: eventType, Object: obj, OccurredAt: createdAt,
		BodyHead: []byte(`{"id":"` + id + `","type":"` + eventType + `","version":`), BodyTail: []byte(`}`),
	}
}

// publish commits drafts in one transaction.
func (w *world) publish(drafts ...sender.Draft) []sender.Ref {
	w.Helper()
	refs, err := w.tryPublish(drafts...)
	w.noError(err, "publishing")
	w.equal(len(refs), len(drafts), "number of Refs")
	return refs
}

// tryPublish publishes drafts in a transaction that rolls back on an error.
func (w *world) tryPublish(drafts ...sender.Draft) (refs []sender.Ref, err error) {
	err = w.Store.InTx(w.ctx, func(tx any) (err error) {
		refs, err = w.Store.PublishTx(w.ctx, tx, drafts)
		return err
	})
	return refs, err
}

// expand expands all events, and returns how many deliveries it made.
func (w *world) expand() int {
	w.Helper()
	return w.expandBy(dispatch.ExpandParams{Events: 1000, Deliveries: 1000})
}

func (w *world) expandBy(p dispatch.ExpandParams) (made int) {
	w.Helper()
	for range plenty {
		x, _, err := w.Store.Step(w.ctx, p, dispatch.Batch{})
		w.noError(err, "expanding")
		made += x.Deliveries
		if !x.More {
			return made
		}
	}
	w.Fatal("expanding does not come to an end: Expanded.More stays set")
	return made
}

// lanes bounds every lane by the same figures.
func lanes(slots int) (all [sender.Lanes]dispatch.LaneParams) {
	for lane := range all {
		all[lane] = bound(slots)
	}
	return all
}

// bound lets a lane, and everybody in it, have up to a number of deliveries.
func bound(slots int) dispatch.LaneParams {
	return dispatch.LaneParams{Slots: slots, PerSubscriber: slots, PerSubscription: slots}
}

// only bounds one lane, and gives the others no slots.
func only(lane sender.Lane, slots int) dispatch.ClaimParams {
	p := dispatch.ClaimParams{Lease: lease}
	p.Lanes[lane] = bound(slots)
	return p
}

// claim claims up to n deliveries of each lane.
func (w *world) claim(n int) []dispatch.Claimed {
	w.Helper()
	return w.claimBy(dispatch.ClaimParams{Lease: lease, Lanes: lanes(n)}).Claimed
}

func (w *world) claimBy(p dispatch.ClaimParams) dispatch.Claims {
	w.Helper()
	if p.Token == 0 {
		p.Token = w.token()
	}
	_, c, err := w.Store.Step(w.ctx, dispatch.ExpandParams{}, dispatch.Batch{Decide: w.decide, Claim: p})
	w.noError(err, "claiming")
	return c
}

// token returns a new token.
func (w *world) token() int64 {
	return 1<<62 + w.tokens.Add(1)
}

// claimNothing ends the test if a delivery can be claimed.
func (w *world) claimNothing(when string, args ...any) {
	w.Helper()
	if got := w.claim(plenty); len(got) > 0 {
		w.Fatalf("%s: %d deliveries were claimed, the first as attempt %d of event %s to subscription %s", fmt.Sprintf(when, args...), len(got), got[0].Number, got[0].Event.ID, got[0].Target.Subscription)
	}
}

// claimOne claims the only due delivery, and ends the test if there is not exactly one.
func (w *world) claimOne() dispatch.Claimed {
	w.Helper()
	got := w.claim(plenty)
	w.equal(len(got), 1, "number of deliveries claimed")
	return got[0]
}

// headers are those of an attempt that has kept some.
const headers sender.Headers = "User-Agent: surehook\nX-Key: redacted\n\nServer: '\"\\%_$1? ключ 🔑\n"

// result is the result of a claimed delivery's attempt.
func result(c dispatch.Claimed, class sender.Class) dispatch.Result {
	r := dispatch.Result{
		Key: c.Key, Token: c.Token, Number: c.Number, StartedAt: c.At.Add(time.Millisecond),
		Duration: 20 * time.Millisecond, Class: class, StatusCode: 204,
	}
	if class != sender.ClassNone {
		r.StatusCode, r.Error, r.Snippet, r.Headers = 500, "answered with 500", []byte("no"), headers
	}
	return r
}

// record records results, all of which must count.
func (w *world) record(results ...dispatch.Result) []dispatch.Outcome {
	w.Helper()
	recorded := w.tryRecord(results...)
	for i, r := range recorded {
		w.check(!r.Lost, "result %d of delivery %v under token %d reads as lost", i, results[i].Key, results[i].Token)
	}
	return recorded
}

func (w *world) tryRecord(results ...dispatch.Result) []dispatch.Outcome {
	w.Helper()
	_, c, err := w.Store.Step(w.ctx, dispatch.ExpandParams{}, dispatch.Batch{Results: results, Decide: w.decide})
	w.noError(err, "recording")
	w.equal(len(c.Recorded), len(results), "number of Recorded")
	return c.Recorded
}

// list follows the cursor to the end.
func (w *world) list(q history.DeliveryQuery) []sender.Delivery {
	w.Helper()
	var all []sender.Delivery
	for range plenty {
		page, next, err := w.Store.Deliveries(w.ctx, q)
		w.noError(err, "listing deliveries")
		all = append(all, page...)
		if next == "" {
			return all
		}
		q.Cursor = next
	}
	w.Fatal("listing does not come to an end")
	return nil
}

// delivery returns the delivery of an event to a subscription, with its attempts.
func (w *world) delivery(event, subscription string) sender.Delivery {
	w.Helper()
	all := w.list(history.DeliveryQuery{Event: event, Subscription: subscription})
	w.check(len(all) == 1, "event %s has %d deliveries to subscription %s, want 1", event, len(all), subscription)
	return w.get(all[0].ID)
}

func (w *world) get(id string) sender.Delivery {
	w.Helper()
	d, err := w.Store.Delivery(w.ctx, id, whole)
	w.noError(err, "reading delivery %s", id)
	return d
}

// events are the ids of the events that a subscription has deliveries of, sorted.
func (w *world) events(subscription string) []string {
	w.Helper()
	ids := []string{}
	for _, d := range w.list(history.DeliveryQuery{Subscription: subscription}) {
		ids = append(ids, d.Event.ID)
	}
	slices.Sort(ids)
	return ids
}

// sorted are the ids of drafts.
func sorted(drafts ...sender.Draft) []string {
	ids := []string{}
	for _, d := range drafts {
		ids = append(ids, d.ID)
	}
	slices.Sort(ids)
	return ids
}

// sameBody ends the test unless a body is that of a draft with a version.
func (w *world) sameBody(got []byte, d sender.Draft, version int64) {
	w.Helper()
	if want := d.Body(version); !bytes.Equal(got, want) {
		w.Fatalf("body of %s: got %d bytes %.200q, want %d bytes %.200q", d.ID, len(got), got, len(want), want)
	}
}
