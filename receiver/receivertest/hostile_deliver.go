package receivertest

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/signing"
)

func (h *hostile) delivers() bool {
	ev := h.event()
	a := h.insist(ev)
	if n := h.effects(ev); !ok(a) || n != 1 {
		h.broken(PromiseNotLost, "a plain delivery is answered with %d and has %d effects: the rest is not tried%s", a.Status, n, h.hint(ev, a))
		return false
	}
	return true
}

// hint tells what is most often wrong with the test itself, if nothing is delivered.
func (h *hostile) hint(ev Event, a Answer) string {
	switch {
	case a.Result == receiver.Ignored:
		return fmt.Sprintf(". The handler has no route for %s: give it its own events, by HostileConfig.Types or NewEvent", ev.Type)
	case a.Result == receiver.DeadLettered:
		return fmt.Sprintf(". The handler can never apply this %s, and its log says why: give it events with its own data, by HostileConfig.NewEvent", ev.Type)
	case a.Result == receiver.Recorded:
		return ". The handler is an inbox, which answers before it applies: try the Handler of its receiver, with the same work"
	case a.Status == http.StatusNotFound:
		return fmt.Sprintf(". The path is %s: where the router has the receiver at another one, say so by HostileConfig.Sender.Path", h.sender.cfg.Path)
	case a.Status == http.StatusUnauthorized:
		return ". Subject.Secret must be the secret that the handler has"
	}
	return ""
}

// A duplicate has the same id and bytes, and a fresh timestamp and signature.
func (h *hostile) duplicates() {
	ev := h.event()
	h.applied(ev, "delivered once")
	for range 2 {
		if a := h.insist(ev); !ok(a) {
			h.broken(PromiseDuplicate, "a duplicate is answered with %d: its sender will send it again, and give up on the handler in the end", a.Status)
			break
		}
	}
	h.atMost(1, ev, PromiseOneEffect, "delivered three times")
}

// captures sends the very same bytes again, as anyone can who has captured them, and then
// with other texts where no signature covers them.
func (h *hostile) captures() {
	ev := h.event()
	at := h.sender.cfg.Now()
	captured := func() *Request { return h.sender.Request(ev).At(at) }
	h.post(captured())
	h.applied(ev, "delivered once")
	h.post(captured())
	h.atMost(1, ev, PromiseOneEffect, "a captured request was sent again (a replay attack)")
	other := h.event()
	h.post(captured().Header("Webhook-Id", other.ID))
	// Standard Webhooks' signature covers the header. Without it, the other signature counts.
	h.post(captured().Without("Webhook-Signature").Header("Webhook-Id", other.ID))
	h.post(captured().Header("Webhook-Attempt", "7").Header("Idempotency-Key", other.ID))
	const after = "a captured request was sent again with another id in its header (a replay attack)"
	h.atMost(1, ev, PromiseOneEffect, after)
	h.atMost(0, other, PromiseOneEffect, after)

	if !h.timed {
		return
	}
	late := h.event()
	a := h.post(h.sender.Request(late).Skewed(-time.Hour))
	if ok(a) {
		h.broken(PromiseVerified, "a request that was signed an hour ago is answered with %d: whatever was captured can be sent for ever", a.Status)
	}
	h.atMost(0, late, PromiseVerified, "signed an hour ago")
}

func (h *hostile) reorders() {
	object := h.object()
	var events []Event
	for v := range int64(8) {
		events = append(events, h.cfg.NewEvent(object, v+1))
	}
	for _, ev := range Shuffled(h.cfg.Seed, 3, events...) {
		if a := h.insist(ev); !ok(a) {
			h.broken(PromiseDuplicate, "among duplicates in disorder, an event is answered with %d", a.Status)
			return
		}
	}
	for _, ev := range events {
		h.atMost(1, ev, PromiseOneEffect, "delivered three times, in disorder with others")
	}
	if h.cfg.Facts {
		for i, ev := range events {
			if h.effects(ev) == 0 {
				h.broken(PromiseNotLost, "after all facts about an object came in disorder, number %d has no effect: it is lost", i+1)
				return
			}
		}
		return
	}
	if h.effects(events[len(events)-1]) == 0 && !h.cfg.Unversioned {
		h.broken(PromiseNotLost, "after all versions of an object came in disorder, the newest has no effect")
	}
}

func (h *hostile) olderAfterNewer() {
	if h.cfg.Facts {
		return // reorders has tried that each fact has its effect
	}
	if h.cfg.Unversioned {
		h.t.Log("receivertest: not tried, as the sender gives no versions: whether an older event is applied after a newer one")
		return
	}
	object := h.object()
	older, newer := h.cfg.NewEvent(object, 1), h.cfg.NewEvent(object, 2)
	h.applied(newer, "version 2 delivered")
	a := h.insist(older)
	if !ok(a) {
		h.broken(PromiseDuplicate, "a stale event is answered with %d: its sender will send it again, and give up on the handler in the end", a.Status)
	}
	h.atMost(0, older, PromiseOrder, "version 1 came after version 2")
}

// fails makes the application's own change fail: an event that was not applied must be
// applied when it is sent again.
func (h *hostile) fails() {
	if h.subject.Fail == nil {
		h.t.Log("receivertest: not tried, as Subject.Fail is nil: whether an event is lost when applying it fails")
		return
	}
	ev := h.event()
	mend := h.subject.Fail()
	a := h.post(h.sender.Request(ev))
	mend()
	if ok(a) {
		h.broken(PromiseCommit, "applying failed, and it was answered with %d", a.Status)
	}
	h.applied(ev, "delivered when applying failed, and delivered again")
}

func (h *hostile) rotates() {
	if h.subject.Rotate == nil {
		h.t.Log("receivertest: not tried, as Subject.Rotate is nil: whether two secrets are accepted while one is rotated")
		return
	}
	next := signing.GenerateSecret()
	h.subject.Rotate(next)
	renewed := NewSender(h.t, next, &h.cfg.Sender)
	for which, sender := range map[string]*Sender{"the old": h.sender, "the new": renewed} {
		ev := h.event()
		if a := h.post(sender.Request(ev)); !ok(a) || h.effects(ev) != 1 {
			h.broken(PromiseRotation, "while the secret is rotated, a request signed with %s one is answered with %d", which, a.Status)
		}
	}
}

// floodsWithOne sends one event from all sides at once.
func (h *hostile) floodsWithOne() {
	ev := h.event()
	for _, a := range h.atOnce(func(int) *Request { return h.sender.Request(ev) }) {
		if !ok(a) && a.Status != http.StatusServiceUnavailable {
			h.broken(PromiseBusy, "of requests for one event that came at once, one was answered with %d", a.Status)
			break
		}
		if !ok(a) && a.Header.Get("Retry-After") == "" {
			h.broken(PromiseBusy, "503 has no Retry-After")
			break
		}
	}
	h.atMost(1, ev, PromiseOneEffect, "requests for one event came at once")
	h.applied(ev, "after requests for it came at once")
}

func (h *hostile) floodsWithMany() {
	events := make([]Event, h.cfg.Flood)
	for i := range events {
		events[i] = h.event()
	}
	h.atOnce(func(i int) *Request { return h.sender.Request(events[i]) })
	for _, ev := range events {
		h.applied(ev, "one of many that came at once")
	}
}

func (h *hostile) atOnce(request func(i int) *Request) []Answer {
	answers := make([]Answer, h.cfg.Flood)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range answers {
		req := request(i)
		wg.Go(func() {
			<-start
			answers[i] = h.post(req)
		})
	}
	close(start)
	wg.Wait()
	return answers
}
