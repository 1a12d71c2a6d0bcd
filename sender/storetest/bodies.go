package storetest

import (
	"bytes"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
)

func bodyRules() []rule {
	return []rule{
		{"within a bound", "The bodies of what is claimed, each event's once, are at most ClaimParams.Bytes in all, and all is claimed in the end.", bodiesBounded},
		{"counted once", "The body of an event that many get counts once in a claim.", bodiesOnce},
		{"one that is larger", "A delivery whose body is larger than the bound is claimed alone.", bodiesLarge},
		{"turns", "A subscription that gets nothing because of the bound goes before those that got something.", bodiesTurns},
		{"shared", "The deliveries of an event in a claim share its body.", bodiesShared},
		{"Payloads", "Payloads returns events as they are sent, without those that are not there.", bodiesPayloads},
		{"Payloads, redacted", "Payloads returns a redacted event without a body; its delivery is not claimed again once it was given back.", bodiesRedacted},
	}
}

// sized is an event whose body has at least n bytes.
func (w *world) sized(n int) sender.Draft {
	d := w.draft("a.b")
	d.BodyTail = append(append([]byte(`,"data":"`), bytes.Repeat([]byte("x"), n)...), []byte(`"}`)...)
	return d
}

// claimWithin claims the due deliveries under a bound of bytes, and returns the number
// of bytes claimed.
func (w *world) claimWithin(bound int64) (claimed []dispatch.Claimed, size int64) {
	w.Helper()
	claimed = w.claimBy(dispatch.ClaimParams{Lease: lease, Lanes: lanes(plenty), Bytes: bound}).Claimed
	seen := map[int64]bool{}
	for _, c := range claimed {
		w.check(len(c.Body) > 0, "a delivery of %s was claimed without its body", c.Event.ID)
		if !seen[c.Key.Event] {
			seen[c.Key.Event] = true
			size += int64(len(c.Body))
		}
	}
	return claimed, size
}

func bodiesBounded(w *world) {
	const events, bound = 12, 20_000
	owners := []string{w.subscriber(), w.subscriber()}
	for _, owner := range owners {
		w.subscribe(owner, "*")
	}
	w.subscribe(owners[0], "*")
	for i := range events {
		w.publish(w.sized(1000 * (i%5 + 1)))
	}
	w.expand()
	made := 3 * events
	// Some wait for another attempt, or were resumed.
	for _, c := range w.claim(2) {
		w.record(result(c, sender.ClassTimeout))
	}
	w.Advance(retryDelay(1))
	n := 0
	for range plenty {
		claimed, size := w.claimWithin(bound)
		w.check(size <= bound, "the bodies of a claim have %d bytes, its bound is %d", size, bound)
		for _, c := range claimed {
			w.record(result(c, sender.ClassNone))
		}
		n += len(claimed)
		if len(claimed) == 0 {
			break
		}
	}
	w.equal(n, made, "deliveries claimed in the end")
}

func bodiesOnce(w *world) {
	owner := w.subscriber()
	for range 3 {
		w.subscribe(owner, "*")
	}
	w.publish(w.sized(1000), w.sized(1000))
	w.expand()
	claimed, _ := w.claimWithin(2500)
	w.equal(len(claimed), 6, "deliveries of two events claimed with a bound that both keep")
}

func bodiesLarge(w *world) {
	w.subscribe(w.subscriber(), "*")
	w.publish(w.sized(5000), w.sized(1), w.sized(5000))
	w.expand()
	for range 3 {
		claimed, _ := w.claimWithin(1)
		w.equal(len(claimed), 1, "deliveries claimed with a bound that no body keeps")
	}
}

func bodiesTurns(w *world) {
	var subs []string
	for range 3 {
		owner := w.subscriber()
		sub := w.subscribe(owner, "only.addressed")
		subs = append(subs, sub)
		for range 4 {
			d := w.addressed(owner, sub)
			d.BodyTail = w.sized(3000).BodyTail
			w.publish(d)
		}
	}
	w.expand()
	got := map[string]int{}
	for i := range 12 {
		w.Advance(time.Millisecond)
		claimed, _ := w.claimWithin(1)
		w.equal(len(claimed), 1, "deliveries claimed with a bound that no body keeps")
		got[claimed[0].Target.Subscription]++
		for _, sub := range subs {
			w.check(got[sub] >= (i+1)/3 && got[sub] <= (i+3)/3, "after %d claims of one delivery each the subscriptions have got %v: they do not take turns", i+1, got)
		}
	}
}

func bodiesShared(w *world) {
	owner := w.subscriber()
	for range 3 {
		w.subscribe(owner, "*")
	}
	d := w.sized(1000)
	w.publish(d)
	w.expand()
	claimed, _ := w.claimWithin(0)
	w.equal(len(claimed), 3, "deliveries claimed")
	for _, c := range claimed {
		w.sameBody(c.Body, d, 1)
		w.check(&c.Body[0] == &claimed[0].Body[0], "two deliveries of an event have a body each")
	}
}

func bodiesPayloads(w *world) {
	w.subscribe(w.subscriber(), "*")
	w.publish(w.draft("a.b"), w.draft("c.d"))
	w.expand()
	claimed := w.claim(plenty)
	w.equal(len(claimed), 2, "deliveries claimed")
	read, err := w.Store.Payloads(w.ctx, []int64{claimed[0].Key.Event, claimed[1].Key.Event, 1 << 40})
	w.noError(err, "reading events")
	w.equal(len(read), 2, "events read, of two that are there and one that is not")
	for _, c := range claimed {
		p := read[c.Key.Event]
		w.equal(p.Event, c.Event, "event read")
		w.equal(string(p.Body), string(c.Body), "its body")
	}
}

func bodiesRedacted(w *world) {
	d, sub := w.one()
	c := w.claimOne()
	w.redact(history.RedactParams{Object: d.Object})
	read, err := w.Store.Payloads(w.ctx, []int64{c.Key.Event})
	w.noError(err, "reading events")
	p, there := read[c.Key.Event]
	w.check(there, "a redacted event is not there")
	w.equal(len(p.Body), 0, "bytes of a redacted event's body")
	w.noError(w.Store.Release(w.ctx, []dispatch.Release{{Key: c.Key, Token: c.Token}}), "releasing")
	w.claimNothing("after a delivery of a redacted event was given back")
	w.equal(w.delivery(d.ID, sub).Status, sender.StatusCancelled, "status")
}
