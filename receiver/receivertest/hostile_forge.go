package receivertest

import (
	"bytes"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// forges sends requests that the secret's owner has not signed, or not now.
func (h *hostile) forges() {
	var first *Answer
	for _, c := range []struct {
		what   string
		change func(*Request) *Request
		timed  bool
	}{
		{"signed with another secret", (*Request).WrongSecret, false},
		{"changed after signing", (*Request).Tampered, false},
		{"signed an hour ago", func(r *Request) *Request { return r.Skewed(-time.Hour) }, true},
		{"signed in an hour", func(r *Request) *Request { return r.Skewed(time.Hour) }, true},
	} {
		if c.timed && !h.timed {
			continue
		}
		ev := h.event()
		a := h.post(c.change(h.sender.Request(ev)))
		if a.Status != http.StatusUnauthorized {
			h.broken(PromiseVerified, "a request that was %s is answered with %d", c.what, a.Status)
		} else if first == nil {
			first = &a
		} else if !bytes.Equal(first.Body, a.Body) {
			h.broken(PromiseVerified, "a request that was %s is refused in other words than one signed with another secret: that tells a forger what to try next", c.what)
		}
		h.atMost(0, ev, PromiseVerified, "the request was "+c.what)
		h.discreet(a, ev)
	}
}

// discreet reports an answer with the secret in it, or with the signature that would
// have been right.
func (h *hostile) discreet(a Answer, ev Event) {
	right := h.sender.Request(ev).Message()
	leaks := []string{h.subject.Secret.Reveal()}
	for _, name := range []string{"Webhook-Signature", "Webhook-Hmac-Sha256"} {
		leaks = append(leaks, right.Header.Get(name))
	}
	for _, leak := range leaks {
		if leak != "" && bytes.Contains(a.Body, []byte(leak)) {
			h.broken(PromiseSecret, "the answer %d has the secret in it, or what only its holder can know", a.Status)
		}
	}
}

// garbles sends requests that are not well-formed.
func (h *hostile) garbles() {
	signed := h.sender.Request(h.event()).Message().Header
	type garbled struct {
		what   string
		change func(*Request) *Request
	}
	all := []garbled{
		{"has no timestamp", func(r *Request) *Request { return r.Without("Webhook-Timestamp") }},
		{"has two timestamps", func(r *Request) *Request { return r.Repeated("Webhook-Timestamp") }},
		{"has a timestamp that is no number", func(r *Request) *Request { return r.Header("Webhook-Timestamp", "now") }},
		{"has no signature", func(r *Request) *Request {
			return r.Without("Webhook-Signature").Without("Webhook-Hmac-Sha256")
		}},
		{"has empty signatures", func(r *Request) *Request {
			return r.Header("Webhook-Signature", "").Header("Webhook-Hmac-Sha256", "")
		}},
	}
	if signed.Get("Webhook-Timestamp") == "" {
		all = nil // other schemes have other headers
	}
	for _, c := range all {
		ev := h.event()
		if a := h.post(c.change(h.sender.Request(ev))); ok(a) {
			h.broken(PromiseMalformed, "a request that %s is answered with %d", c.what, a.Status)
		}
		h.atMost(0, ev, PromiseMalformed, "the request "+c.what)
	}
}

// breaksOff ends the connection in the middle of the body.
func (h *hostile) breaksOff() {
	for _, chunked := range []bool{false, true} {
		ev := h.event()
		req := h.sender.Request(ev).Truncated()
		if chunked {
			req.Chunked()
		}
		if a := h.post(req); ok(a) {
			h.broken(PromiseMalformed, "a request that broke off in mid-body is answered with %d", a.Status)
		}
		h.atMost(0, ev, PromiseMalformed, "the request broke off in mid-body")
		h.applied(ev, "broken off in mid-body, and delivered again")
	}
}

// endlessBytes is far more than any event has; a handler must stop earlier.
const endlessBytes = 64 << 20

// endless sends a body that does not end, without declaring its size.
func (h *hostile) endless() {
	m := h.sender.Request(h.event()).Message()
	var sent atomic.Int64
	body := io.LimitReader(&spaces{&sent}, endlessBytes)
	req, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, h.url, io.NopCloser(body))
	if err != nil {
		h.t.Fatalf("receivertest: %v", err)
	}
	req.Header, req.ContentLength = m.Header, -1
	res, err := h.sender.cfg.Client.Do(req)
	if err == nil {
		_ = res.Body.Close()
		if res.StatusCode/100 == 2 {
			h.broken(PromiseBodyBounds, "a body of %d MiB is answered with %d", endlessBytes>>20, res.StatusCode)
		}
	}
	if sent.Load() >= endlessBytes {
		h.broken(PromiseBodyBounds, "all %d MiB of a body were read that has no end: bound it before reading", endlessBytes>>20)
	}
}

type spaces struct{ n *atomic.Int64 }

func (s *spaces) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	s.n.Add(int64(len(p)))
	return len(p), nil
}
