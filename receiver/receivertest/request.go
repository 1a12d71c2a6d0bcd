package receivertest

import (
	"net/http"
	"strconv"
	"time"

	"github.com/surehook/surehook/signing"
)

// Request is a delivery that can be changed before it is sent. Its methods change it and
// return it. Changes of headers and of the signed bytes are made after signing;
// [Request.WrongSecret], [Request.At] and [Request.Skewed] change the signing itself.
type Request struct {
	sender  *Sender
	keys    *signing.Keyring
	id      string
	method  string
	body    []byte
	attempt int
	at      time.Time
	skew    time.Duration
	changes []func(h http.Header, body []byte) []byte

	chunked   bool
	truncated bool
	pause     time.Duration
}

// WrongSecret signs with a secret that nobody else has.
func (r *Request) WrongSecret() *Request {
	r.keys = keyring(r.sender.t, signing.GenerateSecret())
	return r
}

// At signs with a fixed time instead of the time of sending.
func (r *Request) At(at time.Time) *Request {
	r.at = at
	return r
}

// Skewed signs at the time of sending plus skew, as a sender does whose clock is ahead.
// Below zero, the clock is behind, or the sender repeats an old request.
func (r *Request) Skewed(skew time.Duration) *Request {
	r.skew = skew
	return r
}

// Attempt sets the attempt's number, which no signature covers.
func (r *Request) Attempt(n int) *Request {
	r.attempt = n
	return r
}

// Tampered changes one bit of the body after signing.
func (r *Request) Tampered() *Request {
	return r.change(func(_ http.Header, body []byte) []byte {
		if len(body) > 0 {
			body[len(body)/2] ^= 1
		}
		return body
	})
}

// Appended adds text to the body after signing, as something on the way may do.
func (r *Request) Appended(text string) *Request {
	return r.change(func(_ http.Header, body []byte) []byte { return append(body, text...) })
}

// Padded adds spaces up to n bytes, before signing.
func (r *Request) Padded(n int) *Request {
	for len(r.body) < n {
		r.body = append(r.body, ' ')
	}
	return r
}

// Method sends with another method than POST.
func (r *Request) Method(method string) *Request {
	r.method = method
	return r
}

// Header sets a header after signing.
func (r *Request) Header(name, value string) *Request {
	return r.change(func(h http.Header, body []byte) []byte {
		h.Set(name, value)
		return body
	})
}

// Without removes a header after signing.
func (r *Request) Without(name string) *Request {
	return r.change(func(h http.Header, body []byte) []byte {
		h.Del(name)
		return body
	})
}

// Repeated sends a header twice with the same value.
func (r *Request) Repeated(name string) *Request {
	return r.change(func(h http.Header, body []byte) []byte {
		h.Add(name, h.Get(name))
		return body
	})
}

// Chunked sends the body without declaring its size.
func (r *Request) Chunked() *Request {
	r.chunked = true
	return r
}

// Truncated ends after half of the body that was declared.
func (r *Request) Truncated() *Request {
	r.truncated = true
	return r
}

// Slow sends the body byte by byte, waiting before each.
func (r *Request) Slow(pause time.Duration) *Request {
	r.pause = pause
	return r
}

func (r *Request) change(f func(http.Header, []byte) []byte) *Request {
	r.changes = append(r.changes, f)
	return r
}

// sign returns the header and the body as they are to be sent.
func (r *Request) sign() (http.Header, []byte) {
	r.sender.t.Helper()
	at := r.at
	if at.IsZero() {
		at = r.sender.cfg.Now()
	}
	body := append([]byte{}, r.body...)
	h := http.Header{
		"Content-Type":    {r.sender.cfg.ContentType},
		"Webhook-Attempt": {strconv.Itoa(r.attempt)},
	}
	if err := signing.Sign(h, r.sender.cfg.Schemes, r.id, at.Add(r.skew), body, r.keys); err != nil {
		r.sender.t.Fatalf("receivertest: %v", err)
	}
	for _, change := range r.changes {
		body = change(h, body)
	}
	return h, body
}
